"""Journals: every process writes each operation before it is issued, and its result afterwards. A line is one write(2),
which survives kill -9 of its writer, but not a crash of the machine."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

FOREVER = math.inf


class Journal:
    """Append to a file of one process, from any number of threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._lock, self._issued = Lock(), 0

    def issue(self, op: str, args: Mapping[str, Any]) -> int:
        """Record an operation before it is issued; return its number."""
        with self._lock:
            self._issued += 1
            number = self._issued
        self._write(n=number, op=op, args=args)
        return number

    def acknowledge(self, number: int, result: Any, *, at: int | None = None) -> None:
        """Record a result; `at` is when it arrived, if not now."""
        self._write(n=number, ok=result, **({} if at is None else {"t": at}))

    def fail(self, number: int, error: BaseException, *, excusable: bool = False) -> None:
        """Record an error. `excusable`: a store may raise it while a fault is injected."""
        message = f"{type(error).__name__}: {error}"
        self._write(n=number, error=message[:500], excusable=excusable)

    def end(self) -> None:
        """Record that this process ends as planned."""
        self._write(n=0, ok="end")

    def _write(self, **line: Any) -> None:
        os.write(self._fd, json.dumps({"t": time.monotonic_ns(), **line}, separators=(",", ":")).encode() + b"\n")


@dataclass(slots=True)
class Operation:
    """One operation of a journal: issued at `start`, answered at `answered`, without further effect after `end`."""

    source: str
    op: str
    args: dict[str, Any]
    start: int
    end: float = FOREVER
    answered: float = FOREVER
    acknowledged: bool = False
    result: Any = None
    error: str | None = None
    excusable: bool = False
    lines: tuple[str, ...] = ()

    def journal_lines(self) -> str:
        return "\n".join(f"{self.source}: {line if len(line) < 400 else line[:400] + '…'}" for line in self.lines)


def read_journal(path: Path, death: float) -> Iterator[Operation]:
    """Yield the operations of a journal. Unanswered ones ended with the process, at `death`. A failed write has no end:
    it may still take effect when the file is recovered."""
    waiting: dict[int, Operation] = {}
    for text in path.read_text(encoding="utf-8").split("\n")[:-1]:  # a kill may cut the last line
        line = json.loads(text)
        if "op" in line:
            waiting[line["n"]] = Operation(path.stem, line["op"], line["args"], line["t"], lines=(text,))
        elif line["n"] in waiting:
            done = waiting.pop(line["n"])
            done.lines += (text,)
            done.answered = line["t"]
            if "error" in line:
                done.error, done.excusable = line["error"], line["excusable"]
            else:
                done.acknowledged, done.result, done.end = True, line["ok"], line["t"]
            yield done
    for lost in waiting.values():
        lost.end = lost.answered = death
        yield lost


def has_ended(path: Path) -> bool:
    """Whether the process of a journal ended as planned."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 200))
        return b'"n":0,"ok":"end"}\n' in file.read()
