"""A hook writes nothing secret down: what was said, given and printed is masked before it is in the spool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO

import pytest
from recorded_events import TOLD, Story

from rmem.errors import PrivacyError
from rmem.team import paths, spool
from rmem.team.daemon_client import Lock
from rmem.team.events import Event, EventKind
from rmem.team.hook import main as hook_main

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
PASSWORD = "Kx9-vTr2-mQz7"
MAIL = "jane.doe@corp-mail.net"
LINE = "MIIEpAIBAAKCAQEA7Jb2xV4mQ0pTz9/LkWcN3yRf6UuHs8DgEo1KiBjXaMvP5nQd"
KIND = "RSA PRIVATE KEY"
KEY = f"-----BEGIN {KIND}-----\n" + f"{LINE}\n" * 25 + f"-----END {KIND}-----"


def event(**more):
    return Event("1", "claude-code", EventKind.TOOL, "s1", "/srv/etl", 1.0, **more)


def written(**more):
    """What is in the spool of an event."""
    return spool.put(event(**more)).read_text()


@pytest.mark.parametrize(
    "secret", [SECRET, MAIL, "https://ann:hunter22x@db.corp-mail.net/x", "4111 1111 1111 1111", KEY]
)
@pytest.mark.parametrize(
    "fields",
    [
        lambda secret: {"prompt": f"Use {secret} for the deploy step"},
        lambda secret: {"command": f"deploy --with {secret}"},
        lambda secret: {"output": f"error: {secret} was refused"},
        lambda secret: {"input": {"new_string": f"TOKEN = {secret}"}},
        lambda secret: {"input": {"edits": [{"old": {"lines": ["a", f"is {secret} here"]}}]}},
        lambda secret: {"input": {f"about {secret} now": 1}},
        lambda secret: {"files": [f"/srv/etl/dump {secret} /a.py"]},
        lambda secret: {"tool": f"mcp tool {secret}", "source": f"by {secret}"},
    ],
    ids=["prompt", "command", "output", "input", "nested input", "key", "files", "names"],
)
def test_no_field_of_an_event_in_the_spool_holds_a_secret(fields, secret):
    told = json.loads(written(**fields(secret)))
    assert secret not in json.dumps(told, ensure_ascii=False).replace("\\n", "\n")
    assert Event(**{**told, "kind": EventKind(told["kind"])}) != event(**fields(secret))


def test_a_value_that_its_name_gives_away_is_masked_wherever_it_stands():
    told = written(input={"login": {"password": PASSWORD}}, output=f"tried {PASSWORD} twice")
    assert PASSWORD not in told
    assert "tried [secret] twice" in told


def test_a_cut_leaves_no_half_of_a_secret():
    half = 64 << 10
    for lead in range(half - 60, half + 60, 7):
        told = written(
            output=f"{'x' * (lead % 80)}\n" + "line\n" * (lead // 5) + f"token {SECRET}\n" + "line\n" * 60_000
        )
        assert "characters left out" in told
        assert SECRET[:12] not in told
    for lead in range(half - 1800, half + 100, 190):
        told = written(output="line\n" * 60_000 + KEY + "\n" + "line\n" * (lead // 5))
        assert LINE not in told


def test_a_huge_input_is_cut_too():
    assert len(written(input={"content": "x = 1\n" * 1_000_000})) < 300_000


def test_files_below_a_folder_whose_path_names_somebody_are_still_found():
    home = f"/home/{MAIL}/etl"
    path = spool.put(event()._replace(cwd=f"{home}/src", files=[f"{home}/src/a.py", f"{home}/tests/b.py", "c.py"]))
    told = Event.from_json(path.read_text())
    assert told.files == [f"{home}/src/a.py", f"{home}/tests/b.py", "c.py"]


@pytest.mark.parametrize("name", ["session", "cwd"])
def test_an_event_whose_name_holds_a_secret_is_not_written(name):
    with pytest.raises(PrivacyError, match=name) as refused:
        spool.put(event()._replace(**{name: f"/x/{SECRET}"}))
    assert SECRET not in str(refused.value)
    assert spool.waiting() == []


# The real command


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home in which no daemon starts, so that what hooks write stays in the spool."""
    monkeypatch.setenv("HOME", str(tmp_path))
    with Lock():
        yield paths.folder()


def hook(agent, name, payload, **environment):
    command = [sys.executable, "-m", "rmem", "hook", agent, name]
    given = json.dumps(payload)
    environment = {**os.environ, **environment}
    return subprocess.run(command, input=given, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("agent", TOLD)
def test_the_hooks_of_every_agent_write_no_secret_down(agent, home, tmp_path, monkeypatch):
    story = Story(
        "s1", str(tmp_path), f"Deploy with the token {SECRET}", f"make deploy TOKEN={SECRET}",
        f"error: {SECRET} was refused", "deploy.sh", "TOKEN=", f"TOKEN={SECRET}", f"deployed by {SECRET}",
    )  # fmt: skip
    told = list(TOLD[agent](story))
    for name, payload in told:
        if agent == "claude-code":
            assert hook(agent, name, payload).returncode == 0
        else:  # without a process for each event
            monkeypatch.setattr("sys.stdin", StringIO(json.dumps(payload)))
            assert hook_main([agent, name]) == 0
    assert len(spool.waiting()) == len(told)
    everything = "".join(path.read_text(errors="replace") for path in home.rglob("*") if path.is_file())
    assert SECRET not in everything
    assert "[secret] was refused" in everything


@pytest.mark.parametrize("module", ["phonenumbers", "stdnum"])
def test_without_the_libraries_that_find_secrets_nothing_is_captured(home, tmp_path, module):
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{module!r}] = None\n")
    payload = {"session_id": "s1", "cwd": str(tmp_path), "prompt": "Always run the linter"}
    done = hook("claude-code", "UserPromptSubmit", payload, PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert spool.waiting() == []
    (line,) = paths.log().read_text().splitlines()
    assert line.endswith(
        f"claude-code UserPromptSubmit: the privacy policy needs {module}, which is not installed; "
        'install it with: pip install "rmem[privacy]"'
    )
