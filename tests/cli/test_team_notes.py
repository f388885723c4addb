"""`rmem remember --team` makes a note that teammates' agents are told; without it a memory is the store's alone."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from rmem_runner import Rmem

from rmem import Brain
from rmem.team.briefing import Briefing
from rmem.team.events import Event, EventKind

REPOSITORY = "github.com/acme/etl"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def clone(rmem: Rmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "clone"
    (folder / "deploy").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    for words in ("init -q", f"remote add origin https://{REPOSITORY}.git", "config user.email ann@acme.io"):
        subprocess.run(["git", *words.split()], check=True)
    (folder / "deploy" / "release.sh").write_text("git describe --exact-match\n")
    return folder


def told(rmem: Rmem, folder: Path) -> str:
    """Return the briefing of an agent in a folder."""
    start = Event("1", "codex", EventKind.SESSION_START, "s1", str(folder), time.time(), source="startup")
    with Brain(rmem.home / "memories.db") as brain:
        return Briefing(brain).context(start)


def test_a_note_for_the_team_is_told_to_agents_and_a_plain_memory_is_not(
    rmem: Rmem, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmem("remember", "--type", "decision", "Releases are cut on Mondays")
    monkeypatch.chdir(clone / "deploy")
    answer = rmem(
        "remember", "--team", "--type", "decision", "Deploys run from tags only", "--file", "release.sh", "--json"
    )
    assert answer.code == 0, answer.err
    assert answer.json["memory_id"].startswith("team-")
    assert answer.json["actor"] == "ann@acme.io"
    assert answer.json["contents"]["files"] == ["deploy/release.sh"]
    assert answer.json["contents"]["prints"]
    monkeypatch.setenv("RMEM_HOME", str(rmem.home))
    briefing = told(rmem, clone)
    assert "Deploys run from tags only" in briefing
    assert "Mondays" not in briefing


def test_the_terminal_says_who_is_told(rmem: Rmem, clone: Path) -> None:
    (rmem.home / "team").mkdir(parents=True)
    plain = rmem.terminal("remember", "Releases are cut on Mondays").out
    assert "Agents are not told of it. With --team it is a note" in plain
    noted = rmem.terminal("remember", "--team", "Deploys run from tags only").out
    assert f"for all who work in {REPOSITORY}; `rmem login` shares it by a server" in " ".join(noted.split())
    assert rmem.process("remember", "Piped").err == ""


def test_secrets_in_notes_and_in_their_new_words_are_masked(rmem: Rmem, clone: Path) -> None:
    key = rmem("remember", "--team", f"CI pushes with {SECRET}").out.strip()
    assert SECRET not in rmem("show", key).out
    assert rmem("update", key, "--text", f"CI pushes with the token {SECRET}").code == 0
    assert SECRET not in rmem("show", key, "--json").out
    assert "CI pushes with the token" in rmem("show", key).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--team", "--type", "poem"), "type must be one of 'codebase', 'preference'"),
        (("--team", "--id", "x"), "--id has no meaning with --team"),
        (("--team", "--tag", "a=b"), "--tag has no meaning with --team"),
        (("--team", "--store", "https://memory.acme.io"), "--team writes to your own store"),
        (("--file", "a.py"), "--file needs --team"),
        (("--team", "--when", "2999-01-01"), "when must not be more than a day in the future"),
    ],
)
def test_what_a_note_cannot_be_is_refused(rmem: Rmem, clone: Path, arguments: tuple[str, ...], said: str) -> None:
    answer = rmem("remember", "Deploys run from tags only", *arguments)
    assert answer.code != 0
    assert said in answer.err


def test_outside_a_repository_or_where_it_opted_out_there_is_no_note(
    rmem: Rmem, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clone / ".rmem.toml").write_text("capture = false\n")
    assert "capture = false" in rmem("remember", "--team", "One").err
    monkeypatch.chdir(tmp_path)
    assert "--team needs a repository" in rmem("remember", "--team", "One").err


def test_a_plain_memory_is_not_called_shared(rmem: Rmem, clone: Path) -> None:
    key = rmem("remember", "Releases are cut on Mondays", "--type", "decision").out.strip()
    answer = rmem("share", key, "--to", "organisation")
    assert answer.code != 0
    assert "is a plain memory, which is never sent" in answer.err
    assert "organisation" not in rmem("show", key).out
    note = rmem("remember", "--team", "Deploys run from tags only").out.strip()
    assert "is for the whole organisation, with the next sync" in rmem("share", note, "--to", "organisation").out
    assert "is for you alone" in rmem("unshare", note).out
