"""Change the tree of a statement in bounded time."""

from __future__ import annotations

from sqlglot import exp


def replace_node(node: exp.Expr, by: exp.Expr) -> None:
    """Put `by` in the place of a node. `node.replace` numbers all its siblings anew, so a list of 10,000 that are all
    replaced took seconds."""
    parent, key, index = node.parent, node.arg_key, node.index
    if parent is None or key is None or index is None:
        node.replace(by)
        return
    parent.set("", None)  # there is no such argument: it only forgets the cached hashes
    parent.args[key][index] = by
    by.parent, by.arg_key, by.index = parent, key, index
    node.parent = node.arg_key = node.index = None
