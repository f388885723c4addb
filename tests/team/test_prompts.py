"""What users state as rules is kept, what may be one waits, and pasted output and complaints are neither; a session is
about its first request and its plan."""

from __future__ import annotations

import itertools
import subprocess

import pytest

from rmem import Brain
from rmem.team.briefing import Briefing
from rmem.team.capture import Capture
from rmem.team.dialects import dialect
from rmem.team.events import Event, EventKind
from rmem.team.memory import TeamMemory
from rmem.team.prompts import is_request, statements
from rmem.team.review import accept, undecided


def kept(prompt):
    return [(one.text, one.sure) for one in statements(prompt)]


@pytest.mark.parametrize(
    "rule",
    [
        "Always use ruff for formatting here.",
        "Never commit to main directly, ok.",
        "We use pnpm here, not npm.",
        "We never squash commits of other people.",
        "From now on run the linter before you say that you are done.",
        "In this repo, always write the test first.",
        "New migrations must be written by hand.",
        "You should never edit generated files.",
        "I prefer small commits with a reason.",
        "Our convention is snake case for columns.",
        "When you add a route, always add a test for it.",
        "- Prefer composition over inheritance.",
        "Remember that deploys are on Tuesdays.",
        "Exception Messages: Always include a descriptive message when raising exceptions.",
        "✅ Always need a second reviewer for migrations.",
        "We don't deploy on Fridays in this team.",
    ],
)
def test_what_is_stated_as_a_rule_is_one(rule):
    assert kept(f"Please fix the login page now. {rule} Thanks") == [(rule, True)]


@pytest.mark.parametrize(
    "prompt",
    [
        "The import always fails when the file is empty, can you have a look",
        "why does it never finish on my machine",
        "npm warn deprecated inflight@1.0.6: never use this module, it leaks memory",
        "(node:1234) Warning: always pass a callback to this function please",
        "DeprecationWarning: parse() is deprecated, always use load() from now on",
        "It returns None instead of an empty list for new customers",
        "```\nAlways run migrations before you start the server\n```\nthis is what it printed",
        "> We never deploy on Fridays in this team\nwhat do you think of that",
        "we use a dict there and it crashes when the key is missing",
        "2026-03-02 10:00:01 INFO we always retry three times before giving up",
        "Should we always use the cache here?",
        "    # Never call this twice in a row or it breaks",
        "never mind, I found the reason myself just now",
        "We can always add them back later if that is necessary",
        "In the future, attempting to convert a Quantity to a bool will raise ValueError",
        "never called, by design, so that it can be removed",
        "We only really need clearfix, and some kind of style for the header",
        "We don't know what those bases actually are here",
    ],
)
def test_pasted_warnings_complaints_and_questions_are_no_rules(prompt):
    assert [text for text, sure in kept(prompt) if sure] == []


def test_what_may_be_a_rule_is_not_sure():
    assert kept("Please use row.get for optional columns.") == [("Please use row.get for optional columns.", False)]
    assert kept("We use a pool of twenty connections.") == [("We use a pool of twenty connections.", False)]


class Agent:
    def __init__(self, brain, folder):
        self.capture, self.folder = Capture(brain), str(folder)
        self._numbers = itertools.count(1)

    def tell(self, kind, **more):
        number = next(self._numbers)
        self.capture.take(Event(f"e{number}", "claude-code", kind, "s1", self.folder, 1000.0 + number, **more))

    def runs(self, command, output, failed):
        self.tell(EventKind.TOOL, tool="Bash", action="shell", command=command, output=output, failed=failed)


@pytest.fixture
def brain(tmp_path):
    with Brain(tmp_path / "team.db", privacy="default", durability="normal") as brain:
        yield brain


@pytest.fixture
def agent(brain, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in ("init -q -b main", "remote add origin git@github.com:acme/etl.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return Agent(brain, folder)


def briefing(brain, agent):
    start = Event("x", "codex", EventKind.SESSION_START, "s9", agent.folder, 5000.0, source="startup")
    return Briefing(brain).context(start)


def test_what_may_be_a_rule_is_told_to_nobody_until_it_is_accepted(agent, brain):
    agent.tell(EventKind.PROMPT, prompt="Port the client to httpx and keep the retries")
    agent.tell(EventKind.PROMPT, prompt="Please use row.get for optional columns.")
    team = TeamMemory(brain, author="ann@acme.io")
    (waits,) = undecided(team)
    assert waits.memory.place == "personal:ann@acme.io"
    assert "row.get" not in briefing(brain, agent)
    assert team.recall("row.get for optional columns", repository="github.com/acme/etl") == []
    accepted = accept(team, waits.id)
    assert undecided(team) == []
    assert team.get(accepted).memory.place == "repo:github.com/acme/etl"
    assert "row.get" in briefing(brain, agent)


def test_a_session_is_about_its_first_request_and_not_its_last_words(agent, brain):
    for prompt in (
        "hello there, are you there",
        "/model opus now please",
        "Port the client to httpx and keep the retries",
        "yes, go on please",
        "also rename the module to client",
        "commit it please now",
    ):
        agent.tell(EventKind.PROMPT, prompt=prompt)
    agent.runs("make", "built", False)
    agent.tell(EventKind.SESSION_END)
    (task,) = brain.memories({"type": "task"}, limit=None)
    assert task.text.startswith(
        "Task: Port the client to httpx and keep the retries\nThen asked: also rename the module"
    )


@pytest.mark.parametrize("prompt", ["ok, continue please", "/compact", "yes please go on", "thanks, looks good"])
def test_what_asks_for_nothing_is_no_request(prompt):
    assert not is_request(prompt)


PLAN = "[completed] Port get(); [in_progress] Port post()"


@pytest.mark.parametrize(
    ("agent_name", "name", "payload"),
    [
        ("claude-code", "PostToolUse", {"tool_name": "TodoWrite", "tool_input": {"todos": [
            {"content": "Port get()", "status": "completed"}, {"content": "Port post()", "status": "in_progress"}]}}),
        ("codex", "PostToolUse", {"tool_name": "update_plan", "tool_input": {"plan": [
            {"step": "Port get()", "status": "completed"}, {"step": "Port post()", "status": "in_progress"}]}}),
        ("gemini", "AfterTool", {"tool_name": "write_todos", "tool_input": {"todos": [
            {"description": "Port get()", "status": "completed"},
            {"description": "Port post()", "status": "in_progress"}]}}),
        ("opencode", "tool.execute.after", {"tool": "todowrite", "args": {"todos": [
            {"content": "Port get()", "status": "completed"}, {"content": "Port post()", "status": "in_progress"}]}}),
        ("copilot", "postToolUse", {"toolName": "update_todo", "toolArgs": {
            "todos": "- [x] Port get()\n- [~] Port post()"}}),
    ],
)  # fmt: skip
def test_the_plan_of_every_tool(agent, agent_name, name, payload):
    names = {"session_id": "p", "sessionID": "p", "sessionId": "p", "cwd": agent.folder, "directory": agent.folder}
    agent.capture.take(dialect(agent_name).read(name, {**names, **payload}))
    assert "; ".join(agent.capture.sessions.load(agent_name, "p").plan) == PLAN


def test_the_tasks_of_claude_code_are_its_plan(agent):
    def use(number, tool, given, out):
        base = {"session_id": "p", "cwd": agent.folder, "tool_use_id": f"t{number}"}
        told = {**base, "tool_name": tool, "tool_input": given, "tool_response": out}
        agent.capture.take(dialect("claude-code").read("PostToolUse", told))

    use(1, "TaskCreate", {"subject": "Port get()", "description": "…"}, {"task": {"id": "1", "subject": "Port get()"}})
    use(
        2, "TaskCreate", {"subject": "Port post()", "description": "…"}, {"task": {"id": "2", "subject": "Port post()"}}
    )
    use(3, "TaskUpdate", {"taskId": "1", "status": "completed"}, {"success": True, "taskId": "1"})
    use(4, "TaskUpdate", {"taskId": "2", "status": "in_progress"}, {"success": True, "taskId": "2"})
    assert "; ".join(agent.capture.sessions.load("claude-code", "p").plan) == PLAN


def test_still_failing_is_what_still_fails(agent, brain):
    agent.tell(EventKind.PROMPT, prompt="Port the client to httpx and keep the retries")
    agent.runs("ls tests/nowhere", "ls: cannot access 'tests/nowhere': No such file or directory", True)
    agent.runs("pytest tests/test_a.py", "E   KeyError: 'a'\n1 failed in 0.1s", True)
    agent.runs("pytest tests/test_b.py", "E   ValueError: b\n1 failed in 0.1s", True)
    agent.runs("mypy src", "src/a.py:3: error: Missing return statement", True)
    agent.runs("pytest tests/test_a.py", "1 passed in 0.1s", False)
    agent.tell(EventKind.SESSION_END)
    (task,) = brain.memories({"type": "task"}, limit=None)
    assert task.contents["failing"] == ["pytest tests/test_b.py", "mypy src"]
    assert (
        "Still failing: `pytest tests/test_b.py` (ValueError: b); `mypy src` (src/a.py:3: error: Missing" in task.text
    )
