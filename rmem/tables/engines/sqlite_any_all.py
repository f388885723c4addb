"""Compile `x = ANY(array)`, `x > ALL(SELECT …)`, `x LIKE ANY(array)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ..sql.types import element, type_of
from .sqlite_calls import Native, scalar
from .sqlite_order import sort_key
from .sqlite_patterns import like
from .sqlite_storage import collation

if TYPE_CHECKING:
    from .sqlite_predicates import PredicateSql

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def any_all_sql(ex: PredicateSql, node: exp.Expression, op: str) -> str:
    other = node.expression
    every = isinstance(other, exp.All)
    kind: str = node.meta.get("operand", "text")
    inner = other.this.unnest() if not isinstance(other.this, exp.Subquery) else other.this
    left = ex.compare(node.this, kind)
    if isinstance(inner, exp.Query):
        assert isinstance(inner, exp.Expression)
        if (op, every) in (("=", False), ("<>", True)):
            word = "NOT IN" if every else "IN"
            return f"({left} {word} ({ex.compiler.query(inner, [kind])}))"
        items = ex.compiler.items(inner, kind)
        array = f"{kind}[]"
    else:
        array = type_of(other)
        items = ex.sql(other.this)
        if (op, every) in (("=", False), ("<>", True)) and array == f"{kind}[]" and _is_plain(kind):
            word = "NOT IN" if every else "IN"
            return f"(CASE WHEN {items} IS NOT NULL THEN {left} {word} (SELECT value FROM json_each({items})) END)"
    run = _runner(op, element(array) if op in _COMPARE else "text", every)
    udf = scalar(f"quantified({op},{every})", (kind, array), "bool", Native(run, strict=False))
    text = ex.compiler.call(udf, [ex.sql_as(node.this, kind), items])
    return f"(NOT {text})" if node.args.get("negate") else text


def _is_plain(kind: str) -> bool:
    """Whether elements of an array lie in JSON as values of a column lie in SQLite."""
    return not collation(kind) and kind not in ("bytea", "float4", "float8")


def _runner(op: str, kind: str, every: bool) -> Callable[[Any, Any], bool | None]:
    if op in _COMPARE:
        key, compare = sort_key(kind), _COMPARE[op]

        def fits(value: Any, item: Any) -> bool:
            return compare(key(value), key(item))
    else:

        def fits(value: Any, item: Any) -> bool:
            return like(value, item, "\\", folds=op == "ilike")

    def run(value: Any, items: list[Any] | None) -> bool | None:
        if items is None:
            return None
        if not items:
            return every
        if value is None:
            return None
        unknown = False
        for item in items:
            if item is None:
                unknown = True
            elif fits(value, item) != every:
                return not every
        return None if unknown else every

    return run
