"""Statements that try to reach what is not theirs: each is refused, and nothing has changed afterwards."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from rmem import Brain
from rmem.errors import NoSuchTableError, SqlError, StatementTimeoutError, TableError
from rmem.tables.workspace import Workspace

HOSTILE = [
    # other files, other databases, other programs
    "ATTACH DATABASE '/tmp/other.db' AS other",
    "DETACH DATABASE main",
    "COPY notes TO '/tmp/out.csv'",
    "COPY notes FROM PROGRAM 'cat /etc/passwd'",
    "COPY (SELECT * FROM notes) TO STDOUT",
    "SELECT load_extension('/tmp/evil.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/x', 'y')",
    "SELECT edit('x')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT lo_import('/etc/passwd')",
    "SELECT lo_export(1, '/tmp/x')",
    "SELECT dblink('host=evil', 'SELECT 1')",
    "SELECT query_to_xml('SELECT 1', true, false, '')",
    "CREATE EXTENSION dblink",
    "LOAD 'evil'",
    "IMPORT FOREIGN SCHEMA public FROM SERVER s INTO t",
    # settings, sessions, other statements
    "PRAGMA writable_schema = ON",
    "PRAGMA table_info(memories)",
    "SET search_path TO other",
    "SET ROLE postgres",
    "RESET ALL",
    "SHOW ALL",
    "SELECT set_config('search_path', 'other', false)",
    "SELECT current_setting('data_directory')",
    "DO $$ BEGIN PERFORM 1; END $$",
    "CALL p()",
    "PREPARE x AS SELECT 1",
    "EXECUTE x",
    "LISTEN x",
    "NOTIFY x",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "VACUUM",
    "VACUUM INTO '/tmp/copy.db'",
    "ANALYZE",
    "REINDEX",
    "CHECKPOINT",
    "GRANT ALL ON notes TO public",
    "REVOKE ALL ON notes FROM public",
    "LOCK TABLE notes",
    # several statements, and what hides them
    "SELECT 1; DROP TABLE notes",
    "SELECT 1;;DROP TABLE notes",
    "SELECT 1 /* ; */; DELETE FROM notes",
    "INSERT INTO notes (text) VALUES ('x'); ATTACH DATABASE 'x' AS y",
    # the catalogue and the memories in the same file
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM sqlite_sequence",
    "SELECT * FROM main.sqlite_master",
    "SELECT * FROM memories",
    'SELECT * FROM "memories"',
    "SELECT * FROM main.memories",
    "SELECT * FROM catalogue",
    "SELECT * FROM table_changes",
    "SELECT * FROM notes_secret",
    "SELECT * FROM rt_1",
    'SELECT * FROM "rt_1"',
    "SELECT c1 FROM notes",
    "SELECT rowid FROM notes",
    "SELECT oid FROM notes",
    "SELECT _rowid_ FROM notes",
    "SELECT _row FROM notes",
    'SELECT "_row" FROM notes',
    "SELECT notes._row FROM notes",
    "UPDATE notes SET _row = 5",
    "INSERT INTO notes (_row, text) VALUES (1, 'x')",
    "SELECT * FROM notes ORDER BY _row",
    "SELECT * FROM pg_class",
    "SELECT * FROM pg_catalog.pg_tables",
    "SELECT * FROM pg_shadow",
    "SELECT * FROM information_schema.schemata",
    "SELECT * FROM information_schema.role_table_grants",
    "DELETE FROM pg_indexes",
    "UPDATE information_schema.tables SET table_name = 'x'",
    "DROP TABLE memories",
    "ALTER TABLE memories ADD COLUMN x INT",
    "TRUNCATE memories",
    "DELETE FROM audit",
    "UPDATE keys SET wrapped = NULL",
    "INSERT INTO notes SELECT text FROM memories",
    "CREATE INDEX x ON memories (text)",
    "SELECT (SELECT text FROM memories)",
    "WITH x AS (SELECT * FROM memories) SELECT * FROM x",
    # other workspaces
    "SELECT * FROM other.notes",
    'SELECT * FROM "other"."notes"',
    "SELECT * FROM other.public.notes",
    "INSERT INTO other.notes (text) VALUES ('x')",
    "CREATE TABLE other.stolen (a INT)",
    "DROP TABLE other.notes",
    # functions and constructs of the engine
    "SELECT rmem_score(0, 1)",
    "SELECT rmem_nextval('1/c1/int8')",
    "SELECT json_each('[1]')",
    "SELECT * FROM json_tree('[1]')",
    "SELECT * FROM pragma_table_info('memories')",
    "SELECT sqlite_version()",
    "SELECT sqlite_compileoption_get(1)",
    "SELECT last_insert_rowid()",
    "SELECT fts3_tokenizer('simple')",
    "SELECT randomblob(100000000)",
    "SELECT zeroblob(1000000000)",
    "SELECT printf('%s', 1)",
    "SELECT version()",
    "SELECT current_user",
    "SELECT session_user",
    "SELECT current_database()",
    "SELECT pg_sleep(100)",
    "SELECT pg_terminate_backend(1)",
    "SELECT pg_advisory_lock(1)",
    "SELECT nextval('notes_id_seq')",
    "SELECT setval('notes_id_seq', 1)",
    "CREATE TRIGGER t AFTER INSERT ON notes BEGIN DELETE FROM notes; END",
    "CREATE VIEW v AS SELECT * FROM notes",
    "CREATE FUNCTION f() RETURNS INT AS 'SELECT 1' LANGUAGE sql",
    "CREATE VIRTUAL TABLE v USING fts5(x)",
    "CREATE TEMP TABLE x (a INT)",
    "CREATE UNLOGGED TABLE x (a INT)",
    "CREATE TABLE x (a INT) TABLESPACE t",
    "CREATE TABLE x (a INT) INHERITS (notes)",
    "CREATE TABLE x (LIKE notes)",
    "CREATE SCHEMA s",
    "CREATE ROLE r",
    "CREATE TABLE rmem_x (a INT)",
    'CREATE TABLE x ("_row" INT)',
    "CREATE SEQUENCE s",
    "CREATE RULE r AS ON SELECT TO notes DO INSTEAD SELECT 1",
    "ALTER TABLE notes OWNER TO other",
    "ALTER TABLE notes ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE notes RENAME TO memories_x; SELECT 1",
    "ALTER SYSTEM SET x = 1",
    "MERGE INTO notes USING notes n ON true WHEN MATCHED THEN DELETE",
    "SELECT * FROM notes FOR UPDATE",
    "SELECT * INTO stolen FROM notes",
    "SELECT * FROM notes TABLESAMPLE SYSTEM (10)",
    "WITH d AS (DELETE FROM notes RETURNING *) SELECT * FROM d",
    "EXPLAIN DELETE FROM notes",
    "EXPLAIN ANALYZE SELECT 1",
    "INSERT OR REPLACE INTO notes (text) VALUES ('x')",
    "REPLACE INTO notes (text) VALUES ('x')",
    "SELECT text GLOB '*' FROM notes",
    "SELECT text MATCH 'x' FROM notes",
    "SELECT 'a' OPERATOR(pg_catalog.=) 'b'",
    "SELECT ?",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A file with memories and a table."""
    path = tmp_path_factory.mktemp("hostile") / "tables.db"
    with Brain(path) as brain:
        brain.remember("the secret is buried under the oak")
    with Workspace(path) as workspace:
        workspace.query("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, text TEXT)")
        workspace.query("INSERT INTO notes (text) VALUES ('one'), ('two')")
    return path


def contents(path):
    with sqlite3.connect(path) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()
            for name in names
            if name[:6] != "sqlite"
        }


def test_hostile_statements_are_refused_and_change_nothing(place):
    before = contents(place)
    allowed, told = [], []
    with Workspace(place, name="mine") as workspace:
        for sql in HOSTILE:
            try:
                allowed.append((sql, workspace.query(sql, timeout=5).rows[:2]))
            except TableError as error:
                told.append(str(error))
    assert not allowed
    assert not any("oak" in message for message in told)
    assert contents(place) == before
    assert len(HOSTILE) >= 100


def test_a_refusal_names_what_is_not_offered(place):
    with Workspace(place) as workspace:
        for sql, named in [
            ("ATTACH DATABASE 'x' AS y", "ATTACH"),
            ("PRAGMA x", "PRAGMA"),
            ("SELECT pg_sleep(1)", "pg_sleep"),
            ("CREATE VIEW v AS SELECT 1", "VIEW"),
            ("SELECT * FROM notes FOR UPDATE", "LOCKS"),
            ("CREATE TABLE x (a MONEY)", "MONEY"),
        ]:
            with pytest.raises(SqlError, match=named):
                workspace.query(sql)


def test_other_workspaces_and_missing_tables_are_told_alike(place):
    with Workspace(place, name="mine") as workspace:
        messages = []
        for name in ("other.notes", "other.nothing", "mine.nothing", "nothing"):
            with pytest.raises(NoSuchTableError) as raised:
                workspace.query(f"SELECT * FROM {name}")
            messages.append(str(raised.value).replace(name, "X"))
        assert messages[0] == messages[1]


def test_names_of_this_workspace_may_be_written_out(place):
    with Workspace(place, name="mine") as workspace:
        assert workspace.query('SELECT count(*) FROM "mine"."notes"').rows == [(2,)]
        assert workspace.query("SELECT mine.notes.text FROM mine.notes ORDER BY id").rows == [("one",), ("two",)]


def test_the_engine_itself_denies_what_the_check_would_miss(place):
    """The second line of defence: the authorizer of the connection."""
    from rmem.tables.engines.sqlite_file import TableFile

    file = TableFile(place, "full", 1.0)
    try:
        with file.reading() as connection:
            file.state(connection).inside = False
            for sql in (
                "SELECT * FROM memories",
                "SELECT * FROM sqlite_master",
                "ATTACH DATABASE ':memory:' AS x",
                "PRAGMA table_info(memories)",
                "CREATE TABLE x (a)",
                "DELETE FROM memories",
                "INSERT INTO notes (key, value) VALUES ('a', 'b')",
                "SELECT load_extension('x')",
            ):
                with pytest.raises(sqlite3.DatabaseError):
                    connection.execute(sql).fetchall()
            assert connection.execute("SELECT count(*) FROM rt_1").fetchone() == (2,)
    finally:
        file.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT '" + "a" * 40 + "!' ~ '^(a+)+$'",
        "SELECT regexp_replace('" + "a" * 60 + "', '(a|aa)+$', 'x') FROM generate_series(1, 100000)",
        "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b",
        "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT count(*) FROM x",
    ],
)
def test_statements_that_would_never_end_are_stopped(place, sql):
    with Workspace(place) as workspace:
        with contextlib.suppress(StatementTimeoutError, SqlError):
            workspace.query(sql, timeout=0.3)
        assert workspace.query("SELECT 1").rows == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT repeat('x', 2000000000)",
        "SELECT lpad('x', 2000000000)",
        "SELECT count(*) FROM generate_series(1, 100000000000)",
        "SELECT replace(repeat('x', 1000000), 'x', repeat('y', 1000000))",
        "SELECT factorial(100000)",
        "SELECT 10.0 ^ 1000000",
        "SELECT exp(100000.0)",
        "SELECT format('%2000000000s', 'x')",
        "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 1000)",
    ],
)
def test_statements_that_would_fill_memory_are_refused(place, sql):
    with Workspace(place) as workspace, pytest.raises(TableError):
        workspace.query(sql, timeout=20)
