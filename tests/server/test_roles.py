"""Every route × every role × every tenant. A route that is not in the table below fails the first test."""

from __future__ import annotations

import re

import pytest
from running_server import Running

from rmem.server.control import Role
from rmem.server.settings import ServerSettings

OPEN, ANYBODY, OPERATOR = "open", "anybody", "operator"
READ, WRITE, ADMIN = Role.READ, Role.WRITE, Role.ADMIN
W = "/workspaces/{workspace}"
A = W + "/agents/{agent}"

NEEDED = {
    "GET /health": OPEN,
    "GET /ready": OPEN,
    "GET /metrics": OPERATOR,
    "GET /me": ANYBODY,
    "GET /organizations": ANYBODY,
    "GET /workspaces": ANYBODY,
    "POST /workspaces": ADMIN,
    "GET /members": ADMIN,
    "POST /members": ADMIN,
    "DELETE /members/{member}": ADMIN,
    "GET /tokens": ADMIN,
    "POST /tokens": ADMIN,
    "DELETE /tokens/{id}": ADMIN,
    "GET /audit": ADMIN,
    "GET /audit/verify": ADMIN,
    f"GET {W}": READ,
    f"DELETE {W}": ADMIN,
    f"GET {W}/members": ADMIN,
    f"POST {W}/members": ADMIN,
    f"DELETE {W}/members/{{member}}": ADMIN,
    f"GET {W}/tables": READ,
    f"POST {W}/tables": WRITE,
    f"POST {W}/tables/query": READ,
    f"GET {W}/tables/{{table}}": READ,
    f"DELETE {W}/tables/{{table}}": WRITE,
    f"POST {W}/tables/{{table}}/ingest": WRITE,
    f"GET {W}/memories": READ,
    f"POST {W}/memories": WRITE,
    f"GET {W}/memories/{{memory_id}}": READ,
    f"GET {W}/connections/{{memory_id}}": READ,
    f"PATCH {W}/memories/{{memory_id}}": WRITE,
    f"DELETE {W}/memories/{{memory_id}}": WRITE,
    f"POST {W}/memories/{{memory_id}}/pin": WRITE,
    f"POST {W}/memories/{{memory_id}}/unpin": WRITE,
    f"POST {W}/forget": WRITE,
    f"POST {W}/restore": WRITE,
    f"POST {W}/recall": READ,
    f"GET {W}/stats": READ,
    f"GET {W}/histogram": READ,
    f"GET {W}/sessions": READ,
    f"GET {W}/activity": READ,
    f"GET {W}/coding/repositories": READ,
    f"GET {W}/coding/briefing": READ,
    f"POST {W}/coding/injection": READ,
    f"GET {W}/coding/ledger": READ,
    f"GET {W}/coding/replay": READ,
    f"GET {W}/coding/review": READ,
    f"POST {W}/coding/review": WRITE,
    f"POST {W}/maintenance": WRITE,
    f"GET {W}/pruned": READ,
    f"GET {W}/examination": ADMIN,
    f"POST {W}/retention": READ,
    f"GET {W}/quality": READ,
    f"POST {W}/feedback": WRITE,
    f"GET {W}/evaluation": READ,
    f"POST {W}/evaluation": WRITE,
    f"POST {W}/ranking": READ,
    f"GET {W}/audit": ADMIN,
    f"GET {W}/audit/verify": ADMIN,
    f"GET {W}/export": ADMIN,
    f"POST {W}/import": WRITE,
    f"GET {W}/sync": READ,
    f"POST {W}/sync": WRITE,
    f"GET {W}/repositories": READ,
    f"PUT {W}/repositories": ADMIN,
    f"GET {W}/graph": READ,
    f"GET {W}/graph/facts": READ,
    f"POST {W}/graph/facts": WRITE,
    f"GET {W}/graph/facts/{{fact_id}}": READ,
    f"DELETE {W}/graph/facts/{{fact_id}}": WRITE,
    f"GET {W}/graph/facts/{{fact_id}}/explain": READ,
    f"POST {W}/graph/facts/{{fact_id}}/end": WRITE,
    f"GET {W}/graph/memories/{{memory_id}}": READ,
    f"POST {W}/graph/aliases": WRITE,
    f"POST {W}/graph/relations": WRITE,
    **{
        f"GET {W}/graph/{name}": READ
        for name in (
            "neighbours", "paths", "timeline", "between", "contradictions", "query", "closure", "entities",
            "relations", "important", "communities",
        )
    },
    f"POST {W}/mcp": READ,
    f"GET {W}/agents": READ,
    f"PUT {W}/agents/cache": ADMIN,
    f"POST {A}/states": WRITE,
    f"POST {A}/actions": WRITE,
    f"POST {A}/interactions": WRITE,
    f"POST {A}/several": WRITE,
    **{
        f"POST {A}/retrievals/{name}": READ
        for name in (
            "recent", "similar-states", "time-range", "times", "attributes", "locations", "importance", "embedding",
            "content", "query",
        )
    },
    f"POST {A}/embed": READ,
    f"POST {A}/history": READ,
    f"POST {A}/changes": READ,
    f"POST {A}/memories/{{memory_id}}/focus": WRITE,
    f"POST {A}/memories/{{memory_id}}/decompress": WRITE,
    f"GET {A}/memories/{{memory_id}}": READ,
    f"PATCH {A}/memories/{{memory_id}}": WRITE,
    f"DELETE {A}/memories/{{memory_id}}": WRITE,
    f"GET {A}/statistics": READ,
    f"POST {A}/cache/clear": WRITE,
}  # fmt: skip
IN_WORKSPACE = [route for route in NEEDED if W in route]
IN_ORGANIZATION = [route for route, needed in NEEDED.items() if isinstance(needed, Role) and W not in route]


def known(server) -> set[str]:
    paths = server.app.openapi()["paths"]
    return {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}


def ask(client, route: str, workspace: str = "lab"):
    """The route with a body that no route understands: what is told first is whether one may."""
    method, path = route.split(" ")
    path = path.replace("{workspace}", workspace)
    path = re.sub(r"\{(\w+)(:path)?\}", "nonesuch", path)
    body = {"json": {"no such": "field"}} if method in ("POST", "PUT", "PATCH") else {}
    return client.request(method, path, **body)


def test_every_route_says_who_may_use_it(server):
    assert known(server) == set(NEEDED)


def test_without_a_token_nothing_opens(server):
    nobody = server.client()
    for route, needed in NEEDED.items():
        assert (ask(nobody, route).status_code == 401) == (needed != OPEN), route


@pytest.mark.parametrize("role", list(Role))
def test_a_role_in_a_workspace_opens_what_it_should(server, role):
    client = server.client_for("acme", "lab", role)
    # deleting goes last: afterwards there is nothing to ask
    for route in sorted(IN_WORKSPACE, key=lambda route: route == f"DELETE {W}"):
        answer = ask(client, route)
        if role < NEEDED[route]:
            assert answer.status_code == 403, (route, answer.text)
            assert answer.json()["error"] == f"this needs the role {NEEDED[route].name}; your role is {role.name}"
        else:
            assert answer.status_code not in (401, 403, 405, 500), (route, answer.text)
    for route in IN_ORGANIZATION:
        assert ask(client, route).status_code == 403, route


@pytest.mark.parametrize("role", list(Role))
def test_a_role_in_the_organisation_opens_what_it_should(server, role):
    client = server.client_for("acme", None, role)
    for route in IN_ORGANIZATION:
        status = ask(client, route).status_code
        assert (status == 403) == (role < NEEDED[route]), route


def test_an_unknown_workspace_and_somebody_elses_answer_alike(server):
    """Same status, same body but for the name, whatever the route and the role."""
    server.client_for("globex", "vault1", "ADMIN").post("/workspaces/vault1/memories", json={"text": "the plans"})
    server.service.control.create_workspace(server.service.control.organization("globex").id, "vault2")
    callers = [
        server.client_for("acme", "lab", "ADMIN"),
        server.client_for("acme", None, "ADMIN"),
        server.client_for("acme", None, "READ"),
        server.client(server.token_for("globex", "vault2", "ADMIN", member="neighbour")),
    ]
    for route in IN_WORKSPACE:
        for caller in callers:
            theirs, nobodys = ask(caller, route, "vault1"), ask(caller, route, "vault9")
            assert theirs.status_code == nobodys.status_code == 404, (route, theirs.text)
            assert theirs.text.replace("vault1", "vault9") == nobodys.text, route
            assert set(theirs.headers) == set(nobodys.headers)


def test_an_organisation_sees_nothing_of_another(server):
    ours, theirs = server.client_for("acme", None, "ADMIN"), server.client_for("globex", None, "ADMIN")
    for client, word in ((ours, "ours"), (theirs, "theirs")):
        client.post("/workspaces", json={"name": "lab"}).raise_for_status()
        client.post("/workspaces", json={"name": f"only-{word}"}).raise_for_status()
        client.post("/members", json={"member": f"{word}-friend", "role": "READ"}).raise_for_status()
        client.post("/tokens", json={"member": f"{word}-friend", "label": f"{word}-label"}).raise_for_status()
        client.post("/workspaces/lab/memories", json={"text": f"the secret of {word}", "id": "m1"}).raise_for_status()
        client.post(
            "/workspaces/lab/tables", json={"table_name": "t", "table_schema": {"x": "TEXT"}}
        ).raise_for_status()
        insert = {"query": "INSERT INTO t (x) VALUES ($1)", "params": [f"{word} row"]}
        client.post("/workspaces/lab/tables/query", json=insert).raise_for_status()
    for path in ("/workspaces", "/members", "/tokens", "/me", "/organizations", "/workspaces/lab/memories",
                 "/workspaces/lab/stats", "/workspaces/lab/tables", "/workspaces/lab/agents"):  # fmt: skip
        text = ours.get(path).text
        assert "theirs" not in text, path
        assert "globex" not in text, path
    hits = ours.post("/workspaces/lab/recall", json={"query": "secret of theirs"}).json()["hits"]
    assert [hit["memory"]["text"] for hit in hits] == ["the secret of ours"]
    rows = ours.post("/workspaces/lab/tables/query", json={"query": "SELECT * FROM t"}).json()["rows"]
    assert rows == [["ours row"]]
    listed = theirs.get("/tokens").json()["tokens"][0]["id"]
    assert ours.delete(f"/tokens/{listed}").status_code == ours.delete("/tokens/nonesuch").status_code == 404
    assert ours.get("/workspaces/only-theirs").status_code == 404
    assert theirs.delete("/workspaces/lab/memories/m1").status_code == 200
    assert ours.get("/workspaces/lab/memories/m1").status_code == 200


SQL_TRICKS = [
    "SELECT * FROM sqlite_master",
    "SELECT * FROM sqlite_schema",
    "SELECT * FROM pg_catalog.pg_authid",
    "SELECT * FROM pg_class",
    "SELECT * FROM information_schema.schemata",
    "SELECT * FROM memories",
    "SELECT * FROM control_tokens",
    'SELECT * FROM "other"."t"',
    "SELECT * FROM main.t",
    "ATTACH DATABASE '/etc/passwd' AS x",
    "PRAGMA database_list",
    "COPY t TO '/tmp/x'",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT load_extension('x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT current_setting('remanence.tenant')",
    "SELECT set_config('remanence.tenant', 'x', false)",
    "SET ROLE postgres",
    "RESET ALL",
    "VACUUM",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE t",
    "BEGIN",
    "CREATE ROLE x",
    "CREATE EXTENSION x",
    "CREATE FUNCTION f() RETURNS int AS 'SELECT 1' LANGUAGE sql",
    "DO $$ BEGIN END $$",
    "SELECT pg_sleep(10)",
    "SELECT dblink('x', 'y')",
    "GRANT ALL ON t TO public",
    "SELECT * FROM t, LATERAL pg_ls_dir('.')",
]


@pytest.mark.parametrize("sql", SQL_TRICKS)
def test_no_statement_leads_out_of_the_workspace(tricked, sql):
    answer = tricked.post("/workspaces/lab/tables/query", json={"query": sql})
    assert answer.status_code in (400, 403, 404), (sql, answer.text)
    assert "x-request-id" in answer.headers
    assert set(answer.json()) == {"error"}


@pytest.fixture(scope="module", params=["SQLite", "PostgreSQL"])
def tricked(request, tmp_path_factory):
    store = request.getfixturevalue("postgres").new_database() if request.param == "PostgreSQL" else None
    server = Running(ServerSettings(data=tmp_path_factory.mktemp("tricks"), store=store)).start()
    client = server.client_for("acme", "lab", "WRITE")
    client.post("/workspaces/lab/tables", json={"table_name": "t", "table_schema": {"x": "TEXT"}})
    yield client
    server.stop()


WRITES = [
    "INSERT INTO t (x) VALUES ('a')",
    "UPDATE t SET x = 'b'",
    "DELETE FROM t",
    "DROP TABLE t",
    "CREATE TABLE u (x TEXT)",
    "ALTER TABLE t ADD COLUMN y TEXT",
    "CREATE INDEX i ON t (x)",
    "DROP INDEX i",
    "WITH gone AS (SELECT 1) DELETE FROM t",
    "/* SELECT */ INSERT INTO t (x) VALUES ('a')",
    "TRUNCATE t",
]


def test_who_may_only_read_changes_nothing_by_sql(server):
    server.client_for("acme", "lab", "WRITE").post(
        "/workspaces/lab/tables", json={"table_name": "t", "table_schema": {"x": "TEXT"}}
    )
    reader = server.client_for("acme", "lab", "READ")
    for sql in WRITES:
        answer = reader.post("/workspaces/lab/tables/query", json={"query": sql})
        assert answer.status_code in (403, 400), (sql, answer.text)
        if answer.status_code == 403:
            assert "needs the role WRITE" in answer.json()["error"]
    assert [one["table_name"] for one in reader.get("/workspaces/lab/tables").json()["tables"]] == ["t"]
    assert reader.post("/workspaces/lab/tables/query", json={"query": "SELECT count(*) FROM t"}).json()["rows"] == [[0]]
