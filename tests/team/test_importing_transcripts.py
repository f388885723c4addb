"""Transcripts of earlier sessions become memories: the same ones, however often and in however many parts they are
read."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from recorded_transcripts import FIRST, PATCH, SECRET, Claude, Codex, carrier_session, pool_session

from rmem import Brain
from rmem.errors import InputError
from rmem.team.importers.run import import_transcripts
from rmem.team.importers.transcript_lines import LONGEST_LINE
from rmem.team.importers.transcripts import read_transcript


@pytest.fixture
def clone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in ("init -q -b main", "remote add origin git@github.com:acme/etl.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


@pytest.fixture
def kept(tmp_path):
    """Where the transcripts are."""
    folder = tmp_path / "transcripts"
    folder.mkdir()
    return folder


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db", privacy="default", durability="normal") as brain:
        yield brain


def read(brain, kept, agent="claude-code"):
    return import_transcripts(brain, agent, folder=kept)


def of_kind(brain, kind):
    return brain.memories({"type": kind}, limit=None)


def state(brain):
    """All that an import leaves behind."""
    return sorted(
        (memory.memory_id, memory.text, memory.contents.get("count"), json.dumps(memory.contents.get("sources")))
        for memory in brain.memories(limit=None)
    )


def test_an_error_and_its_fix_are_found_with_who_where_and_when(brain, clone, kept):
    carrier_session("s1", str(clone)).write(kept / "-clone" / "s1.jsonl")
    assert read(brain, kept)[:2] == (1, 0)
    (fix,) = of_kind(brain, "error_fix")
    assert "KeyError: 'carrier_code'" in fix.text
    assert 'row.get("carrier_code")' in fix.contents["fix"]
    assert fix.contents["error"].startswith("E   KeyError")
    assert fix.contents["files"] == ["etl/carrier.py"]
    assert fix.contents["repository"] == "github.com/acme/etl"
    assert fix.contents["branch"] == "fix/carrier"
    assert (fix.actor, fix.session, fix.agent_id) == ("ann@acme.io", "s1", "claude-code")
    assert FIRST < fix.timestamp < FIRST + 60


def test_only_what_the_user_said_is_a_wish(brain, clone, kept):
    carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    read(brain, kept)
    wishes = {memory.text for memory in of_kind(brain, "preference")}
    assert wishes == {"Please use row.get for optional columns.", "Never commit to main directly, ok."}


def test_what_was_asked_to_be_remembered_is_a_wish(brain, clone, kept):
    told = Claude("s1", str(clone))
    told.says("<user-memory-input>migrations are written by hand</user-memory-input>")
    told.says("<div> tags must never be nested deeper than five levels")
    told.write(kept / "s1.jsonl")
    read(brain, kept)
    wishes = {memory.text for memory in of_kind(brain, "preference")}
    assert wishes == {
        "Remember that migrations are written by hand",
        "<div> tags must never be nested deeper than five levels",
    }


def test_the_session_is_summed_up_with_its_own_time(brain, clone, kept):
    carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    read(brain, kept)
    (task,) = of_kind(brain, "task")
    assert "Changed: etl/carrier.py\n" in task.text
    assert "Fixed: KeyError: 'carrier_code'" in task.text
    assert task.session == "s1"
    assert FIRST < task.timestamp < FIRST + 60


def test_what_was_refused_or_runs_in_the_background_did_not_happen(clone, kept):
    path = carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    ran = [told.event.command for told in read_transcript("claude-code", path) if told.event.command]
    assert ran == ["pytest tests/test_carrier.py -v", "pytest tests/test_carrier.py", "curl https://api.acme.io/v1"]


def test_secrets_are_masked(brain, clone, kept):
    told = carrier_session("s1", str(clone))
    told.says(f"Always send the token {SECRET} with every request")
    told.fails("make deploy", f"error: bad token {SECRET}")
    told.write(kept / "s1.jsonl")
    read(brain, kept)
    everything = json.dumps([memory.to_dict() for memory in brain.memories(limit=None)], default=str)
    assert "bad token" in everything
    assert SECRET not in everything


def test_subagents_work_but_do_not_wish(brain, clone, kept):
    told = Claude("s1", str(clone), isSidechain=True, agentId="af1ff21")
    told.says("Always search the whole repository and never stop early")
    told.fails("npm run build", "src/a.ts(3,1): error TS2304: Cannot find name 'x'.")
    told.edits(f"{clone}/src/a.ts", "x", "y")
    told.passes("npm run build", "built in 3.2s")
    told.write(kept / "-clone" / "s1" / "subagents" / "agent-af1ff21.jsonl")
    told.write(kept / "-clone" / "s1" / "subagents" / "agent-acompact-af1ff22.jsonl")
    assert read(brain, kept).read == 1
    assert [memory.session for memory in of_kind(brain, "error_fix")] == ["s1"]
    assert of_kind(brain, "preference") == of_kind(brain, "task") == []


@pytest.mark.parametrize("how", ["shell", "shell_command", "exec_command"])
def test_every_way_in_which_codex_tells_an_exit_code(brain, clone, kept, how):
    told = Codex("c1", str(clone))
    told.says("Make the linter happy with the pool module again")
    getattr(told, how)("ruff check etl", "etl/pool.py:1:1: F401 imported but unused", 1)
    told.patches(PATCH)
    getattr(told, how)("ruff check etl", "no complaints about error handling", 0)
    told.write(kept / "2026" / "03" / "02" / "rollout-2026-03-02T09-00-00-c1.jsonl")
    read(brain, kept, "codex")
    (fix,) = of_kind(brain, "error_fix")
    assert "F401" in fix.text
    assert "Wall time" not in fix.text
    assert fix.contents["files"] == ["etl/pool.py"]


def test_codex_sessions_become_memories_too(brain, clone, kept):
    pool_session("c1", str(clone)).write(kept / "2026" / "03" / "02" / "rollout-2026-03-02T09-00-00-c1.jsonl")
    read(brain, kept, "codex")
    (fix,) = of_kind(brain, "error_fix")
    assert "TimeoutError: QueuePool limit reached" in fix.text
    assert "Pool(20)" in fix.contents["fix"]
    assert (fix.session, fix.agent_id, fix.contents["branch"]) == ("c1", "codex", "pool")
    assert fix.contents["commit"].startswith("0123456789")
    assert [memory.text for memory in of_kind(brain, "preference")] == ["We always keep pools below 50 connections."]
    (task,) = of_kind(brain, "task")
    assert "The nightly job runs out of connections" in task.text


def test_a_patch_by_shell_is_an_edit_and_a_refused_one_is_none(clone, kept):
    told = Codex("c1", str(clone))
    told.shell(f"apply_patch <<'EOF'\n{PATCH}EOF", "Success. Updated the following files:\nM etl/pool.py", 0)
    told.patches(PATCH.replace("pool.py", "other.py"), "apply_patch verification failed: Failed to find expected lines")
    told.calls("shell_command", {"command": "rm -rf build"}, "exec command rejected by user")
    path = told.write(kept / "rollout-c1.jsonl")
    events = [one.event for one in read_transcript("codex", path)]
    edited = [list(event.files) for event in events if event.action == "edit"]
    assert edited == [[f"{clone}/etl/pool.py"]]
    assert "rm -rf build" not in [event.command for event in events]


def test_a_command_that_went_on_ends_when_it_ends(clone, kept):
    told = Codex("c1", str(clone))
    told.calls(
        "exec_command", {"cmd": "make test"}, "Wall time: 10 seconds\nProcess running with session ID 7\nOutput:\none"
    )
    told.calls(
        "write_stdin", {"session_id": 7, "chars": ""}, "Wall time: 9 s\nProcess exited with code 2\nOutput:\nerror: two"
    )
    path = told.write(kept / "rollout-c1.jsonl")
    (event,) = [one.event for one in read_transcript("codex", path)]
    assert (event.command, event.failed, event.output) == ("make test", True, "one\nerror: two")


def test_extended_histories_tell_how_commands_ended_once(clone, kept):
    told = Codex("c1", str(clone))
    call = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"make"}', "call_id": "call_x"}
    end = {"type": "exec_command_end", "call_id": "call_x", "command": ["bash", "-lc", "make"], "cwd": str(clone)}
    told.line("response_item", call)
    told.line("event_msg", {**end, "exit_code": 2, "aggregated_output": "error: no rule"})
    told.line("response_item", {"type": "function_call_output", "call_id": "call_x", "output": "error: no rule"})
    path = told.write(kept / "rollout-c1.jsonl")
    assert [(one.event.command, one.event.failed) for one in read_transcript("codex", path)] == [("make", True)]


def test_commands_and_edits_that_a_script_made_are_read_from_the_finished_items(brain, clone, kept):
    told = Codex("c1", str(clone))
    told.message("The nightly job runs out of connections, please look into it.")
    for number, code in enumerate((1, 0)):
        script = {"type": "custom_tool_call", "call_id": f"call_{number}", "namespace": "functions", "name": "exec"}
        told.line(
            "response_item", {**script, "input": 'text(await tools.exec_command({"cmd": "pytest tests/pool.py"}))'}
        )
        command = {
            "type": "CommandExecution",
            "id": f"exec-{number}",
            "command": ["/bin/bash", "-lc", "pytest tests/pool.py"],
            "cwd": clone.as_uri(),
            "status": "failed" if code else "completed",
            "exit_code": code,
            "aggregated_output": "E   TimeoutError: QueuePool limit reached\n" if code else "1 passed\n",
        }
        told.line("event_msg", {"type": "item_completed", "item": command})
        if code:
            diff = "@@ -1,1 +1,1 @@\n-pool = Pool(5)\n+pool = Pool(20)\n"
            edit = {
                "type": "FileChange",
                "id": "exec-e",
                "changes": {f"{clone}/etl/pool.py": {"type": "update", "unified_diff": diff}},
            }
            told.line("event_msg", {"type": "item_completed", "item": {**edit, "status": "completed"}})
            told.line("event_msg", {"type": "item_completed", "item": {**edit, "id": "exec-d", "status": "declined"}})
    told.write(kept / "rollout-c1.jsonl")
    read(brain, kept, "codex")
    (fix,) = [one for one in brain.memories() if one.type == "error_fix"]
    assert "TimeoutError: QueuePool limit reached" in fix.text
    assert "changed etl/pool.py: `pool = Pool(5)` → `pool = Pool(20)`" in fix.text


def test_older_codex_transcripts_without_envelopes(brain, clone, kept):
    lines = [
        {"id": "old", "timestamp": "2025-08-01T10:00:00.000Z", "instructions": None, "git": {"branch": "old"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": f"<environment_context>\n<cwd>{clone}</cwd>\n</environment_context>"}]},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "We never use print in library code here"}]},
        {"type": "local_shell_call", "call_id": "a", "status": "completed",
         "action": {"type": "exec", "command": ["bash", "-lc", "make"]}},
        {"type": "function_call_output", "call_id": "a",
         "output": json.dumps({"output": "error: no rule", "metadata": {"exit_code": 2}})},
    ]  # fmt: skip
    (kept / "rollout-old.jsonl").write_text("\n".join(map(json.dumps, lines)))
    read(brain, kept, "codex")
    (wish,) = of_kind(brain, "preference")
    assert (wish.session, wish.contents["repository"]) == ("old", "github.com/acme/etl")
    assert [memory.contents["command"] for memory in of_kind(brain, "tool_output")] == ["make"]


def test_the_prompts_of_subagents_and_of_the_session_a_fork_came_from(clone, kept):
    told = Codex("c2", str(clone), source={"subagent": {"thread_spawn": {"parent_thread_id": "c1"}}})
    told.line("session_meta", {"id": "c1", "cwd": "/elsewhere"})
    told.says("Always look twice and never think")
    told.shell("make", "error: no rule", 2)
    path = told.write(kept / "rollout-c2.jsonl")
    assert [(one.event.session, one.event.command) for one in read_transcript("codex", path)] == [("c2", "make")]


def test_a_request_from_an_editor_is_what_was_asked(clone, kept):
    told = Codex("c1", str(clone))
    told.says("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix the pool")
    path = told.write(kept / "rollout-c1.jsonl")
    assert [one.event.prompt for one in read_transcript("codex", path)] == ["Fix the pool"]


def test_a_folder_that_is_gone_is_known_by_its_address(brain, clone, kept, tmp_path):
    gone = str(tmp_path / "gone" / "etl")
    about = {"git": {"branch": "pool", "repository_url": "https://github.com/Acme/ETL.git"}}
    pool_session("c1", gone, **about).write(kept / "rollout-c1.jsonl")
    read(brain, kept, "codex")
    (fix,) = of_kind(brain, "error_fix")
    assert fix.contents["repository"] == "github.com/acme/etl"
    assert fix.contents["files"] == ["etl/pool.py"]


@pytest.mark.parametrize("gone", ["/nowhere/to/be/found/etl", "C:\\Users\\ann\\etl", ""])
def test_a_folder_that_is_gone_and_has_no_address_is_told_to_nobody_else(brain, clone, kept, gone, monkeypatch):
    monkeypatch.chdir(clone)  # where the import runs does not matter
    carrier_session("s1", gone).write(kept / "s1.jsonl")
    read(brain, kept)
    (fix,) = of_kind(brain, "error_fix")
    if gone:
        assert fix.contents["repository"].startswith(gone.rpartition("/")[2])
        assert fix.place == f"repo:{fix.contents['repository']}"
    else:
        assert "repository" not in fix.contents


def test_a_repository_that_opts_out_is_left_alone(brain, clone, kept):
    (clone / ".rmem.toml").write_text("capture = false\n")
    carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    read(brain, kept)
    assert brain.store.count() == 0


def test_memories_about_files_that_are_gone_already_are_out_of_date(brain, clone, kept):
    from rmem.team.identity import repository
    from rmem.team.memory import TeamMemory
    from rmem.team.review import out_of_date

    carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    read(brain, kept)
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=n@acme.io", "commit", "-q", "--allow-empty", "-m", "one"],
        cwd=clone, check=True,
    )  # fmt: skip
    stale = out_of_date(TeamMemory(brain, author="ann@acme.io"), repository(clone))
    assert {one.stale for one in stale} == {"etl/carrier.py is gone"}


def test_broken_and_endless_lines_are_passed_over(brain, clone, kept):
    path = carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    whole = path.read_bytes()
    noise = [b"\xff\xfe not json", b"[1,2]", b'"text"', b'{"type":"user"', b'{"type":"user","message":[]}', b"null"]
    noise += [b'{"type":"user","message":{"role":"user","content":[null,3,{"type":"tool_result"}]}}', b"[" * 100_000]
    noise += [b'{"type":"user","message":{"content":"' + b"x" * (LONGEST_LINE + 10) + b'"}}']
    path.write_bytes(b"\n".join(noise) + b"\n" + whole + b'{"type":"user","message":{"content":"We always')
    (kept / "empty.jsonl").touch()
    assert read(brain, kept).read == 2
    assert len(of_kind(brain, "error_fix")) == 1
    assert len(of_kind(brain, "preference")) == 2


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_lines_of_any_shape_break_nothing(kept, agent):
    odd = [None, 0, "x", [], {}, [{}], {"type": 3}, {"type": "tool_result", "tool_use_id": None}]
    lines = [{"type": kind, "payload": body, "message": {"content": body}, "toolUseResult": body, "attachment": body,
              "timestamp": body, "cwd": body, "sessionId": body}
             for kind in ("user", "assistant", "attachment", "session_meta", "turn_context", "event_msg",
                          "response_item", None) for body in odd]  # fmt: skip
    for kind in ("message", "function_call", "function_call_output", "user_message", "exec_command_end", "reasoning"):
        for body in odd:
            inner = {"type": kind, "role": "user", "call_id": "a", "content": body, "arguments": body, "output": body,
                     "message": body, "command": body, "git": body, "aggregated_output": body}  # fmt: skip
            lines += [{"type": outer, "payload": inner} for outer in ("response_item", "event_msg", "session_meta")]
    (kept / "odd.jsonl").write_text("\n".join(map(json.dumps, lines)))
    list(read_transcript(agent, kept / "odd.jsonl"))


def test_a_second_run_adds_nothing(brain, clone, kept):
    carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    carrier_session("s2", str(clone)).write(kept / "s2.jsonl")
    first = read(brain, kept)
    before = state(brain)
    assert first.memories == len(before)
    assert read(brain, kept)[:3] == (0, 2, 0)
    (kept / "s1.jsonl").touch()  # copied anew, say
    assert read(brain, kept)[:3] == (1, 1, 0)
    assert state(brain) == before


def test_a_transcript_that_grew_adds_only_what_is_new(brain, clone, kept, tmp_path):
    told = carrier_session("s1", str(clone))
    for number in range(70):  # more often than a memory keeps its sources
        told.passes("ruff check .", f"All checks passed in {number}s")
    told.fails("make lint", "error: etl/carrier.py is too long")
    path = told.write(kept / "s1.jsonl")
    read(brain, kept)
    counted = {memory.memory_id: memory.contents["count"] for memory in brain.memories(limit=None)}
    told.edits(f"{clone}/etl/carrier.py", "one = 1", "")
    told.passes("make lint", "fine")
    told.write(path)
    read(brain, kept)
    assert all(brain.get(name).contents["count"] == count for name, count in counted.items())
    new = [memory for memory in brain.memories(limit=None) if memory.memory_id not in counted]
    assert sorted(memory.type for memory in new) == ["error_fix", "task", "tool_output"]
    (task,) = [memory for memory in of_kind(brain, "task") if memory.tags["state"] == "current"]
    assert "Still failing" not in task.text
    # … as if it had been read at once
    with Brain(tmp_path / "other.db", privacy="default", durability="normal") as other:
        read(other, kept)
        assert {row for row in state(other) if row[1][:5] != "Task:"} == {
            row for row in state(brain) if row[1][:5] != "Task:"
        }


def test_a_resumed_session_that_repeats_the_first_one_counts_once(brain, clone, kept):
    told = carrier_session("s1", str(clone))
    told.write(kept / "s1.jsonl")
    copied = [line.replace('"sessionId": "s1"', '"sessionId": "s2"') for line in told.told]
    (kept / "s2.jsonl").write_text("\n".join(copied) + "\n")
    os.utime(kept / "s1.jsonl", (1, 1))
    read(brain, kept)
    assert [memory.contents["count"] for memory in of_kind(brain, "error_fix")] == [1]


def test_killed_in_the_middle_and_run_again_is_the_same_as_one_run(clone, kept, tmp_path):
    for session in range(3):
        told = carrier_session(f"s{session}", str(clone))
        for part in "abcdefghijkl":
            told.fails(f"make {part}", f"error: {part} of {'xyz'[session]}: cannot link")
            told.edits(f"{clone}/{part}.mk", "a", f"link {part} {session}")
            told.passes(f"make {part}", f"linked {part}")
        path = told.write(kept / f"s{session}.jsonl")
        os.utime(path, (session, session))
    command = [sys.executable, "-m", "rmem", "--store", str(tmp_path / "killed.db"), "import", "claude-code"]
    command += ["--from", str(kept), "--json"]
    with Brain(tmp_path / "whole.db", privacy="default", durability="normal") as brain:
        read(brain, kept)
        whole = state(brain)
    for memories in (10, 40):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while process.poll() is None and _count(tmp_path / "killed.db") < memories:
                time.sleep(0.02)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL, "it was done before it was killed"
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["memories"] > 0
    with Brain(tmp_path / "killed.db") as brain:
        assert state(brain) == whole


def _count(path):
    if not path.exists():
        return 0
    import sqlite3

    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            return connection.execute("SELECT count(*) FROM memories").fetchone()[0]
    except sqlite3.OperationalError:
        return 0  # not made yet


def test_progress_is_told(brain, clone, kept):
    for session in ("s1", "s2", "s3"):
        carrier_session(session, str(clone)).write(kept / f"{session}.jsonl")
    told = []
    import_transcripts(brain, "claude-code", folder=kept, on_progress=lambda *done: told.append(done))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_another_store_knows_nothing_of_what_was_read_into_this_one(brain, clone, kept, tmp_path):
    carrier_session("s1", str(clone)).write(kept / "s1.jsonl")
    read(brain, kept)
    with Brain(tmp_path / "other.db", privacy="default") as other:
        assert read(other, kept).memories == brain.store.count()


def test_where_agents_keep_their_transcripts(brain, clone, tmp_path, monkeypatch):
    home = tmp_path / "home"
    carrier_session("s1", str(clone)).write(home / ".claude" / "projects" / "-clone" / "s1.jsonl")
    carrier_session("s2", str(clone)).write(home / ".config" / "claude" / "projects" / "-clone" / "s2.jsonl")
    pool_session("c1", str(clone)).write(home / ".codex" / "sessions" / "2026" / "03" / "02" / "rollout-c1.jsonl")
    pool_session("c2", str(clone)).write(home / ".codex" / "archived_sessions" / "rollout-c2.jsonl")
    assert import_transcripts(brain, "claude-code").read == 2
    assert import_transcripts(brain, "codex").read == 2
    shutil.move(home / ".codex", tmp_path / "other")
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "other"))
    assert import_transcripts(brain, "codex").memories == 0


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_where_there_are_none_it_says_so(brain, clone, kept, agent):
    with pytest.raises(InputError, match=f"no transcripts of {agent} in .*--from"):
        import_transcripts(brain, agent)
    with pytest.raises(InputError, match=f"no transcripts of {agent} in .*transcripts"):
        read(brain, kept, agent)
