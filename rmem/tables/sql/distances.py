"""Rewrite `vector <=> query`, the cosine distance, as the similarity that search indexes answer."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from .dialect import COSINE_DISTANCE, Operator
from .nodes import replace_node
from .scope import fold_name


def rewrite_cosine_distances(tree: exp.Expression) -> None:
    """Write `1 - cosine_similarity(v, q)` for `v <=> q`, and order by the similarity where the nearest come first.

    The planner of searches knows the best rows of a similarity; it would have to compute every distance."""
    found = [node for node in tree.find_all(Operator) if node.op == COSINE_DISTANCE]
    if not found:
        return
    for select in list(tree.find_all(exp.Select)):
        order = select.args.get("order")
        if order is not None and not any(select.args.get(key) for key in ("distinct", "group", "having")):
            named: dict[str, exp.Expr] = {}
            for item in select.expressions:
                if isinstance(item, exp.Alias):
                    named.setdefault(fold_name(item.args["alias"]), item.this)
            for key in order.expressions:
                _order_by_similarity(key, select, named)
    for node in [node for node in tree.find_all(Operator) if node.op == COSINE_DISTANCE]:
        replaced = exp.Paren(this=exp.Sub(this=exp.Literal.number(1)))
        replace_node(node, replaced)
        replaced.this.set("expression", _similarity(node.this, node.expression))


def _order_by_similarity(key: exp.Ordered, select: exp.Select, named: Mapping[str, exp.Expr]) -> None:
    distance = _ordered_item(key.this, select, named).unnest()
    nulls_first = key.meta.get("nulls") and key.args.get("nulls_first")
    if not (isinstance(distance, Operator) and distance.op == COSINE_DISTANCE) or key.args.get("desc") or nulls_first:
        return
    key.set("this", _similarity(distance.this.copy(), distance.expression.copy()))
    key.set("desc", True)
    key.set("nulls_first", False)
    key.meta["nulls"] = True


def _ordered_item(node: exp.Expr, select: exp.Select, named: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return the SELECT item that a name or number in ORDER BY refers to, or the expression itself."""
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        items = select.expressions[int(node.this) - 1 : int(node.this)]
        return items[0].unalias() if items and int(node.this) else node
    if isinstance(node, exp.Column) and not node.args.get("table"):
        return named.get(fold_name(node.this), node)
    return node


def _similarity(vector: exp.Expr, query: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this="cosine_similarity", expressions=[vector, query])
