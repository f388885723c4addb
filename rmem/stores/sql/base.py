"""SqlStore, the base of the SQL stores and of their capabilities: transactions, and what all of them share. The
capabilities are in the modules of their tables: `audit`, `removal`, `feedback`, `facts`, `vector_feed`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from ...crypto.vault import Vault
from ...models import Memory
from ..base import RecordStore
from ..indexed import Derived
from ..packing import Codec
from . import rows
from .audit_chain import AuditChain
from .connection import Connection

Result = TypeVar("Result")


class StoreDialect(NamedTuple):
    """The statements that differ between databases."""

    touch: str  # last, count, id
    set_meta: str  # key, value
    read: str = rows.READ


class SqlStore(RecordStore):
    """A store with the tables of `stores/migrations.py`."""

    dialect: ClassVar[StoreDialect]
    vault: Vault
    codec: Codec
    audit_chain: AuditChain
    _unscrubbed: bool  # whether removed contents may still be in the storage

    @abstractmethod
    def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work`, which only reads."""

    @abstractmethod
    def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run `work` in a transaction, perhaps shared with other threads; durable when this returns."""

    @abstractmethod
    def insert(
        self,
        connection: Connection,
        memories: Sequence[Memory],
        derived: Sequence[Derived],
        *,
        own_vectors: bool = False,
    ) -> tuple[list[Memory], Sequence[Derived]]:
        """Write memories; return them as stored, with their derived data. `own_vectors`: the vectors were read from
        this store."""

    @abstractmethod
    def vector_metadata(self, connection: Connection) -> Mapping[str, str]:
        """Return the metadata of KIND that is set."""

    @abstractmethod
    def read_state(self, connection: Connection) -> tuple[int, int, int]:
        """Return the last row, the last change and the generation."""

    def on_write(self, number: int) -> None:
        """Maintain derived data; called with the number of rows that were written, moved or removed."""

    def _read_back(self, connection: Connection, keys: Sequence[str]) -> list[Memory]:
        """Return the existing memories among some ids, as they are now."""
        sql = f"{self.dialect.read} WHERE m.id = ?"
        found = (connection.execute(sql, (key,)).fetchone() for key in keys)
        return [rows.to_memory(row, self.codec) for row in found if row is not None]
