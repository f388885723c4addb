"""The server on PostgreSQL: control data, memories and tables in one database, tenants apart."""

from __future__ import annotations

import psycopg
import pytest

QUERY = "/workspaces/lab/tables/query"


@pytest.fixture
def on_postgres(server_with, postgres_url):
    return server_with(store=postgres_url)


def test_two_organisations_share_a_database_and_nothing_else(on_postgres):
    clients = {word: on_postgres.client_for(word, "lab", "ADMIN") for word in ("acme", "globex")}
    for word, client in clients.items():
        client.post("/workspaces/lab/memories", json={"text": f"the secret of {word}", "id": "m"}).raise_for_status()
        table = {"table_name": "t", "table_schema": {"id": "BIGSERIAL PRIMARY KEY", "x": "TEXT"}}
        client.post("/workspaces/lab/tables", json=table).raise_for_status()
        row = {"query": "INSERT INTO t (x) VALUES ($1)", "params": [f"row of {word}"]}
        client.post(QUERY, json=row).raise_for_status()
    for word, client in clients.items():
        hits = client.post("/workspaces/lab/recall", json={"query": "secret"}).json()["hits"]
        assert [hit["memory"]["text"] for hit in hits] == [f"the secret of {word}"]
        assert client.post(QUERY, json={"query": "SELECT x FROM t"}).json()["rows"] == [[f"row of {word}"]]
        assert client.get("/workspaces/lab/stats").json()["memories"] == 1
    assert clients["acme"].delete("/workspaces/lab").json() == {"deleted": "lab"}
    assert clients["acme"].get("/workspaces/lab").status_code == 404
    assert clients["globex"].get("/workspaces/lab/memories/m").status_code == 200
    assert clients["globex"].post(QUERY, json={"query": "SELECT count(*) FROM t"}).json()["rows"] == [[1]]


def test_a_deleted_workspace_leaves_no_text_behind(on_postgres, postgres_url):
    client = on_postgres.client_for("acme", "lab", "ADMIN")
    client.post("/workspaces/lab/memories", json={"text": "swordfish is the word"}).raise_for_status()
    client.post("/workspaces/lab/tables/t/ingest", json={"columns": {"x": ["swordfish again"]}}).raise_for_status()
    client.delete("/workspaces/lab").raise_for_status()
    with psycopg.connect(postgres_url) as link:
        names = link.execute(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (name,) in names:
            rows = link.execute(f"SELECT t::text FROM {name} t").fetchall()
            assert "swordfish" not in str(rows), name


def test_a_second_server_on_the_database_knows_the_same_people(on_postgres, server_with, postgres_url, monkeypatch):
    secret = (on_postgres.settings.data / "secret.key").read_text()
    monkeypatch.setenv("RMEM_SERVER_SECRET", secret)
    second = server_with(store=postgres_url)
    assert second.first_token == ""
    client = second.client(on_postgres.first_token)
    assert client.get("/me").json()["member"] == "admin"
    made = client.post("/workspaces/default/memories", json={"text": "written by the second"}).json()["ids"][0]
    first = on_postgres.client(on_postgres.first_token)
    assert first.get(f"/workspaces/default/memories/{made}").json()["text"] == "written by the second"
    for key in ("a", "a", "b"):
        body = {"query": "CREATE TABLE IF NOT EXISTS once (x TEXT)"}
        first.post("/workspaces/default/tables/query", json=body, headers={"Idempotency-Key": key}).raise_for_status()


def test_a_database_that_goes_away_is_503_and_comes_back(server_with, postgres):
    server = server_with(store=postgres.new_database())
    client = server.client(server.first_token)
    client.post("/workspaces/default/memories", json={"text": "before"}).raise_for_status()
    assert server.client().get("/ready").status_code == 200
    postgres.kill()
    try:
        gone = server.client().get("/ready")
        assert gone.status_code == 503
        assert set(gone.json()) == {"error", "request_id"}
        assert "postgres" not in gone.text.lower()
    finally:
        postgres.start()
    assert server.client().get("/ready").status_code == 200
    assert client.get("/workspaces/default/memories").json()["memories"][0]["text"] == "before"
