"""Failures of real tools are failures, successes are successes, and an error is named by its own line, in the words of
every coding agent. The corpus was made by running the tools: `outputs/make.py`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from rmem import Brain
from rmem.team.capture import Capture
from rmem.team.dialects import dialect
from rmem.team.outcomes import has_failed, headline

sys.path.insert(0, str(Path(__file__).parent / "outputs"))
from wrapping import (
    AGENTS,
    claude_code,
    codex,
    codex_item,
    codex_line,
    copilot,
    copilot_lately,
    gemini,
    gemini_untrusted,
    rows,
)

CORPUS = rows()
TEST = [row for row in CORPUS if row["part"] == "test"]
WITH_CODE = sorted(set(AGENTS) - {"cursor", "codex"})


def row(command: str, exit: int, output: str):
    return {"id": 1, "command": command, "exit": exit, "output": output}


def judged(agent, told):
    """Whether a command failed and how its error is called, as its agent tells it."""
    event = dialect(agent).read(*AGENTS[agent](told))
    return has_failed(event.command, event.output, event.failed), headline(event.output)


def shares(agent, part):
    outcomes = [judged(agent, one)[0] == one["failed"] for one in part]
    names = [bool(re.search(one["error"], judged(agent, one)[1])) for one in part if one["failed"]]
    return sum(outcomes) / len(outcomes), sum(names) / len(names)


def test_the_corpus_is_large_and_has_no_path_of_the_machine_that_made_it():
    failing = sum(one["failed"] for one in CORPUS)
    assert len(CORPUS) >= 120
    assert 0.4 < failing / len(CORPUS) < 0.65
    assert len(TEST) >= 60
    assert not re.search(r"/tmp/\w|/root/|/work/|/opt/", "".join(one["output"] for one in CORPUS))


@pytest.mark.parametrize("agent", WITH_CODE)
def test_what_agents_that_tell_the_exit_code_ran_is_judged_rightly(agent):
    outcomes, names = shares(agent, TEST)
    assert outcomes >= 0.99
    assert names >= 0.95


def test_what_gemini_marks_as_untrusted_is_judged_like_the_rest():
    for one in TEST:
        plain, marked = (dialect("gemini").read(*told(one)) for told in (gemini, gemini_untrusted))
        assert (marked.failed, marked.output) == (plain.failed, plain.output)


def test_both_lines_in_which_copilot_tells_the_exit_code_are_read():
    for one in TEST:
        before, lately = (dialect("copilot").read(*told(one)) for told in (copilot, copilot_lately))
        assert lately.failed is not None
        assert (lately.failed, lately.output) == (before.failed, before.output)


def test_what_hooks_told_gemini_is_no_part_of_the_prompt():
    said = "<hook_context>From the team memory:\n\nRules of the team:\n- Always squash.</hook_context>\n\nFix the pool."
    event = dialect("gemini").read("BeforeAgent", {"session_id": "s", "cwd": "/srv/project", "prompt": said})
    assert event.prompt == "Fix the pool."


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        ('"Fix the pool, and never use \\"any\\" here."', 'Fix the pool, and never use "any" here.'),
        ('"pool" or "queue"', '"pool" or "queue"'),
        ('Say "pool"', 'Say "pool"'),
    ],
)
def test_marks_that_opencode_puts_around_a_prompt_are_no_part_of_it(given, prompt):
    payload = {"sessionID": "s", "directory": "/srv/project", "prompt": given}
    assert dialect("opencode").read("chat.message", payload).prompt == prompt


@pytest.mark.parametrize("agent", ["codex", "cursor"])
def test_without_an_exit_code_the_output_decides(agent):
    outcomes, names = shares(agent, TEST)
    assert outcomes >= 0.92
    assert names >= 0.95


@pytest.fixture
def capture(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with Brain(tmp_path / "team.db", privacy="default", durability="normal") as brain:
        yield Capture(brain)


def take_in(capture, agent, told):
    capture.take(dialect(agent).read(*told))


def last_output(capture, agent):
    return capture.sessions.load(agent, "s").outputs[-1]


def test_the_exit_code_of_codex_is_read_from_its_transcript(capture, tmp_path):
    transcript = tmp_path / "rollout.jsonl"
    silent = row("gcc -o e e.c && ./e", 139, "")
    name, payload = codex(silent)
    call = {"type": "function_call", "name": "exec_command", "arguments": json.dumps({"cmd": silent["command"]}),
            "call_id": "call_1"}  # fmt: skip
    transcript.write_text(json.dumps({"type": "response_item", "payload": call}) + "\n")

    def write_later():
        time.sleep(0.3)  # Codex waits for its hooks before it writes
        with transcript.open("a") as file:
            file.write(codex_line(silent))

    writer = threading.Thread(target=write_later)
    writer.start()
    take_in(capture, "codex", (name, {**payload, "transcript_path": str(transcript)}))
    writer.join()
    output = last_output(capture, "codex")
    assert (output["failed"], output["output"]) == (True, "Exit code 139")


@pytest.mark.parametrize("line", [codex_line, codex_item])
def test_every_outcome_of_codex_is_right_where_its_transcript_tells_it(tmp_path, line):
    from rmem.team.capture import read_transcript

    wrong = []
    for one in TEST:
        transcript = tmp_path / f"{one['id']}.jsonl"
        arguments = json.dumps({"cmd": one["command"]})
        call = {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": f"call_{one['id']}"}
        transcript.write_text(json.dumps({"type": "response_item", "payload": call}) + "\n" + line(one))
        name, payload = codex(one)
        told = dialect("codex").read(name, {**payload, "transcript_path": str(transcript)})
        event, _ = read_transcript(told, 2.0)
        if has_failed(event.command, event.output, event.failed) != one["failed"]:
            wrong.append(one["command"])
    assert wrong == []


def test_a_transcript_that_never_tells_does_not_hold_up_the_rest(capture, tmp_path, monkeypatch):
    monkeypatch.setattr("rmem.team.capture._PATIENCE", 0.2)
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text("")
    name, payload = codex(row("make build", 2, "make: *** [Makefile:3: build] Error 2\n"))
    start = time.monotonic()
    take_in(capture, "codex", (name, {**payload, "transcript_path": str(transcript)}))
    assert time.monotonic() - start < 2
    assert last_output(capture, "codex")["failed"]


def test_the_headline_of_claude_code_is_the_error_and_not_its_exit_code(capture):
    told = row("python key.py", 1, "Traceback (most recent call last):\n  File \"key.py\", line 4\nKeyError: 'code'\n")
    assert judged("claude-code", told) == (True, "KeyError: 'code'")
    take_in(capture, "claude-code", claude_code(told))
    (failure,) = capture.sessions.load("claude-code", "s").failures.values()
    assert failure["name"] == "KeyError: 'code'"


def test_what_claude_code_interrupted_or_sent_to_the_background_is_no_outcome():
    _, payload = claude_code(row("make serve", 0, "listening"))
    for more in ({"interrupted": True}, {"backgroundTaskId": "b1"}):
        assert dialect("claude-code").read("PostToolUse", {**payload, "tool_response": {"stdout": "", **more}}) is None


def test_the_exit_code_of_gemini_is_not_part_of_what_was_printed():
    name, payload = gemini(row("tsc -p .", 2, "a.ts(2,3): error TS2322: Type 'number'\n"))
    event = dialect("gemini").read(name, payload)
    assert (event.failed, event.output) == (True, "a.ts(2,3): error TS2322: Type 'number'")
    name, payload = gemini(row("cat notes.md", 0, "Exit Code: 2 means that types are wrong\nError: so\n"))
    event = dialect("gemini").read(name, payload)
    assert (event.failed, event.output) == (False, "Exit Code: 2 means that types are wrong\nError: so")


def test_a_filter_hides_no_failure_and_no_match_is_none():
    assert judged("claude-code", row("pytest -q | tail -1", 0, "1 failed, 3 passed in 0.1s"))[0]
    assert not judged("opencode", row("grep -rn nosuch .", 1, ""))[0]
    assert judged("opencode", row("grep x nowhere", 2, "grep: nowhere: No such file or directory"))[0]
    assert not judged(
        "copilot", row("cat app.log", 0, "ERROR: failed\nTraceback (most recent call last):\nKeyError: 1")
    )[0]


def test_the_patch_of_codex_names_its_files():
    patch = "*** Begin Patch\n*** Update File: etl/pool.py\n@@\n-a\n+b\n*** Add File: etl/new.py\n+c\n*** End Patch"
    payload = {"session_id": "s", "cwd": "/x", "tool_name": "apply_patch", "tool_use_id": "c",
               "tool_input": {"command": patch}, "tool_response": "Success. Updated files."}  # fmt: skip
    event = dialect("codex").read("PostToolUse", payload)
    assert (event.action, list(event.files)) == ("edit", ["etl/pool.py", "etl/new.py"])


def test_the_corpus_can_be_made_again(tmp_path):
    """One case of it, by the script that made all."""
    case = "make.Case('python -c 1/0', {}, 'Zero')"
    code = f"import make, pathlib, sys; print(make.run({case}, pathlib.Path(sys.argv[1]), None))"
    folder = Path(__file__).parent / "outputs"
    told = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "p"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "ZeroDivisionError" in told.stdout
