"""`rmem status` and `rmem doctor` run the hook that each agent has in its own file, and see what comes back."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from contextlib import suppress

import psutil
import pytest
from folder_contents import everything

from rmem import Brain
from rmem.cli import exit_codes
from rmem.team import paths
from rmem.team.events import AGENTS


def daemons():
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "rmem.team.daemon" in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):
                if process.environ().get("RMEM_HOME") == os.environ["RMEM_HOME"]:
                    found.append(process)
    return found


@pytest.fixture
def program(home, tmp_path):
    """A function that says what the program `rmem` of this machine does; at first it is the real one."""
    path = tmp_path / "programs" / "rmem"

    def does(script: str) -> None:
        path.write_text(f"#!/bin/sh\n{script}\n")

    does(f'exec "{sys.executable}" -m rmem "$@"')
    yield does
    for process in daemons():
        process.kill()


def agent(told, name):
    return next(one for one in told["agents"] if one["agent"] == name)


def finding(answer, name):
    return next(one for one in answer.json["findings"] if one["name"] == name)


def test_the_hook_of_every_agent_is_tried_and_leaves_nothing_behind(rmem, program, home):
    with Brain(rmem.home / "memories.db", privacy="default") as brain:
        brain.remember("something")
    rmem("install", *AGENTS, "--yes")
    shown = rmem("status").out  # starts the daemon, which has files of its own
    assert shown.count("  tried  its hook answered in ") == len(AGENTS)
    before = everything(rmem.home)
    told = rmem("status", "--json").json
    for name in AGENTS:
        tried = agent(told, name)["self_test"]
        assert tried["ok"], (name, tried)
        assert 0 < tried["ms"] < 10_000
        assert f"hook {name} " in tried["command"]
    after = everything(rmem.home)
    assert set(after) == set(before)
    assert after["team/spool"] is None
    assert not [path for path in after if path.startswith(("team/spool/", "team/sessions"))]
    assert "team/hooks.log" not in after
    assert "team/last-capture.json" not in after
    with sqlite3.connect(rmem.home / "memories.db") as store:
        assert store.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    assert told["daemon_runs"]
    code = rmem("doctor", "--json")
    assert code.code == 0
    for name in AGENTS:
        assert finding(code, name)["detail"].startswith("its hook answered in "), name


def test_a_daemon_that_was_started_for_a_try_ends_soon(rmem, program, home, monkeypatch):
    monkeypatch.setattr("rmem.team.install.selftest._IDLE", "1")
    monkeypatch.delenv("RMEM_KEEPER_IDLE", raising=False)
    rmem("install", "codex", "--yes")
    assert agent(rmem("status", "--json").json, "codex")["self_test"]["ok"]
    assert len(daemons()) == 1
    end = time.monotonic() + 20
    while daemons():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("exit 0", "it printed nothing"),
        ("echo no module named rmem >&2; exit 3", "it ended with 3: no module named rmem"),
        ("sleep 60", "it did not end within 1 s"),
        ("echo '{\"hookSpecificOutput\": {}}'", "it printed nothing"),
    ],
)
def test_a_hook_that_does_not_answer_is_a_problem_with_a_remedy(rmem, program, home, monkeypatch, script, problem):
    monkeypatch.setattr("rmem.team.install.selftest._LIMIT", 1.0)
    rmem("install", "claude-code", "--yes")
    program(script)
    expected = f"`rmem hook claude-code SessionStart` fails: {problem} (`rmem install claude-code` renews it)"
    started = time.monotonic()
    assert expected in rmem("status").out
    assert time.monotonic() - started < 20
    answer = rmem("doctor", "--json")
    assert answer.code == exit_codes.PROBLEMS
    assert expected in finding(answer, "claude-code")["detail"]


def test_a_hook_whose_program_is_gone_is_a_problem(rmem, program, home):
    rmem("install", "copilot", "opencode", "--yes")
    for path in (home / ".copilot/hooks/remanence.json", home / ".config/opencode/plugins/remanence.js"):
        path.write_text(path.read_text().replace("rmem hook", "/gone/rmem hook").replace('["rmem"]', '["/gone/rmem"]'))
    told = rmem("status", "--json").json
    for name in ("copilot", "opencode"):
        tried = agent(told, name)["self_test"]
        assert tried["command"].startswith("/gone/rmem hook"), name
        assert "it ended with 127" in tried["problem"], name
    assert agent(told, "claude-code")["self_test"] is None


def test_a_store_that_cannot_be_opened_is_what_the_try_tells(rmem, program, home):
    (rmem.home / "team").mkdir(parents=True)
    (rmem.home / "memories.db").mkdir()
    rmem("install", "codex", "--yes")
    tried = agent(rmem("status", "--json").json, "codex")["self_test"]
    assert not tried["ok"]
    assert "memories.db" in tried["problem"]
    assert list((rmem.home / "team" / "spool").glob("*.json")) == []


def test_complaints_of_hooks_and_the_daemon_are_shown_for_a_day(rmem, home):
    now, old = (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time.time() - age)) for age in (60, 2 * 86_400))
    paths.log().write_text(
        f"{old} daemon: long ago\n"
        f"{now} claude-code Stop: Traceback (most recent call last):\n  File x\nTypeError: a bug\n"
        f"{now} daemon: not shared: no route\n"
        f"{now} daemon: events are taken in again\n"
    )
    told = rmem("status", "--json").json
    assert [one["error"] for one in told["errors"]] == [
        "claude-code Stop: TypeError: a bug",
        "daemon: not shared: no route",
    ]
    shown = rmem("status").out
    assert "2 complaints since yesterday" in shown
    assert "claude-code Stop: TypeError: a bug" in shown
    Brain(rmem.home / "memories.db").close()
    assert "daemon: not shared: no route" in finding(rmem("doctor", "--json"), "daemon")["detail"]


def test_the_disk_and_the_spool_are_shown(rmem, home, monkeypatch):
    Brain(rmem.home / "memories.db").close()
    paths.spool().mkdir(parents=True)
    (paths.spool() / "1.json").write_text("x" * 1234)
    disk = rmem("status", "--json").json["disk"]
    assert disk["spool"] == 1234
    assert disk["store"] > 0
    assert disk["free"] > 0
    assert "; the spool has 1.2 kB" in rmem("status").out
    monkeypatch.setattr("rmem.team.health._LITTLE", disk["free"] * 100)
    assert "the disk is almost full" in rmem("status").out
    answer = rmem("doctor", "--json")
    assert answer.code == exit_codes.PROBLEMS
    assert not finding(answer, "disk")["ok"]


def test_a_revoked_token_is_told_with_its_remedy(rmem, home, server):
    from rmem.team.login import Login, keep, login
    from rmem.team.sync import sync

    token = server.token_for("acme", "lab", "WRITE", member="ann")
    keep(Login(server.url, "lab", "acme", "ann"), token)
    store = rmem.home / "memories.db"
    with Brain(store, privacy="default") as brain:
        sync(brain, *login())
    told = rmem("status", "--json").json
    assert told["token"] == {"accepted": True, "error": None}
    assert told["last_sync"]["error"] is None
    assert finding(rmem("doctor", "--json"), "sharing")["ok"]

    own = server.client(token).get("/me").json()
    control = server.service.control
    assert control.revoke_token(control.organization("acme").id, own["token"]["id"])
    told = rmem("status", "--json").json["token"]
    assert told["accepted"] is False
    assert "revoked" in told["error"]
    shown = rmem("status").out
    assert "the server refuses the token: the token was revoked. Run `rmem login` again" in shown
    assert "RMEM_API_KEY" not in shown
    answer = rmem("doctor", "--json")
    assert answer.code == exit_codes.PROBLEMS
    assert "Run `rmem login` again" in finding(answer, "sharing")["detail"]
    refused = rmem("sync")
    assert refused.code != 0
    assert "rmem login" in refused.err
    assert "RMEM_API_KEY" not in refused.err
    assert "the token was revoked" in rmem("status", "--json").json["last_sync"]["error"]

    server.stop()
    started = time.monotonic()
    told = rmem("status", "--json").json["token"]
    assert time.monotonic() - started < 10
    assert told["accepted"] is None
    assert "the server does not answer" in rmem("status").out


def test_an_address_with_a_password_names_the_login(rmem, home):
    answer = rmem("login", "http://ann:secret@127.0.0.1:9", "--token", "x")
    assert "URL must not hold a user or password; `rmem login` asks for the token" in answer.err


def test_status_as_json_has_no_surprises(rmem, home):
    told = rmem("status", "--json").json
    json.dumps(told)
    assert (told["daemon_runs"], told["errors"], told["token"]) == (False, [], None)
    assert not rmem.home.exists()
