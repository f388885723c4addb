"""Fork, wait for and kill processes of the supervisor. The supervisor opens no store and has no threads, so that a fork
is safe; it takes milliseconds, a new interpreter half a second."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from .worker import SIGNALS


class ChildError(Exception):
    """A process that should inspect a store failed or timed out."""

    @property
    def last(self) -> str:
        return (str(self).strip().splitlines() or [""])[-1]


def fork(name: Path, work: Callable[[], object]) -> int:
    """Run `work` in a new process whose output goes to a log; return its pid. It starts with the signals of workers
    blocked, which would end it before it has handlers for them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    pid = os.fork()
    if not pid:
        _child(name, work)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    return pid


def _child(name: Path, work: Callable[[], object]) -> NoReturn:
    status = 1
    try:
        log = os.open(f"{name}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def reap(pid: int, timeout: float = 0.0) -> int | None:
    """Wait up to `timeout` seconds for a child; return its status, None if it still runs."""
    deadline = time.monotonic() + timeout
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended or time.monotonic() >= deadline:
            return status if ended else None
        time.sleep(0.005)


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass  # it has ended


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def call_in_process(work: Callable[[], Any], name: Path, timeout: float) -> Any:
    """Run `work` in a new process; return its result."""
    answer = Path(f"{name}.answer")
    pid = fork(name, lambda: answer.write_bytes(pickle.dumps(work())))
    status = reap(pid, timeout)
    if status is None:
        kill(pid)
        os.waitpid(pid, 0)
        raise ChildError(f"no answer within {timeout:.0f} s")
    if status:
        raise ChildError(Path(f"{name}.log").read_text(errors="replace")[-3000:])
    return pickle.loads(answer.read_bytes())
