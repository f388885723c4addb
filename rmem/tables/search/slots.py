"""Where the rows of a table stand in an index of one of its columns: each gets a slot in order of arrival, and another
one when it changes; a slot whose row is gone or changed is dead. And arrays that grow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...index.arrays import distinct

Rows = npt.NDArray[np.int64]
Positions = npt.NDArray[np.int64]

_FEW = 1024
_DEAD = 4096  # slots that may be dead before it is worth packing the others


class Growing:
    """An array that grows at its end. What was read from it before stays as it was."""

    def __init__(self, kind: Any, width: tuple[int, ...] = ()) -> None:
        self._held: npt.NDArray[Any] = np.zeros((0, *width), kind)
        self.size = 0

    def append(self, values: npt.NDArray[Any]) -> None:
        end = self.size + len(values)
        if end > len(self._held):
            larger = np.zeros((max(end, len(self._held) * 3 // 2), *self._held.shape[1:]), self._held.dtype)
            larger[: self.size] = self._held[: self.size]
            self._held = larger
        self._held[self.size : end] = values
        self.size = end

    @property
    def array(self) -> npt.NDArray[Any]:
        return self._held[: self.size]

    @property
    def nbytes(self) -> int:
        return self._held.nbytes


class Slots:
    def __init__(self) -> None:
        self._rows = Growing(np.int64)
        self._alive = Growing(np.bool_)
        self.dead = 0
        # Most rows are found in sorted arrays; those that came lately wait in a dictionary.
        self._sorted: Rows = np.empty(0, np.int64)
        self._sorted_slots: Positions = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    @property
    def size(self) -> int:
        return self._rows.size

    @property
    def rows(self) -> Rows:
        """The row of each slot, dead or alive."""
        return self._rows.array

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes + self._alive.nbytes + 2 * self._sorted.nbytes + 100 * len(self._recent)

    @property
    def mostly_dead(self) -> bool:
        return self.dead > max(_DEAD, self.size // 2)

    def living(self) -> Positions | None:
        """The slots of living rows, ascending; None for all."""
        return np.flatnonzero(self._alive.array) if self.dead else None

    def add(self, rows: Rows) -> None:
        """Rows that have no living slot."""
        first = self.size
        self._rows.append(rows)
        self._alive.append(np.ones(rows.size, np.bool_))
        self._recent.update(zip(rows.tolist(), range(first, self.size), strict=True))
        if len(self._recent) > max(_FEW, self.size // 8):
            self._sort()

    def _sort(self) -> None:
        slots = np.flatnonzero(self._alive.array)
        order = np.argsort(self.rows[slots], kind="stable")
        self._sorted, self._sorted_slots = self.rows[slots][order], slots[order]
        self._recent = {}

    def drop(self, rows: Rows) -> Positions:
        """The slots of those rows that had one; they are dead now."""
        slots = distinct(self._find(rows))
        slots = slots[slots >= 0]
        self._alive.array[slots] = False
        self.dead += slots.size
        if self._recent:
            for row in rows.tolist():
                self._recent.pop(row, None)
        return slots

    def _find(self, rows: Rows) -> Positions:
        """The living slots of some rows; -1 where there is none."""
        found = np.full(rows.size, -1, np.int64)
        if self._sorted.size:
            at = np.minimum(np.searchsorted(self._sorted, rows), self._sorted.size - 1)
            slots = self._sorted_slots[at]
            held = (self._sorted[at] == rows) & self._alive.array[slots]
            found[held] = slots[held]
        if self._recent:
            waiting = [self._recent.get(row, -1) for row in rows.tolist()]
            found = np.maximum(found, np.array(waiting, np.int64))
        return found
