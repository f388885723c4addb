"""Return the kind of a statement and what it writes to, for access checks."""

from __future__ import annotations

from sqlglot import exp

from .scope import fold_name

DEFINITIONS = ("CREATE", "DROP", "ALTER")
"""How the kinds of statements begin that change tables and not rows."""


def kind_of(tree: exp.Expression) -> str:
    """Return SELECT, INSERT, CREATE TABLE …"""
    if isinstance(tree, exp.Query):
        return "SELECT"
    if isinstance(tree, (exp.Create, exp.Drop, exp.Alter)):
        return f"{type(tree).__name__.upper()} {tree.args.get('kind') or ''}".strip()
    if isinstance(tree, exp.TruncateTable):
        return "TRUNCATE"
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    return type(tree).__name__.upper()


def target_tables(tree: exp.Expression) -> list[str]:
    """Return the tables that a statement changes; of DROP INDEX, which names none, the indexes."""
    if isinstance(tree, exp.Query):
        return []
    if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Index):
        return [fold_name(tree.this.args["table"])]
    targets = tree.expressions if isinstance(tree, exp.TruncateTable) else tree.args.get("tables") or [tree.this]
    return [fold_name(target.this if isinstance(target, exp.Schema) else target) for target in targets]
