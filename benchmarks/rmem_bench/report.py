"""The targets, and the figures as tables. Every figure is read from the report that `--json` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console

Report = dict[str, Any]


class Target(NamedTuple):
    """A figure that must not pass a limit (`most`) or must reach it."""

    name: str
    path: str
    limit: float
    unit: str
    sizes: tuple[int, ...] = (100_000,)
    most: bool = True
    scale: float = 1.0


TARGETS = (
    Target("hybrid recall, CPU p50", "recall.hybrid.cpu_ms.p50", 4, "ms"),
    Target("hybrid recall, CPU p99", "recall.hybrid.cpu_ms.p99", 10, "ms"),
    Target("hybrid recall of one agent (1 %), CPU p50", "recall.filtered.cpu_ms.p50", 2, "ms"),
    Target("hybrid recall, CPU p50", "recall.hybrid.cpu_ms.p50", 30, "ms", (1_000_000,)),
    Target("hybrid recall, CPU p99", "recall.hybrid.cpu_ms.p99", 60, "ms", (1_000_000,)),
    Target("RSS with the store open", "memory.rss_bytes", 1200, "MB", (1_000_000,), scale=1e-6),
    Target(
        "durable remember : bare insert, wall p50",
        "remember.ratios.remember_to_bare_sqlite_insert.wall",
        3,
        "×",
    ),
    Target("remember in bulk, wall", "bulk.rows_per_wall_s", 4000, "/s", most=False),
    Target("recall in a new process, wall p50", "start.recall_in_a_new_process.wall_ms.p50", 500, "ms"),
    Target("import rmem", "start.import_rmem_ms", 100, "ms"),
    Target("RSS with the store open", "memory.rss_bytes", 300, "MB", scale=1e-6),
    Target("vector recall@10", "vectors.recall_at_10", 0.999, "", (100_000, 1_000_000), most=False),
    Target("vector recall@10, one agent", "vectors.recall_at_10_filtered", 0.999, "", (100_000, 1_000_000), most=False),
)


def judged(sizes: Mapping[str, Report], targets: Sequence[Target] = TARGETS) -> list[dict[str, Any]]:
    """Each target that this run has a figure for, with the figure and whether it is met."""
    results = []
    for target in targets:
        for size in target.sizes:
            found = figure_at(sizes.get(str(size), {}), target.path)
            if found is None:
                continue
            value = found * target.scale
            met = value <= target.limit if target.most else value >= target.limit
            results.append(
                {
                    "name": target.name,
                    "size": size,
                    "target": ("≤ " if target.most else "≥ ") + f"{target.limit:g} {target.unit}".strip(),
                    "measured": round(value, 4),
                    "unit": target.unit,
                    "met": met,
                }
            )
    return results


def figure_at(report: Report, path: str) -> float | None:
    """The figure behind a dotted path; None where it was not measured."""
    found: Any = report
    for key in path.split("."):
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    return float(found)


TIMED = (
    ("remember, durable, one by one", "remember.remember"),
    ("  bare SQLite insert of the same row", "remember.baselines.bare_sqlite_insert"),
    ("recall hybrid", "recall.hybrid"),
    ("recall hybrid, one agent (1 %)", "recall.filtered"),
    ("recall hybrid right after a remember", "remember.hybrid_recall_after_a_remember"),
    ("  the next question of the same kind", "remember.baselines.hybrid_recall_without_a_remember"),
    ("recall lexical", "recall.lexical"),
    ("  FTS5, OR of the words", "recall.baselines.fts5_or"),
    ("  FTS5, without function words", "recall.baselines.fts5_or_without_function_words"),
    ("recall vector", "recall.vector"),
    ("  numpy brute force", "recall.baselines.numpy_brute_force"),
    ("recall in a new process", "start.recall_in_a_new_process"),
    ("  python -c pass", "start.baselines.python_pass"),
)

SINGLE = (
    ("remember in bulk", "bulk.rows_per_wall_s", "{:,.0f} rows/s wall"),
    ("", "bulk.rows_per_cpu_s", "{:,.0f} rows/s CPU"),
    ("import rmem", "start.import_rmem_ms", "{:.1f} ms"),
    ("from rmem import Brain", "start.import_brain_ms", "{:.0f} ms"),
    ("RSS with the store open", "memory.rss_bytes", "{:,.0f} MB"),
    ("file", "file.bytes", "{:,.0f} MB"),
    ("", "file.bytes_per_memory", "{:,.0f} bytes a memory"),
    ("remember : bare insert, wall", "remember.ratios.remember_to_bare_sqlite_insert.wall", "{:.2f} ×"),
    (
        "recall right after a remember : the next, CPU",
        "remember.ratios.recall_after_a_remember_to_recall.cpu",
        "{:.2f} ×",
    ),
    ("lexical : FTS5, CPU", "recall.ratios.lexical_to_fts5_or.cpu", "{:.3f} ×"),
    ("vector : brute force, CPU", "recall.ratios.vector_to_numpy_brute_force.cpu", "{:.3f} ×"),
    ("vector recall@10, clustered", "vectors.recall_at_10", "{:.4f}"),
    ("vector recall@10, one agent", "vectors.recall_at_10_filtered", "{:.4f}"),
    ("vector recall@10, embedded texts", "recall.vector_recall_at_10", "{:.4f}"),
)


def show(
    report: Report,
    console: Console,
    timed: Sequence[tuple[str, str]] = TIMED,
    singles: Sequence[tuple[str, str, str]] = SINGLE,
) -> None:
    """The report as tables for a reader."""
    from rich.table import Table

    for size, figures in report["sizes"].items():
        table = Table(title=f"{int(size):,} memories: milliseconds", title_justify="left")
        table.add_column("", no_wrap=True)
        for kind in ("CPU", "wall"):
            for share in ("p50", "p95", "p99"):
                table.add_column(f"{kind} {share}", justify="right")
        for name, path in timed:
            if figure_at(figures, f"{path}.calls") is not None:
                cells = [
                    figure(figure_at(figures, f"{path}.{kind}.{share}"))
                    for kind in ("cpu_ms", "wall_ms")
                    for share in ("p50", "p95", "p99")
                ]
                table.add_row(name, *cells)
        if table.row_count:
            console.print(table)
        for name, path, form in singles:
            value = figure_at(figures, path)
            if value is not None:
                shown = form.format(value / 1e6 if form.endswith("MB") else value)
                console.print(f"{name:46}{shown}", highlight=False)
        console.print()
    if report["targets"]:
        table = Table(title="Targets", title_justify="left")
        for heading in ("", "memories", "target", "measured", ""):
            table.add_column(heading, justify="left" if not heading else "right")
        for row in report["targets"]:
            verdict = "[green]met[/]" if row["met"] else "[red]not met[/]"
            measured = f"{figure(row['measured'])} {row['unit']}".strip()
            table.add_row(row["name"], f"{row['size']:,}", row["target"], measured, verdict)
        console.print(table)


def figure(value: float | None) -> str:
    """Three digits that matter."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.4g}"
