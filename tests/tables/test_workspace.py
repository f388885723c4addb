# ruff: noqa: E501 — a statement is easier to read on one line
"""Workspace: the one way to tables, on both engines."""

from __future__ import annotations

import datetime as dt
import math
import threading
import uuid
from decimal import Decimal

import numpy as np
import pytest

from rmem.errors import (
    ConfigError,
    ConstraintError,
    NoSuchTableError,
    SqlError,
    StatementTimeoutError,
    TableExistsError,
    TooManyRowsError,
)
from rmem.tables.catalog import Kind
from rmem.tables.workspace import Workspace


@pytest.fixture
def notes(workspace):
    workspace.query("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, text TEXT, n INTEGER, e EMBEDDING(2))")
    workspace.insert("notes", {"text": ["red fox", "blue whale", "red whale"], "n": [1, 2, 3], "e": np.eye(3, 2)})
    return workspace


def test_a_table_is_written_read_changed_and_dropped(workspace):
    workspace.query('CREATE TABLE IF NOT EXISTS "default"."t" (id BIGSERIAL PRIMARY KEY, a TEXT) USING deeplake')
    assert workspace.query("INSERT INTO t (a) VALUES ($1), ($2) RETURNING id", ["x", "y"]).rows == [(1,), (2,)]
    assert workspace.query("SELECT * FROM t WHERE a = :a", {"a": "y"}).dicts() == [{"id": 2, "a": "y"}]
    assert workspace.query("UPDATE t SET a = a || '!'").row_count == 2
    assert workspace.query("DELETE FROM t WHERE id = 1").row_count == 1
    assert [table.name for table in workspace.tables()] == ["t"]
    assert workspace.drop_table("t")
    assert not workspace.drop_table("t", missing_ok=True)
    with pytest.raises(NoSuchTableError, match="t"):
        workspace.table("t")


def test_columns_of_one_name_are_all_returned(workspace):
    workspace.query("CREATE TABLE pairs (a INT, b INT, a_2 INT)")
    workspace.query("INSERT INTO pairs VALUES (1, 2, 3)")
    assert workspace.query("SELECT a + b, a - b FROM pairs").dicts() == [{"?column?": 3, "?column?_2": -1}]
    joined = workspace.query("SELECT p.a, q.b AS a, p.a_2 FROM pairs p JOIN pairs q ON true")
    assert joined.dicts() == [{"a": 1, "a_3": 2, "a_2": 3}]


def test_checks_and_defaults_hold(workspace):
    workspace.query(
        "CREATE TABLE rules (x TEXT DEFAULT upper('a') CHECK (rules.x NOT LIKE '%\\%%'), n BIGINT, "
        "j JSONB DEFAULT '{\"a\": 1}', CHECK (n % 2 = 0 AND j @> '{\"a\": 1}'))"
    )
    workspace.query("INSERT INTO rules (n) VALUES (2)")
    for columns in ("(n) VALUES (3)", "(n, j) VALUES (2, '{}')", "(x) VALUES ('50%')"):
        with pytest.raises(ConstraintError, match="check constraint"):
            workspace.query(f"INSERT INTO rules {columns}")
    assert workspace.query("SELECT x, n, j FROM rules").rows == [("A", 2, {"a": 1})]
    workspace.query("ALTER TABLE rules DROP COLUMN n")
    workspace.query("INSERT INTO rules (j) VALUES ('{}')")


def test_tables_and_indexes_without_sql(workspace):
    table = workspace.create_table(
        "docs", {"id": "BIGSERIAL PRIMARY KEY", "Title": "VARCHAR(20) NOT NULL", "e": "EMBEDDING(3)", "tags": "TEXT[]"}
    )
    assert [(column.name, column.type.kind) for column in table.columns] == [
        ("id", Kind.BIGINT),
        ("Title", Kind.TEXT),
        ("e", Kind.VECTOR),
        ("tags", Kind.TEXTS),
    ]
    assert table.column("e").type.dimension == 3
    assert table.primary_key == ("id",)
    with pytest.raises(TableExistsError):
        workspace.create_table("docs", {"x": "INT"})
    assert workspace.create_table("docs", {"x": "INT"}, exists_ok=True) == table
    words = """CREATE INDEX {} words ON docs USING deeplake_index ("Title") WITH (index_type = 'bm25')"""
    workspace.query(words.format(""))
    workspace.query('CREATE INDEX ON docs ("Title", tags)')
    index, btree = workspace.table("docs").indexes
    assert (index.name, index.columns, index.options) == ("words", ("Title",), {"index_type": "bm25"})
    assert btree.method == "btree"
    with pytest.raises(TableExistsError):
        workspace.query(words.format(""))
    workspace.query(words.format("IF NOT EXISTS"))
    assert workspace.drop_index("words")
    with pytest.raises(NoSuchTableError):
        workspace.drop_index("words")


@pytest.mark.parametrize(
    "columns",
    [{}, {"a": "INT, b INT"}, {"a": "INT) USING heap; --"}, {"a": "nosuchtype"}, {"_row": "INT"}, {"": "INT"}, {"a": 5}, {"a" * 70: "INT"}],
)  # fmt: skip
def test_wrong_columns_make_no_table(workspace, columns):
    with pytest.raises(SqlError):
        workspace.create_table("bad", columns)
    assert workspace.tables() == []


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"n": ["x"]}, "n"),
        ({"n": [1.5]}, "n"),
        ({"n": [True]}, "n"),
        ({"n": [2**31]}, "n"),
        ({"text": [5]}, "text"),
        ({"text": ["a\x00b"]}, "text"),
        ({"e": [[1, 2, 3]]}, "e"),
        ({"e": [[1, math.nan]]}, "e"),
        ({"e": np.array([[1, math.inf]])}, "e"),
        ({"e": ["{1}"]}, "e"),
        ({"e": [[[1, 2]]]}, "e"),
        ({"nope": [1]}, "nope"),
        ({"id": [None]}, "id"),
        ({"n": [1, 2], "text": ["a"]}, "text"),
        ({"n": 5}, "n"),
        ({}, "columns"),
    ],
)
def test_wrong_values_are_refused_by_the_name_of_their_column(notes, columns, named):
    with pytest.raises(SqlError, match=named):
        notes.insert("notes", columns)
    assert notes.query("SELECT count(*) FROM notes").rows == [(3,)]


def test_a_bulk_insert_is_all_or_nothing(notes):
    with pytest.raises(ConstraintError):
        notes.insert("notes", {"id": [10, 11, 1], "text": ["a", "b", "c"]})
    assert notes.query("SELECT count(*) FROM notes").rows == [(3,)]
    assert notes.insert("notes", {"text": []}) == 0


def test_every_type_comes_back_as_it_went_in(workspace):
    kinds = {
        "s": "SMALLINT", "i": "INTEGER", "b": "BIGINT", "r": "REAL", "d": "DOUBLE PRECISION", "n": "NUMERIC", "p": "NUMERIC(8,2)",
        "t": "TEXT", "o": "BOOLEAN", "j": "JSONB", "z": "TIMESTAMPTZ", "w": "TIMESTAMP", "a": "DATE", "c": "TIME", "v": "INTERVAL",
        "u": "UUID", "y": "BYTEA", "e": "FLOAT4[]", "m": "FLOAT4[][]", "x": "TEXT[]", "g": "BIGINT[]",
    }  # fmt: skip
    row = {
        "s": -5, "i": 2**31 - 1, "b": -(2**63), "r": 0.5, "d": 1e-300, "n": Decimal("12345678901234567890.0100"), "p": Decimal("1.50"),
        "t": "é\n'\"", "o": False, "j": {"k": [1, 2.5, None, {"z": "ü"}]}, "z": dt.datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=dt.UTC),
        "w": dt.datetime(1, 1, 1), "a": dt.date(9999, 12, 31), "c": dt.time(23, 59, 59, 999999), "v": dt.timedelta(days=-3, seconds=7),
        "u": uuid.UUID(int=5), "y": b"\x00\xff", "e": [0.5, -1.25], "m": [[1.0, 2.0], [3.0, 4.0]], "x": ["a", None, "b,\"c"], "g": [1, None, 2**62],
    }  # fmt: skip
    workspace.create_table("kinds", kinds)
    workspace.insert("kinds", {name: [value, None] for name, value in row.items()})
    names = ", ".join(row)
    places = ", ".join(f"${at}" for at in range(1, len(row) + 1))
    workspace.query(f"INSERT INTO kinds ({names}) VALUES ({places})", list(row.values()))
    found = workspace.query(f"SELECT {names} FROM kinds")
    assert sorted(found.rows, key=repr) == sorted([tuple(row.values())] * 2 + [(None,) * len(row)], key=repr)
    assert [type.kind for type in found.types] == [column.type.kind for column in workspace.table("kinds").columns]


def test_reading_only_refuses_what_writes(notes):
    for sql in (
        "DELETE FROM notes",
        "CREATE TABLE x (a INT)",
        "TRUNCATE notes",
        "DROP TABLE notes",
        "UPDATE notes SET n = 1",
    ):
        assert notes.write_targets(sql) is not None
        with pytest.raises(SqlError, match="read"):
            notes.query(sql, read_only=True)
    for sql in ("SELECT 1", "EXPLAIN SELECT 1", "VALUES (1)", "WITH x AS (SELECT 1) SELECT * FROM x", "TABLE notes"):
        assert notes.write_targets(sql) is None
        notes.query(sql, read_only=True)
    assert notes.write_targets("create index I on t (a)") == ("CREATE INDEX", ["t"])
    assert notes.write_targets('insert into "Notes" (a) select 1') == ("INSERT", ["Notes"])
    assert notes.write_targets("WITH x AS (SELECT 1) DELETE FROM default.Notes") == ("DELETE", ["notes"])
    assert notes.write_targets("DROP TABLE a, b") == ("DROP TABLE", ["a", "b"])
    assert notes.write_targets("TRUNCATE a, b") == ("TRUNCATE", ["a", "b"])


def test_long_statements_are_stopped_and_rolled_back(notes):
    with pytest.raises(StatementTimeoutError):
        notes.query("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b", timeout=0.2)
    with pytest.raises(StatementTimeoutError):
        notes.query(
            "UPDATE notes SET n = (SELECT count(*) FROM generate_series(1, 30000) a, generate_series(1, 30000) b)",
            timeout=0.2,
        )
    assert notes.query("SELECT n FROM notes ORDER BY id").rows == [(1,), (2,), (3,)]


def test_long_answers_are_refused_but_can_be_streamed(notes):
    sql = "SELECT g, g * 2 AS twice FROM generate_series(1, 2500) AS g ORDER BY g"
    with pytest.raises(TooManyRowsError):
        notes.query(sql, max_rows=100)
    assert notes.query(sql, max_rows=2500).row_count == 2500
    batches = list(notes.stream(sql, batch_size=1000))
    assert [batch.row_count for batch in batches] == [1000, 1000, 500]
    assert batches[2].columns == ("g", "twice")
    assert batches[2].rows[-1] == (2500, 5000)
    with pytest.raises(SqlError, match="batch_size"):
        list(notes.stream(sql, batch_size=0))


def test_a_stream_of_long_rows_has_small_batches(workspace):
    workspace.query("CREATE TABLE long (n BIGINT, x TEXT)")
    workspace.query("INSERT INTO long SELECT n, $1 FROM generate_series(1, 60) n", ["x" * 1_000_000])
    batches = [len(batch.rows) for batch in workspace.stream("SELECT x FROM long")]
    assert sum(batches) == 60
    assert max(batches) <= 10
    batches = [len(batch.rows) for batch in workspace.stream("SELECT n FROM long", batch_size=50)]
    assert batches == [50, 10]


def test_a_stream_sees_one_state_and_may_be_left_early(notes):
    stream = notes.stream("SELECT id FROM notes ORDER BY id", batch_size=1)
    assert next(stream).rows == [(1,)]
    notes.query("DELETE FROM notes")
    assert next(stream).rows == [(2,)]
    stream.close()
    assert notes.query("SELECT count(*) FROM notes").rows == [(0,)]


def test_parameters_are_named_when_they_do_not_fit(notes):
    for sql, params, named in [
        ("SELECT $1", [], r"\$1"),
        ("SELECT $1", [1, 2], "2 were given"),
        ("SELECT $2", [1, 2], r"\$1"),
        ("SELECT :a", {}, ":a"),
        ("SELECT :a", {"a": 1, "b": 2}, "'b'"),
        ("SELECT :a", [1], ":a"),
        ("SELECT :a, $1", [1], "not both"),
        ("SELECT 1", {"a": 1}, "'a'"),
        ("SELECT ?", [1], "JSONB"),
        ("SELECT $1", ["\ud800"], r"\$1"),
        ("SELECT $1", [object()], r"\$1"),
        ("SELECT $1::int", ["x"], "x"),
        ("INSERT INTO notes (n) VALUES ($1)", ["x"], '"n"'),
        ("INSERT INTO notes (e) VALUES ($1)", [[1, 2, 3]], "['\"]e['\"]"),
        ("CREATE TABLE x (a INT DEFAULT $1)", [1], "parameters"),
    ]:
        with pytest.raises(SqlError, match=named):
            notes.query(sql, params)


def test_vectors_come_as_lists_arrays_and_texts(workspace):
    workspace.query("CREATE TABLE v (id INT, e FLOAT4[])")
    for at, value in enumerate([[0.5, 1], (0.5, 1.0), np.array([0.5, 1]), "{0.5,1}", "[0.5, 1]"]):
        workspace.query("INSERT INTO v VALUES ($1, $2)", [at, value])
        workspace.query("INSERT INTO v VALUES ($1, $2::float4[])", [at, value])
    assert workspace.query("SELECT DISTINCT e FROM v").rows == [([0.5, 1.0],)]


def test_explain_tells_the_plan_and_the_search_index(notes):
    notes.query("CREATE INDEX words ON notes USING deeplake_index (text) WITH (index_type = 'bm25')")
    plan = notes.query("EXPLAIN SELECT text FROM notes ORDER BY text <#> 'fox' DESC LIMIT 1")
    assert plan.columns == ("QUERY PLAN",)
    assert any("words" in line for (line,) in plan.rows)
    assert notes.query("EXPLAIN SELECT * FROM notes WHERE id = 1").rows


def test_search_operators_work_in_statements(notes):
    best = notes.query("SELECT text FROM notes ORDER BY text <#> 'red whale' DESC LIMIT 1")
    assert best.rows == [("red whale",)]
    near = notes.query("SELECT n, e <#> $1 AS s FROM notes WHERE n < 3 ORDER BY s DESC", [[0.0, 1.0]])
    assert near.rows[0][0] == 2
    assert notes.query("SELECT deeplake_sync_table('notes')").row_count == 1


def test_other_workspaces_see_writes_and_new_tables_at_once(open_workspace):
    one, other = open_workspace(), open_workspace()
    one.query("CREATE TABLE t (a INT)")
    assert other.query("SELECT count(*) FROM t").rows == [(0,)]
    one.query("INSERT INTO t VALUES (1)")
    assert other.query("SELECT count(*) FROM t").rows == [(1,)]
    one.query("ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'x'")
    assert other.query("SELECT * FROM t").rows == [(1, "x")]
    one.query("DROP TABLE t")
    with pytest.raises(NoSuchTableError):
        other.query("SELECT * FROM t")
    one.query("CREATE TABLE t (z TEXT)")
    assert other.query("SELECT * FROM t").columns == ("z",)


def test_many_threads_write_and_read_at_once(open_workspace):
    workspace = open_workspace()
    workspace.query("CREATE TABLE c (id BIGSERIAL PRIMARY KEY, who INT, n INT)")
    failures = []

    def work(who):
        try:
            for n in range(15):
                workspace.query("INSERT INTO c (who, n) VALUES ($1, $2)", [who, n])
                found = workspace.query("SELECT count(*) FROM c WHERE who = $1", [who]).rows
                assert found == [(n + 1,)], found
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert workspace.query("SELECT count(*), count(DISTINCT id), max(id) FROM c").rows == [(90, 90, 90)]


def test_addresses_that_lead_nowhere_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="mysql"):
        Workspace("mysql://host/db")
    with pytest.raises(ConfigError, match="durability"):
        Workspace(tmp_path / "x.db", durability="none")
    with Workspace(f"sqlite:///{tmp_path / 'y.db'}", name="mine", durability="normal") as workspace:
        assert workspace.name == "mine"
        workspace.query('CREATE TABLE "mine".t (a INT)')
        with pytest.raises(NoSuchTableError):
            workspace.query("SELECT * FROM yours.t")
