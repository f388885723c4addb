"""Measure recall in use: the feedback in a store, counted by agent, type and time.

A recall is a success if one of its hits was useful. The hit ratio is the share of judged hits that were useful. The
reciprocal rank of a recall is 1 / rank of its first useful hit, 0 if there is none. Recalls that nobody judged do not
count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from .. import checks
from ..feedback import Feedback
from .significance import LEVEL, unpaired_p

WINDOWS = ("day", "week")
_COMPARED = ("success_rate", "hit_ratio", "mrr")


def report(
    feedback: Iterable[Feedback],
    *,
    agent: Sequence[str] = (),
    type: Sequence[str] = (),
    by: str = "week",
    seed: int = 0,
) -> dict[str, Any]:
    """Return success rate, hit ratio and mean reciprocal rank: overall, by agent and type, and by time window."""
    checks.one_of("by", by, WINDOWS)
    chosen = [
        entry
        for entry in feedback
        if not entry.passed_over and (not agent or entry.agent in agent) and (not type or entry.type in type)
    ]
    groups = _group_by(chosen, lambda entry: (entry.agent, entry.type))
    return {
        "by": by,
        "overall": _figures(chosen),
        "drift": drift(chosen, by, seed=seed),
        "windows": [
            {"from": start.isoformat(), **_figures(inside)}
            for start, inside in sorted(_group_by(chosen, lambda entry: window(entry.time, by)).items())
        ],
        "groups": [
            {"agent": whose, "type": kind, **_figures(inside), "drift": drift(inside, by, seed=seed)}
            for (whose, kind), inside in sorted(groups.items())
        ],
    }


def window(seconds: float, by: str) -> date:
    """Return the local day of a time, or the Monday of its week."""
    day = datetime.fromtimestamp(seconds).date()
    return day if by == "day" else day - timedelta(days=day.weekday())


def drift(feedback: Sequence[Feedback], by: str, *, seed: int = 0) -> dict[str, Any] | None:
    """Compare the last window with the one before it that has feedback: change and p of each measure.

    None where there are fewer than two windows. `direction` is that of the first measure that changed by more than
    luck (success rate, then hit ratio, then MRR), or "steady".
    """
    windows = sorted(_group_by(feedback, lambda entry: window(entry.time, by)).items())
    if len(windows) < 2:
        return None
    (before_from, before), (last_from, last) = windows[-2:]
    old, new = _samples(before), _samples(last)
    measures = {}
    for name in _COMPARED:
        change = _mean(new[name]) - _mean(old[name])
        measures[name] = {"change": change, "p": unpaired_p(old[name], new[name], seed=seed)}
    significant = next((measure for measure in measures.values() if measure["p"] < LEVEL), None)
    return {
        "before": before_from.isoformat(),
        "last": last_from.isoformat(),
        "recalls": [len(old["mrr"]), len(new["mrr"])],
        "measures": measures,
        "direction": "steady" if significant is None else "better" if significant["change"] > 0 else "worse",
    }


def _figures(feedback: Sequence[Feedback]) -> dict[str, Any]:
    samples = _samples(feedback)
    hits = samples["hit_ratio"]
    return {
        "recalls": len(samples["mrr"]),
        "hits": len(hits),
        **{name: _mean(samples[name]) if samples[name] else None for name in _COMPARED},
    }


def _samples(feedback: Sequence[Feedback]) -> dict[str, list[float]]:
    """Return one number per recall, or per judged hit; their means are the measures."""
    recalls = _group_by(feedback, lambda entry: entry.recall_id).values()
    ranks = [min((entry.rank for entry in recall if entry.useful), default=0) for recall in recalls]
    return {
        "success_rate": [float(rank > 0) for rank in ranks],
        "hit_ratio": [float(entry.useful) for entry in feedback if entry.memory_id],
        "mrr": [1 / rank if rank else 0.0 for rank in ranks],
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _group_by(feedback: Iterable[Feedback], key: Callable[[Feedback], Any]) -> dict[Any, list[Feedback]]:
    groups: dict[Any, list[Feedback]] = defaultdict(list)
    for entry in feedback:
        groups[key(entry)].append(entry)
    return groups
