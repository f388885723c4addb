"""What the skill and the instructions tell agents is what happens: each promise is tried on the real server."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

from mcp_clients import Talk, answer, clone

from rmem.mcp.server import INSTRUCTIONS
from rmem.team import spool
from rmem.team.install.tool import packaged_text

SKILL = " ".join(packaged_text("skill.md").split())


def hook(event: str, payload: dict) -> None:
    command = [sys.executable, "-m", "rmem", "hook", "claude-code", event]
    subprocess.run(command, input=json.dumps(payload), text=True, check=True, capture_output=True, timeout=60)


def taken_in() -> None:
    end = time.monotonic() + 30
    while spool.waiting():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_skill_and_the_instructions_name_only_what_there_is(tmp_path):
    async def work(client):
        tools = {one.name: one.input_schema["properties"] for one in (await client.list_tools()).tools}
        words = {"remanence", "stale", "error_fix", "decision", "codebase", "preference", "supersedes", "recall_id"}
        named = set(re.findall(r"`([a-z_]+)`", SKILL + INSTRUCTIONS)) - words - {"session"}
        assert named == set(tools) - {"forget"}
        for tool, argument in re.findall(r"`(\w+)\((\w+)=", SKILL):
            assert argument in tools[tool]
        kinds = set(re.findall(r"^\| `(\w+)`", packaged_text("skill.md"), re.MULTILINE))
        assert kinds <= set(tools["remember"]["kind"]["enum"])
        assert "supersedes" in tools["remember"]
        assert {"recall_id", "id"} <= set(tools["feedback"])
        uris = {str(one.uri) for one in (await client.list_resources()).resources}
        assert set(re.findall(r"remanence://\w+", INSTRUCTIONS)) <= uris

    Talk.stdio(clone(tmp_path, "ann")).having(work)


def test_each_sentence_of_the_skill_holds(tmp_path, monkeypatch):
    monkeypatch.setenv("RMEM_KEEPER_IDLE", "5")
    folder = clone(tmp_path, "ann")
    (folder / "pool.py").write_text("".join(f"def f{n}():\n    return {n}\n" for n in range(40)))
    for words in ("add .", "-c user.name=ann commit -q -m first"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    base = {"session_id": "s-1", "cwd": str(folder)}

    def ran(number: int, event: str, **more) -> None:
        use = {"tool_name": "Bash", "tool_use_id": str(number), "tool_input": {"command": "pytest tests/test_pool.py"}}
        hook(event, {**base, **use, **more})

    hook("UserPromptSubmit", {**base, "prompt": "Make the pool of connections faster, please"})
    ran(1, "PostToolUseFailure", error="Exit code 1\nE   PoolError: pool exhausted\nFAILED tests/test_pool.py::test_a")
    edit = {"file_path": str(folder / "pool.py"), "old_string": "return 1", "new_string": "return release()"}
    edited = {"tool_name": "Edit", "tool_use_id": "2", "tool_input": edit, "tool_response": {"success": True}}
    hook("PostToolUse", {**base, **edited})
    ran(3, "PostToolUse", tool_response={"stdout": "1 passed", "stderr": ""})
    taken_in()

    async def work(client):
        # "Hooks record your commands, edits and results by themselves"
        found = await answer(client, "recall", query="PoolError: pool exhausted in tests/test_pool.py")
        best = found["memories"][0]
        # "A hit is one line with an id, the day it was learned and a relevance."
        assert set(best) == {"id", "line", "date", "relevance"}
        assert "\n" not in best["line"]
        # "`get_memory` tells all of it: who learned it, at which commit, the error and the fix."
        whole = await answer(client, "get_memory", id=best["id"])
        assert whole["author"] == "ann@acme.io"
        assert {"commit", "error", "fix"} <= set(whole)
        # "One that is marked `stale` is about a file that is gone or changed a lot since"
        (folder / "pool.py").unlink()
        subprocess.run(["git", "-c", "user.name=ann", "commit", "-qam", "second"], cwd=folder, check=True)
        found = await answer(client, "recall", query="PoolError: pool exhausted in tests/test_pool.py", weak=True)
        assert "pool.py is gone" in next(one["stale"] for one in found["memories"] if one["id"] == best["id"])
        # "If nothing is relevant enough, nothing is returned"
        assert (await answer(client, "recall", query="translate the user guide into french"))["memories"] == []
        # "`file_history` … (a part of its path will do), `who_knows` whom to ask, `list_recent` what was learned last"
        history = await answer(client, "file_history", path="pool")
        assert best["id"] in [one["id"] for one in history["memories"]]
        experts = await answer(client, "who_knows", topic="PoolError: pool exhausted")
        assert [one["author"] for one in experts["experts"]] == ["ann@acme.io"]
        old = await answer(client, "remember", text="Retries live in the callers of the client", kind="decision")
        assert (await answer(client, "list_recent"))["memories"][0]["id"] == old["id"]
        # "What stands between `<private>` and `</private>` is not kept."
        new = await answer(
            client,
            "remember",
            text="Retries live in the client<private> since Bob left</private>, because callers doubled them",
            kind="decision",
            supersedes=old["id"],
        )
        assert "Bob" not in (await answer(client, "get_memory", id=new["id"]))["text"]
        # "name the old one in `supersedes`: it is then found no more"
        found = await answer(client, "recall", query="where do retries live, client or callers", weak=True, limit=50)
        assert new["id"] in [one["id"] for one in found["memories"]]
        assert old["id"] not in [one["id"] for one in found["memories"]]
        # "It tells the task, plan, open files, edits and failures of the latest session …"
        state = (await answer(client, "session_state"))["state"]
        assert state["task"] == "Make the pool of connections faster, please"
        assert state["edits"][0]["file"] == "pool.py"
        assert {"plan", "open_files", "failures"} <= set(state)
        # "There is nothing to write."
        tools = {one.name: one for one in (await client.list_tools()).tools}
        assert tools["session_state"].annotations.read_only_hint
        # "Say so, with the `recall_id` of the answer and the id of the memory. The team measures recall by it."
        await answer(client, "feedback", recall_id=found["recall_id"], id=new["id"])

    Talk.stdio(folder).having(work)
    words = [sys.executable, "-m", "rmem", "eval", "online", "--json"]
    told = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert (told["overall"]["recalls"], told["overall"]["hits"]) == (1, 1)
