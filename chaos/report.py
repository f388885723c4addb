"""Reports of a run: as text, and as the table of docs/chaos.md."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

ROWS = {
    "rounds": "rounds",
    "operations": "operations issued",
    "acknowledged": "acknowledged",
    "unanswered": "unanswered (killed on the way)",
    "failed": "refused with an error",
    "reads checked": "reads checked",
    "memories": "memories at the end",
    "kill": "kill -9",
    "stop": "SIGSTOP and SIGCONT",
    "interrupt": "interrupts",
    "fork": "forks with an open store",
    "disk": "times of failing disk calls",
    "failed calls": "failing disk calls",
    "power cuts": "power cuts",
    "server": "crashes of the server",
    "doctor": "doctor",
    "backup": "backups",
    "reindex": "reindex, half of them killed",
    "export": "exports by another process",
    "open": "opened by a fresh process",
    "violations": "**violations**",
}
_NAMES = re.compile(r"\b[ciqvx][b-z]*z[b-z]*\b|\d+")  # what differs between similar violations


def describe(store: str, result: Mapping[str, Any], command: str) -> str:
    """Return the report on one store, as text."""
    counts, violations = result["counts"], result["violations"]
    lines = [f"{store}:"]
    lines += [f"  {counts[key]:>12,}  {name}" for key, name in ROWS.items() if counts.get(key)]
    lines.append(f"  {len(violations):>12,}  violations")
    similar = Counter(map(_group_key, violations))
    for violation in violations:
        if (number := similar.pop(_group_key(violation), 0)) == 0:
            continue  # a similar one was shown
        more = f" (and {number - 1:,} like it)" if number > 1 else ""
        lines += ["", f"  {violation['kind']}, round {violation['round']}: {violation['message']}{more}"]
        lines += [f"    {line}" for line in violation["lines"].splitlines()]
    if violations:
        lines += ["", f"  Replay the plan: {command}"]
    return "\n".join(lines)


def _group_key(violation: Mapping[str, Any]) -> tuple[str, str]:
    return violation["kind"], _NAMES.sub("#", violation["message"])[:60]


def table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures of recorded runs as a Markdown table, a column for each store and seed, with the machine of
    each run below."""
    columns: dict[str, Mapping[str, int]] = {}
    notes = []
    often = Counter(store for run in runs for store in run["stores"])
    for run in runs:
        for store, result in run["stores"].items():
            store = f"{store}, seed {run['seed']}" if often[store] > 1 else store
            columns[store] = {**result["counts"], "violations": len(result["violations"])}
            facts = run["machine"]
            notes.append(
                f"- {store}: {run['date'][:10]}, {result['seconds'] / 60:.0f} minutes, {facts['cpus_usable']} shared "
                f"cores, {facts['filesystem']}, Python {facts['python']}, SQLite {facts['sqlite']}: `{run['command']}`"
            )
    rows = [["", *columns], ["---", *["---:"] * len(columns)]]
    for key, name in ROWS.items():
        if any(counts.get(key) for counts in columns.values()) or key == "violations":
            rows.append([name, *(f"{counts.get(key, 0):,}" for counts in columns.values())])
    return "\n".join(["| " + " | ".join(row) + " |" for row in rows] + (["", *notes] if notes else []))
