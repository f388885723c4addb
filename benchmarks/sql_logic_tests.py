"""Run SQLite's own logic tests on our tables and compare every answer.

    python benchmarks/sql_logic_tests.py CLONE [--records 150] [--every 1] [--show]

CLONE holds the folder `test` of sqllogictest (public domain; gregrahn/sqllogictest is a copy). Its answers were
compared on several databases; records that PostgreSQL does not run are left out. Each file gets a store of its own."""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rmem import Client
from rmem.errors import RemanenceError


def records(path: Path) -> Iterator[list[str]]:
    """Yield the lines of each record that is for PostgreSQL too."""
    for block in path.read_text("utf-8").replace("\r", "").split("\n\n"):
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("#")]
        while lines and lines[0].startswith(("onlyif", "skipif", "hash-threshold")):
            condition, *name = lines.pop(0).split()
            if (condition, name[:1] == ["postgresql"]) in (("onlyif", False), ("skipif", True)):
                lines = []
        if lines and lines[0] == "halt":
            return
        if lines and lines[0]:
            yield lines


def outcome(client: Client, lines: list[str]) -> tuple[str, str]:
    """Run one record; return what became of it, and more about it."""
    kind, what, *options = lines[0].split()
    mark = lines.index("----") if "----" in lines else len(lines)
    try:
        rows = client.query("\n".join(lines[1:mark]))
    except RemanenceError as error:
        return ("refused as expected" if what == "error" else "refused"), str(error)
    if kind == "statement":
        return ("done", "") if what == "ok" else ("not refused", "")
    found = [[_text(value, type_) for value, type_ in zip(row.values(), what, strict=True)] for row in rows]
    if "rowsort" in options:
        found.sort()
    values = [value for row in found for value in row]
    if "valuesort" in options:
        values.sort()
    expected = lines[mark + 1 :]
    if expected and " values hashing to " in expected[0]:
        digest = hashlib.md5("".join(f"{value}\n" for value in values).encode(), usedforsecurity=False).hexdigest()
        values = [f"{len(values)} values hashing to {digest}"]
    return ("right" if values == expected else "wrong"), f"{values[:5]}, expected {expected[:5]}"


def _text(value: Any, type_: str) -> str:
    if value is None:
        return "NULL"
    if type_ == "I" and isinstance(value, str):
        return "0"  # as the tests' own runner prints it
    return str(int(value)) if type_ == "I" else f"{float(value):.3f}" if type_ == "R" else str(value) or "(empty)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("clone", type=Path)
    parser.add_argument("--records", type=int, default=150, help="of each file (default: 150)")
    parser.add_argument("--every", type=int, default=1, help="take every n-th file (default: each)")
    parser.add_argument("--show", action="store_true", help="print what is refused or wrong")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    files = sorted((given.clone / "test").rglob("*.test"))[:: given.every]
    for number, path in enumerate(files, 1):
        with tempfile.TemporaryDirectory() as folder, Client(path=Path(folder) / "tables.db") as client:
            for _, lines in zip(range(given.records), records(path), strict=False):
                found, more = outcome(client, lines)
                counts[found] += 1
                if given.show and found in ("refused", "not refused", "wrong"):
                    print(found, path.name, " ".join(lines[1:3])[:200], more[:200], sep=" | ")
        print(f"\r{number} of {len(files)} files", end="", flush=True)
    print("\n" + ", ".join(f"{count:,} {name}" for name, count in counts.most_common()))


if __name__ == "__main__":
    main()
