"""OVER (…) in SQLite's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from ..sql import functions
from ..sql.scope import fold_name
from .sqlite_aggregates import aggregate_sql, window_sql

if TYPE_CHECKING:
    from .sqlite_compile import Compiler


def window_of(compiler: Compiler, node: exp.Window) -> str:
    """A window function or an aggregate over a window."""
    over = _over(compiler, node)
    target, condition = node.this, ""
    if isinstance(target, exp.Filter):
        condition = f" FILTER (WHERE {compiler.expressions.sql_as(target.expression.this, 'bool')})"
        target = target.this
    if fold_name(target.this) in functions.windows:
        return window_sql(compiler.expressions, target, over)
    return aggregate_sql(compiler.expressions, target, condition, over)


def _over(compiler: Compiler, node: exp.Window) -> str:
    partition, order, spec = (node.args.get(part) for part in ("partition_by", "order", "spec"))
    parts = []
    if partition:
        parts.append("PARTITION BY " + ", ".join(compiler.expressions.key(part) for part in partition))
    if order is not None:
        parts.append("ORDER BY " + ", ".join(compiler.order_sql(key) for key in order.expressions))
    if spec is not None:
        parts.append(_frame(compiler, spec))
    return f" OVER ({' '.join(parts)})"


def _frame(compiler: Compiler, spec: exp.WindowSpec) -> str:
    kind = (spec.args.get("kind") or "RANGE").upper()
    start = _bound(compiler, spec, "start")
    end = _bound(compiler, spec, "end") if spec.args.get("end") else "CURRENT ROW"
    text = f"{kind} BETWEEN {start} AND {end}"
    exclude = spec.args.get("exclude")
    return f"{text} EXCLUDE {str(exclude.name).upper()}" if exclude is not None else text


def _bound(compiler: Compiler, spec: exp.WindowSpec, end: str) -> str:
    value, side = spec.args.get(end), (spec.args.get(f"{end}_side") or "").upper()
    if isinstance(value, exp.Expression):
        return f"{compiler.expressions.sql_as(value, 'int8')} {side}"
    word = str(value).upper()
    return word if word == "CURRENT ROW" else f"{word} {side}"
