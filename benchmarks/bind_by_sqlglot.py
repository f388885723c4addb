"""Compare our binder with sqlglot's `qualify` and `annotate_types` on the SELECTs of the differential tests.

python benchmarks/bind_by_sqlglot.py            # figures of docs/decisions/0034-a-binder-of-our-own.md
python benchmarks/bind_by_sqlglot.py --show     # and each statement that differs
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from rmem.errors import RemanenceError
from rmem.tables.catalog import Table
from rmem.tables.sql.bind import Binder
from rmem.tables.sql.expression_types import NAMES, read_type
from rmem.tables.sql.parse import parse
from rmem.tables.workspace import Workspace

_TESTS = Path(__file__).parent.parent / "tests" / "tables"
Columns = tuple[tuple[str, str], ...]


def statements() -> Iterator[list[Any]]:
    sys.path[:0] = [str(_TESTS), str(_TESTS / "sql")]
    import more_statements
    import statements as own

    yield from (group for groups in (own.GROUPS, more_statements.GROUPS) for group in groups.values())


def ours(sql: str, params: Any, catalogue: dict[str, Table]) -> Columns | None:
    """What our binder makes of a SELECT; None if it refuses it."""
    try:
        statement = parse(sql)
        values = statement.parameters.values(params)
        return Binder(catalogue, "default", values).query(statement.tree, None)
    except RemanenceError:
        return None


def sqlglots(sql: str, catalogue: dict[str, Table]) -> Columns | None:
    """What sqlglot makes of it; None if it refuses it."""
    schema = {
        table.name: {column.name: NAMES[column.type.kind] for column in table.columns} for table in catalogue.values()
    }
    try:
        tree = qualify(sqlglot.parse_one(sql, dialect="postgres"), schema=schema, dialect="postgres")
        tree = annotate_types(tree, schema=schema, dialect="postgres")
        return tuple((item.alias_or_name, _type(item)) for item in tree.selects)
    except (SqlglotError, ValueError, KeyError, AttributeError, TypeError):
        return None


def _type(item: exp.Expr) -> str:
    found = item.type
    if not isinstance(found, exp.DataType) or found.this == exp.DType.UNKNOWN:
        return "unknown"
    try:
        return read_type(found)[0]
    except RemanenceError:
        return found.sql(dialect="postgres")


def main(show: bool) -> None:
    count: Counter[str] = Counter()
    for group in statements():
        with tempfile.TemporaryDirectory() as folder, Workspace(Path(folder) / "tables.db") as workspace:
            for statement in group:
                sql, params = (statement, None) if isinstance(statement, str) else statement
                if sql.lstrip("( ").upper().startswith(("SELECT", "WITH", "VALUES")):
                    catalogue = {table.name: table for table in workspace.tables()}
                    verdict = _compare(ours(sql, params, catalogue), sqlglots(sql, catalogue))
                    count[verdict] += 1
                    if show and verdict not in ("same", "both refuse"):
                        print(f"{verdict}: {sql}\n    {ours(sql, params, catalogue)}\n    {sqlglots(sql, catalogue)}")
                try:
                    workspace.query(sql, params)
                except RemanenceError:
                    continue
    for verdict, number in count.most_common():
        print(f"{number:5} {verdict}")


def _compare(mine: Columns | None, theirs: Columns | None) -> str:
    if mine is None or theirs is None:
        if mine is theirs:
            return "both refuse"
        return "only sqlglot accepts" if mine is None else "only we accept"
    kinds = [kind for _, kind in mine], [kind for _, kind in theirs]
    if kinds[0] == kinds[1]:
        return "same" if [name for name, _ in mine] == [name for name, _ in theirs] else "same types, other names"
    return "types unknown to sqlglot" if "unknown" in kinds[1] else "other types"


if __name__ == "__main__":
    main("--show" in sys.argv)
