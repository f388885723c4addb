"""The read-only tables `facts` and `entities`: the facts of the memories beside the tables. `rmem.graph` computes when
a fact holds, so a statement that names them gets their rows as a parameter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from sqlglot import exp

from ..errors import SqlUnsupportedError, TooManyRowsError
from ..graph import Graph
from .catalog import Table
from .sql.parse import kind_of, parse, target_tables
from .sql.scope import fold_name

GraphSource = Callable[[], Graph]
MOST = 100_000
"""Rows that a statement may read of one of them."""
COLUMNS = {
    "facts": {
        "id": "text", "subject": "text", "relation": "text", "object": "text", "valid_from": "timestamptz",
        "valid_until": "timestamptz", "learned_at": "timestamptz", "ended_by": "text",
        "confidence": "double precision", "memory": "text", "agent": "text",
    },
    "entities": {"name": "text", "facts": "bigint"},
}  # fmt: skip


def named_in(tree: exp.Expression, catalogue: Mapping[str, Table], workspace: str) -> tuple[str, ...]:
    """Return which of these tables a statement reads. A user's table or WITH query of the same name hides them."""
    free = COLUMNS.keys() - catalogue.keys() - {fold_name(query.args["alias"]) for query in tree.find_all(exp.CTE)}
    if not free:
        return ()
    written = free.intersection(target_tables(tree)) if kind_of(tree) in ("INSERT", "UPDATE", "DELETE") else ()
    for name in written:
        raise SqlUnsupportedError(
            f'"{name}" can only be read: it is what memories say; state facts with graph.add or `POST …/graph/facts`'
        )
    return tuple(sorted({name for table in tree.find_all(exp.Table) if (name := _name(table, workspace)) in free}))


def _name(table: exp.Table, workspace: str) -> str:
    schema = fold_name(table.args["db"]) if table.args.get("db") else workspace
    return fold_name(table.this) if isinstance(table.this, exp.Identifier) and schema in (workspace, "public") else ""


def add_queries(tree: exp.Expression, names: tuple[str, ...], first: int, workspace: str) -> None:
    """Add WITH queries that read the tables from parameters, numbered from `first`."""
    for table in tree.find_all(exp.Table):
        if _name(table, workspace) in names:
            table.set("db", None)
    for number, name in enumerate(names, first):
        items = ", ".join(f"(value->>'{column}')::{kind} AS {column}" for column, kind in COLUMNS[name].items())
        query = parse(f"WITH {name} AS (SELECT {items} FROM jsonb_array_elements(${number}::jsonb)) SELECT 1").tree
        added = query.args["with_"]
        known = tree.args.get("with_")
        if known is None:
            tree.set("with_", added)
        else:
            known.set("expressions", [*added.expressions, *known.expressions])


def rows_of(name: str, graph: Graph) -> str:
    """Return the rows of one of these tables as JSON."""
    rows: Iterable[dict[str, Any]]
    if name == "entities":
        rows = ({"name": entity, "facts": count} for entity, count in graph.entities(limit=MOST + 1))
    else:
        facts = graph.all_facts(history=True, likely=True)
        rows = ({**fact.to_dict(), "memory": fact.memory_id} for fact in facts)
    found = [{column: row[column] for column in COLUMNS[name]} for row in islice(rows, MOST + 1)]
    if len(found) > MOST:
        raise TooManyRowsError(f'"{name}" has more than {MOST:,} rows, too many for SQL; ask the graph instead')
    return json.dumps(found)
