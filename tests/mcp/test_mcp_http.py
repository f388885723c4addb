"""MCP of a server: tokens, roles and tenants, what others may see, limits, logs and what is written down."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from hashlib import sha256

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_clients import ETL, LEGACY, MODERN, Talk, answer, refusal
from running_server import eventually

from rmem import Brain
from rmem.server.settings import Limits
from rmem.team.sessions import Sessions, SessionState

RECALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "recall", "arguments": {"query": "anything"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def member(lasting, request):
    """`member("bob", "WRITE")`: somebody who talks to the workspace of this test."""
    workspace = f"w{sha256(request.node.nodeid.encode()).hexdigest()[:12]}"

    def made(name: str, role: str = "WRITE", repository: str | None = ETL, **more: str) -> Talk:
        token = lasting.token_for("acme", workspace, role, member=f"{name}-{workspace}@acme.io")
        return Talk.http(lasting, workspace, token, repository, **more)

    made.workspace = workspace
    return made


def entries(server, org, workspace):
    admin = server.client_for(org, workspace, "ADMIN")
    found = admin.get(f"/workspaces/{workspace}/audit", params={"limit": 1000}).json()["entries"]
    return [(one["who"], one["action"], one["memory"], one["detail"]) for one in found]


def test_a_role_opens_the_tools_that_it_should(member):
    writer, reader, admin = member("ann"), member("rita", "READ"), member("root", "ADMIN")
    kept = writer.call("remember", text="The pool deadlocks at ten workers", files=["pool.py"])

    async def reads(client):
        found = await answer(client, "recall", query="deadlock of the pool")
        assert found["memories"][0]["id"] == kept["id"]
        for tool, arguments in (
            ("get_memory", {"id": kept["id"]}),
            ("list_recent", {}),
            ("file_history", {"path": "pool.py"}),
            ("who_knows", {"topic": "pool"}),
            ("session_state", {}),
        ):
            assert await answer(client, tool, **arguments), tool
        assert "deadlocks" in (await client.read_resource("remanence://briefing")).contents[0].text
        for tool, arguments in (
            ("remember", {"text": "x"}),
            ("forget", {"id": kept["id"]}),
            ("feedback", {"recall_id": found["recall_id"], "id": kept["id"]}),
        ):
            assert await refusal(client, tool, **arguments) == "this needs the role WRITE; your role is READ"

    reader.having(reads)
    other = member("bob").refusal("forget", id=kept["id"])
    assert other == "id: only its author or an administrator may forget this memory"
    assert writer.call("get_memory", id=kept["id"])["count"] == 1
    assert admin.call("forget", id=kept["id"]) == {"done": True}


def test_authors_forget_what_is_theirs(member):
    ann = member("ann")
    kept = ann.call("remember", text="Nobody needs this")
    assert ann.call("forget", id=kept["id"]) == {"done": True}
    assert ann.call("list_recent")["memories"] == []


@pytest.mark.parametrize("path", ["/workspaces/vault/mcp", "/workspaces/nonesuch/mcp"])
def test_what_may_not_be_entered_is_told_as_everywhere_else(lasting, path):
    lasting.client_for("globex", "vault", "ADMIN")
    stranger = lasting.client_for("acme", "lab", "ADMIN")
    refused = stranger.post(path, json=RECALL, headers=ACCEPT)
    assert refused.status_code == 404
    assert refused.json() == {"error": f"there is no workspace {path.split('/')[2]!r}"}
    assert lasting.client().post(path, json=RECALL, headers=ACCEPT).status_code == 401
    assert lasting.client("forged").post(path, json=RECALL, headers=ACCEPT).status_code == 401
    for method in ("GET", "DELETE"):  # there is no stream to open and no session to end
        assert stranger.request(method, "/workspaces/lab/mcp").status_code == 405


def test_an_organisation_never_reaches_another(lasting):
    """The same workspace name, member name and repository in two organisations."""
    talks = {}
    for org in ("initech", "hooli"):
        token = lasting.token_for(org, "lab", "ADMIN", member="ann@example.org")
        talks[org] = Talk.http(lasting, "lab", token, mode=MODERN)
        for scope in ("personal", "repository"):
            talks[org].call("remember", text=f"The {scope} secret of {org}", scope=scope)
    theirs = talks["hooli"].call("list_recent")["memories"]

    async def search(client):
        asked = {"query": "the secret of hooli", "limit": 50, "weak": True}
        told = [
            (await client.call_tool("recall", asked)).content[0].text,
            (await client.call_tool("list_recent", {})).content[0].text,
            (await client.call_tool("who_knows", {"topic": "secret of hooli"})).content[0].text,
            (await client.read_resource("remanence://briefing")).contents[0].text,
            str((await client.list_resources()).resources),
        ]
        assert all("hooli" not in one for one in told)
        assert "initech" in told[0]
        for one in theirs:
            assert "there is no memory" in await refusal(client, "get_memory", id=one["id"])
            assert "there is no memory" in await refusal(client, "forget", id=one["id"])

    talks["initech"].having(search)
    assert len(talks["hooli"].call("list_recent")["memories"]) == 2


def test_nobody_sees_what_is_personal_or_of_another_repository(member):
    ann, bob, root = member("ann"), member("bob"), member("root", "ADMIN")
    mine = ann.call("remember", text="I keep my flaky test list in notes.txt", scope="personal", files=["notes.txt"])
    site = ann.call("remember", text="The flaky test list of the site", repository="github.com/acme/site")
    shared = ann.call("remember", text="A flaky test is run again twice")
    found = ann.call("recall", query="flaky test list", weak=True)["memories"]
    assert {one["id"] for one in found} == {mine["id"], shared["id"]}

    async def look(client):
        for limit in (1, 50):
            found = await answer(client, "recall", query="flaky test list in notes.txt", limit=limit, weak=True)
            assert [one["id"] for one in found["memories"]] == [shared["id"]]
        assert [one["id"] for one in (await answer(client, "list_recent"))["memories"]] == [shared["id"]]
        assert (await answer(client, "file_history", path="notes.txt"))["memories"] == []
        experts = await answer(client, "who_knows", topic="a flaky test that is run again")
        assert {id for one in experts["experts"] for id in one["memories"]} == {shared["id"]}
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert listed == ["remanence://briefing", f"remanence://memories/{shared['id']}"]
        for hidden in (mine["id"], site["id"]):
            for tool in ("get_memory", "forget"):
                assert "there is no memory" in await refusal(client, tool, id=hidden), tool
            ended = await refusal(client, "remember", text="They do not exist", supersedes=hidden)
            assert "supersedes: there is no memory" in ended
            with pytest.raises(MCPError, match="there is no memory"):
                await client.read_resource(f"remanence://memories/{hidden}")
        everywhere = await answer(client, "recall", query="flaky", repository="personal:ann", weak=True)
        assert everywhere["memories"] == []

    for other in (bob, root):
        other.having(look)
    assert ann.call("get_memory", id=mine["id"])["text"] == "I keep my flaky test list in notes.txt"


def test_what_is_learned_without_a_repository_is_personal(member):
    member("ann").call("remember", text="The importer is fragile")
    nowhere = member("bob", repository=None)
    kept = nowhere.call("remember", text="Deployments are frozen in December")
    assert kept["scope"] == "personal"
    assert "repository" not in kept or kept["repository"] is None
    assert [one["id"] for one in nowhere.call("list_recent")["memories"]] == [kept["id"]]
    found = nowhere.call("recall", query="is the importer fragile", repository=ETL)["memories"]
    assert [one["line"] for one in found] == ["[codebase] The importer is fragile"]
    assert member("eve", repository="").call("list_recent")["memories"] == []
    assert "X-Rmem-Repository must" in member("eve", repository="x" * 600).refusal("list_recent")


def test_secrets_are_taken_out_but_not_the_authors_own_name(member):
    ann = member("ann")
    author = f"ann-{member.workspace}@acme.io"
    text = f"Ask {author}, not bob@example.org; the key is AKIAIOSFODNN7EXAMPLE"
    kept = ann.call("remember", text=text, kind="error_fix", error="password=hunter2hunter2", fix="export X=1")
    told = ann.call("get_memory", id=kept["id"])
    assert author in told["text"]
    for secret in ("AKIAIOSFODNN7EXAMPLE", "bob@example.org", "hunter2hunter2"):
        assert secret not in json.dumps(told)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_what_an_agent_does_is_written_down(server, mode):
    token = server.token_for("acme", "lab", "WRITE", member="ann")
    talk = Talk.http(server, "lab", token, mode=mode, **{"X-Rmem-Agent": "codex-mcp-client"})

    async def work(client):
        kept = await answer(client, "remember", text="Use uv, never pip")
        found = await answer(client, "recall", query="is it uv or pip")
        await answer(client, "get_memory", id=kept["id"])
        await answer(client, "feedback", recall_id=found["recall_id"], id=kept["id"])
        await client.read_resource(f"remanence://memories/{kept['id']}")
        await answer(client, "forget", id=kept["id"])
        return kept["id"]

    id = talk.having(work)
    done = [(action, detail) for who, action, memory, detail in entries(server, "acme", "lab") if memory == id]
    assert [action for action, _ in reversed(done)] == [
        "remember", "recall", "read", "feedback", "read", "ask to forget", "forget",
    ]  # fmt: skip
    for action, detail in done:
        if action != "forget":
            assert (detail["agent"], detail["origin"]) == ("codex", "mcp http"), action
    assert "Use uv" not in json.dumps(done)
    assert server.client_for("acme", "lab", "ADMIN").get("/workspaces/lab/audit/verify").json()["broken"] == []


def test_limits_request_ids_logs_and_metrics_apply(server_with, caplog):
    server = server_with(Limits(requests_per_second=0.001, burst=3, body_bytes=2000))
    client = server.client_for("acme", "lab", "READ")
    caplog.set_level(logging.INFO, logger="rmem.server")
    long = {**RECALL, "params": {"name": "recall", "arguments": {"query": "x" * 3000}}}
    assert client.post("/workspaces/lab/mcp", json=long, headers=ACCEPT).status_code == 413
    ok = client.post("/workspaces/lab/mcp", json=RECALL, headers={**ACCEPT, "X-Request-Id": "mine"})
    assert ok.json()["result"]["structuredContent"]["memories"] == []
    assert ok.headers["x-request-id"] == "mine"
    pieces = iter([json.dumps(long).encode()[:1500], json.dumps(long).encode()[1500:]])
    sent = {**ACCEPT, "Content-Type": "application/json"}
    assert client.post("/workspaces/lab/mcp", content=pieces, headers=sent).status_code == 413
    statuses = [client.post("/workspaces/lab/mcp", json=RECALL, headers=ACCEPT).status_code for _ in range(3)]
    assert statuses == [200, 429, 429]

    def logged():
        found = [record.request for record in caplog.records if hasattr(record, "request")]
        return [one for one in found if one["id"] == "mine"]

    assert eventually(logged)[0]["route"] == "/workspaces/{workspace}/mcp"
    metrics = server.client(server.service.metrics_token).get("/metrics").text
    assert 'route="/workspaces/{workspace}/mcp"' in metrics


def test_many_clients_at_once_are_all_answered_while_others_are(lasting, member):
    token = lasting.token_for("acme", member.workspace, "WRITE", member=f"ann-{member.workspace}@acme.io")
    address = f"{lasting.url}/workspaces/{member.workspace}/mcp"
    headers = {"Authorization": f"Bearer {token}", "X-Rmem-Repository": ETL, **ACCEPT}

    async def work():
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:

            async def one(number):
                arguments = {"text": f"Worker {number} listens on socket {number * 7919}"}
                body = {**RECALL, "id": number, "params": {"name": "remember", "arguments": arguments}}
                kept = (await http.post(address, json=body)).json()
                assert kept["id"] == number
                found = (await http.post(address, json={**RECALL, "id": number})).json()
                return kept["result"]["structuredContent"]["id"], found["result"]["isError"]

            async def alive():
                return (await http.get(f"{lasting.url}/health")).status_code

            done = await asyncio.gather(*(one(number) for number in range(24)), *(alive() for _ in range(10)))
            return done[:24], done[24:]

    done, health = asyncio.run(work())
    assert len({id for id, _ in done}) == 24
    assert not any(failed for _, failed in done)
    assert set(health) == {200}


def test_a_server_on_postgresql_keeps_tenants_apart(server_with, postgres_url):
    server = server_with(store=postgres_url)
    ours, theirs = (
        Talk.http(server, "lab", server.token_for(org, "lab", "WRITE", member="ann")) for org in ("acme", "globex")
    )

    async def work(client):
        old = await answer(client, "remember", text="The pool deadlocks at ten workers", files=["pool.py"])
        new = await answer(client, "remember", text="The pool deadlocks at twenty workers", supersedes=old["id"])
        found = await answer(client, "recall", query="deadlock of the pool")
        assert [one["id"] for one in found["memories"]] == [new["id"]]
        await answer(client, "feedback", recall_id=found["recall_id"], id=new["id"])
        assert (await answer(client, "file_history", path="pool.py"))["memories"] == []  # it no longer holds
        assert (await answer(client, "who_knows", topic="pool"))["experts"][0]["author"] == "ann"
        assert "deadlocks" in (await client.read_resource("remanence://briefing")).contents[0].text
        return new["id"]

    id = ours.having(work)
    assert theirs.call("list_recent")["memories"] == []
    assert "there is no memory" in theirs.refusal("get_memory", id=id)
    assert ours.call("forget", id=id) == {"done": True}


def test_two_clients_share_what_they_learn(member):
    ann, bob = member("ann"), member("bob")

    async def work():
        async with ann.client() as one, bob.client() as two:
            kept = await answer(one, "remember", text="Migrations run before the pods start")
            found = await answer(two, "recall", query="when do migrations run")
            assert found["memories"][0]["id"] == kept["id"]
            again = await answer(two, "remember", text="Migrations run before the pods start")
            assert again == {**kept, "count": 2}
            assert (await answer(one, "who_knows", topic="migrations"))["experts"][1]["author"].startswith("bob")

    asyncio.run(work())


def test_a_server_tells_nothing_of_its_own_sessions(member):
    """The session states of whoever runs the server are in the home folder, and are nobody's business."""
    state = SessionState("claude-code", "s-1", repository=ETL, task="The operator's private task", updated=1.0)
    Sessions().save(state)

    async def work(client):
        assert (await answer(client, "session_state"))["found"] is False
        assert (await answer(client, "session_state", session_id="s-1"))["found"] is False
        assert "private" not in (await client.read_resource("remanence://briefing")).contents[0].text

    member("ann").having(work)


def test_a_broken_store_gives_a_clean_error(server):
    token = server.token_for("acme", "lab", "WRITE", member="ann")
    control = server.service.control
    org = control.organization("acme").id
    file = server.settings.data / org / f"{control.workspace(org, 'lab').id}.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"this is no database, and it is long enough to be taken for one" * 100)
    talk = Talk.http(server, "lab", token)

    async def work(client):
        for tool, arguments in (("recall", {"query": "x"}), ("remember", {"text": "x"}), ("list_recent", {})):
            told = await refusal(client, tool, **arguments)
            assert told == "the store or the embedder does not answer; try again"
        with pytest.raises(MCPError, match="does not answer"):
            await client.read_resource("remanence://briefing")
        assert len((await client.list_tools()).tools) == 12

    talk.having(work)


def test_a_server_without_the_sdk_says_what_is_missing(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    client = server.client_for("acme", "lab", "READ")
    for _ in range(2):
        refused = client.post("/workspaces/lab/mcp", json=RECALL, headers=ACCEPT)
        assert refused.status_code == 501
        assert 'pip install "rmem[mcp]"' in refused.json()["error"]


def test_memories_of_mcp_are_those_of_the_other_routes(lasting, member):
    kept = member("ann").call("remember", text="The cache is cold on Mondays")
    client = lasting.client_for("acme", member.workspace, "READ")
    told = client.get(f"/workspaces/{member.workspace}/memories/{kept['id']}").json()
    assert told["place"] == f"repo:{ETL}"
    assert told["contents"]["sources"][0]["author"] == f"ann-{member.workspace}@acme.io"


def test_requests_that_are_no_protocol_are_refused(lasting):
    client = lasting.client_for("acme", "lab", "READ")
    path = "/workspaces/lab/mcp"
    assert client.post(path, content=b"{", headers={**ACCEPT, "Content-Type": "application/json"}).status_code == 400
    form = client.post(path, content=b"a=b", headers={**ACCEPT, "Content-Type": "application/x-www-form-urlencoded"})
    assert form.json() == {"error": "the body must be JSON, with Content-Type: application/json"}
    assert client.post(path, json=RECALL, headers={"Accept": "text/html"}).status_code == 406
    unknown = client.post(path, json={**RECALL, "method": "nonesuch"}, headers=ACCEPT)
    assert unknown.json()["error"]["code"] == -32601


def test_a_server_stops_while_a_client_is_there(server_with):
    server = server_with()
    token = server.token_for("acme", "lab", "WRITE", member="ann")
    talk = Talk.http(server, "lab", token)
    talk.call("remember", text="Kept before the server stopped")
    server._uvicorn.should_exit = True
    server._thread.join(30)
    assert not server._thread.is_alive()
    files = list(server.settings.data.glob("*/*.db"))
    with Brain(str(files[0])) as brain:
        assert brain.memories()[0].text == "Kept before the server stopped"
