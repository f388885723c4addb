"""Compile INSERT, UPDATE and DELETE to SQLite SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlglot import exp

from ...errors import SqlUnsupportedError
from ..catalog import ROW, Column, Kind, Table
from ..sql.define import bind_value
from ..sql.expression_types import NAMES
from ..sql.scope import Source
from .sqlite_compile import Compiled, Compiler
from .sqlite_functions import StatementState
from .sqlite_storage import Physical, fit_limits, has_limits, index_key, writer


def compile_write(compiler: Compiler, tree: exp.Expression) -> Compiled:
    table: Table = tree.meta["table"]
    physical = compiler.physical(table)
    compiler.target = physical
    columns = tree.meta.get("columns", ())
    if isinstance(tree, exp.Insert):
        return compiler.finish(_insert(compiler, tree, physical), columns)
    if not isinstance(tree, (exp.Update, exp.Delete)):
        raise SqlUnsupportedError(f"{type(tree).__name__} is not supported")
    write = _update(compiler, tree, physical) if isinstance(tree, exp.Update) else _delete(compiler, tree, physical)
    return compiler.finish(write, columns)


def assign(compiler: Compiler, node: exp.Expression, column: Column) -> str:
    if "default" in node.meta:
        return default_sql(compiler, column)
    return compiler.expressions.assign_sql(node, NAMES[column.type.kind], column.type, column.name)


def default_sql(compiler: Compiler, column: Column) -> str:
    if column.serial:
        assert compiler.target is not None
        return f"rmem_nextval('{compiler.target.columns[column.name]}/{NAMES[column.type.kind]}')"
    if column.default is None:
        return "NULL"
    return assign(compiler, bind_value(column.default, column), Column(column.name, column.type))


def _place(compiler: Compiler, source: Source, alias: str, physical: Physical) -> None:
    compiler.place(source, alias, [physical.columns[name] for name, _ in source.columns])


def _returning_sql(compiler: Compiler, tree: exp.Expression, physical: Physical) -> str:
    clause = tree.args.get("returning")
    if clause is None:
        return ""
    source: Source = tree.meta["source"]
    compiler.place(source, "", [f"{physical.name}.{physical.columns[name]}" for name, _ in source.columns])
    items = [f"{compiler.expressions.sql(item.this)} AS o{at}" for at, item in enumerate(clause.expressions, 1)]
    return " RETURNING " + ", ".join(items)


def _insert(compiler: Compiler, tree: exp.Insert, physical: Physical) -> str:
    table = physical.table
    head = compiler.with_queries(tree)
    targets: list[str] = tree.meta["targets"]
    columns = {column.name: column for column in table.columns}
    names, defaults = _filled(compiler, physical, targets)
    body = tree.expression
    if isinstance(body, exp.Values) and "columns" not in body.meta:
        written = []
        for row in body.expressions:
            items = row.expressions if isinstance(row, exp.Tuple) else [row]
            values = [assign(compiler, item, columns[name]) for item, name in zip(items, targets, strict=True)]
            written.append(f"({', '.join([*values, *defaults])})")
        rows = "VALUES " + ", ".join(written)
    else:
        kinds = [NAMES[columns[name].type.kind] for name in targets]
        query = compiler.query(body, kinds)
        items = [
            compiler.expressions.fit_sql(f"o{at}", kind, columns[name].type, name)
            for at, (name, kind) in enumerate(zip(targets, kinds, strict=True), 1)
        ]
        rows = f"SELECT {', '.join([*items, *defaults])} FROM ({query}) WHERE true"
    rows += _conflict(compiler, tree, physical) + _returning_sql(compiler, tree, physical)
    return f"{head}INSERT INTO {physical.name} ({', '.join(names)}) {rows}"


def _filled(compiler: Compiler, physical: Physical, given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that an INSERT writes: those that are given, and those with a default, with their defaults."""
    columns = [column for column in physical.table.columns if column.serial or column.default is not None]
    filled = [column for column in columns if column.name not in given]
    names = [physical.columns[name] for name in (*given, *(column.name for column in filled))]
    return names, [default_sql(compiler, column) for column in filled]


def _conflict(compiler: Compiler, tree: exp.Insert, physical: Physical) -> str:
    clause = tree.args.get("conflict")
    if clause is None:
        return ""
    keys = ", ".join(index_key(physical, name) for name in clause.meta["keys"])
    target = f" ({keys})" if keys else ""
    if clause.args["action"].name.upper() == "DO NOTHING":
        return f" ON CONFLICT{target} DO NOTHING"
    _place(compiler, tree.meta["source"], physical.name, physical)
    _place(compiler, clause.meta["excluded"], "excluded", physical)
    sets = _sets(compiler, clause, physical)
    where = clause.args.get("where")
    condition = f" AND {compiler.expressions.sql_as(where.this, 'bool')}" if where is not None else ""
    return f" ON CONFLICT{target} DO UPDATE SET {sets} WHERE rmem_once({physical.name}.{ROW}){condition}"


def _update(compiler: Compiler, tree: exp.Update, physical: Physical) -> str:
    head = compiler.with_queries(tree)
    _place(compiler, tree.meta["source"], physical.name, physical)
    source = compiler.from_sql(tree)
    sets, where = _sets(compiler, tree, physical), _where(compiler, tree)
    return f"{head}UPDATE {physical.name} SET {sets}{source}{where}{_returning_sql(compiler, tree, physical)}"


def _sets(compiler: Compiler, tree: exp.Expression, physical: Physical) -> str:
    columns = {column.name: column for column in physical.table.columns}
    pairs = [(pair.meta["column"], pair.expression) for pair in tree.expressions]
    return ", ".join(f"{physical.columns[name]} = {assign(compiler, value, columns[name])}" for name, value in pairs)


def _where(compiler: Compiler, tree: exp.Expression) -> str:
    where = tree.args.get("where")
    return f" WHERE {compiler.expressions.sql_as(where.this, 'bool')}" if where is not None else ""


def _delete(compiler: Compiler, tree: exp.Delete, physical: Physical) -> str:
    head = compiler.with_queries(tree)
    using = tree.args.get("using") or []
    _place(compiler, tree.meta["source"], "target" if using else physical.name, physical)
    relations = ", ".join([f"{physical.name} AS target", *(compiler.relation(node) for node in using)])
    where = _where(compiler, tree)
    if using:
        where = f" WHERE {ROW} IN (SELECT target.{ROW} FROM {relations}{where})"
    return f"{head}DELETE FROM {physical.name}{where}{_returning_sql(compiler, tree, physical)}"


def bulk_insert(physical: Physical, columns: Sequence[str]) -> Compiled:
    """Compile an INSERT of rows with these columns."""
    compiler = Compiler({})
    compiler.target = physical
    names, defaults = _filled(compiler, physical, columns)
    values = [*(f"?{at}" for at in range(1, len(columns) + 1)), *defaults]
    return compiler.finish(f"INSERT INTO {physical.name} ({', '.join(names)}) VALUES ({', '.join(values)})")


def stored_rows(table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[list[Any]]:
    """Convert rows of plain values, with JSONB as text, to the values that the file holds."""
    writers = []
    for name in columns:
        column = table.column(name)
        assert column is not None
        write = str if column.type.kind is Kind.JSONB else writer(NAMES[column.type.kind])
        writers.append(partial(_fit, write, column) if has_limits(column.type) else write)
    for row in rows:
        yield [None if value is None else write(value) for value, write in zip(row, writers, strict=True)]


def _fit(write: Callable[[Any], Any], column: Column, value: Any) -> Any:
    return fit_limits(write(value), column.type, column.name)


_READ = 'SELECT "column", last FROM table_sequences WHERE table_id = ?'
_SAVE = (
    'INSERT INTO table_sequences (table_id, "column", last) VALUES (?, ?, ?) '
    'ON CONFLICT (table_id, "column") DO UPDATE SET last = max(last, excluded.last)'
)


def last_numbers(connection: sqlite3.Connection, physical: Physical) -> dict[str, int]:
    names = {stored: name for name, stored in physical.columns.items()}
    found = connection.execute(_READ, (physical.id,))
    return {names[stored]: last for stored, last in found if stored in names}


@contextmanager
def numbering(connection: sqlite3.Connection, state: StatementState, physical: Physical) -> Iterator[None]:
    """Number the rows that a statement writes."""
    serial = [physical.columns[column.name] for column in physical.table.columns if column.serial]
    if not serial:
        yield
        return
    before = dict.fromkeys(serial, 0) | dict(connection.execute(_READ, (physical.id,)).fetchall())
    state.sequences = dict(before)
    yield
    state.inside = True
    given = [(physical.id, name, last) for name, last in state.sequences.items() if last != before[name]]
    connection.executemany(_SAVE, given)
