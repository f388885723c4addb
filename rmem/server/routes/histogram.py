"""Counts of memories over time, and lists of sessions, for a timeline of any size."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from fastapi import Query
from pydantic import Field

from ...filters import Filter
from ...index.filtered_rows import BANDS, FilteredRows
from ...models import TIERS, Memory
from .. import documents
from ..access import Access, Reader
from ..bodies import Document
from ..json_router import JsonRouter
from ..ownership import hidden, visible
from .answers import RUNNING
from .memories import FilterParameters

router = JsonRouter(prefix="/workspaces/{workspace}", tags=["memories"], responses=RUNNING)

Counts = Counter[tuple[int, str]]
_REST = "others"
_LOOKED_AT = 10_000  # the newest memories, where rows are not held here
_NAME_OF: dict[str, Callable[[Memory], str]] = {
    "agent": lambda memory: memory.agent_id,
    "type": lambda memory: memory.bookkeeping.memory_type,
    "tier": lambda memory: memory.tier,
    "importance": lambda memory: BANDS[min(int(memory.importance * len(BANDS)), len(BANDS) - 1)],
}


class HistogramParameters(FilterParameters):
    """Which memories to count, and how."""

    by: Literal["agent", "type", "tier", "importance"] = "type"
    bins: Annotated[int, Field(ge=1, le=500, description="Into how many equal spans of time.")] = 60
    names: Annotated[int, Field(ge=1, le=20, description="At most so many names; the rest is “others”.")] = 6


@router.json("GET", "/histogram", documents.HistogramAnswer, "How many memories there are over time")
def histogram(access: Reader, parameters: Annotated[HistogramParameters, Query()]) -> Document:
    where, store = parameters.filter(), access.brain.store
    span = store.read_transaction(lambda: _span(access, where))
    if span is None:
        return {"start": None, "end": None, "width": 0.0, "total": 0, "names": [], "bins": []}
    start, end = span
    width = math.nextafter((end - start) / parameters.bins, math.inf) or 1.0

    def bin_of(time: float) -> int:
        return min(int((time - start) / width), parameters.bins - 1)

    counts = _counts(access, where, parameters, start, end, width)
    for memory in hidden(access, where):
        counts[bin_of(memory.timestamp), _NAME_OF[parameters.by](memory)] -= 1
    totals: Counter[str] = Counter()
    for (_, name), count in counts.items():
        totals[name] += count
    names = [name for name, count in totals.most_common() if count > 0]
    shown = names if len(names) <= parameters.names else [*names[: parameters.names - 1], _REST]
    bins: dict[int, Counter[str]] = {}
    for (at, name), count in counts.items():
        if count > 0:
            bins.setdefault(at, Counter())[name if name in shown else _REST] += count
    return {
        "start": start,
        "end": end,
        "width": width,
        "total": sum(count for count in totals.values() if count > 0),
        "names": shown,
        "bins": [{"start": start + at * width, "counts": dict(bins[at])} for at in sorted(bins)],
    }


def _span(access: Access, where: Filter) -> tuple[float, float] | None:
    """From when to when to count: the filter's own bounds, else those of the memories inside it."""
    store = access.brain.store
    oldest, newest = store.select(where, order="oldest", limit=1), store.select(where, order="newest", limit=1)
    if not oldest or not newest:
        return None
    start = oldest[0].timestamp if where.since is None else where.since
    return start, newest[0].timestamp if where.until is None else max(start, where.until)


def _counts(
    access: Access, where: Filter, parameters: HistogramParameters, start: float, end: float, width: float
) -> Counts:
    """How many memories each span and name has."""
    store = access.brain.store
    rows = store.read_transaction(lambda: store.candidates(where))
    counts: Counts = Counter()
    if isinstance(rows, FilteredRows):
        codes, names = rows.labels(parameters.by)
        spans = np.clip(((rows.column("time") - start) / width).astype(np.int64), 0, parameters.bins - 1)
        found, many = np.unique(spans * len(names) + codes, return_counts=True)
        for key, count in zip(found.tolist(), many.tolist(), strict=True):
            counts[key // len(names), names[key % len(names)]] = count
        return counts
    # A large tenant of PostgreSQL, whose rows are not held here: the database counts each span.
    held, fields = store.stats(), where.to_dict()
    known = {"agent": held.by_agent, "type": held.by_type, "tier": TIERS, "importance": BANDS}[parameters.by]
    among = getattr(where, parameters.by, None) or known
    named = [name for name in known if name in among][: parameters.names]
    for at in range(parameters.bins):
        last = end if at == parameters.bins - 1 else math.nextafter(start + (at + 1) * width, -math.inf)
        inside = {**fields, "since": start + at * width, "until": last}
        if not (rest := store.count(Filter.of(inside))):
            continue
        for name in named:
            counts[at, name] = store.count(Filter.of({**inside, **_named(parameters.by, name)}))
            rest -= counts[at, name]
        counts[at, _REST] += rest
    return counts


def _named(by: str, name: str) -> Document:
    """The field of a filter that memories of a name meet."""
    if by != "importance":
        return {by: name}
    low = BANDS.index(name) / len(BANDS)
    high = low + 1 / len(BANDS)
    return {"min_importance": low, "max_importance": high if high == 1 else math.nextafter(high, 0)}


class SessionsParameters(FilterParameters):
    """Whose sessions to list."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 100


@router.json("GET", "/sessions", documents.SessionsAnswer, "The sessions of some memories, latest first")
def sessions(access: Reader, parameters: Annotated[SessionsParameters, Query()]) -> Document:
    store, where = access.brain.store, parameters.filter()
    rows = store.read_transaction(lambda: store.candidates(where))
    unseen = {(memory.agent_id, memory.session) for memory in hidden(access, where)}
    found = rows.sessions() if isinstance(rows, FilteredRows) else _grouped(store.select(where, limit=_LOOKED_AT))
    listed = [session_row for session_row in found if session_row[:2] not in unseen]
    for agent, session in unseen & {session_row[:2] for session_row in found}:
        inside = Filter.of({**where.to_dict(), "agent": agent, "session": session})
        listed += _grouped(visible(access, store.select(inside)))
    listed.sort(key=lambda session_row: -session_row[3])
    names = ("agent", "session", "start", "end", "memories")
    return {
        "sessions": [dict(zip(names, session_row, strict=True)) for session_row in listed[: parameters.limit]],
        "total": len(listed),
    }


def _grouped(memories: list[Memory]) -> list[tuple[str, str, float, float, int]]:
    groups: dict[tuple[str, str], list[float]] = {}
    for memory in memories:
        if memory.session is not None:
            groups.setdefault((memory.agent_id, memory.session), []).append(memory.timestamp)
    return [(*key, min(times), max(times), len(times)) for key, times in groups.items()]
