"""Count the functions, files and changes of file of one `remember`, one warm `recall` and one repeated search in SQL.

    python benchmarks/trace.py            # this checkout
    PYTHONPATH=OTHER python benchmarks/trace.py

Only functions of the package count, and no comprehensions. Each call is made a few times before it is traced, so that
what is loaded or compiled once is not counted. A change of file is a call into another file, or a return from it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import rmem
from rmem import Brain, Client

_PACKAGE = str(Path(rmem.__file__).parent) + "/"
_WARM = 5  # calls before the one that is traced
_MEMORIES = 500
_INLINE = ("<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")  # which newer versions of Python do not call


class Trace(NamedTuple):
    """Functions of the package that one call entered."""

    functions: int
    calls: int
    files: int
    changes: int


def trace(call: Callable[[], object]) -> Trace:
    """Trace the last of several calls."""
    for _ in range(_WARM):
        call()
    entered: dict[CodeType, int] = {}
    visited: list[str] = []

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(_PACKAGE) or code.co_name in _INLINE:
            return
        if event == "call":
            entered[code] = entered.get(code, 0) + 1
            visited.append(code.co_filename)
        elif (caller := _caller(frame)) is not None:
            visited.append(caller)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    changes = sum(one != other for one, other in pairwise(visited))
    files = {code.co_filename for code in entered}
    return Trace(len(entered), sum(entered.values()), len(files), changes)


def _caller(frame: FrameType) -> str | None:
    """The file of the package that a function returns to."""
    above = frame.f_back
    while above is not None and not above.f_code.co_filename.startswith(_PACKAGE):
        above = above.f_back
    return None if above is None else above.f_code.co_filename


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with Brain(Path(folder) / "memories.db") as brain:
            brain.remember_many({"text": f"The import of carrier {n} fails on empty rows"} for n in range(_MEMORIES))
            found = {
                "remember": trace(lambda: brain.remember("Fixed OOM: switched to pyarrow.dataset", agent="swe-01")),
                "recall": trace(lambda: brain.recall("which import fails on empty rows?", touch=False)),
            }
        with Client(path=str(Path(folder) / "tables")) as client:
            texts = [f"The import of carrier {n} fails" for n in range(_MEMORIES)]
            client.ingest("notes", {"id": list(range(_MEMORIES)), "body": texts})
            query = "SELECT id, body <#> 'which import fails' AS score FROM notes ORDER BY score DESC LIMIT 5"
            found["SELECT … <#>"] = trace(lambda: client.query(query))
    print(f"{'':14}{'functions':>10}{'calls':>8}{'files':>7}{'changes of file':>17}")
    for name, one in found.items():
        print(f"{name:14}{one.functions:>10}{one.calls:>8}{one.files:>7}{one.changes:>17}")


if __name__ == "__main__":
    main()
