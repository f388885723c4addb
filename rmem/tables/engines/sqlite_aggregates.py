"""Compile aggregates and OVER (…): SQLite's own aggregates where they do what PostgreSQL's do, ours for the rest, for
DISTINCT with several arguments, and for ORDER BY inside an aggregate."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlglot import exp

from ...errors import SqlError
from ..sql import functions
from ..sql.calls import aggregate_parts
from ..sql.expression_types import type_of
from ..sql.functions import FunctionCall
from ..sql.literals import EXACT
from ..sql.scope import fold_name
from ..sql.times import Interval
from .sqlite_functions import StatementState, Udf, keep_error, scalar
from .sqlite_json import as_json, json_key
from .sqlite_numbers import divide
from .sqlite_storage import reader, sort_key, writer
from .sqlite_times import interval_times

if TYPE_CHECKING:
    from .sqlite_expressions import ExpressionSql

MAX_GATHERED = 256_000_000
Order = tuple[tuple[str, bool, bool], ...]
"""For each key of ORDER BY inside an aggregate: its type, whether it is descending, whether NULLs come first."""


def aggregate_sql(ex: ExpressionSql, node: exp.Anonymous, condition: str, over: str) -> str:
    """Compile an aggregate; `condition` is its FILTER, `over` its window."""
    call: FunctionCall = node.meta["call"]
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


def _own(ex: ExpressionSql, call: FunctionCall, item: str, distinct: str, tail: str) -> str:
    """Compile the aggregates that SQLite has itself; empty for others."""
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


def collector(name: str, call: FunctionCall, distinct: bool, order: Order) -> Udf:
    """Return an aggregate of ours, which collects rows, sorts them, removes duplicates and computes."""
    finish = AGGREGATES.get(call.key) or AGGREGATES.get(name)
    if finish is None:
        raise SqlError(f"aggregate {call.key} is not offered by this engine")
    compute = finish
    digest = zlib.crc32(f"{call.key}|{call.takes}|{call.gives}|{distinct}|{order}".encode())
    count = len(call.takes)
    readers = [reader(kind) for kind in (*call.takes, *(kind for kind, _, _ in order))]
    write = writer(call.gives)
    keep_nulls = name in NULLS_COUNT
    sorts = [(count + at, *key) for at, key in enumerate(order)]
    if distinct and not sorts:
        sorts = [(at, kind, False, False) for at, kind in enumerate(call.takes)]

    def make(state: StatementState) -> type:
        class Collector:
            def __init__(self) -> None:
                self.rows: CollectedRows = []
                self.size = 0

            def _add(self, *arguments: Any) -> None:
                if arguments[0] is None and not keep_nulls:
                    return
                self.size += sum(len(item) for item in arguments if isinstance(item, (str, bytes)))
                if self.size > MAX_GATHERED:
                    raise SqlError(f"{name}() gathers more than {MAX_GATHERED:,} bytes")
                pairs = zip(readers, arguments, strict=True)
                self.rows.append([None if item is None else read(item) for read, item in pairs])

            def inverse(self, *arguments: Any) -> None:
                if arguments[0] is not None or keep_nulls:
                    self.rows.pop(0)

            def _result(self) -> Any:
                rows = _sort_rows(self.rows, sorts)
                if distinct:
                    rows = _distinct(rows, call.takes)
                result = compute(call, [row[:count] for row in rows]) if rows else None
                return None if result is None else write(result)

            step = keep_error(state, _add)
            value = finalize = keep_error(state, _result, f"{name}(): a value is out of range")

        return Collector

    return Udf(f"pg_{name}_{digest:08x}", count + len(order), make, kind="aggregate")


def _sort_rows(rows: CollectedRows, sorts: list[tuple[int, str, bool, bool]]) -> CollectedRows:
    for at, kind, descending, nulls_first in reversed(sorts):
        key = sort_key(kind)
        known = [row for row in rows if row[at] is not None]
        missing = [row for row in rows if row[at] is None]
        known.sort(key=lambda row, at=at, key=key: key(row[at]), reverse=descending)  # type: ignore[misc]
        rows = [*missing, *known] if nulls_first else [*known, *missing]
    return rows


def _distinct(rows: CollectedRows, takes: tuple[str, ...]) -> CollectedRows:
    keys = [sort_key(kind) for kind in takes]
    found: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        mark = tuple(None if item is None else key(item) for key, item in zip(keys, row, strict=False))
        found.setdefault(mark, row)
    return list(found.values())


def single_row() -> Udf:
    """Return an aggregate that gives the value of a subquery and refuses a second row."""

    def make(state: StatementState) -> type:
        class OnlyOne:
            def __init__(self) -> None:
                self.rows = 0
                self.found: Any = None

            def _add(self, item: Any) -> None:
                self.rows += 1
                if self.rows > 1:
                    raise SqlError("more than one row returned by a subquery used as an expression")
                self.found = item

            def inverse(self, item: Any) -> None:
                self.rows -= 1

            def value(self) -> Any:
                return self.found

            step, finalize = keep_error(state, _add), value

        return OnlyOne

    return Udf("rmem_single", 1, make, kind="aggregate")


# -- what aggregates compute from their rows: AGGREGATES[signature or name](call, rows) -------------------------------

CollectedRows = list[list[Any]]
NULLS_COUNT = frozenset({"array_agg", "jsonb_agg", "jsonb_object_agg"})


def _sum_numeric(call: FunctionCall, rows: CollectedRows) -> Decimal:
    return reduce(EXACT.add, (Decimal(row[0]) for row in rows), Decimal(0))


def _avg_numeric(call: FunctionCall, rows: CollectedRows) -> Decimal:
    return divide(_sum_numeric(call, rows), Decimal(len(rows)))


def _sum_interval(call: FunctionCall, rows: CollectedRows) -> Interval:
    return Interval(*(sum(column) for column in zip(*(row[0] for row in rows), strict=True)))


def _string_agg(call: FunctionCall, rows: CollectedRows) -> str:
    return rows[0][0] + "".join(f"{separator or ''}{value}" for value, separator in rows[1:])  # type: ignore[no-any-return]


def _variance(call: FunctionCall, rows: CollectedRows) -> float | None:
    compute = np.std if call.signature.name == "stddev" else np.var
    return float(compute([row[0] for row in rows], ddof=1)) if len(rows) > 1 else None


AGGREGATES: dict[str, Callable[[FunctionCall, CollectedRows], Any]] = {
    "sum(int8)": _sum_numeric,
    "sum(numeric)": _sum_numeric,
    "sum(float4)": lambda call, rows: reduce(operator.add, (row[0] for row in rows), 0.0),  # sum() rounds otherwise
    "sum(interval)": _sum_interval,
    "avg(int8)": _avg_numeric,
    "avg(numeric)": _avg_numeric,
    "avg(interval)": lambda call, rows: interval_times(_sum_interval(call, rows), 1 / len(rows)),
    "string_agg(text, text)": _string_agg,
    "array_agg": lambda call, rows: [row[0] for row in rows],
    "jsonb_agg": lambda call, rows: [as_json(row[0], call.takes[0]) for row in rows],
    "jsonb_object_agg": lambda call, rows: {
        json_key(key, call.takes[0]): as_json(value, call.takes[1]) for key, value in rows
    },
    "stddev": _variance,
    "variance": _variance,
}


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
    call: FunctionCall = target.meta["call"]
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
