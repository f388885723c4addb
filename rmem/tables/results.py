"""Result: the columns with their types, the rows and the row count of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .catalog import Type


@dataclass(frozen=True, slots=True)
class Result:
    """Values are Python's own: int, float, Decimal, str, bool, datetime, date, UUID, bytes, dict and list for JSONB,
    list of float for vectors. `row_count` is the number of rows returned, or written by a statement that returns
    none. Columns of one name, as two tables may have, become `name`, `name_2` and so on: rows are read by name."""

    columns: tuple[str, ...] = ()
    types: tuple[Type | None, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    row_count: int = 0

    def __post_init__(self) -> None:
        if len(set(self.columns)) < len(self.columns):
            object.__setattr__(self, "columns", _distinct(self.columns))

    def batches(self, size: int) -> list[Result]:
        """Split into results of at most `size` rows; at least one."""
        starts = range(0, max(1, len(self.rows)), size)
        parts = [self.rows[at : at + size] for at in starts]
        return [Result(self.columns, self.types, part, len(part) or self.row_count) for part in parts]

    def dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    taken: set[str] = set()
    found = []
    for name in names:
        free = name
        number = 1
        while free in taken or (number > 1 and free in names):
            number += 1
            free = f"{name}_{number}"
        taken.add(free)
        found.append(free)
    return tuple(found)
