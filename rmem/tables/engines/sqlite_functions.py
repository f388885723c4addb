"""Register functions of PostgreSQL, written in Python, for SQLite to call. A function takes plain values (see
`sql.literals`); here it gets its name in SQLite, its arguments are read from their stored form, and its result is
written back."""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...errors import RemanenceError, SqlError
from ..deadline import check
from .sqlite_storage import reader, writer

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True, slots=True)
class Native:
    """A registered function. `strict`: NULL in, NULL out. `kinds`: it gets the types of its arguments as its first
    argument."""

    run: Function
    strict: bool = True
    kinds: bool = False
    stable: bool = True
    """Whether the same arguments always give the same result."""


natives: dict[str, Native] = {}
MAX_ARGUMENTS = 100
"""Of one call, as in PostgreSQL; SQLite has 127."""
NOTHING: Any = object()
"""NULL as the result of a function that gives JSONB, where None is JSON's null."""


def native(*keys: str, strict: bool = True, kinds: bool = False, stable: bool = True) -> Callable[[F], F]:
    """Register a function for signatures, written as in `sql.functions`: `@native("round(numeric, int4)")`."""

    def register(function: F) -> F:
        for key in keys:
            natives[key] = Native(function, strict, kinds, stable)
        return function

    return register


@dataclass(frozen=True, slots=True)
class Udf:
    """A function that a connection must have before it can run a statement."""

    name: str
    arguments: int
    make: Callable[[StatementState], Any]
    kind: str = "function"
    stable: bool = True


class StatementState:
    """The state of one connection while it runs a statement."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.now = 0
        self.scores: Sequence[Any] = ()
        self.sequences: dict[str, int] = {}
        self.highest = 0
        """The highest row of the table that is written to, before the statement."""
        self.touched: set[int] = set()
        self.inside = True
        """Whether our own code runs; statements of users may touch less."""
        self.known: set[str] = set()


def scalar(key: str, takes: Sequence[str], gives: str, entry: Native | None = None) -> Udf:
    """Return the function of a signature for arguments of these types."""
    entry = entry or natives.get(key)
    if entry is None:
        raise SqlError(f"function {key} is not offered by this engine")
    word = re.sub(r"\W+", "_", key.partition("(")[0]).strip("_") or "op"
    name = f"pg_{word}_{zlib.crc32(f'{key}|{takes}|{gives}'.encode()):08x}"
    return Udf(name, len(takes), wrap(entry, takes, gives), stable=entry.stable)


def wrap(entry: Native, takes: Sequence[str], gives: str) -> Callable[[StatementState], Function]:
    """Wrap a function for SQLite: convert arguments and result, handle NULL, check the time limit, keep the error."""
    readers = [reader(kind) for kind in takes]
    write = writer(gives)
    plain = all(read is readers_same for read in readers) and write is readers_same
    run = entry.run
    kinds = tuple(takes)
    nothing = NOTHING if gives == "jsonb" else None

    def make(state: StatementState) -> Function:
        def call(*arguments: Any) -> Any:
            try:
                check()
                if entry.strict and None in arguments:
                    return None
                values: Sequence[Any] = arguments
                if not plain:
                    pairs = zip(readers, arguments, strict=True)
                    values = [None if item is None else read(item) for read, item in pairs]
                result = run(kinds, *values) if entry.kinds else run(*values)
                return None if result is nothing else write(result)
            except (RemanenceError, TimeoutError) as error:
                state.error = state.error or error
                raise
            except (ArithmeticError, ValueError, TypeError, RecursionError, MemoryError, KeyError) as error:
                state.error = state.error or SqlError(f"a value is out of range: {error}")
                raise

        return call

    return make


readers_same = reader("text")


def keep_error(state: StatementState, run: Function, what: str = "a value is out of range") -> Function:
    """Return a function that keeps its error, of which SQLite tells only that there was one."""

    def call(*arguments: Any) -> Any:
        try:
            return run(*arguments)
        except Exception as error:
            known = isinstance(error, RemanenceError | TimeoutError)
            state.error = state.error or (error if known else SqlError(f"{what}: {error}"))
            raise

    return call


def install(connection: sqlite3.Connection, state: StatementState, udfs: Sequence[Udf]) -> None:
    """Register functions with a connection, once each."""
    for udf in udfs:
        if udf.name in state.known:
            continue
        if udf.kind == "function":
            connection.create_function(udf.name, udf.arguments, udf.make(state), deterministic=udf.stable)
        else:
            connection.create_window_function(udf.name, udf.arguments, udf.make(state))
        state.known.add(udf.name)
