"""Find the sources of a bound statement by their aliases, which binding made unique in all of it, and the expression
behind a column of a subquery, a WITH or an ORDER BY."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from ..catalog import Table

SourceNodes = Mapping[str, exp.Expr]
"""The tables and subqueries of a statement by their aliases."""


def source_nodes(tree: exp.Expr) -> SourceNodes:
    return {node.meta["source"].alias: node for node in tree.walk() if "source" in node.meta}


def real_table(source: exp.Expr | None) -> Table | None:
    """Return the table of a source; None for a subquery or a WITH query."""
    table = source.meta.get("table") if isinstance(source, exp.Table) else None
    return table if isinstance(table, Table) else None


def sources(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Return the tables and subqueries of a SELECT, UPDATE or DELETE, with those of its joins."""
    places = [statement.this] if isinstance(statement, exp.Update | exp.Delete) else []
    places += statement.args.get("using") or ()
    from_ = statement.args.get("from_")
    places += [from_.this] if isinstance(from_, exp.From) else ()
    for place in places:
        yield place
        yield from (join.this for join in place.args.get("joins") or ())
    yield from (join.this for join in statement.args.get("joins") or ())


def column_expression(column: exp.Column, known: SourceNodes) -> exp.Expr | None:
    """Return the expression behind a column of a subquery or WITH; None for a real table."""
    source = query = known.get(column.table)
    if isinstance(source, exp.Table):
        queries = source.root().find_all(exp.CTE) if "query" in source.meta else ()
        query = next((query for query in queries if query.meta["name"] == source.meta["query"]), None)
    if source is None or not isinstance(query, exp.CTE | exp.Subquery):
        return None
    names = source.alias_column_names or query.alias_column_names
    select = first_select(query.this)
    if select is None or column.name not in names:
        return None
    item: exp.Expr = select.expressions[names.index(column.name)].unalias()
    return item


def first_select(query: exp.Expr) -> exp.Select | None:
    """Return the SELECT that names the columns of a query."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query if isinstance(query, exp.Select) else None


def stands_alone(query: exp.Expr) -> bool:
    """Return whether a query names nothing of the statement around it."""
    own = source_nodes(query)
    if any(column.table and column.table not in own for column in query.find_all(exp.Column)):
        return False
    queries = {part.meta["name"] for part in query.find_all(exp.CTE)}
    return all(node.meta.get("query", "") in {*queries, ""} for node in own.values())
