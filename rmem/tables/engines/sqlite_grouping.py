"""GROUPING SETS, ROLLUP and CUBE: one query for each set of keys, put together with UNION ALL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

from sqlglot import exp

from ...errors import SqlUnsupportedError
from ..sql.types import type_of

if TYPE_CHECKING:
    from .sqlite_compile import Compiler

MAX_SETS = 128


def grouping_sets(compiler: Compiler, node: exp.Select, wants: Sequence[str] | None) -> str:
    sets = _all(node)
    if len(sets) > MAX_SETS:
        raise SqlUnsupportedError(f"more than {MAX_SETS} grouping sets are not supported")
    if node.args.get("distinct") is not None and node.args["distinct"].args.get("on") is not None:
        raise SqlUnsupportedError("DISTINCT ON with grouping sets is not supported")
    head = compiler.with_queries(node)
    every = {key.sql(): key for keys in sets for key in keys}
    kinds = list(wants or [type_of(item.this) for item in node.expressions])
    bodies = []
    order = node.args.get("order")
    for keys in sets:
        missing = {text for text in every if text not in {key.sql() for key in keys}}
        part = exp.Select(
            **{
                key: _copy(value)
                for key, value in node.args.items()
                if key not in ("with_", "order", "limit", "offset", "group")
            }
        )
        part.meta.update(node.meta)
        extra = [key.this for key in order.expressions if "output" not in key.this.meta] if order is not None else []
        for at, key in enumerate(extra):
            alias = exp.Alias(this=key.copy(), alias=exp.Identifier(this=f"key{at}", quoted=True))
            part.append("expressions", alias)
        for item in part.expressions:
            _number(item, missing)
            _nullify(item, missing)
        if part.args.get("having") is not None:
            _nullify(part.args["having"], missing)
        part.set("group", exp.Group(expressions=[key.copy() for key in keys] or [exp.Null()]))
        if not keys:
            part.set("group", None)
            if part.args.get("having") is None and not _aggregates(part):
                part.set("group", exp.Group(expressions=[exp.Null()]))
        bodies.append(compiler.query(part, [*kinds, *(type_of(key) for key in extra)]))
    body = " UNION ALL ".join(f"SELECT * FROM ({each})" for each in bodies)
    outputs = ", ".join(f"o{at}" for at in range(1, len(kinds) + 1))
    tail = exp.Select(**{key: _copy(node.args.get(key)) for key in ("order", "limit", "offset")})
    at = len(kinds)
    for key in tail.args["order"].expressions if order is not None else []:
        if "output" not in key.this.meta:
            column = exp.Column(this=exp.Identifier(this="key"))
            column.meta.update(output=at, type=type_of(key.this))
            key.set("this", column)
            at += 1
    word = "DISTINCT " if node.args.get("distinct") is not None else ""
    return f"{head}SELECT {word}{outputs} FROM ({body}){compiler.tail(tail)}"


def _aggregates(node: exp.Select) -> bool:
    from ..sql.grouping import has_aggregates

    return any(has_aggregates(item.this) for item in node.expressions)


def _copy(value: object) -> object:
    if isinstance(value, exp.Expression):
        return value.copy()
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _number(root: exp.Expression, missing: set[str]) -> None:
    """grouping(a, b): a bit for each key, set where the row is not grouped by it."""
    for node in list(root.find_all(exp.Anonymous)):
        if str(node.this).lower() == "grouping":
            bits = 0
            for argument in node.expressions:
                bits = bits * 2 + (argument.sql() in missing)
            value = exp.Literal.number(bits)
            value.meta["type"] = "int4"
            node.replace(value)


def _nullify(root: exp.Expression, missing: set[str]) -> None:
    """Keys that a set does not group by are NULL in its rows, outside of aggregates."""
    from ..sql.grouping import is_aggregate

    stack = [root]
    while stack:
        node = stack.pop()
        for child in list(node.iter_expressions()):
            if not isinstance(child, exp.Expression) or is_aggregate(child) or isinstance(child, exp.Query):
                continue
            if child.sql() in missing:
                null = exp.Null()
                null.meta["type"] = type_of(child)
                child.replace(null)
            else:
                stack.append(child)


def _all(node: exp.Select) -> list[list[exp.Expression]]:
    parts = [_sets(key, node) for key in node.args["group"].expressions]
    found = []
    for choice in product(*parts):
        keys: dict[str, exp.Expression] = {}
        for part in choice:
            for key in part:
                keys[key.sql()] = key
        found.append(list(keys.values()))
    return found


def _sets(key: exp.Expression, node: exp.Select) -> list[list[exp.Expression]]:
    if isinstance(key, exp.Rollup):
        units = [_unit(inner, node) for inner in key.expressions]
        return [[one for unit in units[:count] for one in unit] for count in range(len(units), -1, -1)]
    if isinstance(key, exp.Cube):
        units = [_unit(inner, node) for inner in key.expressions]
        return [
            [one for unit in chosen for one in unit]
            for count in range(len(units), -1, -1)
            for chosen in combinations(units, count)
        ]
    if isinstance(key, exp.GroupingSets):
        return [one for inner in key.expressions for one in _sets(inner, node)]
    return [_unit(key, node)]


def _unit(key: exp.Expression, node: exp.Select) -> list[exp.Expression]:
    if isinstance(key, exp.Tuple):
        return [one for inner in key.expressions for one in _unit(inner, node)]
    if "output" in key.meta:
        return [node.expressions[key.meta["output"]].this]
    while isinstance(key, exp.Paren):
        key = key.this
    return [key]
