"""Transactions of one tenant's memories in PostgreSQL, on the connections of `postgres_pool`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors as pg
from psycopg.conninfo import conninfo_to_dict

from ...errors import (
    ConfigError,
    InputError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreMovedError,
    StoreReadOnlyError,
    StoreUnreachableError,
)
from .postgres_pool import HOW, SNAPSHOT, WRITE, Manner, Pooled, Raw, Result, is_lost, line

if TYPE_CHECKING:
    from .postgres_index import Look

ARRIVING = "arriving"
"""What the head of a tenant says while its rows are brought here."""
_TENDING = 0x524D454D_0001  # an advisory lock
_LOCK_PATIENCE = 2000  # milliseconds
_OWN = ("tenant", "replica", "staleness")  # options of an address that are not the server's


class Address(NamedTuple):
    """Where a store is, whose rows of it, and which replicas may answer its recalls, how many seconds behind."""

    url: str
    tenant: str | None
    replicas: tuple[str, ...] = ()
    staleness: float | None = None

    @classmethod
    def of(cls, written: str) -> Address:
        """From postgresql://…; `?tenant=…`, `replica=…` and `staleness=…` are ours and not the server's."""
        scheme, separator, rest = written.partition("://")
        if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
            raise ConfigError(f"not an address of PostgreSQL: {written!r}; write postgresql://user@host/database")
        parts = urlsplit(f"postgresql://{rest}")
        options = parse_qsl(parts.query, keep_blank_values=True)
        own: dict[str, list[str]] = {key: [value for name, value in options if name == key] for key in _OWN}
        url = urlunsplit(parts._replace(query=urlencode([pair for pair in options if pair[0] not in own])))
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ConfigError(f"not an address of PostgreSQL: {line(error)}") from None
        try:
            staleness = float(own["staleness"][-1]) if own["staleness"] else None
        except ValueError:
            raise ConfigError(f"staleness must be a number of seconds, got {own['staleness'][-1]!r}") from None
        return cls(url, own["tenant"][-1] if own["tenant"] else None, tuple(own["replica"]), staleness)

    @property
    def shown(self) -> str:
        """The address without its password."""
        told = conninfo_to_dict(self.url)
        return f"postgresql://{told.get('host', '')}/{told.get('dbname', '')}"


class Connection:
    """A transaction under way, with the manners of SQLite's driver: parameters are written `?`."""

    seen: Look | None = None
    """How things stood, as far as it wrote itself."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> psycopg.Cursor[tuple[Any, ...]]:
        return self.raw.execute(_translated(sql), parameters, binary=True)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        with self.raw.cursor() as cursor:
            cursor.executemany(_translated(sql), parameters)


@lru_cache(1024)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class Frame(NamedTuple):
    """What a transaction begins with: its tenant, the role that sees no other's rows, and where names are found."""

    tenant: str
    role: str | None
    path: str
    number: int = 0  # of the tenant
    durable: bool = True  # whatever the server would do by itself

    def enter(self, raw: Raw, kind: str) -> str | None:
        """Begin a transaction of the tenant, with one message; its number when it writes."""
        told = raw.execute(_opening(self, kind), prepare=False)  # several commands cannot be prepared
        while told.nextset():
            pass
        found = told.fetchone()
        if kind != WRITE:
            check_here(found)
            return None
        return None if found is None else str(found[0])

    def become(self, raw: Raw, *, writing: bool) -> None:
        """Be the tenant for the rest of a transaction."""
        settings = self.settings(writing=writing)
        asked = ", ".join(f"set_config('{name}', %s, true)" for name in settings)
        raw.execute(f"SELECT {asked}".encode(), list(settings.values()))

    def settings(self, *, writing: bool) -> dict[str, str]:
        """Return what is set in a transaction of the tenant."""
        found = {"search_path": self.path, "remanence.tenant": self.tenant}
        if writing and self.durable:
            found["synchronous_commit"] = "on"
        if self.role is not None:
            found["role"] = self.role
        return found

    def stay(self, raw: Raw) -> None:
        """Be the role for as long as a connection lasts, for what cannot be done inside a transaction."""
        raw.execute("SELECT set_config('search_path', %s, false)", [self.path])
        if self.role is not None:
            raw.execute("SELECT set_config('role', %s, false)", [self.role])


@lru_cache(1024)
def _opening(frame: Frame, kind: str) -> bytes:
    """Return the beginning of a transaction, as one text."""
    told = "".join(
        f"; SELECT set_config({_quoted(name)}, {_quoted(value)}, true)"
        for name, value in frame.settings(writing=kind == WRITE).items()
    )
    last = "pg_current_xact_id()::text" if kind == WRITE else "moved FROM heads"
    return f"BEGIN {kind}{told}; SELECT {last}".encode()


def check_here(head: tuple[Any, ...] | None) -> None:
    """Refuse a tenant whose rows are elsewhere; `head` is what its head says of that. Whoever writes looks when it has
    locked the head (`postgres_writer`)."""
    if head is not None and head[0] is not None:
        raise StoreMovedError(f"these rows are not on this server ({head[0]}); try again")


def _quoted(text: str) -> str:
    return psycopg.sql.Literal(text).as_string()


_MANNER = Manner(12, b"SET jit = off; SET idle_in_transaction_session_timeout = '10min'", register_vector)


class Link(Pooled[Connection]):
    """The way of memories to a database. `patience` is how many seconds to wait for a server that does not answer."""

    attempts = 10
    closed_words = "this store is closed; open it again to use it"
    causes = True

    def __init__(self, address: Address, *, patience: float = 5.0) -> None:
        self.address, self.patience = address, patience
        super().__init__(address.url, _MANNER)

    @property
    def shown(self) -> str:
        return self.address.shown

    def waits(self) -> float:
        return self.patience

    def open(self) -> Raw:
        return connect(self.address)

    def told(self, error: psycopg.Error, frame: object) -> Exception:
        return explain(error, self.address)

    def hand(self, raw: Raw) -> Connection:
        return Connection(raw)

    def read(self, frame: Frame, work: Callable[[Connection], Result]) -> Result:
        """Do `work` on one state of the data; again on another connection when one is lost."""
        return self._repeated(frame, SNAPSHOT, work)

    def write(
        self, frame: Frame, work: Callable[[Connection], Result], too_late: Callable[[], None] | None = None
    ) -> Result:
        """Do `work` in a transaction that is durable when this returns. It may be done more than once, the last time
        counts. `too_late` is called if this is interrupted when all is written already."""
        return self._repeated(frame, WRITE, work, too_late)

    def maintain(self, frame: Frame, statement: str) -> None:
        """Run a statement that looks after tables, outside any transaction; StoreBusyError where others use what it
        needs for itself, because everybody would wait behind it."""
        with connect(self.address) as raw:
            try:
                frame.stay(raw)
                raw.execute(f"SET lock_timeout = {_LOCK_PATIENCE}".encode())
                take_turn(raw)
                raw.execute(statement.encode())
            except psycopg.Error as error:
                raise explain(error, self.address) from error


def connect(address: Address) -> Raw:
    """Return a connection of one's own, for what cannot be done inside a transaction."""
    try:
        return Raw.connect(address.url, **HOW)
    except psycopg.OperationalError as error:
        told = line(error)
        if any(words in told for words in ("authentication", "does not exist", "no pg_hba.conf entry", "role ")):
            raise ConfigError(f"{address.shown} cannot be opened: {told}") from None
        raise StoreUnreachableError(f"{address.shown} does not answer: {told}") from None
    except psycopg.Error as error:
        raise explain(error, address) from error


def take_turn(raw: Raw) -> None:
    """Look after tables one at a time, in all processes, until the connection ends. To wait inside the server would be
    to wait for each other: building an index waits for every transaction."""
    while raw.execute("SELECT pg_try_advisory_lock(%s)", [_TENDING]).fetchone() != (True,):
        time.sleep(0.1)


def explain(error: psycopg.Error, address: Address) -> Exception:
    """PostgreSQL's errors in the words of our hierarchy."""
    told, where = line(error), address.shown
    match error:
        case pg.DiskFull() | pg.OutOfMemory():
            return StoreFullError(f"no space left at {where}: {told}; the write was rolled back")
        case pg.ReadOnlySqlTransaction():
            return StoreReadOnlyError(f"{where} takes no writes: {told}")
        case pg.InsufficientPrivilege():
            return StoreReadOnlyError(f"{where} does not allow it: {told}")
        case pg.LockNotAvailable() | pg.QueryCanceled() | pg.TooManyConnections():
            return StoreBusyError(f"{where}: {told}; try again")
        case pg.SerializationFailure() | pg.DeadlockDetected():
            return StoreBusyError(f"others were in the way at {where} again and again: {told}")
        case psycopg.DataError():
            return InputError(f"PostgreSQL cannot keep this: {told}")
    if is_lost(error):
        return StoreUnreachableError(f"{where} does not answer: {told}")
    return StoreError(f"{where}: {told}")
