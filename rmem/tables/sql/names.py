"""Name the columns of a result that have no name, as PostgreSQL does."""

from __future__ import annotations

from sqlglot import exp

from .expression_types import read_type

_UNNAMED = "?column?"
_FUNCTIONS = {
    exp.CurrentDate: "current_date",
    exp.CurrentTimestamp: "current_timestamp",
    exp.Extract: "extract",
    exp.AtTimeZone: "timezone",
    exp.Exists: "exists",
    exp.Array: "array",
    exp.Tuple: "row",
}


def output_name(node: exp.Expression) -> str:
    return _output_name(node)[0]


def _output_name(node: exp.Expression) -> tuple[str, int]:
    """Return a name and its quality: 2 a real name, 1 a default, 0 none."""
    if isinstance(node, exp.Alias):
        return str(node.alias), 2
    if isinstance(node, exp.Column):
        return str(node.name), 2
    if isinstance(node, exp.Anonymous):
        return str(node.meta.get("name") or node.name.lower()), 2
    if isinstance(node, (exp.Paren, exp.Window, exp.Filter, exp.Bracket)):
        return _output_name(node.this)
    if isinstance(node, exp.Cast):
        name, strength = _output_name(node.this)
        if strength > 1:
            return name, strength
        return read_type(node.args["to"])[0].rstrip("[]"), 1
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        name, strength = _output_name(default) if default is not None else ("", 0)
        return (name, strength) if strength > 1 else ("case", 1)
    if isinstance(node, exp.Subquery):
        inner = node.this
        while isinstance(inner, (exp.SetOperation, exp.Subquery)):
            inner = inner.this
        if isinstance(inner, exp.Select) and inner.expressions:
            return _output_name(inner.expressions[0])
        return "column1", 2
    name = _FUNCTIONS.get(type(node), "")
    return (name, 2) if name else (_UNNAMED, 0)
