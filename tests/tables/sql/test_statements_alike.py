"""The statements of this folder answer the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import uuid

import pytest
import statements
from test_differential import difference, outcome

from rmem.tables.workspace import Workspace


@pytest.mark.parametrize("name", statements.GROUPS)
def test_both_engines_answer_these_statements_alike(tmp_path, tables_url, name):
    differences = []
    with Workspace(tmp_path / "tables.db") as sqlite, Workspace(tables_url, tenant=uuid.uuid4().hex) as postgres:
        for statement in statements.GROUPS[name]:
            found = difference(statement, outcome(sqlite, statement), outcome(postgres, statement))
            if found is not None:
                differences.append(found)
    assert not differences, f"{len(differences)} statements differ:\n" + "\n".join(differences)


def test_there_are_statements_enough():
    assert sum(map(len, statements.GROUPS.values())) >= 600
