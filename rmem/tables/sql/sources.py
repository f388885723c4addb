"""Find the source of an alias in a bound statement, and the expression behind a column of a subquery, a WITH or an
ORDER BY."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from .scope import fold_name


def sources(statement: exp.Expr) -> Iterator[exp.Expr]:
    """Return the tables and subqueries of a SELECT, UPDATE or DELETE, with those of its joins."""
    places: list[exp.Expr] = []
    if isinstance(statement, exp.Update | exp.Delete):
        places.append(statement.this)
        places += statement.args.get("using") or ()
    from_ = statement.args.get("from_")
    if isinstance(from_, exp.From):
        places.append(from_.this)
    places += [join.this for join in statement.args.get("joins") or ()]
    for place in places:
        yield from _inside(place)


def _inside(place: exp.Expr) -> Iterator[exp.Expr]:
    """Return a source and those joined with it in brackets."""
    if isinstance(place, exp.Paren) or (isinstance(place, exp.Subquery) and isinstance(place.this, exp.Table)):
        yield from _inside(place.this)
    else:
        yield place
    for join in place.args.get("joins") or ():
        yield from _inside(join.this)


def find_source(node: exp.Expr, alias: str) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the source of an alias at a node, and the statement that it belongs to."""
    above = node.parent
    while above is not None:
        if isinstance(above, exp.Select | exp.Update | exp.Delete):
            for source in sources(above):
                if source.alias_or_name == alias:
                    return source, above
        above = above.parent
    return None


def find_cte(table: exp.Table) -> exp.CTE | None:
    """Return the WITH query that a table name means; None for a real table."""
    if table.args.get("db"):
        return None
    name = fold_name(table.this)
    below: exp.Expr = table
    above = table.parent
    while above is not None:
        with_ = above.args.get("with_")
        if isinstance(with_, exp.With):
            for cte in reversed(_visible(with_, below)):
                if cte.alias == name:
                    return cte
        if not isinstance(above, exp.With):
            below = above
        above = above.parent
    return None


def _visible(with_: exp.With, below: exp.Expr) -> list[exp.CTE]:
    """Return the WITH queries that can be named from another one, or from the statement after it."""
    parts = [part for part in with_.expressions if isinstance(part, exp.CTE)]
    place = next((at for at, part in enumerate(parts) if part is below), None)
    if place is None:
        return parts
    return parts[: place + 1] if with_.args.get("recursive") else parts[:place]


def column_expression(column: exp.Column) -> exp.Expr | None:
    """Return the expression behind a column of a subquery or WITH; None for a real table."""
    found = find_source(column, column.table)
    source = found[0] if found else None
    query = find_cte(source) if isinstance(source, exp.Table) else source
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
    own = {source.alias_or_name for select in query.find_all(exp.Select) for source in sources(select)}
    if any(column.table and column.table not in own for column in query.find_all(exp.Column)):
        return False
    for table in query.find_all(exp.Table):
        part = find_cte(table)
        if part is not None and not any(part is query_part for query_part in query.find_all(exp.CTE)):
            return False
    return True
