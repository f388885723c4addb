"""Translate a filter to SQL, for tenants whose rows are not all held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...filters import Filter
from ...index.columns import required_hashes
from ...index.postings import BlindTermLookup
from ...index.text_features import SEALED
from .postgres_rows import signed

_FAR, _NEAR = 1e150, 1e-150  # a square beyond them does not fit in a float, and PostgreSQL refuses to make it


class Condition(NamedTuple):
    """A condition in SQL for a row `m` of memories, with its values; "" means every row."""

    text: str
    values: tuple[Any, ...]

    @property
    def where(self) -> str:
        return f" WHERE {self.text}" if self.text else ""

    @property
    def further(self) -> str:
        return f" AND {self.text}" if self.text else ""


def condition(where: Filter, *, hides_sealed: bool, blind_term_lookup: BlindTermLookup | None) -> Condition:
    parts: list[tuple[str, Any]] = []
    for column in ("agent", "type", "session", "actor", "tier"):
        names = getattr(where, column)
        if names:
            parts.append((f"m.{column} = ANY(?)", list(names)))
    for alternatives in required_hashes(where):
        terms = signed(np.array(with_blind_terms(alternatives, blind_term_lookup), np.uint64))
        parts.append(("m.seq IN (SELECT p.seq FROM postings p WHERE p.term = ANY(?))", terms))
    for column, low, high in (
        ("step", where.min_step, where.max_step),
        ("time", where.since, where.until),
        ("importance", where.min_importance, where.max_importance),
    ):
        parts += [(f"m.{column} >= ?", low)] if low is not None else []
        parts += [(f"m.{column} <= ?", high)] if high is not None else []
    if where.box is not None:
        for axis, (low, high) in enumerate(zip(*where.box, strict=True)):
            parts += [(f"{_axis(axis)} >= ?", float(low)), (f"{_axis(axis)} <= ?", float(high))]
    if where.near is not None:
        axes = [_axis(number) for number in range(len(where.near))]
        fits = " AND ".join(f"abs({axis}) <= {_FAR}" for axis in axes)
        places = [max(-2 * _FAR, min(float(place), 2 * _FAR)) for place in where.near]
        away = " + ".join(_square(f"{axis} - {place!r}") for axis, place in zip(axes, places, strict=True))
        parts.append((f"CASE WHEN {fits} THEN sqrt({away}) <= ? ELSE false END", where.radius))
    if hides_sealed:
        parts.append((f"m.flags & {SEALED} = ?", 0))
    return Condition(" AND ".join(text for text, _ in parts), tuple(value for _, value in parts))


def with_blind_terms(terms: Sequence[int], blind_term_lookup: BlindTermLookup | None) -> list[int]:
    """Return terms with their blind forms in encrypted memories."""
    if blind_term_lookup is None:
        return list(terms)
    return [known for term in terms for known in (term, *blind_term_lookup(term))]


def _square(difference: str) -> str:
    return f"CASE WHEN abs({difference}) < {_NEAR} THEN 0 ELSE ({difference}) ^ 2 END"


def _axis(number: int) -> str:
    """Return the SQL of a coordinate; NULL, for which no condition holds, if a row has none."""
    return f"(m.position::jsonb ->> {number})::double precision"
