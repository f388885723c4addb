"""Puts measured figures into docs/benchmarks.md, docs/chaos.md and docs/privacy.md, so that they say what a run said.

    rmem bench --json > benchmarks/results/bench.json
    rmem bench agents --redis --json > benchmarks/results/agents.json
    rmem bench server --noisy --json > benchmarks/results/noisy.json
    python benchmarks/peers.py --json benchmarks/results/peers.json
    python -m chaos --minutes 60 --json benchmarks/results/chaos.json
    rmem privacy eval CLONES… --faker --json > benchmarks/results/privacy.json
    python benchmarks/figures.py

Every `benchmarks/results/bench*.json`, `agents*.json`, `noisy*.json`, `peers*.json` and `chaos*.json` is read; the
tables between the markers of the pages are written anew, the words around them are left alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from peers import ROWS  # noqa: E402
from peers import cell as peer_cell  # noqa: E402
from rmem_bench import agents_report, report  # noqa: E402
from rmem_bench.report import figure, figure_at, judged  # noqa: E402

from chaos.report import table as chaos_table  # noqa: E402

PAGE = HERE.parent / "docs" / "benchmarks.md"
PRIVACY_PAGE = HERE.parent / "docs" / "privacy.md"
CHAOS_PAGE = HERE.parent / "docs" / "chaos.md"
RESULTS = HERE / "results"


def main() -> None:
    page = PAGE.read_text("utf-8")
    for kind, before, layout in (("bench", "", report), ("agents", "agents-", agents_report)):
        reports = [_read(path) for path in sorted(RESULTS.glob(f"{kind}*.json"))]
        sizes = {size: figures for found in reports for size, figures in found["sizes"].items()}
        ordered = dict(sorted(sizes.items(), key=lambda item: int(item[0])))
        page = put(page, f"{before}targets", targets(ordered, layout.TARGETS))
        page = put(page, f"{before}times", times(ordered, layout.TIMED))
        page = put(page, f"{before}singles", singles(ordered, layout.SINGLE))
        page = put(page, f"{before}machine", machines(reports))
    peers = [_read(path) for path in sorted(RESULTS.glob("peers*.json"))]
    page = put(page, "peers", "\n\n".join(map(compared, sorted(peers, key=lambda found: found["size"]))))
    page = put(page, "noisy", "\n\n".join(noisy(_read(path)) for path in sorted(RESULTS.glob("noisy*.json"))))
    PAGE.write_text(page, "utf-8")
    broken = chaos_table([_read(path) for path in sorted(RESULTS.glob("chaos*.json"))])
    CHAOS_PAGE.write_text(put(CHAOS_PAGE.read_text("utf-8"), "chaos", broken), "utf-8")

    found = _read(RESULTS / "privacy.json")
    privacy = put(PRIVACY_PAGE.read_text("utf-8"), "kinds", rates(found["by_kind"]))
    rows = {f"{corpus}: {row}": one for corpus, kinds in found["by_corpus"].items() for row, one in kinds.items()}
    secrets = {name: one for name, one in rows.items() if "secret" in name}
    PRIVACY_PAGE.write_text(put(privacy, "secrets", rates(secrets)), "utf-8")


def rates(kinds: dict[str, Any]) -> str:
    """Recall and precision of `rmem privacy eval`, a row for each kind."""
    return table(
        ["", "recall", "precision", "found", "missed", "extra"],
        [
            [name, *("–" if one[key] is None else f"{one[key]:.3f}" for key in ("recall", "precision"))]
            + [f"{one[key]:,}" for key in ("found", "missed", "extra")]
            for name, one in kinds.items()
        ],
    )


def noisy(found: dict[str, Any]) -> str:
    """What a quiet organisation waits, alone and beside a noisy one."""
    lines = ["| | calls | p50 ms | p95 ms | p99 ms | max ms |", "| --- | --- | --- | --- | --- | --- |"]
    for when, calls in (("alone", found["alone"]), ("beside noise", found["calls"])):
        for kind, figures in calls.items():
            cells = [figure(figures[f"{share}_ms"]) for share in ("p50", "p95", "p99", "max")]
            lines.append(f"| {kind}, {when} | {figures['calls']:,} | {' | '.join(cells)} |")
    met = "met" if found["targets"]["met"] else "not met"
    load = f"load {found['machine']['load_before']} before the run, {found['load_average_at_end']} at its end"
    return "\n".join([*lines, "", f"Targets {met}; {found['errors']['total']} errors; {found['date'][:10]}, {load}."])


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def put(page: str, name: str, table: str) -> str:
    """The page with what stands between two markers replaced."""
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, _, rest = page.partition(start)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"the page has no markers for {name}")
    return f"{before}{start}{table}\n{end}{after}"


def table(heading: list[str], lines: list[list[str]]) -> str:
    """Return a table without the lines that no kept report has a figure for."""
    rows = [heading, ["---", *["---:"] * (len(heading) - 1)], *(line for line in lines if any(line[1:]))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)


def targets(sizes: dict[str, Any], limits: Sequence[report.Target]) -> str:
    return table(
        ["", "memories", "target", "measured", "met"],
        [
            [
                row["name"],
                f"{row['size']:,}",
                row["target"],
                f"{figure(row['measured'])} {row['unit']}".strip(),
                "yes" if row["met"] else "**no**",
            ]
            for row in judged(sizes, limits)
        ],
    )


def times(sizes: dict[str, Any], rows: Sequence[tuple[str, str]]) -> str:
    lines = []
    for title, path in rows:
        cells = [title.replace("  ", "– ", 1)]
        for figures in sizes.values():
            for kind in ("cpu_ms", "wall_ms"):
                found = [figure_at(figures, f"{path}.{kind}.{share}") for share in ("p50", "p95", "p99")]
                cells.append(" / ".join(map(figure, found)) if found[0] is not None else "")
        lines.append(cells)
    heading = [f"{int(size):,}, {kind}" for size in sizes for kind in ("CPU", "wall")]
    return table(["milliseconds, p50 / p95 / p99", *heading], lines)


def singles(sizes: dict[str, Any], rows: Sequence[tuple[str, str, str]]) -> str:
    lines = []
    for title, path, form in rows:
        cells = [title]
        for figures in sizes.values():
            value = figure_at(figures, path)
            scaled = value / 1e6 if value is not None and form.endswith("MB") else value
            cells.append("" if scaled is None else form.format(scaled))
        lines.append(cells)
    return table(["", *(f"{int(size):,}" for size in sizes)], lines)


def machines(reports: list[dict[str, Any]]) -> str:
    lines = []
    for found in reports:
        facts = found["machine"]
        sizes = ", ".join(f"{int(size):,}" for size in found["sizes"])
        lines.append(
            f"- {sizes} memories: {found['date'][:10]}, {facts['cpus_usable']} shared cores, "
            f"{facts['memory_gb']:g} GB, {facts['filesystem']}, load {facts['load_before']:g} before the run, "
            f"Python {facts['python']}, numpy {facts['numpy']} ({facts['blas_threads']} thread), "
            f"SQLite {facts['sqlite']}, embedder {found['embedder']}"
        )
    return "\n".join(lines)


def compared(found: dict[str, Any]) -> str:
    peers = found["peers"]
    lines = []
    notes: dict[str, None] = {}
    for title, part, key in ROWS:
        cells = [title.replace("  ", "– ", 1)]
        for peer, figures in peers.items():
            value = figures.get(part)
            if isinstance(value, dict) and "not_possible" in value:
                search = part.removesuffix("_one_agent")
                notes[f"- {peer}, {search}: not possible offline: {value['not_possible']}."] = None
                value = None
            cells.append(peer_cell(value.get(key) if isinstance(value, dict) else value))
        lines.append(cells)
    heading = [f"{peer} {figures.get('version', 'failed')}" for peer, figures in peers.items()]
    title = f"{found['size']:,} memories, {found['date'][:10]}, wall p50 / p95 unless said"
    return "\n".join([table([title, *heading], lines), "", *notes])


if __name__ == "__main__":
    main()
