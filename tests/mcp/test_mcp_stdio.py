"""`rmem mcp` as a coding agent starts it: a process of its own on standard input and output."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp.shared.exceptions import MCPError
from mcp_clients import MODERN, Talk, answer, clone, refusal

from rmem import Brain
from rmem.mcp.host import agent_of
from rmem.team.login import Login, keep
from rmem.team.sessions import Sessions, SessionState


def entries():
    with Brain() as brain:
        return [(one.who, one.action, one.memory, one.detail) for one in brain.store.audit(limit=1000)]


@pytest.mark.parametrize(
    ("client", "agent"),
    [
        ("codex-mcp-client", "codex"),
        ("Claude Code", "claude-code"),
        ("cursor-vscode", "cursor"),
        ("gemini-cli-mcp-client", "gemini"),
        ("github-copilot-developer", "copilot"),
        ("qwen-cli-mcp-client-remanence", "qwen"),
        ("Kiro CLI", "kiro"),
        ("kilo", "kilo"),
        ("Zed", "zed"),
        ("example-client", "example-client"),  # not Amp
        ("", "mcp"),
        (None, "mcp"),
    ],
)
def test_a_client_is_known_by_the_words_of_its_name(client, agent):
    assert agent_of(client) == agent


def test_what_an_agent_does_is_written_down_with_its_name(tmp_path):
    async def work(client):
        kept = await answer(client, "remember", text="Use uv, never pip", kind="preference")
        found = await answer(client, "recall", query="is it uv or pip")
        await answer(client, "feedback", recall_id=found["recall_id"], id=kept["id"])
        await answer(client, "get_memory", id=kept["id"])
        await client.read_resource("remanence://briefing")
        await answer(client, "forget", id=kept["id"])
        return kept["id"]

    id = Talk.stdio(clone(tmp_path, "ann"), name="codex-mcp-client", mode=MODERN).having(work)
    done = [(who, action, detail) for who, action, memory, detail in reversed(entries()) if memory == id]
    assert [action for _, action, _ in done] == [
        "remember", "recall", "feedback", "read", "inject", "ask to forget", "forget",
    ]  # fmt: skip
    assert {who for who, _, _ in done} == {"ann@acme.io"}
    for _, action, detail in done:
        if action != "forget":
            assert (detail["agent"], detail["origin"]) == ("codex", "mcp stdio"), action
    assert "Use uv" not in json.dumps(done)


def test_two_agents_at_once_in_two_clones_share_one_memory(tmp_path):
    ann, bob = Talk.stdio(clone(tmp_path, "ann")), Talk.stdio(clone(tmp_path, "bob"), name="cursor-vscode")

    async def work():
        async with ann.client() as one, bob.client() as two:
            wrote = [
                answer(client, "remember", text=f"Worker {number} of {name} listens on socket {number * 7919}")
                for number in range(8)
                for name, client in (("ann", one), ("bob", two))
            ]
            kept = await asyncio.gather(*wrote)
            assert len({memory["id"] for memory in kept}) == 16
            mine = await answer(one, "remember", text="My own notes are in notes.txt", scope="personal")
            for client, expected in ((one, 17), (two, 16)):
                assert len((await answer(client, "list_recent", limit=100))["memories"]) == expected
                found = await answer(client, "recall", query="notes.txt", limit=50)
                assert (mine["id"] in {hit["id"] for hit in found["memories"]}) == (client is one)
            assert "there is no memory" in await refusal(two, "get_memory", id=mine["id"])
            listed = (await answer(one, "list_recent", limit=100))["memories"]
            whole = [await answer(one, "get_memory", id=memory["id"]) for memory in listed]
            by = {memory["author"]: memory["agent"] for memory in whole}
            assert by == {"ann@acme.io": "claude-code", "bob@acme.io": "cursor"}

    asyncio.run(work())


def test_a_folder_without_git_has_a_personal_memory(tmp_path):
    folder = tmp_path / "plain"
    folder.mkdir()

    async def work(client):
        kept = await answer(client, "remember", text="The printer is called Otto", files=["a.txt"])
        assert kept["scope"] == "personal"
        found = await answer(client, "recall", query="name of the printer")
        assert found["memories"][0]["id"] == kept["id"]
        assert (await answer(client, "file_history", path="a.txt"))["memories"][0]["id"] == kept["id"]
        assert (await answer(client, "session_state"))["found"] is False
        assert "outside any repository" in await refusal(client, "get_memory", id="nonesuch")
        assert (await client.read_resource("remanence://briefing")).contents

    Talk.stdio(folder).having(work)


def test_a_broken_store_is_told_where_the_agent_can_read_it(tmp_path):
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database, and it is long enough to be taken for one" * 100)
    folder = clone(tmp_path, "ann")

    async def work(client):
        assert len((await client.list_tools()).tools) == 12
        for tool, arguments in (("recall", {"query": "x"}), ("remember", {"text": "x"})):
            assert "broken.db" in await refusal(client, tool, **arguments)
        with pytest.raises(MCPError, match=r"broken\.db"):
            await client.read_resource("remanence://briefing")

    Talk.stdio(folder, "--store", str(broken)).having(work)
    assert broken.read_bytes().startswith(b"this is no database")


def test_sessions_files_and_wishes_of_the_project_count(tmp_path):
    folder = clone(tmp_path, "ann")
    state = SessionState(
        "claude-code", "s-1", repository="github.com/acme/etl", task="Make the import faster", plan=["measure", "fix"]
    )
    Sessions().save(state)
    keep(Login("http://127.0.0.1:9", "lab", "acme", "ann@acme.io"), "a token of a server that is not there")
    (folder / "pool.py").write_text("".join(f"def f{n}():\n    return {n}\n" for n in range(40)))
    secret = "AKIAIOSFODNN7EXAMPLE"

    async def work(client):
        for told in (await answer(client, "session_state"), await answer(client, "session_state", session_id="s-1")):
            assert told["found"]
            assert told["state"]["task"] == "Make the import faster"
            assert told["state"]["plan"] == ["measure", "fix"]
        assert "Make the import faster" in (await client.read_resource("remanence://briefing")).contents[0].text
        text = f"The pool deadlocks at ten workers; the key is {secret}, says ann@acme.io"
        kept = await answer(client, "remember", text=text, files=[str(folder / "pool.py")])
        told = await answer(client, "get_memory", id=kept["id"])
        assert told["files"] == ["pool.py"]
        assert secret not in told["text"]
        assert "ann@acme.io" in told["text"]
        assert "stale" not in told

        (folder / ".rmem.toml").write_text('scope = "personal"\n')
        assert (await answer(client, "remember", text="Only for me"))["scope"] == "personal"
        (folder / ".rmem.toml").write_text("capture = false\n")
        assert "opted out" in await refusal(client, "remember", text="Not for anybody")
        assert "opted out" in await refusal(client, "forget", id=kept["id"])
        assert (await answer(client, "recall", query="deadlock"))["memories"]
        (folder / ".rmem.toml").write_text("recall = false\n")
        for tool, arguments in (("recall", {"query": "x"}), ("list_recent", {}), ("session_state", {})):
            assert "opted out" in await refusal(client, tool, **arguments), tool
        assert [str(one.uri) for one in (await client.list_resources()).resources] == ["remanence://briefing"]
        with pytest.raises(MCPError, match="opted out"):
            await client.read_resource("remanence://briefing")

    Talk.stdio(folder).having(work)
