"""Stores made before open and are upgraded, whichever revision they stopped at. alembic_schemas.sql is what Alembic,
which once did this, left in a file after each revision."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from rmem import Brain
from rmem.errors import StoreError
from rmem.stores import migrations
from rmem.stores.sql.file import APPLICATION_ID

_PARTS = re.split(r"-- (m\d+)\n", Path(__file__).with_name("alembic_schemas.sql").read_text(encoding="utf-8"))
BEFORE = dict(zip(_PARTS[1::2], _PARTS[2::2], strict=True))


def shape(connection: sqlite3.Connection) -> dict[str, object]:
    """Columns, keys and indexes of each table."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found: dict[str, object] = {}
    for table in tables:
        indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
        found[table] = (
            connection.execute(f"PRAGMA table_xinfo({table})").fetchall(),
            connection.execute(f"PRAGMA foreign_key_list({table})").fetchall(),
            sorted(
                (name, unique, str(connection.execute(f"PRAGMA index_info({name})").fetchall()))
                for _, name, unique, *_ in indexes
            ),
        )
    return found


def made_by_alembic(path: Path, revision: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.executescript(BEFORE[revision])
        connection.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()


@pytest.mark.parametrize("revision", BEFORE)
def test_a_step_makes_what_alembic_made(revision, tmp_path):
    made_by_alembic(tmp_path / "before.db", revision)
    ours, theirs = sqlite3.connect(":memory:"), sqlite3.connect(tmp_path / "before.db")
    migrations.upgrade(ours, revision)
    assert shape(ours) == shape(theirs)
    assert ours.execute("SELECT version_num FROM alembic_version").fetchall() == [(revision,)]


@pytest.mark.parametrize("revision", BEFORE)
def test_a_store_of_any_revision_is_upgraded_and_used(revision, tmp_path):
    path = tmp_path / "before.db"
    made_by_alembic(path, revision)
    with Brain(path) as brain:
        brain.remember("the schema moved on")
        assert brain.recall("schema")[0].text == "the schema moved on"
    Brain(tmp_path / "new.db").close()
    assert shape(sqlite3.connect(path)) == shape(sqlite3.connect(tmp_path / "new.db"))


def test_an_upgrade_that_fails_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "before.db"
    made_by_alembic(path, "m002")
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE keys (of TEXT)")  # in the way of m005
    before = shape(connection)
    with pytest.raises(StoreError, match="keys"):
        Brain(path)
    assert shape(sqlite3.connect(path)) == before
