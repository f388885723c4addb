"""A view is a SELECT with a name: read like a table, written to never, and what it reads cannot be taken from it."""

from __future__ import annotations

import uuid

import pytest

from rmem import Client
from rmem.errors import ConstraintError, NoSuchTableError, SqlError, SqlUnsupportedError, TableExistsError
from rmem.tables.catalog import Column, Kind, Table, Type
from rmem.tables.move import move


@pytest.fixture
def tables(workspace):
    workspace.query("CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, customer TEXT, total NUMERIC(10,2), note TEXT)")
    workspace.query(
        "INSERT INTO orders (customer, total, note) VALUES ('a', 5, 'red fish'), ('b', 7.5, 'blue'), ('a', 1, NULL)"
    )
    workspace.query("CREATE VIEW spent AS SELECT customer, sum(total) AS total FROM orders GROUP BY customer")
    return workspace


def rows(workspace, sql, params=None):
    return workspace.query(sql, params).dicts()


def test_a_view_is_read_like_a_table_and_always_new(tables, open_workspace):
    assert [row["customer"] for row in rows(tables, "SELECT * FROM spent ORDER BY total DESC")] == ["b", "a"]
    tables.query("INSERT INTO orders (customer, total) VALUES ('a', 10)")
    assert [row["customer"] for row in rows(open_workspace(), "SELECT customer FROM spent ORDER BY total DESC")] == [
        "a",
        "b",
    ]


def test_views_join_nest_and_take_parameters_of_the_statement_around_them(tables):
    tables.query("CREATE VIEW big (who, much) AS SELECT customer, total FROM spent WHERE total > 6.5")
    assert rows(tables, "SELECT who FROM big") == [{"who": "b"}]
    found = rows(
        tables,
        "SELECT o.id, v.who FROM orders o LEFT JOIN big v ON v.who = o.customer WHERE o.id <= $1 ORDER BY o.id",
        [2],
    )
    assert found == [{"id": 1, "who": None}, {"id": 2, "who": "b"}]
    assert rows(tables, "SELECT count(*) AS n FROM big a, big b") == [{"n": 1}]


def test_names_around_a_view_mean_nothing_inside_it(tables):
    found = rows(tables, "WITH orders AS (SELECT 1 AS x) SELECT count(*) AS n FROM spent, orders")
    assert found == [{"n": 2}]


def test_a_view_keeps_the_columns_it_was_made_with(tables):
    tables.query("CREATE VIEW every AS SELECT * FROM orders")
    tables.query("ALTER TABLE orders ADD COLUMN late BOOLEAN DEFAULT false")
    assert list(rows(tables, "SELECT * FROM every ORDER BY id LIMIT 1")[0]) == ["id", "customer", "total", "note"]


def test_a_view_may_search(tables):
    tables.query("CREATE VIEW fish AS SELECT id, note <#> 'fish' AS score FROM orders")
    assert rows(tables, "SELECT id FROM fish WHERE score > 0") == [{"id": 1}]


def test_a_view_can_be_replaced_by_one_with_the_same_columns(tables):
    tables.query("CREATE VIEW top AS SELECT customer FROM spent")
    tables.query(
        "CREATE OR REPLACE VIEW spent AS SELECT customer, 2 * sum(total) AS total FROM orders GROUP BY customer"
    )
    assert {row["customer"]: int(row["total"]) for row in rows(tables, "SELECT * FROM spent")} == {"a": 12, "b": 15}
    with pytest.raises(ConstraintError, match='view "top" depends on it'):
        tables.query("CREATE OR REPLACE VIEW spent AS SELECT total FROM orders")
    with pytest.raises(SqlError, match="would read itself"):
        tables.query("CREATE OR REPLACE VIEW spent AS SELECT * FROM spent")
    with pytest.raises(SqlError, match="would read itself"):
        tables.query("CREATE OR REPLACE VIEW spent AS SELECT customer, 1.0 AS total FROM top")


def test_what_a_view_reads_is_not_dropped_or_broken(tables):
    for sql in (
        "DROP TABLE orders",
        "ALTER TABLE orders DROP COLUMN total",
        "ALTER TABLE orders DROP COLUMN customer",
    ):
        with pytest.raises(ConstraintError, match='view "spent" depends on it'):
            tables.query(sql)
    with pytest.raises(ConstraintError):
        tables.drop_table("orders")
    tables.query("ALTER TABLE orders DROP COLUMN note")
    tables.query("DROP VIEW spent")
    tables.query("DROP TABLE orders")
    assert tables.tables() == []


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("CREATE VIEW spent AS SELECT 1 AS x", TableExistsError),
        ("CREATE VIEW orders AS SELECT 1 AS x", TableExistsError),
        ("CREATE OR REPLACE VIEW orders AS SELECT 1 AS x", TableExistsError),
        ("CREATE TABLE spent (x INT)", TableExistsError),
        ("CREATE VIEW v AS SELECT * FROM nowhere", NoSuchTableError),
        ("CREATE VIEW v AS SELECT 1 AS x, 2 AS x", SqlError),
        ("CREATE VIEW v (a, b) AS SELECT 1", SqlError),
        ("CREATE VIEW v AS DELETE FROM orders", SqlError),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1 AS x", SqlUnsupportedError),
        ("DROP TABLE spent", SqlError),
        ("DROP VIEW orders", SqlError),
        ("DROP VIEW nowhere", NoSuchTableError),
        ("INSERT INTO spent VALUES ('x', 1)", SqlUnsupportedError),
        ("UPDATE spent SET total = 0", SqlUnsupportedError),
        ("DELETE FROM spent", SqlUnsupportedError),
        ("TRUNCATE spent", SqlUnsupportedError),
        ("ALTER TABLE spent ADD COLUMN x INT", SqlUnsupportedError),
        ("CREATE INDEX i ON spent (customer)", SqlUnsupportedError),
        ("CREATE TABLE o (c TEXT REFERENCES spent (customer))", SqlUnsupportedError),
    ],
)
def test_what_a_view_cannot_be_is_refused_and_changes_nothing(tables, sql, error):
    before = tables.tables()
    with pytest.raises(error):
        tables.query(sql)
    assert tables.tables() == before


def test_a_view_takes_no_parameters(tables):
    with pytest.raises(SqlError, match="no parameters"):
        tables.query("CREATE VIEW v AS SELECT id FROM orders WHERE id = $1", [1])


def test_dropping_a_view_that_is_not_there_can_be_fine(tables):
    tables.query("DROP VIEW IF EXISTS nowhere, spent")
    assert [table.name for table in tables.tables()] == ["orders"]


def test_views_of_views_do_not_grow_without_end(tables):
    tables.query("CREATE VIEW v0 AS SELECT id FROM orders")
    for number in range(5):
        tables.query(f"CREATE VIEW v{number + 1} AS SELECT a.id FROM v{number} a JOIN v{number} b USING (id)")
    with pytest.raises(SqlError, match="may read 100 views"):
        tables.query("CREATE VIEW v6 AS SELECT a.id FROM v5 a JOIN v5 b USING (id)")


def test_the_catalogue_tells_views_from_tables(tables):
    sql = "SELECT table_name, table_type FROM information_schema.tables ORDER BY 1"
    assert tables.query(sql).rows == [("orders", "BASE TABLE"), ("spent", "VIEW")]
    sql = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'spent' ORDER BY 1"
    assert tables.query(sql).rows == [("customer", "text"), ("total", "numeric")]


def test_a_client_lists_and_describes_views(connect):
    client = connect()
    client.create_table("notes", {"id": "INT", "text": "TEXT"})
    client.query("CREATE VIEW texts AS SELECT text FROM notes")
    assert (client.list_tables(), client.list_views()) == (["notes"], ["texts"])
    assert client.describe_table("texts")["text"]["type"] == "text"
    with pytest.raises(SqlError, match="is a view"):
        client.ingest("texts", {"text": ["x"]})
    with pytest.raises(SqlError, match="use DROP VIEW"):
        client.drop_table("texts")
    client.query("DROP VIEW texts")
    assert client.list_views() == []


def test_views_move_to_postgresql_with_their_tables(tmp_path, tables_url):
    with Client(path=tmp_path / "t.db") as client:
        client.query("CREATE TABLE n (x INT)")
        client.query("INSERT INTO n VALUES (1), (2)")
        client.query("CREATE VIEW a AS SELECT x FROM n WHERE x > 1")
    tenant = uuid.uuid4().hex
    for _ in range(2):  # the second time all is there
        moved = move(tmp_path / "t.db", tables_url, tenant)
        assert moved is not None
        assert moved.counts == {"n": 2}
        moved.copy(lambda done: None)
        moved.close()
    from rmem.tables.workspace import Workspace

    with Workspace(tables_url, tenant=tenant) as there:
        assert there.query("SELECT x FROM a").rows == [(2,)]


def test_a_view_of_what_is_refused_now_stands_in_nobodys_way(tables):
    """Older versions took functions that are refused by name now."""
    tables._engine.create_table(Table("old", (Column("x", Type(Kind.TEXT)),), view="SELECT md5(note) AS x FROM orders"))
    with pytest.raises(SqlUnsupportedError, match=r"md5\(\) is not supported here"):
        tables.query("SELECT * FROM old")
    tables.query("CREATE TABLE other (a INT)")
    tables.query("ALTER TABLE orders ADD COLUMN extra INT")
    tables.query("DROP TABLE other")
    tables.query("DROP VIEW old")
    with pytest.raises(NoSuchTableError):
        tables.query("SELECT * FROM old")
