"""The tables `facts` and `entities`: what memories say, in SQL, in a file and on a server."""

from __future__ import annotations

import pytest

from rmem import Brain
from rmem.errors import NoSuchTableError, SqlUnsupportedError, TooManyRowsError
from rmem.tables.client import Client
from rmem.tables.fact_tables import COLUMNS

W = "/workspaces/default"
NAMED = "SELECT subject, relation, object FROM facts ORDER BY valid_from, object"


@pytest.fixture
def path(tmp_path):
    """A file with memories, and with a table."""
    file = tmp_path / "memories.db"
    with Brain(file) as brain:
        brain.graph.declare("runs on", single=True)
        brain.graph.add("staging", "runs on", "port 5432", since="2026-01-01")
        brain.graph.add("staging", "runs on", "port 5433", since="2026-05-01")
        brain.graph.add("ann", "owns", "staging", since="2026-06-01", agent="ops")
    return file


@pytest.fixture
def client(path):
    with Client(path=path) as opened:
        opened.query("CREATE TABLE hosts (name TEXT PRIMARY KEY, cores INT)")
        opened.query("INSERT INTO hosts VALUES ('staging', 8), ('ann', 0)")
        yield opened


def test_facts_and_entities_are_read_and_joined(client):
    (old, new, owner) = client.query("SELECT * FROM facts ORDER BY valid_from")
    assert tuple(old) == tuple(COLUMNS["facts"])
    assert (old["valid_until"], old["ended_by"]) == (new["valid_from"], new["id"])
    assert (owner["agent"], owner["confidence"], owner["id"]) == ("ops", 1.0, f"{owner['memory']}#0")
    counted = client.query("SELECT name, facts FROM entities ORDER BY facts DESC, name LIMIT 2")
    assert counted == [{"name": "staging", "facts": 3}, {"name": "ann", "facts": 1}]
    joined = client.query(
        'SELECT h.cores, f.object FROM "default".facts f JOIN hosts h ON h.name = f.subject '
        "WHERE f.valid_until IS NULL AND h.cores >= $1",
        [1],
    )
    assert joined == [{"cores": 8, "object": "port 5433"}]
    assert client.query("WITH own AS (SELECT * FROM facts) SELECT count(*) AS n FROM own") == [{"n": 3}]
    assert client.query("EXPLAIN SELECT * FROM facts")
    assert len(list(client.stream("SELECT * FROM facts", batch_size=2))) == 2


def test_the_same_statement_sees_what_is_new(client, path):
    assert len(client.query(NAMED)) == 3
    with Brain(path) as brain:
        brain.graph.add("etl", "uses", "duckdb")
    assert len(client.query(NAMED)) == 4


def test_what_they_say_can_be_kept_in_a_table(client):
    client.query("INSERT INTO hosts (name, cores) SELECT object, 1 FROM facts WHERE relation = 'runs on'")
    assert client.query("SELECT count(*) AS n FROM hosts") == [{"n": 4}]
    for sql in ("CREATE TABLE own AS SELECT * FROM facts", "CREATE VIEW own AS SELECT * FROM facts"):
        with pytest.raises(SqlUnsupportedError, match="fill it by INSERT INTO … SELECT"):
            client.query(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO facts (id) VALUES ('x')",
        "UPDATE facts SET object = 'x'",
        "DELETE FROM facts",
        "DELETE FROM entities WHERE name = 'x'",
    ],
)
def test_they_are_not_written_to(client, sql):
    with pytest.raises(SqlUnsupportedError, match=r"can only be read: .* state facts with graph\.add"):
        client.query(sql)


def test_a_table_or_query_of_the_same_name_takes_their_place(client):
    assert client.query("WITH facts AS (SELECT 1 AS x) SELECT * FROM facts") == [{"x": 1}]
    assert len(client.query(NAMED)) == 3
    client.query("CREATE TABLE facts (subject TEXT, relation TEXT, object TEXT, valid_from INT)")
    client.query("INSERT INTO facts VALUES ('mine', 'is', 'mine', 1)")
    assert client.query(NAMED) == [{"subject": "mine", "relation": "is", "object": "mine"}]
    client.query("DROP TABLE facts")
    assert len(client.query(NAMED)) == 3


def test_a_graph_that_is_too_large_is_refused(client, monkeypatch):
    monkeypatch.setattr("rmem.tables.fact_tables.MOST", 2)
    with pytest.raises(TooManyRowsError, match='"facts" has more than 2 rows'):
        client.query("SELECT count(*) FROM facts")


def test_a_workspace_without_memories_has_no_such_tables(tmp_path):
    from rmem.tables.workspace import Workspace

    with Workspace(tmp_path / "tables.db") as tables, pytest.raises(NoSuchTableError):
        tables.query("SELECT * FROM facts")


@pytest.mark.parametrize("engine", ["SQLite", "PostgreSQL"])
def test_a_server_tells_each_caller_what_they_may_see(server_with, request, engine):
    store = request.getfixturevalue("postgres_url") if engine == "PostgreSQL" else None
    server = server_with(store=store)
    ann, bob = (server.client(server.token_for("default", "default", "WRITE", member=name)) for name in ("ann", "bob"))
    for object, more in (("duckdb", {}), ("moonbase", {"place": "personal:ann"})):
        body = {"subject": "etl", "relation": "uses", "object": object, "since": "2026-01-01", **more}
        ann.post(f"{W}/graph/facts", json=body).raise_for_status()

    def rows(client, sql, **headers):
        answer = client.post(f"{W}/tables/query", json={"query": sql}, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()["rows"]

    for _ in range(2):  # the second time the statement is known
        assert rows(ann, NAMED) == [["etl", "uses", "duckdb"], ["etl", "uses", "moonbase"]]
        assert rows(bob, NAMED) == [["etl", "uses", "duckdb"]]
        assert rows(bob, "SELECT name, facts FROM entities ORDER BY name") == [["duckdb", 1], ["etl", 1]]
    streamed = bob.post(f"{W}/tables/query", json={"query": NAMED}, headers={"Accept": "text/csv"})
    assert (streamed.status_code, "duckdb" in streamed.text, "moonbase" in streamed.text) == (200, True, False)
    bob.post(f"{W}/tables/query", json={"query": "CREATE TABLE kept (x TEXT)"}).raise_for_status()
    rows(bob, "INSERT INTO kept SELECT object FROM facts")
    assert rows(ann, "SELECT * FROM kept") == [["duckdb"]]
    refused = bob.post(f"{W}/tables/query", json={"query": "DELETE FROM facts"})
    assert (refused.status_code, "can only be read" in refused.text) == (400, True)
