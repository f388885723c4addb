"""Map rows of a table to slots of a column index: a row gets a slot on arrival and a new one when it changes; the old
slot is dead. Also arrays that grow."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ...index.arrays import distinct, is_among
from ..engines.base import RowNumbers

Prints = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

LAST = 2**63 - 1  # no row has a higher number
_FEW = 1024
_DEAD = 4096  # slots that may be dead before it is worth packing the others


def fingerprint(value: Any) -> int:
    """Hash a value, to recognise it later; 0 for NULL."""
    if value is None:
        return 0
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else np.ascontiguousarray(value).data
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little") or 1


def replaced_rows(gone: RowNumbers, rows: RowNumbers, same: npt.NDArray[np.bool_]) -> RowNumbers:
    """Return deleted and current rows, without those that are the `same` as before."""
    return np.concatenate([gone[~is_among(gone, np.sort(rows[same]))], rows[~same]])


class GrowingArray:
    """An array that grows at its end. Views read earlier stay valid."""

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
    """The row and the value's fingerprint of each slot."""

    def __init__(self) -> None:
        self._rows = GrowingArray(np.int64)
        self._prints = GrowingArray(np.uint64)
        self._alive = GrowingArray(np.bool_)
        self.dead = 0
        # Most rows are found in sorted arrays; those that came lately wait in a dictionary.
        self._sorted: RowNumbers = np.empty(0, np.int64)
        self._sorted_slots: Positions = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    @property
    def size(self) -> int:
        return self._rows.size

    @property
    def rows(self) -> RowNumbers:
        return self._rows.array

    @property
    def nbytes(self) -> int:
        return 17 * self._rows.size + 2 * self._sorted.nbytes + 100 * len(self._recent)

    @property
    def mostly_dead(self) -> bool:
        return self.dead > max(_DEAD, self.size // 2)

    def live_slots(self) -> Positions | None:
        """Return the slots of live rows, ascending; None for all."""
        return np.flatnonzero(self._alive.array) if self.dead else None

    @property
    def prints(self) -> Prints:
        return self._prints.array

    def find_unchanged(self, rows: RowNumbers, prints: Prints) -> npt.NDArray[np.bool_]:
        """Return which rows have a live slot with the same value."""
        at = self.find(rows)
        found: npt.NDArray[np.bool_] = at >= 0
        found[found] = self.prints[at[found]] == prints[found]
        return found

    def add(self, rows: RowNumbers, prints: Prints) -> None:
        """Add rows that have no live slot."""
        first = self.size
        self._rows.append(rows)
        self._prints.append(prints)
        self._alive.append(np.ones(rows.size, np.bool_))
        if len(self._recent) + rows.size > max(_FEW, self.size // 8):
            self._sort()
        else:
            self._recent.update(zip(rows.tolist(), range(first, self.size), strict=True))

    def _sort(self) -> None:
        slots = np.flatnonzero(self._alive.array)
        rows = self.rows[slots]
        if not (rows[1:] > rows[:-1]).all():
            order = np.argsort(rows, kind="stable")
            rows, slots = rows[order], slots[order]
        self._sorted, self._sorted_slots = rows, slots
        self._recent = {}

    def drop(self, rows: RowNumbers) -> Positions:
        """Mark the slots of these rows as dead and return them."""
        slots = distinct(self.find(rows))
        slots = slots[slots >= 0]
        self._alive.array[slots] = False
        self.dead += slots.size
        if self._recent:
            for row in rows.tolist():
                self._recent.pop(row, None)
        return slots

    def between(self, first: int, last: int) -> Positions:
        """Return the slots of the live rows first…last, ordered by row."""
        slots = np.flatnonzero(self._alive.array & (self.rows >= first) & (self.rows <= last))
        return slots[np.argsort(self.rows[slots], kind="stable")]

    def find(self, rows: RowNumbers) -> Positions:
        """Return the live slots of some rows; -1 where there is none."""
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
