"""What works with which framework, from the results of tests.

As a plugin of pytest (`-p matrix --matrix FILE`) it adds the outcomes of tests that are marked with
`framework(name, what)`, and of the examples in docs/frameworks, to a file. As a command it writes the table of
docs/frameworks/index.md from such files: python tests/integrations/matrix.py build/frameworks.jsonl
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "frameworks" / "index.md"
BEGIN, END = "<!-- matrix -->\n", "<!-- end of matrix -->\n"
COLUMNS = ["its own tests", "kept", "recalled", "scopes apart", "on a server", "example"]
SIGNS = {"passed": "✓", "failed": "✗", "skipped": "–"}


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--matrix",
        type=lambda path: Path(path).absolute(),
        help="file to which the outcomes of framework tests are added",
    )


def pytest_runtest_makereport(item: Any, call: Any) -> None:
    path = item.config.getoption("--matrix")
    decided = call.when == "call" or call.excinfo is not None
    if path is None or not decided:
        return
    skipped = call.excinfo is not None and call.excinfo.typename == "Skipped"
    outcome = "skipped" if skipped else "passed" if call.excinfo is None else "failed"
    marked = [marker.args for marker in item.iter_markers("framework")]
    page = item.callspec.params.get("page") if hasattr(item, "callspec") else None
    if page is not None and page.parent == PAGE.parent and page != PAGE and "_runs" in item.name:
        marked.append((page.stem, "example"))
    for name, what in marked:
        counted = dict(item.user_properties).get("counted")
        row = {"framework": name, "what": what, "outcome": outcome, "counted": counted, "test": item.nodeid}
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "version": _version(name)}) + "\n")


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def table(rows: list[dict[str, Any]]) -> str:
    """The table: a cell is what all tests of it say, the worst first; without a test it is empty."""
    cells: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        cells[row["framework"]][row["what"]].append(row)
    lines = [["framework", "release", *COLUMNS], ["---"] * (2 + len(COLUMNS))]
    for name in sorted(cells):
        version = max(row["version"] for rows in cells[name].values() for row in rows)
        lines.append([f"`{name}`", version, *(_cell(cells[name][what]) for what in COLUMNS)])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(rows: list[dict[str, Any]]) -> str:
    ran = [row for row in rows if row["outcome"] != "skipped"] or rows
    if not ran:
        return ""
    sign = SIGNS["failed" if any(row["outcome"] == "failed" for row in ran) else ran[0]["outcome"]]
    counted = sum(1 if row["counted"] is None else row["counted"] for row in ran if row["what"] == COLUMNS[0])
    return f"{sign} {counted}" if counted else sign


def written(page: str, rows: list[dict[str, Any]]) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table(rows)}{END}{after}"


def _rows(paths: list[str]) -> Iterator[dict[str, Any]]:
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            held = latest.get((row["test"], row["what"]))
            if held is None or row["outcome"] != "skipped" or held["outcome"] == "skipped":
                latest[row["test"], row["what"]] = row
    yield from latest.values()


def main(paths: list[str]) -> None:
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), list(_rows(paths))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
