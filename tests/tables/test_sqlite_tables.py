# ruff: noqa: E501 — a statement is easier to read on one line
"""What is special to tables on SQLite: one file with the memories, other processes, and what lies in the file."""

from __future__ import annotations

import multiprocessing
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest

from rmem import Brain
from rmem.errors import (
    NoSuchTableError,
    SqlUnsupportedError,
    StoreClosedError,
    StoreCorruptError,
    StoreReadOnlyError,
)
from rmem.tables.catalog import Check, Column, Kind, Table, Type
from rmem.tables.engines import sqlite_changes
from rmem.tables.engines.sqlite import SqliteEngine
from rmem.tables.workspace import Workspace


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tables.db"


def test_patterns_match_in_a_process_that_only_queries(path):
    """Here other tests have imported every module of the engine."""
    sql = "SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A_C', 'foobar' ~ 'o+b', regexp_replace('foo', 'o', '0')"
    code = f"from rmem.tables.workspace import Workspace\nprint(Workspace({str(path)!r}).query({sql!r}).rows)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "[(True, True, True, 'f0o')]\n", done.stderr


def test_memories_and_tables_share_a_file_whoever_opens_it_first(path):
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE notes (id SERIAL PRIMARY KEY, n NUMERIC UNIQUE, j JSONB UNIQUE, CHECK (n > 0))")
        workspace.query("INSERT INTO notes (n, j) VALUES (1.50, '{\"a\": 1}'), (2, '[]')")
        with Brain(path) as brain:
            brain.remember("the fox is red")
            workspace.query("INSERT INTO notes (n) VALUES (3)")
            assert brain.recall("fox")[0].memory.text == "the fox is red"
    with Brain(path) as brain:
        assert brain.recall("fox")
    with Workspace(path) as workspace:
        assert workspace.query("SELECT count(*) FROM notes").rows == [(3,)]


def test_any_program_can_check_and_copy_the_file(path):
    with Workspace(path) as workspace:
        workspace.query(
            "CREATE TABLE t (n NUMERIC PRIMARY KEY, m NUMERIC(5,2) UNIQUE, j JSONB UNIQUE, i INTERVAL, a TEXT[] UNIQUE, "
            "s TEXT CHECK (upper(s) <> 'X'))"
        )
        workspace.query("INSERT INTO t VALUES (1.5, 1, '1', '1 day', '{a}', 'y'), (2, 2, '2', '1 mon', '{b}', 'z')")
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.execute("ANALYZE")
    sqlite3.connect(path).execute("VACUUM")


def test_equal_numbers_written_differently_are_one_key(path):
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE k (n NUMERIC PRIMARY KEY, t TEXT)")
        workspace.query("INSERT INTO k VALUES (1.50, 'a'), (100, 'b')")
        for value in ("1.5", "1.500", "100.00", "1e2"):
            found = workspace.query(
                f"INSERT INTO k VALUES ({value}, 'x') ON CONFLICT (n) DO UPDATE SET t = 'x' RETURNING n"
            )
            assert found.row_count == 1
        assert workspace.query("SELECT n::text, t FROM k ORDER BY n").rows == [("1.50", "x"), ("100", "x")]


def count_up(path, who, times):
    with Workspace(path) as workspace:
        for n in range(times):
            workspace.query("INSERT INTO c (who, n) VALUES ($1, $2)", [who, n])


def test_many_processes_write_at_once_and_nothing_is_lost(path):
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE c (id BIGSERIAL PRIMARY KEY, who INT, n INT, UNIQUE (who, n))")
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=count_up, args=(path, who, 20)) for who in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0, 0, 0]
        assert workspace.query("SELECT count(*), count(DISTINCT id), max(id) FROM c").rows == [(60, 60, 60)]


def test_a_table_can_be_followed(path):
    engine = SqliteEngine(path)
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE t (id INT PRIMARY KEY, s TEXT, e EMBEDDING(2))")
        workspace.insert("t", {"id": [1, 2, 3], "s": ["a", "b", None], "e": np.ones((3, 2))})
        first = engine.changes("t", ["s", "e"], 0)
        assert first.whole
        assert [value for value, _ in first.values] == ["a", "b", None]
        assert list(first.values[0][1]) == [1.0, 1.0]
        assert engine.changes("t", ["s"], first.version).rows.size == 0
        workspace.query("UPDATE t SET s = 'changed' WHERE id = 2")
        workspace.query("DELETE FROM t WHERE id = 1")
        workspace.query("INSERT INTO t (id, s) VALUES (4, 'new')")
        second = engine.changes("t", ["s"], first.version)
        assert not second.whole
        assert sorted(second.gone.tolist()) == first.rows[:2].tolist()
        assert [value for (value,) in second.values] == ["changed", "new"]
        assert second.version > first.version
        workspace.query("DELETE FROM t")
        third = engine.changes("t", ["s"], second.version)
        assert third.rows.size == 0
        assert third.gone.size == 3
        workspace.query("DROP TABLE t")
        workspace.query("CREATE TABLE t (s TEXT)")
        workspace.query("INSERT INTO t VALUES ('other')")
        fourth = engine.changes("t", ["s"], third.version)
        assert fourth.whole
        assert [value for (value,) in fourth.values] == ["other"]
        with pytest.raises(NoSuchTableError):
            engine.changes("nope", [], 0)
    engine.close()


def test_the_log_of_changes_stays_short(path, monkeypatch):
    monkeypatch.setattr(sqlite_changes, "MAX_LOG", 20)
    engine = SqliteEngine(path)
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE t (id INT PRIMARY KEY, s TEXT)")
        workspace.insert("t", {"id": [1, 2], "s": ["a", "b"]})
        before = engine.changes("t", ["s"], 0).version
        for n in range(60):
            workspace.query("UPDATE t SET s = $1 WHERE id = 1", [str(n)])
        with sqlite3.connect(path) as connection:
            assert connection.execute("SELECT count(*) FROM table_changes").fetchone()[0] <= 21
        late = engine.changes("t", ["s"], before)
        assert late.whole
        assert sorted(value for (value,) in late.values) == ["59", "b"]
    engine.close()


def test_a_file_that_cannot_be_written_can_still_be_read(path):
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE t (a INT)")
        workspace.query("INSERT INTO t VALUES (7)")
    path.chmod(0o400)
    try:
        with Workspace(path) as workspace:
            assert workspace.query("SELECT a FROM t").rows == [(7,)]
            if not _is_root():
                with pytest.raises(StoreReadOnlyError):
                    workspace.query("INSERT INTO t VALUES (8)")
    finally:
        path.chmod(0o600)


def _is_root():
    import os

    return os.geteuid() == 0


def test_a_closed_workspace_and_a_foreign_file_say_so(path, tmp_path):
    workspace = Workspace(path)
    workspace.close()
    with pytest.raises(StoreClosedError):
        workspace.query("SELECT 1")
    with pytest.raises(StoreClosedError):
        workspace.query("CREATE TABLE t (a INT)")
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE x (a)")
    with pytest.raises(StoreCorruptError):
        Workspace(foreign)


def test_serial_numbers_of_deleted_rows_are_not_given_again(path):
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE t (id SERIAL PRIMARY KEY, n INT CHECK (n > 0))")
        workspace.query("INSERT INTO t (n) VALUES (1), (2)")
        with pytest.raises(Exception, match="check"):
            workspace.query("INSERT INTO t (n) VALUES (-1)")
        workspace.query("DELETE FROM t WHERE id = 2")
        assert workspace.query("INSERT INTO t (n) VALUES (2) RETURNING id").rows == [(3,)]
    with Workspace(path) as workspace:
        assert workspace.query("INSERT INTO t (n) VALUES (2) RETURNING id").rows == [(4,)]


def test_a_table_made_when_more_functions_were_offered_is_read_and_says_what_it_misses(tmp_path):
    with Workspace(tmp_path / "t.db") as tables:
        tables.query("CREATE TABLE t (n INT CHECK (length(n::text) > 0))")
        tables.query("INSERT INTO t VALUES (5)")
    with closing(sqlite3.connect(tmp_path / "t.db")) as file, file:
        file.execute("UPDATE catalogue SET definition = replace(definition, 'LENGTH(', 'to_hex(')")
        file.execute("UPDATE catalogue SET definition = replace(definition, 'length(', 'to_hex(')")
    with Workspace(tmp_path / "t.db") as tables:
        assert tables.query("SELECT n FROM t").rows == [(5,)]
        with pytest.raises(SqlUnsupportedError, match=r"to_hex\(\) is not supported here"):
            tables.query("INSERT INTO t VALUES (6)")


def test_a_check_of_what_is_refused_now_is_named_and_goes_with_its_column(path):
    with Workspace(path) as workspace:
        columns = (Column("a", Type(Kind.TEXT)), Column("b", Type(Kind.BIGINT)))
        workspace._engine.create_table(Table("t", columns, checks=(Check("t_a_check", "octet_length(a) < 9"),)))
        with pytest.raises(
            SqlUnsupportedError, match=r'check constraint "t_a_check": function octet_length\(\) is not'
        ):
            workspace.query("INSERT INTO t VALUES ('x', 1)")
        assert workspace.query("SELECT * FROM t").rows == []
        workspace.query("ALTER TABLE t DROP COLUMN a")
        assert workspace.query("INSERT INTO t VALUES (1)").row_count == 1


def test_patterns_are_offered_by_a_process_that_loads_nothing_else(path):
    code = "import sys; from rmem.tables.workspace import Workspace as W; print(W(sys.argv[1]).query(sys.argv[2]).rows)"
    sql = "SELECT 'Abc' ILIKE 'a_c', 'abc' ~ 'b', 'abc' !~* 'B', regexp_replace('abc', 'b', 'x'), regexp_match('abc', 'b')"
    done = subprocess.run([sys.executable, "-c", code, path, sql], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[(True, True, False, 'axc', ['b'])]", "")
