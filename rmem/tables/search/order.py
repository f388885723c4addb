"""Order best first: a similarity in ORDER BY without ASC or DESC means the highest first, and NULL scores come last."""

from __future__ import annotations

from sqlglot import exp

from ..sql.sources import SourceNodes, column_expression, first_select
from .operators import is_search

_DEEP = 32


def order_best_first(tree: exp.Expr, known: SourceNodes) -> None:
    """Give every ORDER BY of a similarity its direction, and NULL its place in those of expressions with one."""
    for ordered in tree.find_all(exp.Ordered):
        what = _origin(target(ordered), known)
        if is_search(what) and ordered.args.get("desc") is None:
            ordered.set("desc", True)
        if ordered.args.get("desc") and not ordered.meta.get("nulls") and any(map(is_search, what.walk())):
            ordered.set("nulls_first", False)


def target(ordered: exp.Ordered) -> exp.Expr:
    """Return what is ordered by: the expression, or the SELECT item that a name or number refers to."""
    what = ordered.this
    place = what.meta.get("output")
    query = ordered.parent.parent if ordered.parent is not None else None
    select = first_select(query) if place is not None and query is not None else None
    found: exp.Expr = what if select is None else select.expressions[place].unalias()
    return found


def _origin(node: exp.Expr, known: SourceNodes) -> exp.Expr:
    """Return the expression behind brackets, casts and the columns of subqueries."""
    for _ in range(_DEEP):
        inner = node.this if isinstance(node, exp.Paren | exp.Cast) else None
        if isinstance(node, exp.Column) and node.table:
            inner = column_expression(node, known)
        if not isinstance(inner, exp.Expr):
            break
        node = inner
    return node
