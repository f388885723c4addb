"""What an engine does for a workspace. The tree it gets is already read, checked and qualified: every column has
its table's alias, every star is expanded, every table is one of the catalogue, search operators are gone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from ...errors import TooManyRowsError
from ...index.segments import Segment
from ..catalog import Index, Table
from ..results import Result

Rows = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]
T = TypeVar("T")


class Scores(Protocol):
    """What one search operator gives the rows of its table."""

    def of(self, row: int) -> float | None:
        """The score of a row; None where the column is NULL."""

    def best(self, count: int) -> tuple[Rows, Values]:
        """The rows with the highest scores, best first."""

    def all(self) -> tuple[Rows, Values]:
        """Every row that has a score."""


@dataclass(slots=True)
class Plan:
    """A statement ready to run.

    `tree` holds `rmem_score(k, alias._row)` where search operators stood; `scores[k]` answers it. `candidates`
    narrows a table to some rows: `{alias: rows}`. `parameters` are the values of `exp.Placeholder` / `exp.Parameter`
    nodes, which are numbered 1… in the tree.
    """

    tree: exp.Expression
    parameters: Sequence[Any] = ()
    scores: Sequence[Scores] = ()
    candidates: Mapping[str, Rows] = field(default_factory=dict)
    timeout: float | None = None
    max_rows: int | None = None
    max_bytes: int | None = None


_SEVERAL = 10


def fetch_rows(cursor: Any, plan: Plan) -> list[tuple[Any, ...]]:
    """All rows of a statement, if they are not more than its plan allows."""
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


def _length(value: Any) -> int:
    """Roughly the bytes of a row, or of one of its values, as it came from the database."""
    if isinstance(value, str | bytes):
        return len(value)
    return sum(map(_length, value)) if isinstance(value, tuple | list | dict) else 8


class Changes(NamedTuple):
    """What happened to a table since a version: rows that are gone or replaced, and the rows as they are now.

    `version` only grows, and means nothing but "ask with this next time"."""

    version: int
    gone: Rows
    rows: Rows
    values: list[tuple[Any, ...]]
    """The values of the columns asked for, one tuple for each of `rows`, as a Result would hold them; vectors as
    arrays."""
    whole: bool = False
    """True when the rows of the table are told from the first: whatever was known before is to be forgotten."""
    more: bool = False
    """True when there is more to tell: ask again with the version."""


class Packable(Protocol):
    """An index of a column that can be kept in segments."""

    def pack(self, first: int, last: int, changes: int) -> Segment: ...

    def absorb(self, segment: Segment) -> None: ...

    def is_sound(self, segment: Segment) -> bool: ...


@runtime_checkable
class SegmentStore(Protocol):
    """An engine that keeps the search indexes of columns beside their rows, as a cache."""

    def load_segments(self, table: str, column: str, index: Packable) -> int:
        """Fill an empty index from its segments. The version that it then has; 0 if there are none."""

    def save_segments(self, table: str, column: str, index: Packable, version: int, least: int) -> None:
        """Keep an index of this version, if at least so many rows are missing or outdated in its segments. Does nothing
        if somebody else is writing."""

    def outdated_segments(self) -> Iterator[tuple[Table, str, Segment, Changes]]:
        """The segments, by table and column, of rows that were changed or deleted since, with what became of them; none
        if this engine changed and deleted nothing."""

    def replace_segment(self, table: str, column: str, segment: Segment) -> None:
        """Write one of them again."""

    def read_vectors(self, table: str, column: str, rows: Rows) -> dict[int, bytes]:
        """The vectors of rows as little-endian float32; none for a row that is gone or NULL."""


class StaleCatalogueError(Exception):
    """A table changed between the reading of a statement and its running; it has to be read again."""


class Engine(ABC):
    """One workspace's tables in one database. Safe to use from many threads."""

    @abstractmethod
    def tables(self) -> dict[str, Table]:
        """The catalogue as it is now, by name; other processes' changes are seen."""

    @abstractmethod
    def create_table(self, table: Table, *, exists_ok: bool = False) -> bool:
        """Whether it was made; TableExistsError for a known one unless that is fine."""

    @abstractmethod
    def drop_table(self, name: str, *, missing_ok: bool = False) -> bool: ...

    @abstractmethod
    def alter_table(self, name: str, changed: Table, tree: exp.Expression) -> None:
        """Make a table what `changed` says; `tree` is the ALTER TABLE that asked for it."""

    @abstractmethod
    def create_index(self, index: Index, *, exists_ok: bool = False) -> bool: ...

    @abstractmethod
    def drop_index(self, name: str, *, missing_ok: bool = False) -> bool: ...

    @abstractmethod
    def run(self, plan: Plan) -> Result:
        """SELECT, INSERT, UPDATE, DELETE: in one transaction, all or nothing, durable when it returns."""

    @abstractmethod
    def stream(self, plan: Plan, batch_size: int) -> Iterator[Result]:
        """The answer of a SELECT in batches, in bounded memory, from one state of the data; at least one, which tells
        the columns."""

    @abstractmethod
    def insert(self, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        """Many rows in one transaction. Values are already of the columns' types."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """One transaction around what this thread does: all that it writes or nothing. `run` sees its writes."""

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether this thread is inside `together` or a transaction, which nobody else sees yet."""

    @abstractmethod
    def run_in_transaction(self, work: Callable[[], T]) -> T:
        """Do `work`, which calls other methods, in one transaction, as `transaction` does. It may be done more than
        once, the last time counts."""

    @abstractmethod
    def prepare_receipts(self) -> None:
        """Called before `together` if there will be receipts in it."""

    @abstractmethod
    def claim(self, key: str) -> str | None:
        """Inside `together`: take the key of a receipt, or tell what was kept under it by an earlier transaction."""

    @abstractmethod
    def keep(self, key: str, value: str) -> None:
        """Inside `together`: keep something under a key that was taken."""

    @abstractmethod
    def explain(self, plan: Plan) -> list[str]:
        """Lines that say how the statement would run, in the engine's own words."""

    @abstractmethod
    def changes(self, table: str, columns: Sequence[str], since: int) -> Changes:
        """What a search index needs to follow a table. `since` 0 is everything."""

    @abstractmethod
    def close(self) -> None: ...
