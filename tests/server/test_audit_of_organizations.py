"""Every change of members, tokens and workspaces, and every SQL statement that writes, is in an audit log."""

from __future__ import annotations

import json
import logging
import sqlite3

import pytest
from click.testing import CliRunner
from running_server import eventually

from rmem.cli.app import rmem

W = "/workspaces/default"


@pytest.fixture(params=["sqlite", "postgres"])
def server(request, server_with):
    return server_with(store=request.getfixturevalue("postgres_url") if request.param == "postgres" else None)


def entries(admin, path: str = "/audit") -> list[dict]:
    """Oldest first."""
    return admin.get(path).json()["entries"][::-1]


def own_token(admin) -> str:
    return admin.get("/me").json()["token"]["id"]


def test_changes_of_members_tokens_and_workspaces_are_told_with_who_and_the_token(admin):
    before = len(entries(admin))
    admin.post("/workspaces", json={"name": "lab"}).raise_for_status()
    admin.post("/members", json={"member": "bob", "role": "READ"}).raise_for_status()
    admin.post("/members", json={"member": "bob", "role": "WRITE"}).raise_for_status()
    admin.post("/members", json={"member": "bob", "role": "WRITE"}).raise_for_status()
    first, second = (admin.post("/tokens", json={"member": "bob"}).json()["id"] for _ in range(2))
    admin.delete(f"/tokens/{first}").raise_for_status()
    admin.delete(f"/tokens/{first}").raise_for_status()
    admin.delete("/members/bob").raise_for_status()
    admin.delete("/workspaces/lab").raise_for_status()
    found = entries(admin)[before:]
    assert [one["action"] for one in found] == [
        "create workspace", "add member", "change role", "create token", "create token", "revoke token",
        "remove member", "delete workspace",
    ]  # fmt: skip
    assert {(one["who"], one["detail"]["token"]) for one in found} == {("admin", own_token(admin))}
    added, changed, *_ = (one["detail"] for one in found[1:])
    assert (added["member"], added["role"]) == ("bob", "READ")
    assert (changed["role"], changed["before"]) == ("WRITE", "READ")
    assert (found[3]["detail"]["id"], found[5]["detail"]["id"]) == (first, first)
    assert found[6]["detail"]["revoked"] == [second]
    assert admin.get("/audit/verify").json() == {"sound": True, "broken": []}


def test_a_change_that_was_refused_is_no_entry(admin):
    before = entries(admin)
    assert admin.delete("/members/nobody").status_code == 404
    assert admin.post("/workspaces", json={"name": "default"}).status_code == 409
    assert admin.post("/tokens", json={"member": "nobody"}).status_code == 400
    assert admin.delete("/tokens/none").status_code == 404
    assert entries(admin) == before


def test_a_request_that_is_sent_twice_is_one_entry(admin):
    key = {"Idempotency-Key": "once"}
    for _ in range(2):
        admin.post("/workspaces", json={"name": "lab"}, headers=key).raise_for_status()
        statement = {"query": "CREATE TABLE t (x TEXT)"}
        admin.post(f"{W}/tables/query", json=statement, headers={"Idempotency-Key": "t"}).raise_for_status()
    assert [one["detail"].get("name") for one in entries(admin)].count("lab") == 1
    assert [one["action"] for one in entries(admin, f"{W}/audit")] == ["sql"]


def test_every_sql_statement_that_writes_is_told_without_its_values(admin):
    def run(sql: str, *params: object, **headers: str) -> None:
        body = {"query": sql, "params": list(params)}
        admin.post(f"{W}/tables/query", json=body, headers=headers).raise_for_status()

    run("CREATE TABLE notes (id BIGSERIAL PRIMARY KEY, body TEXT)")
    run("INSERT INTO notes (body) VALUES ($1), ('swordfish')", "swordfish")
    run("INSERT INTO notes (body) VALUES ('swordfish') RETURNING id", Accept="application/x-ndjson")
    run("SELECT body FROM notes")
    run('UPDATE "notes" SET body = $1', "swordfish")
    run("CREATE INDEX by_body ON notes (body)")
    run("ALTER TABLE notes ADD COLUMN n BIGINT")
    run("DELETE FROM notes WHERE id = 1")
    run("TRUNCATE notes")
    run("DROP INDEX by_body")
    run("DROP TABLE notes")
    table = {"table_name": "t", "table_schema": {"x": "TEXT"}}
    admin.post(f"{W}/tables", json=table).raise_for_status()
    admin.post(f"{W}/tables/t/ingest", json={"columns": {"x": ["swordfish", "b"]}}).raise_for_status()
    admin.delete(f"{W}/tables/t").raise_for_status()
    assert admin.post(f"{W}/tables/query", json={"query": "INSERT INTO nowhere VALUES (1)"}).status_code == 404
    found = entries(admin, f"{W}/audit")
    assert {(one["who"], one["action"], one["detail"]["token"]) for one in found} == {
        ("admin", "sql", own_token(admin))
    }
    told = [(one["detail"]["statement"], one["detail"]["tables"], one["detail"]["rows"]) for one in found]
    assert told == [
        ("CREATE TABLE", ["notes"], 0),
        ("INSERT", ["notes"], 2),
        ("INSERT", ["notes"], 1),
        ("UPDATE", ["notes"], 3),
        ("CREATE INDEX", ["notes"], 0),
        ("ALTER TABLE", ["notes"], 0),
        ("DELETE", ["notes"], 1),
        ("TRUNCATE", ["notes"], 0),
        ("DROP INDEX", ["by_body"], 0),
        ("DROP TABLE", ["notes"], 0),
        ("CREATE TABLE", ["t"], 0),
        ("INSERT", ["t"], 2),
        ("DROP TABLE", ["t"], 0),
    ]
    assert "swordfish" not in json.dumps(found)


def test_only_admins_of_the_whole_organisation_read_its_log(server, client_for):
    assert client_for("acme", None, "ADMIN").get("/audit").status_code == 200
    for client in (client_for("acme", None, "WRITE"), client_for("acme", "lab", "ADMIN")):
        assert client.get("/audit").status_code == client.get("/audit/verify").status_code == 403
    others = client_for("globex", None, "ADMIN").get("/audit").json()["entries"]
    assert {one["n"] for one in others} == {1, 2, 3}  # globex itself, its admin and the token: nothing of acme
    assert "acme" not in json.dumps(others)


def test_the_commands_are_told_and_the_log_is_read_by_rmem_audit(server, admin, monkeypatch):
    monkeypatch.setenv("RMEM_USER", "root-of-host")
    data = ["--data", str(server.settings.data)]
    if server.settings.store is not None:
        data += ["--store", server.settings.store]
    for command in (("member", "add", "bob", "read"), ("token", "create", "bob"), ("member", "remove", "bob")):
        result = CliRunner().invoke(rmem, [*command, *data])
        assert result.exit_code == 0, result.stderr
    told = CliRunner().invoke(rmem, ["audit", "--org", "default", "--limit", "3", "--json", *data])
    assert told.exit_code == 0, told.stderr
    shown = CliRunner().invoke(rmem, ["audit", "--org", "default", "--limit", "3", *data])
    assert "None" not in shown.stdout
    assert shown.stdout.count("\t-\t") == 3
    found = json.loads(told.stdout)
    assert [(one["who"], one["action"]) for one in found[::-1]] == [
        ("root-of-host", "add member"), ("root-of-host", "create token"), ("root-of-host", "remove member"),
    ]  # fmt: skip
    assert found == admin.get("/audit", params={"limit": 3}).json()["entries"]
    assert CliRunner().invoke(rmem, ["audit", "verify", "--org", "default", *data]).exit_code == 0
    wrong = CliRunner().invoke(rmem, ["audit", "--org", "nobody", *data])
    assert wrong.exit_code == 2
    assert "known: default" in wrong.stderr


def test_a_log_whose_end_was_cut_off_shows(server_with):
    server = server_with()
    admin = server.client(server.first_token)
    admin.post("/members", json={"member": "bob", "role": "ADMIN"}).raise_for_status()
    (path,) = server.settings.data.glob("organization-*.db")
    with sqlite3.connect(path) as file:
        last = file.execute("SELECT max(n) FROM audit").fetchone()[0]
        file.execute("DELETE FROM audit WHERE n = ?", (last,))
        file.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'audit'", (last - 1,))
    assert admin.get("/audit/verify").json() == {"sound": False, "broken": [last]}


def test_lines_of_the_log_tell_organisation_member_and_token(server, admin, caplog):
    with caplog.at_level(logging.INFO, "rmem.server"):
        me = admin.get("/me").json()
        line = eventually(
            lambda: next(
                (one.request for one in caplog.records if getattr(one, "request", {}).get("route") == "/me"), None
            )
        )
    assert (line["org"], line["member"], line["token"]) == (me["organization"]["id"], "admin", me["token"]["id"])
