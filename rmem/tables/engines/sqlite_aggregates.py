"""Compile aggregates and OVER (…): SQLite's own aggregates where they do what PostgreSQL's do, ours for the rest, for
DISTINCT with several arguments, and for ORDER BY inside an aggregate."""

from __future__ import annotations

import json
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ...errors import RemanenceError, SqlError
from ..sql import functions
from ..sql.calls import aggregate_parts
from ..sql.functions import Call
from ..sql.scope import fold_name
from ..sql.types import type_of
from .sqlite_calls import State, Udf, scalar
from .sqlite_statistics import AGGREGATES, NULLS_COUNT
from .sqlite_storage import reader, sort_key, writer

if TYPE_CHECKING:
    from .sqlite_expressions import ExpressionSql

MAX_GATHERED = 256_000_000
Order = tuple[tuple[str, bool, bool], ...]
"""For each key of ORDER BY inside an aggregate: its type, whether it is descending, whether NULLs come first."""


def aggregate_sql(ex: ExpressionSql, node: exp.Anonymous, condition: str, over: str) -> str:
    """An aggregate as SQL; `condition` is its FILTER, `over` its window."""
    call: Call = node.meta["call"]
    name = call.signature.name
    tail = condition + over
    arguments, distinct, order = aggregate_parts(node)
    if not call.takes:
        return f"count(*){tail}"
    items = [ex.sql_as(item, want) for item, want in zip(arguments, call.takes, strict=True)]
    if len(items) == 1:
        text = _own(ex, call, items[0], "DISTINCT " if distinct else "", tail)
        if text:
            return text
    keys = tuple((type_of(key.this), bool(key.args.get("desc")), bool(key.args.get("nulls_first"))) for key in order)
    items += [ex.sql(key.this) for key in order]
    return ex.compiler.call(collector(name, call, distinct, keys), items) + tail


def _own(ex: ExpressionSql, call: Call, item: str, distinct: str, tail: str) -> str:
    """The aggregates that SQLite has itself."""
    kind = call.takes[0]
    name = call.signature.name
    collated = ex.collate(item, kind)
    if name == "count":
        return f"count({distinct}{collated}){tail}"
    if name in ("min", "max"):
        return f"{name}({collated}){tail}"
    if name == "bool_and":
        return f"min({item}){tail}"
    if name == "bool_or":
        return f"max({item}){tail}"
    if name == "sum" and kind in ("int2", "int4", "float8"):
        return f"sum({distinct}{item}){tail}"
    if name == "avg" and kind in ("float4", "float8"):
        return f"avg({distinct}{item}){tail}"
    if name == "avg" and kind in ("int2", "int4"):
        total = f"CAST(sum({distinct}{item}){tail} AS TEXT)"
        count = f"CAST(nullif(count({distinct}{item}){tail}, 0) AS TEXT)"
        return ex.compiler.call(scalar("/(numeric, numeric)", ("numeric", "numeric"), "numeric"), [total, count])
    return ""


def collector(name: str, call: Call, distinct: bool, order: Order) -> Udf:
    """An aggregate of ours: it gathers rows, sorts them, leaves out what is there twice, and then computes."""
    finish = AGGREGATES.get(call.key) or AGGREGATES.get(name)
    if finish is None:
        raise SqlError(f"aggregate {call.key} is not offered by this engine")
    compute = finish
    digest = zlib.crc32(f"{call.key}|{call.takes}|{call.gives}|{distinct}|{order}".encode())
    count = len(call.takes)
    readers = [reader(kind) for kind in call.takes]
    key_readers = [reader(kind) for kind, _, _ in order]
    write = writer(call.gives)
    keep_nulls = name in NULLS_COUNT
    sorts = [(kind, desc, first) for kind, desc, first in order]
    if distinct and not sorts:
        sorts = [(kind, False, False) for kind in call.takes]

    def make(state: State) -> type:
        class Collector:
            def __init__(self) -> None:
                self.rows: list[tuple[list[Any], list[Any]]] = []
                self.size = 0

            def step(self, *arguments: Any) -> None:
                try:
                    if arguments[0] is None and not keep_nulls:
                        return
                    values = [
                        None if item is None else read(item)
                        for read, item in zip(readers, arguments[:count], strict=True)
                    ]
                    keys = [
                        None if item is None else read(item)
                        for read, item in zip(key_readers, arguments[count:], strict=True)
                    ]
                    self.size += sum(len(item) for item in arguments if isinstance(item, (str, bytes)))
                    if self.size > MAX_GATHERED:
                        raise SqlError(f"{name}() gathers more than {MAX_GATHERED:,} bytes")
                    self.rows.append((values, keys))
                except RemanenceError as error:
                    state.error = state.error or error
                    raise

            def inverse(self, *arguments: Any) -> None:
                if arguments[0] is not None or keep_nulls:
                    self.rows.pop(0)

            def value(self) -> Any:
                try:
                    rows = self.rows
                    if sorts:
                        rows = _sorted(rows, sorts, own=not order)
                    if distinct:
                        rows = _distinct(rows, call.takes)
                    result = compute(call, [values for values, _ in rows])
                    return None if result is None else write(result)
                except RemanenceError as error:
                    state.error = state.error or error
                    raise
                except (ArithmeticError, ValueError, TypeError) as error:
                    state.error = state.error or SqlError(f"{name}(): a value is out of range: {error}")
                    raise

            finalize = value

        return Collector

    return Udf(f"pg_{name}_{digest:08x}", count + len(order), make, kind="aggregate")


def _sorted(
    rows: list[tuple[list[Any], list[Any]]], sorts: list[tuple[str, bool, bool]], *, own: bool
) -> list[tuple[list[Any], list[Any]]]:
    rows = list(rows)
    for at in range(len(sorts) - 1, -1, -1):
        kind, descending, nulls_first = sorts[at]
        key = sort_key(kind)

        def of(row: tuple[list[Any], list[Any]], at: int = at) -> Any:
            return (row[0] if own else row[1])[at]

        known = [row for row in rows if of(row) is not None]
        missing = [row for row in rows if of(row) is None]
        known.sort(key=lambda row: key(of(row)), reverse=descending)
        rows = [*missing, *known] if nulls_first else [*known, *missing]
    return rows


def _distinct(rows: list[tuple[list[Any], list[Any]]], takes: tuple[str, ...]) -> list[tuple[list[Any], list[Any]]]:
    keys = [sort_key(kind) for kind in takes]
    seen = set()
    kept = []
    for row in rows:
        mark = tuple(None if item is None else key(item) for key, item in zip(keys, row[0], strict=True))
        if mark not in seen:
            seen.add(mark)
            kept.append(row)
    return kept


def single_row() -> Udf:
    """The value of a subquery that may have one row only."""

    def make(state: State) -> type:
        class OnlyOne:
            def __init__(self) -> None:
                self.rows = 0
                self.found: Any = None

            def step(self, item: Any) -> None:
                self.rows += 1
                if self.rows > 1:
                    state.error = state.error or SqlError(
                        "more than one row returned by a subquery used as an expression"
                    )
                    raise ValueError
                self.found = item

            def inverse(self, item: Any) -> None:
                self.rows -= 1

            def value(self) -> Any:
                return self.found

            finalize = value

        return OnlyOne

    return Udf("rmem_single", 1, make, kind="aggregate")


# -- OVER (…) --------------------------------------------------------------------------------------------------


def window_sql(ex: ExpressionSql, node: exp.Window) -> str:
    """A window function, or an aggregate over a window."""
    over = _over(ex, node)
    target, condition = node.this, ""
    if isinstance(target, exp.Filter):
        condition = f" FILTER (WHERE {ex.sql_as(target.expression.this, 'bool')})"
        target = target.this
    if fold_name(target.this) not in functions.windows:
        return aggregate_sql(ex, target, condition, over)
    call: Call = target.meta["call"]
    items = [ex.sql_as(item, want) for item, want in zip(target.expressions, call.takes, strict=True)]
    return f"{call.signature.name}({', '.join(items)}){over}"


def _over(ex: ExpressionSql, node: exp.Window) -> str:
    partition, order, spec = (node.args.get(part) for part in ("partition_by", "order", "spec"))
    parts = []
    if partition:
        parts.append("PARTITION BY " + ", ".join(ex.key(part) for part in partition))
    if order is not None:
        parts.append("ORDER BY " + ", ".join(ex.compiler.order_sql(key) for key in order.expressions))
    if spec is not None:
        kind = (spec.args.get("kind") or "RANGE").upper()
        end = _bound(ex, spec, "end") if spec.args.get("end") else "CURRENT ROW"
        parts.append(f"{kind} BETWEEN {_bound(ex, spec, 'start')} AND {end}")
    return f" OVER ({' '.join(parts)})"


def _bound(ex: ExpressionSql, spec: exp.WindowSpec, end: str) -> str:
    value, side = spec.args.get(end), (spec.args.get(f"{end}_side") or "").upper()
    if isinstance(value, exp.Expression):
        return f"{ex.sql_as(value, 'int8')} {side}"
    word = str(value).upper()
    return word if word == "CURRENT ROW" else f"{word} {side}"


# -- rows of functions in FROM ---------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _row(text: str) -> list[Any]:
    row: list[Any] = json.loads(text)
    return [bytes.fromhex(item["b"]) if isinstance(item, dict) else item for item in row]


def unpack(text: str | None, at: int) -> Any:
    return None if text is None else _row(text)[at]
