"""What kind of statement a tree is, for who may run what."""

from __future__ import annotations

from sqlglot import exp

from .parse import parse

READS = frozenset({"SELECT"})


def kind_of(tree: exp.Expression) -> str:
    """SELECT, INSERT, CREATE TABLE …"""
    if isinstance(tree, exp.Query):
        return "SELECT"
    if isinstance(tree, (exp.Create, exp.Drop, exp.Alter)):
        return f"{type(tree).__name__.upper()} {tree.args.get('kind') or ''}".strip()
    if isinstance(tree, exp.TruncateTable):
        return "TRUNCATE"
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    return type(tree).__name__.upper()


def statement_kind(sql: str) -> str:
    """The kind of a statement; EXPLAIN counts as what it explains."""
    return kind_of(parse(sql).tree)


def writes(sql: str) -> bool:
    """Whether a statement changes anything."""
    return statement_kind(sql) not in READS
