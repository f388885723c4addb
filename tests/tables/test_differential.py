"""The same statements on SQLite and on PostgreSQL give the same: names, types, values, counts of rows, and errors."""

from __future__ import annotations

import math
import re
import uuid
from typing import Any

import calls
import more_statements
import pytest

from rmem.errors import RemanenceError
from rmem.tables.workspace import Workspace

GROUPS = more_statements.GROUPS

ACCEPTED: dict[str, str] = {}
"""Statements that may differ, with the reason."""


def outcome(workspace: Workspace, statement: more_statements.Statement) -> Any:
    sql, parameters = (statement, None) if isinstance(statement, str) else statement
    try:
        return workspace.query(sql, parameters)
    except RemanenceError as error:
        return error


def same(left: Any, right: Any) -> bool:
    """Alike in type and value; numbers with a point may differ in their last digits."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return left == right or math.isclose(left, right, rel_tol=1e-6, abs_tol=1e-12)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


def difference(statement: more_statements.Statement, sqlite: Any, postgres: Any) -> str | None:
    sql = statement if isinstance(statement, str) else statement[0]
    failed = [isinstance(result, RemanenceError) for result in (sqlite, postgres)]
    if any(failed):
        if all(failed) and type(sqlite) is type(postgres):
            return None
        shown = [
            f"{type(r).__name__}: {r}" if isinstance(r, RemanenceError) else r.rows[:3] for r in (sqlite, postgres)
        ]
        return f"{sql}\n    sqlite   {shown[0]}\n    postgres {shown[1]}"
    rows = [result.rows for result in (sqlite, postgres)]
    if not re.search(r"\bORDER BY\b", sql, re.IGNORECASE):
        rows = [sorted(part, key=repr) for part in rows]
    kinds = [[found and found.kind for found in result.types] for result in (sqlite, postgres)]
    for what, left, right in (
        ("columns", sqlite.columns, postgres.columns),
        ("types", kinds[0], kinds[1]),
        ("row count", sqlite.row_count, postgres.row_count),
        ("rows", *rows),
    ):
        if not same(left, right):
            return f"{sql}\n    {what}: sqlite   {left}\n    {what}: postgres {right}"
    return None


@pytest.fixture
def workspaces(tmp_path, tables_url):
    with Workspace(tmp_path / "tables.db") as sqlite, Workspace(tables_url, tenant=uuid.uuid4().hex) as postgres:
        yield sqlite, postgres


@pytest.mark.parametrize("name", GROUPS)
def test_both_engines_answer_alike(workspaces, name):
    differences = []
    for statement in GROUPS[name]:
        found = difference(statement, *(outcome(workspace, statement) for workspace in workspaces))
        sql = statement if isinstance(statement, str) else statement[0]
        if sql in ACCEPTED:
            assert found is not None, f"{sql}\n    no longer differs; it need not be accepted any more"
        elif found is not None:
            differences.append(found)
    assert not differences, f"{len(differences)} of {len(GROUPS[name])} statements differ:\n" + "\n".join(differences)


def test_every_function_and_operator_answers_alike(workspaces):
    """Called with values from the corners of the types that it takes."""
    found = [difference(sql, *(outcome(one, sql) for one in workspaces)) for sql in calls.statements(1)]
    differences = [one for one in found if one is not None]
    assert not differences, f"{len(differences)} of {len(found)} calls differ:\n" + "\n".join(differences)


def test_there_are_enough_statements_of_many_kinds():
    statements = [statement for group in GROUPS.values() for statement in group]
    assert len(statements) >= 350
    assert len(ACCEPTED) <= 12
