"""Workspace: the tables of one workspace. Every statement passes through it.

with Workspace("team.db") as tables:
    tables.query("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, text TEXT, embedding FLOAT4[])")
    tables.query("INSERT INTO notes (text, embedding) VALUES ($1, $2)", ["hello", [0.1, 0.2]])
    tables.query("SELECT text, text <#> 'hello' AS score FROM notes ORDER BY score DESC LIMIT 3").dicts()
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial, wraps
from pathlib import Path
from threading import local
from typing import Any, TypeVar, cast

from sqlglot import exp

from .. import receipts
from ..closing import Closing
from ..config import default_store
from ..errors import ConfigError, SqlError, SqlUnsupportedError
from ..extras import require
from ..forks import Forking, watch
from .catalog import Table
from .deadline import time_limit
from .definitions import Definitions, retry_if_stale
from .engines.base import Engine
from .fact_tables import GraphSource, add_queries, named_in, rows_of
from .results import Result
from .search.execute import BoundStatement, StatementRun
from .search.indexes import SearchIndexes
from .search.plan import plan_search
from .sql import define
from .sql.bind import Binder
from .sql.expression_types import result_type
from .sql.literals import check_columns
from .sql.parameters import shape
from .sql.parse import Prepared, kind_of, parse, target_tables
from .sql.scope import base_table, known_table
from .sql.statements import bind_statement

Params = Sequence[Any] | Mapping[str, Any] | None
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
_CACHED, _LONGEST_CACHED = 512, 20_000  # statements, since parsing takes longer than running most; characters of one
_SHAPES = 64  # types of parameters for which one statement is kept bound


class Transaction(local):
    """The transaction of the current thread."""

    is_open = False
    wrote = False
    failed = False

    @contextmanager
    def begin(self) -> Iterator[None]:
        self.is_open, self.wrote, self.failed = True, False, False
        try:
            yield
            if self.failed:
                raise SqlError("a statement of this transaction failed, so nothing of it was written")
        finally:
            self.is_open = False

    @contextmanager
    def statement(self) -> Iterator[None]:
        """Run one statement. After a failed one no other can follow, as in PostgreSQL."""
        if not self.is_open:
            yield
            return
        if self.failed:
            raise SqlError("an earlier statement of this transaction failed; leave the transaction and begin again")
        try:
            yield
        except BaseException:
            self.failed = True
            raise

    def check_search(self) -> None:
        """Refuse a search after a write: search indexes see only committed rows."""
        if self.wrote:
            raise SqlUnsupportedError(
                "a search would not find what this transaction wrote; search before its first write, or after its end"
            )


def counts_as_write(method: F) -> F:
    """Decorate a workspace method that counts as a writing statement."""

    @wraps(method)
    def run(self: Any, *given: Any, **options: Any) -> Any:
        with self._transaction.statement():
            result = method(self, *given, **options)
            self._transaction.wrote = True
            return result

    return cast("F", run)


def _bind(
    tree: exp.Expression, catalogue: dict[str, Table], name: str, values: Sequence[Any], facts: tuple[str, ...] = ()
) -> BoundStatement:
    if facts:
        add_queries(tree, facts, len(values) + 1, name)
    bind_statement(Binder(catalogue, name, [*values, *("[]" for _ in facts)]), tree)
    return BoundStatement(tree, catalogue, plan_search(tree), facts)


class Workspace(Closing, Forking):
    """The tables of one workspace."""

    def __init__(
        self,
        address: str | Path | Engine | None = None,
        *,
        name: str = "default",
        tenant: str | None = None,
        durability: str = "full",
        graph: GraphSource | None = None,
    ) -> None:
        """`address` is a file (the default one where there is none), `sqlite:///path`, `postgresql://…` or an open
        engine, which is closed with the workspace. `name` is what stands before the dot in `"workspace"."table"`.
        `graph` gives the tables `facts` and `entities`."""
        self.name, self._graph = name, graph
        self._engine = address if isinstance(address, Engine) else _engine(address, tenant or name, durability)
        self._definitions = Definitions(self._engine, name, self._run_written)
        self.after_fork_in_child()
        watch(self)
        self._parse = lru_cache(_CACHED)(parse)

    def after_fork_in_child(self) -> None:
        self._indexes = SearchIndexes(self._engine)  # a thread of the parent may have been changing one
        self._transaction = Transaction()

    def __repr__(self) -> str:
        return f"Workspace(name={self.name!r})"

    # -- statements -----------------------------------------------------------------------------------------

    def query(
        self,
        sql: str,
        params: Params = None,
        *,
        timeout: float | None = None,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        read_only: bool = False,
        graph: GraphSource | None = None,
    ) -> Result:
        """Run one statement with values for `$1` or `:name`. Nothing is written unless all of it is.

        `timeout` is in seconds; `max_rows` and `max_bytes` are how long the answer may be; `read_only` refuses all but
        SELECT and EXPLAIN; `graph` gives the tables `facts` and `entities` as this caller sees them."""
        _check_limits(timeout, max_rows)
        with time_limit(timeout), self._transaction.statement():
            statement = self._prepare(sql)
            reads = isinstance(statement.tree, exp.Query)
            if read_only and not reads:
                raise SqlError("this statement writes, and only reading is allowed here")
            values = statement.parameters.values(params)
            run = partial(self._run, statement, values, max_rows, max_bytes, graph or self._graph)
            result = retry_if_stale(run)
            self._transaction.wrote = self._transaction.wrote or not reads
            return result

    def write_targets(self, sql: str) -> tuple[str, list[str]] | None:
        """Return the kind of a writing statement and its tables (of DROP INDEX, its indexes); None if it only reads."""
        statement = self._prepare(sql)
        if statement.explain or isinstance(statement.tree, exp.Query):
            return None
        return kind_of(statement.tree), target_tables(statement.tree)

    def _prepare(self, sql: str) -> Prepared:
        return (self._parse if isinstance(sql, str) and len(sql) <= _LONGEST_CACHED else parse)(sql)

    def _run(
        self,
        statement: Prepared,
        values: list[Any],
        max_rows: int | None,
        max_bytes: int | None,
        graph: GraphSource | None,
    ) -> Result:
        if statement.explain:
            return self._explain(statement, values, graph)
        if isinstance(statement.tree, (exp.Query, exp.Insert, exp.Update, exp.Delete)):
            bound, given = self._bound(statement, values, graph)
            return self._run_bound(bound, given, max_rows, max_bytes)
        if values:
            raise SqlError(f"a {kind_of(statement.tree)} statement takes no parameters")
        query = statement.tree.args.get("expression")
        if graph is not None and isinstance(query, exp.Expression):
            for name in named_in(query, self._engine.tables(), self.name):
                message = f'{kind_of(statement.tree)} cannot read "{name}", which is what memories say'
                raise SqlUnsupportedError(f"{message}; create a table and fill it by INSERT INTO … SELECT")
        tree = statement.tree.copy()
        if isinstance(tree, exp.Create) and tree.args.get("kind") == "INDEX":
            return self._create_index(tree)
        return self._definitions.run(tree)

    def _run_bound(
        self, bound: BoundStatement, values: list[Any], max_rows: int | None = None, max_bytes: int | None = None
    ) -> Result:
        if bound.search is not None and self._transaction.is_open:
            self._transaction.check_search()
        return StatementRun(self._engine, self._indexes, bound, values, max_rows, max_bytes).result()

    def _run_written(self, tree: exp.Expression) -> Result:
        """Run a statement of our own, without parameters."""
        return self._run_bound(_bind(tree, self._engine.tables(), self.name, []), [])

    def _bound(
        self, statement: Prepared, values: list[Any], graph: GraphSource | None
    ) -> tuple[BoundStatement, list[Any]]:
        """Return the statement bound to the current tables for these value types, and the values, extended by the rows
        of fact tables that it reads."""
        catalogue = self._engine.tables()
        shapes = (graph is None, *map(shape, values))
        bound: BoundStatement | None = statement.bound.get(shapes)
        if bound is None or bound.catalogue != catalogue:
            facts = () if graph is None else named_in(statement.tree, catalogue, self.name)
            bound = _bind(statement.tree.copy(), catalogue, self.name, values, facts)
            if len(statement.bound) >= _SHAPES:
                statement.bound.clear()
            statement.bound[shapes] = bound
        if not bound.facts or graph is None:
            return bound, values
        seen = graph()
        return bound, [*values, *(rows_of(name, seen) for name in bound.facts)]

    def _explain(self, statement: Prepared, values: list[Any], graph: GraphSource | None) -> Result:
        if not isinstance(statement.tree, exp.Query):
            raise SqlUnsupportedError("EXPLAIN is supported for SELECT")
        bound, values = self._bound(statement, values, graph)
        lines = StatementRun(self._engine, self._indexes, bound, values).explain()
        return Result(("QUERY PLAN",), (result_type("text"),), [(line,) for line in lines], len(lines))

    def stream(
        self,
        sql: str,
        params: Params = None,
        *,
        batch_size: int = 1000,
        timeout: float | None = None,
        graph: GraphSource | None = None,
    ) -> Iterator[Result]:
        """Yield the result of a SELECT in batches, in bounded memory, from one snapshot."""
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
            raise SqlError(f"batch_size must be a whole number ≥ 1, got {batch_size!r}")
        _check_limits(timeout, None)
        rest: Iterator[Result]
        with time_limit(timeout):
            statement = self._prepare(sql)
            if self._transaction.is_open or statement.explain or not isinstance(statement.tree, exp.Query):
                result = self.query(sql, params, graph=graph)
                first, *more = result.batches(batch_size)
                rest = iter(more)
            else:
                values = statement.parameters.values(params)
                start = partial(self._start_stream, statement, values, batch_size, graph or self._graph)
                first, rest = retry_if_stale(start)
        yield first
        yield from rest

    def _start_stream(
        self, statement: Prepared, values: list[Any], batch_size: int, graph: GraphSource | None
    ) -> tuple[Result, Iterator[Result]]:
        """Return the first batch of a stream, and an iterator over the others."""
        bound, values = self._bound(statement, values, graph)
        stream = StatementRun(self._engine, self._indexes, bound, values).stream(batch_size)
        return next(stream), stream

    # -- several writes in one ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block as one transaction of this thread."""
        if self._transaction.is_open:
            raise SqlError("a transaction is open in this thread already; transactions do not nest")
        with self._engine.transaction(), self._transaction.begin():
            yield

    @counts_as_write
    def run_in_transaction(self, work: Callable[[], T]) -> T:
        """Run `work`, which may be repeated, in one transaction. For a request in progress (`rmem.receipts`) it runs
        only the first time and must return JSON."""
        request = receipts.current()
        if request is None:
            return retry_if_stale(lambda: self._engine.run_in_transaction(work))
        key = request.key("tables")

        def once() -> T:
            kept = self._engine.claim(key)
            if kept is not None:
                request.replayed = True
                return json.loads(kept)  # type: ignore[no-any-return]
            with receipts.request(None):
                result = work()
            self._engine.keep(key, json.dumps(result))
            return result

        found = retry_if_stale(lambda: self._engine.run_in_transaction(once))
        request.done["tables"] += 1
        return found

    def once(self, work: Callable[[], T]) -> T:
        """Run `work`; within a request in progress, only once."""
        return work() if receipts.current() is None else self.run_in_transaction(work)

    # -- without SQL ----------------------------------------------------------------------------------------

    def tables(self) -> list[Table]:
        with self._transaction.statement():
            return sorted(self._engine.tables().values(), key=lambda table: table.name)

    def table(self, name: str) -> Table:
        with self._transaction.statement():
            return known_table(name, self._engine.tables(), self.name)

    @counts_as_write
    def create_table(self, name: str, columns: Mapping[str, str], *, exists_ok: bool = False) -> Table:
        """Create a table: `create_table("notes", {"id": "BIGSERIAL PRIMARY KEY", "embedding": "EMBEDDING(1536)"})`."""
        if not isinstance(columns, Mapping) or not columns:
            raise SqlError("columns must be a mapping of names to types, with at least one column")
        for column, words in columns.items():
            if not isinstance(column, str) or not isinstance(words, str):
                raise SqlError("columns must be a mapping of names to types")
        tree = define.create_statement(name, columns)
        tree.set("exists", exists_ok)
        self._definitions.run(tree)
        return self.table(name)

    @counts_as_write
    def drop_table(self, name: str, *, missing_ok: bool = False) -> bool:
        """Drop a table; return whether it existed."""
        return self._definitions.drop([name], "TABLE", missing_ok)

    @counts_as_write
    def drop_views(self, names: Sequence[str]) -> None:
        """Drop views that may read each other."""
        self._definitions.drop(names, "VIEW", missing_ok=True)

    def _create_index(self, tree: exp.Create) -> Result:
        """Create an index; build a search index at once, except inside a transaction, because indexes see only
        committed rows."""
        index = self._definitions.create_index(tree)
        if index is not None and index.method == define.SEARCH and not self._engine.in_transaction:
            table = self._engine.tables().get(index.table)
            if table is not None:
                self._indexes.follow(table, index.columns, save_from=1)
        return Result()

    @counts_as_write
    def drop_index(self, name: str, *, missing_ok: bool = False) -> bool:
        """Drop an index; return whether it existed."""
        return self._definitions.drop_indexes([name], missing_ok)

    @counts_as_write
    def insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> int:
        """Append columns of values, all rows or none; return the number of rows."""
        return retry_if_stale(lambda: self._insert(table, columns))

    def _insert(self, table: str, columns: Mapping[str, Sequence[Any]]) -> int:
        found = base_table(table, self._engine.tables(), self.name)
        return self.insert_rows(found, *check_columns(found, columns))

    @counts_as_write
    def insert_rows(self, table: Table, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
        """Append rows that were checked against the current table."""
        count = self._engine.insert(table, names, rows) if rows else 0
        self._indexes.after_insert(table, count)
        return count

    def close(self) -> None:
        try:
            self._indexes.scrub()
        finally:
            self._engine.close()


def _check_limits(timeout: float | None, max_rows: int | None) -> None:
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0):
        raise SqlError(f"timeout must be a number of seconds > 0, got {timeout!r}")
    if max_rows is not None and (isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 0):
        raise SqlError(f"max_rows must be a whole number ≥ 0, got {max_rows!r}")


def _engine(address: str | Path | None, tenant: str, durability: str) -> Engine:
    text = str(address) if address is not None else ""
    if text.startswith(("postgresql://", "postgres://")):
        require("postgres", "PostgreSQL")
        from .engines.postgres import PostgresEngine

        return PostgresEngine(text, tenant=tenant)
    from .engines.sqlite import SqliteEngine

    if durability not in ("full", "normal"):
        raise ConfigError(f"durability must be full or normal, got {durability!r}")
    if text.startswith("sqlite:///"):
        return SqliteEngine(Path(text.removeprefix("sqlite:///")), durability=durability)
    if "://" in text:
        raise ConfigError(f"a workspace lies in a file, sqlite:///path or postgresql://…, not {text!r}")
    return SqliteEngine(Path(address) if address is not None else default_store(), durability=durability)
