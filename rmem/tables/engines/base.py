"""The engine interface. The tree that an engine gets is parsed, checked and bound: columns have their table's alias,
stars are expanded, tables are in the catalogue, search operators are replaced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from ...errors import TooManyRowsError
from ...index.segments import Segment
from ..catalog import Index, Table
from ..results import Result

if TYPE_CHECKING:
    from ..search.scores import SearchScores
    from ..search.texts import TextColumn
    from ..search.vectors import VectorColumn

RowNumbers = npt.NDArray[np.int64]
NO_ROWS: RowNumbers = np.empty(0, np.int64)
Values = npt.NDArray[np.float64]
T = TypeVar("T")


@dataclass(slots=True)
class StatementPlan:
    """A statement ready to run.

    `tree` holds `rmem_score(k, alias._row)` where search operators stood; `scores[k]` answers it. `candidates`
    narrows a table to some rows: `{alias: rows}`. `parameters` are the values of `exp.Placeholder` / `exp.Parameter`
    nodes, which are numbered 1… in the tree.
    """

    tree: exp.Expression
    parameters: Sequence[Any] = ()
    scores: Sequence[SearchScores] = ()
    candidates: Mapping[str, RowNumbers] = field(default_factory=dict)
    timeout: float | None = None
    max_rows: int | None = None
    max_bytes: int | None = None


def pattern_parameters(tree: exp.Expression) -> list[int]:
    """Return the numbers of the parameters that are patterns of LIKE."""
    patterns = (node.expression.unnest() for node in tree.find_all(exp.Like, exp.ILike))
    return [int(pattern.name) for pattern in patterns if isinstance(pattern, exp.Parameter | exp.Placeholder)]


_SEVERAL = 10
_BATCH_BYTES = 8_000_000


def fetch_rows(cursor: Any, plan: StatementPlan) -> list[tuple[Any, ...]]:
    """Return all rows of a statement; TooManyRowsError beyond the limits of its plan."""
    if plan.max_rows is None and plan.max_bytes is None:
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows
    rows, length = [], 0
    while several := cursor.fetchmany(_SEVERAL):
        rows += several
        if plan.max_rows is not None and len(rows) > plan.max_rows:
            raise TooManyRowsError(f"the answer has more than {plan.max_rows:,} rows; use LIMIT, or stream it")
        length += sum(map(_length, several))
        if plan.max_bytes is not None and length > plan.max_bytes:
            message = f"the rows of the answer have more than {plan.max_bytes:,} bytes"
            raise TooManyRowsError(f"{message}; use LIMIT, ask for fewer columns, or stream it")
    return rows


def fetch_batch(cursor: Any, size: int) -> list[tuple[Any, ...]]:
    """Return the next rows, at most `size`, fewer if they are long."""
    rows: list[tuple[Any, ...]] = cursor.fetchmany(min(_SEVERAL, size))
    while rows and len(rows) < size and (length := sum(map(_length, rows[-_SEVERAL:]))) < _BATCH_BYTES:
        # As many more as would fit if they were as long as the last ones, at most as many as there are.
        room = _BATCH_BYTES * _SEVERAL // (length + 1) - len(rows)
        several = cursor.fetchmany(min(size - len(rows), len(rows), room)) if room > 0 else []
        if not several:
            break
        rows += several
    return rows


def _length(value: Any) -> int:
    """Estimate the bytes of a row or value."""
    if isinstance(value, str | bytes):
        return len(value)
    return sum(map(_length, value)) if isinstance(value, tuple | list | dict) else 8


class TableChanges(NamedTuple):
    """What changed in a table since a version: rows that are gone or replaced, and the current rows. `version` only
    grows; pass it to the next call."""

    version: int
    gone: RowNumbers
    rows: RowNumbers
    values: list[tuple[Any, ...]]
    """The values of the columns asked for, one tuple for each of `rows`, as a Result would hold them; vectors as
    arrays."""
    whole: bool = False
    """True if these are all rows of the table: forget what was known before."""
    more: bool = False
    """True if there is more: ask again with the version."""


@runtime_checkable
class SegmentStore(Protocol):
    """An engine that caches the search indexes of columns beside their rows."""

    def load_segments(self, table: str, column: str, index: TextColumn | VectorColumn) -> int:
        """Fill an empty index from its segments; return its version, 0 without segments."""

    def save_segments(
        self, table: str, column: str, index: TextColumn | VectorColumn, version: int, least: int
    ) -> None:
        """Store an index of this version if its segments miss at least `least` rows. Does nothing while somebody else
        writes."""

    def outdated_segments(self) -> Iterator[tuple[Table, str, Segment, TableChanges]]:
        """Yield segments with rows that were changed or deleted since, and what became of them; none if this engine
        changed nothing."""

    def replace_segment(self, table: str, column: str, segment: Segment) -> None:
        """Write such a segment again."""

    def read_vectors(self, table: str, column: str, rows: RowNumbers) -> dict[int, bytes]:
        """Return vectors of rows as little-endian float32; none for deleted or NULL rows."""


class StaleCatalogueError(Exception):
    """A table changed between binding and running a statement; bind it again."""


class Engine(ABC):
    """The tables of one workspace in one database. Thread-safe."""

    @abstractmethod
    def tables(self) -> dict[str, Table]:
        """Return the current catalogue by name, with changes of other processes."""

    @abstractmethod
    def change_catalogue(self, work: Callable[[dict[str, Table]], T]) -> T:
        """Run `work` on the current catalogue in one transaction. Nobody else changes the catalogue until it ends, so
        what `work` checked holds when it calls the methods below."""

    @abstractmethod
    def create_table(self, table: Table) -> None: ...

    @abstractmethod
    def drop_table(self, name: str) -> None: ...

    @abstractmethod
    def alter_table(self, changed: Table) -> None:
        """Add and drop columns, so that a table becomes `changed`."""

    @abstractmethod
    def create_index(self, index: Index) -> None: ...

    @abstractmethod
    def drop_index(self, index: Index) -> None: ...

    @abstractmethod
    def run(self, plan: StatementPlan) -> Result:
        """Run SELECT, INSERT, UPDATE or DELETE in one transaction, durable on return."""

    @abstractmethod
    def stream(self, plan: StatementPlan, batch_size: int) -> Iterator[Result]:
        """Yield the result of a SELECT in batches, in bounded memory, from one snapshot; at least one, for the
        columns."""

    @abstractmethod
    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        """Insert many rows in one transaction. Values already have the columns' types."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Run the block as one transaction of this thread. `run` sees its writes."""

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Return whether this thread is inside `transaction` or `run_in_transaction`."""

    @abstractmethod
    def run_in_transaction(self, work: Callable[[], T]) -> T:
        """Run `work`, which calls other methods, in one transaction. It may be repeated; the last run counts."""

    @abstractmethod
    def claim(self, key: str) -> str | None:
        """Inside `run_in_transaction`: take the key of a receipt, or return the value that an earlier transaction
        stored."""

    @abstractmethod
    def keep(self, key: str, value: str) -> None:
        """Inside `run_in_transaction`: store a value under a claimed key."""

    @abstractmethod
    def explain(self, plan: StatementPlan) -> list[str]:
        """Return lines that say how the statement would run, in the engine's own format."""

    @abstractmethod
    def changes(self, table: str, columns: Sequence[str], since: int) -> TableChanges:
        """Return what a search index needs to follow a table. `since` 0 means everything."""

    @abstractmethod
    def close(self) -> None: ...
