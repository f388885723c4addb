"""The audit trail: every write, read by an agent, injection, share and deletion, with who, when, from where and what;
sealed, searchable, and free of what memories say."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time

import pytest
from click.testing import CliRunner

from rmem import Brain
from rmem.cli.app import rmem
from rmem.team.briefing import Briefing
from rmem.team.events import Event, EventKind
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note

TEXT = "The staging database listens on port 6543 behind pgbouncer"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / "clone"
    folder.mkdir()
    for words in ("init -q", "remote add origin git@github.com:acme/etl.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return repository(folder)


@pytest.fixture
def trail(tmp_path, here):
    """A store in which everything happened once, and the id of the memory."""
    path = tmp_path / "team.db"
    with Brain(path) as brain:
        team = TeamMemory(brain, author="ann@acme.io", origin="hook")
        told = {"author": "ann@acme.io", "agent": "claude-code", "session": "s1"}
        memory = team.remember(Note(TEXT, "codebase", **told).at(here))
        team.remember(Note(TEXT, "codebase", **{**told, "session": "s2"}).at(here))
        prompt = "Which port does the staging database listen on behind pgbouncer?"
        Briefing(brain).context(Event("e", "codex", EventKind.PROMPT, "s3", str(here.root), time.time(), prompt=prompt))
        team.share(memory.memory_id, "organisation")
        team.forget(memory.memory_id)
    return path, memory.memory_id


def run(*arguments):
    done = CliRunner().invoke(rmem, list(arguments))
    return done.exit_code, done.output


def entries(path, *options):
    code, output = run("--store", str(path), "audit", *options, "--json")
    assert code == 0, output
    return json.loads(output)


def test_everything_that_happened_is_told_in_order(trail):
    path, memory_id = trail
    told = entries(path)[::-1]
    assert [entry["action"] for entry in told] == ["remember", "learn again", "inject", "share", "forget"]
    assert {entry["memory"] for entry in told} == {memory_id}
    assert {entry["who"] for entry in told} == {"ann@acme.io"}
    assert told[0]["detail"]["origin"] == "hook"
    assert told[0]["detail"]["scope"] == "repository"


def test_it_can_be_searched(trail):
    path, memory_id = trail
    assert [entry["action"] for entry in entries(path, "--agent", "codex")] == ["inject"]
    assert [entry["action"] for entry in entries(path, "--action", "share")] == ["share"]
    assert len(entries(path, "--memory", memory_id)) == 5
    assert entries(path, "--memory", "other") == []
    assert entries(path, "--who", "bob@acme.io") == []
    assert len(entries(path, "--since", "one hour ago")) == 5


def test_it_can_be_exported(trail):
    path, _ = trail
    code, output = run("--store", str(path), "audit", "export")
    assert code == 0
    assert [json.loads(line)["action"] for line in output.splitlines()][-1] == "remember"


def test_it_never_says_what_a_memory_says(trail):
    path, _ = trail
    code, output = run("--store", str(path), "audit", "export")
    assert code == 0
    assert "6543" not in output
    assert "pgbouncer" not in output


def test_tampering_shows(trail):
    path, _ = trail
    assert run("--store", str(path), "audit", "verify") == (0, "The audit log is whole.\n")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE audit SET who = 'bob@acme.io' WHERE action = 'share'")
    code, output = run("--store", str(path), "audit", "verify")
    assert code == 6
    assert "not as they were written" in output


def test_a_change_by_hand_is_told_with_the_fields_it_changed(tmp_path):
    path = tmp_path / "own.db"
    with Brain(path) as brain:
        brain.remember("The cache key holds the tenant", id="m")
    assert run("--store", str(path), "update", "m", "--importance", "0.9")[0] == 0
    (entry,) = entries(path, "--action", "change")
    assert (entry["memory"], entry["detail"]["fields"]) == ("m", ["importance"])


def test_a_login_is_told_with_who_and_where_and_without_the_token(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\temail = ann@acme.io\n")
    path, token = tmp_path / "team.db", server.token_for("default", "default", "WRITE")
    assert run("--store", str(path), "login", server.url, "--token", "wrong")[0] != 0
    assert entries(path, "--action", "login") == []
    code, output = run("--store", str(path), "login", server.url, "--token", token)
    assert code == 0, output
    (entry,) = entries(path, "--action", "login")
    assert (entry["who"], entry["memory"]) == ("ann@acme.io", None)
    assert entry["detail"] == {"origin": server.url, "workspace": "default"}
    assert token not in json.dumps(entry)
    assert run("--store", str(path), "audit", "verify") == (0, "The audit log is whole.\n")


def test_a_log_whose_end_was_cut_off_is_a_problem_to_doctor(trail):
    path, _ = trail
    assert finding_of("audit log", path) == {"name": "audit log", "ok": True, "detail": "whole"}
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM audit WHERE n >= 4")
        connection.execute("UPDATE sqlite_sequence SET seq = 3 WHERE name = 'audit'")
    finding = finding_of("audit log", path)
    assert not finding["ok"]
    assert "its end is cut off: entry 4 and perhaps later ones are missing" in finding["detail"]
    code, output = run("--store", str(path), "audit", "verify")
    assert code == 6
    assert "entry 4 and perhaps later" in output
    assert run("--store", str(path), "audit", "accept")[0] == 0
    assert finding_of("audit log", path)["ok"]


def finding_of(name, path):
    code, output = run("--store", str(path), "doctor", "--json")
    report = json.loads(output)
    assert code == (0 if report["ok"] else 6)
    return next(finding for finding in report["findings"] if finding["name"] == name)


@pytest.mark.parametrize("words", [["verify"], ["--verify"], ["accept"]])
def test_where_there_is_no_store_nothing_is_said_to_be_whole(tmp_path, words):
    code, output = run("--store", str(tmp_path / "none.db"), "audit", *words)
    assert code != 0
    assert "there is no store" in output
    assert "whole" not in output
    assert not (tmp_path / "none.db").exists()
