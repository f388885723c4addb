"""Run one store in a process that was started with the shim loaded: `python -m chaos.runner`, with its options as JSON
on standard input. Starts the servers; writes the result to a file."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rmem.annotations import Durability
from rmem.embed import static_embedder
from rmem.testing.postgres import PostgresServer
from rmem.testing.redis import RedisServer

from .clients import Setting
from .faults import Control
from .supervisor import Options, Run

STORE = "store.db"


@contextmanager
def servers(kind: str, folder: Path, durability: Durability) -> Iterator[tuple[Setting, Callable[[float], None]]]:
    """Start the server of a store; yield where the store is, and a function that crashes and restarts the server."""
    path = str(folder / STORE)
    if kind == "postgres":
        with PostgresServer() as postgres:

            def crash(_: float) -> None:
                postgres.kill()
                postgres.start()

            yield Setting(kind, postgres.new_database()), crash
    elif kind == "redis":
        with RedisServer() as redis:
            yield (
                Setting(kind, path, durability, redis.port),
                lambda how: redis.flush() if how < 0.3 else redis.restart(),
            )
    else:
        yield Setting(kind, path, durability), lambda how: None


class Progress:
    """Print progress: one updated line on a terminal, else a line every 10 seconds. Exit if the command was killed."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._next = 0.0
        self._parent = os.getppid()

    def __call__(self, text: str) -> None:
        if os.getppid() != self._parent:
            sys.exit("the command of this run was killed")
        if (now := time.monotonic()) < self._next:
            return
        self._next = now + (0.2 if self._terminal else 10.0)
        sys.stderr.write(f"\r\x1b[K{text}" if self._terminal else f"{text}\n")
        sys.stderr.flush()


def main() -> None:
    orders = json.load(sys.stdin)
    folder, kind = Path(orders["folder"]), orders["store"]
    options = Options(**{name: orders[name] for name in Options._fields})
    control = Control(folder / "control", folder / "power.log") if "LD_PRELOAD" in os.environ else None
    static_embedder().embed(["load the model before the first fork"])
    with servers(kind, folder, orders["durability"]) as (setting, crash):
        tempfile.tempdir = str(folder)  # inherited: killed processes leave files behind
        run = Run(options, setting, folder, control, crash, Progress())
        run.execute()
    injected = control.hits() if control is not None else {}
    answer = {
        "counts": {**run.counts, "failed calls": sum(injected.values())},
        "violations": [{"round": number, **violation._asdict()} for number, violation in run.violations],
    }
    (folder / "result.json").write_text(json.dumps(answer), encoding="utf-8")


if __name__ == "__main__":
    main()
