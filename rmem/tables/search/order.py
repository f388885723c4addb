"""Order best first: a similarity in ORDER BY without ASC or DESC means the highest first, and NULL scores come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from ..sql.sources import column_expression, first_select
from .operators import is_search, number

_GROWING = {"coalesce", "greatest", "least", "round", "max", "min", "avg", "sum"}
_DEEP = 32


def order_best_first(tree: exp.Expr, parameters: Sequence[Any]) -> bool:
    """Give every ORDER BY of a similarity its direction; return whether that depended on a parameter."""
    growth = Growth(parameters)
    for ordered in tree.find_all(exp.Ordered):
        if growth.grows(target(ordered)):
            if ordered.args.get("desc") is None:
                ordered.set("desc", True)
            if ordered.args.get("desc") and not ordered.meta.get("nulls"):
                ordered.set("nulls_first", False)
    return growth.by_value


def target(ordered: exp.Ordered) -> exp.Expr:
    """Return what is ordered by: the expression, or the SELECT item that a name or number refers to."""
    what = ordered.this
    place = what.meta.get("output")
    query = ordered.parent.parent if ordered.parent is not None else None
    select = first_select(query) if place is not None and query is not None else None
    found: exp.Expr = what if select is None else select.expressions[place].unalias()
    return found


class Growth:
    """Decides whether an expression is a similarity, or grows with similarities."""

    def __init__(self, parameters: Sequence[Any]) -> None:
        self._parameters = parameters
        self.by_value = False

    def grows(self, node: exp.Expr, depth: int = 0) -> bool:
        if depth > _DEEP:
            return False
        deeper = depth + 1
        if is_search(node):
            return True
        if isinstance(node, exp.Paren | exp.Cast | exp.Alias):
            return self.grows(node.this, deeper)
        if isinstance(node, exp.Add):
            return self._all_or_constant([node.this, node.expression], deeper)
        if isinstance(node, exp.Sub):
            return self.grows(node.this, deeper) and self._number(node.expression) is not None
        if isinstance(node, exp.Mul):
            sides = (node.this, node.expression), (node.expression, node.this)
            return any(self.grows(side, deeper) and self._positive(other) for side, other in sides)
        if isinstance(node, exp.Div):
            return self.grows(node.this, deeper) and self._positive(node.expression)
        if isinstance(node, exp.Anonymous) and node.name.lower() in _GROWING:
            return self._all_or_constant(node.expressions, deeper)
        if isinstance(node, exp.Column) and node.table:
            found = column_expression(node)
            return found is not None and self.grows(found, deeper)
        return False

    def _all_or_constant(self, nodes: Sequence[exp.Expr], depth: int) -> bool:
        growing = [self.grows(node, depth) for node in nodes]
        others = [node for node, grows in zip(nodes, growing, strict=True) if not grows]
        return any(growing) and all(self._number(node) is not None for node in others)

    def _number(self, node: exp.Expr) -> float | None:
        self.by_value = self.by_value or node.find(exp.Parameter) is not None
        return number(node, self._parameters)

    def _positive(self, node: exp.Expr) -> bool:
        value = self._number(node)
        return value is not None and value > 0
