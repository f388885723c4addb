"""Check the rule of GROUP BY: what is selected is grouped by, is inside an aggregate, or follows from a primary key."""

from __future__ import annotations

from sqlglot import exp

from ...errors import SqlError
from . import functions
from .dialect import Dialect
from .scope import NameScope, bound_column, fold_name


def has_aggregates(node: exp.Expression) -> bool:
    """Return whether an expression contains an aggregate, outside of subqueries and windows."""
    return any(is_aggregate(part) for part in node.walk(prune=lambda part: isinstance(part, exp.Query)))


def is_aggregate(node: exp.Expr) -> bool:
    """Return whether an expression is an aggregate over a group, and not over a window."""
    parent = node.parent.parent if isinstance(node.parent, exp.Filter) else node.parent
    named = isinstance(node, exp.Anonymous) and fold_name(node.this) in functions.aggregates
    return named and not isinstance(parent, exp.Window)


def check_grouping(node: exp.Select, scope: NameScope) -> None:
    group = node.args.get("group")
    places = [item.this for item in node.expressions]
    order = node.args.get("order")
    places += [key.this for key in order.expressions if "output" not in key.this.meta] if order is not None else []
    having = node.args.get("having")
    if having is not None:
        places.append(having.this)
    if group is None and having is None and not any(has_aggregates(place) for place in places):
        return
    keys = [_resolve_key(key, node) for key in group.expressions] if group is not None else []
    texts = {_text(key) for key in keys}
    for source in scope.sources.values():
        table = source.table
        if table is not None and table.primary_key:
            own = {name: _text(bound_column(source, name, kind)) for name, kind in source.columns}
            if all(own.get(name) in texts for name in table.primary_key):
                texts |= set(own.values())
    own_aliases = {source.alias for source in scope.sources.values()}
    for place in places:
        _check(place, texts, own_aliases)


def check_distinct(node: exp.Select) -> None:
    """Check DISTINCT: it is ordered by what it selects; DISTINCT ON begins its order with its keys."""
    distinct, order = node.args.get("distinct"), node.args.get("order")
    if distinct is None or order is None:
        return
    keys = [_resolve_key(key.this, node) for key in order.expressions]
    on = distinct.args.get("on")
    if on is None:
        selected = {_text(item.this) for item in node.expressions}
        if any(_text(key) not in selected for key in keys):
            raise SqlError("for SELECT DISTINCT, ORDER BY expressions must appear in select list")
        return
    own = [_text(_resolve_key(key, node)) for key in (on.expressions if isinstance(on, exp.Tuple) else [on])]
    left = set(own)
    for key in keys:
        if not left:
            return
        if _text(key) not in own:
            raise SqlError("SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
        left.discard(_text(key))


def _resolve_key(key: exp.Expression, node: exp.Select) -> exp.Expression:
    at = key.meta.get("output")
    return node.expressions[at].this if at is not None else key


def _text(node: exp.Expression) -> str:
    while isinstance(node, exp.Paren):
        node = node.this
    return node.sql(dialect=Dialect)


def _check(node: exp.Expression, texts: set[str], own: set[str]) -> None:
    if _text(node) in texts or is_aggregate(node):
        return
    if isinstance(node, exp.Filter) and not isinstance(node.parent, exp.Window):
        return
    if isinstance(node, exp.Column):
        if node.table in own:
            where = "must appear in the GROUP BY clause or be used in an aggregate function"
            raise SqlError(f'column "{node.table}.{node.name}" {where}')
        return
    for child in node.iter_expressions():
        if isinstance(child, exp.Expression):
            _check(child, texts, own)
