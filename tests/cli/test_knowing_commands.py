"""`rmem review`, `share`, `unshare`, and mining with `rmem import claude-code|codex|git`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from rmem_runner import Rmem

from rmem import Brain
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.review import pending_note

REPOSITORY = "github.com/acme/etl"


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=Ann", "-c", "user.email=ann@acme.io", *words], check=True)


@pytest.fixture
def clone(rmem: Rmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a commit, as the current folder."""
    folder = tmp_path / "clone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", f"git@{REPOSITORY.replace('/', ':', 1)}.git")
    git("config", "user.email", "ann@acme.io")
    (folder / "pool.py").write_text("\n".join(f"line {number}" for number in range(40)))
    git("add", "-A")
    git("commit", "-qm", "One")
    return folder


@pytest.fixture
def known(rmem: Rmem, clone: Path) -> dict[str, str]:
    """Ids of what the team knows, by a name for each."""
    rmem.home.mkdir(exist_ok=True)
    here = repository(clone)
    notes = {
        "old": Note("The session cache expires after 15 minutes.", "decision", author="ann@acme.io", when=1.7e9),
        "new": Note("The session cache expires after 60 minutes.", "decision", author="bob@acme.io", when=1.75e9),
        "pool": Note("The pool holds 20 connections.", "codebase", author="ann@acme.io", files=["pool.py"]),
    }  # fmt: skip
    with Brain(rmem.home / "memories.db") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        return {name: team.remember(note.at(here)).memory_id for name, note in notes.items()}


def test_review_lists_contradictions_for_people_and_programs(rmem: Rmem, known: dict[str, str]) -> None:
    answer = rmem("review")
    assert answer.code == 0
    first, older, newer = answer.lines
    assert first == "one says 15, the other 60:"
    assert known["old"] in older
    assert "ann@acme.io  The session cache expires after 15 minutes." in older
    assert known["new"] in newer
    assert rmem("review", "--json").json == {
        "contradictions": [{"older": known["old"], "newer": known["new"], "why": "one says 15, the other 60"}],
        "out_of_date": [],
        "waiting": [],
    }


def test_review_lists_what_may_be_a_rule_and_makes_it_one(rmem: Rmem, clone: Path) -> None:
    rmem.home.mkdir(exist_ok=True)
    with Brain(rmem.home / "memories.db") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        note = Note("Please use row.get for optional columns.", "preference", author="ann@acme.io")
        waits = team.remember(pending_note(note.at(repository(clone)))).memory_id
    assert rmem("review", "--json").json["waiting"] == [{"id": waits, "text": note.text}]
    first, line = rmem("review").lines
    assert first.startswith("A rule? `rmem review --accept ID` makes it one")
    assert waits in line
    kept = rmem("review", "--accept", waits, "--json").json["id"]
    assert rmem("review", "--json").json["waiting"] == []
    with Brain(rmem.home / "memories.db") as brain:
        memory = brain.get(kept)
        assert memory is not None
        assert (memory.place, memory.tags["state"]) == ("repo:github.com/acme/etl", "current")


def test_recall_as_of_then_finds_what_was_superseded_since(rmem: Rmem, clone: Path) -> None:
    rmem.home.mkdir(exist_ok=True)
    here = repository(clone)
    with Brain(rmem.home / "memories.db") as brain:
        team = TeamMemory(brain, author="ann@acme.io")
        jenkins = Note("We deploy with Jenkins.", "decision", author="ann@acme.io", when=1.7e9)  # November 2023
        old = team.remember(jenkins.at(here)).memory_id
        actions = Note("We deploy with Actions.", "decision", author="bob@acme.io", when=1.75e9, supersedes=old)
        new = team.remember(actions.at(here)).memory_id  # June 2025

    def found(*when: str) -> list[str]:
        hits = rmem("recall", "how do we deploy", *when, "--json").json["hits"]
        return [hit["memory"]["memory_id"] for hit in hits]

    assert found("--as-of", "2023-01-01") == []
    assert found("--as-of", "2024-12-24") == [old]
    assert found("--as-of", "2025-12-24") == [new]
    assert found("--as-of", "now") == [new]
    assert found("--as-of", "2024-12-24", "--token-budget", "8") == [old], "what did not hold takes no tokens"
    assert "We deploy with Jenkins." in rmem("recall", "how do we deploy", "--as-of", "2024-12-24").out


def test_recall_as_of_then_copes_with_memories_that_use_its_words_otherwise(rmem: Rmem) -> None:
    key = rmem("remember", "The voucher is for new customers", "--meta", "valid_until=soon").out.strip()
    answer = rmem("recall", "voucher", "--as-of", "now", "--json")
    assert [hit["memory"]["memory_id"] for hit in answer.json["hits"]] == [key]


def test_review_lists_what_is_out_of_date(rmem: Rmem, known: dict[str, str], clone: Path) -> None:
    (clone / "pool.py").write_text("all new\n")
    git("commit", "-qam", "Two")
    answer = rmem("review", "--json").json
    assert answer["out_of_date"] == [{"id": known["pool"], "why": "pool.py changed a lot since"}]
    git("rm", "-q", "pool.py")
    git("commit", "-qm", "Three")
    assert "pool.py is gone:" in rmem("review").lines


def test_review_of_a_team_at_peace(rmem: Rmem, known: dict[str, str]) -> None:
    assert rmem("forget", known["old"], "--yes").code == 0
    assert rmem("review").out == "Nothing contradicts and nothing is out of date.\n"


def test_review_shows_at_most_so_many(rmem: Rmem, known: dict[str, str]) -> None:
    assert len(rmem("review", "--limit", "1", "--json").json["contradictions"]) == 1
    assert rmem("review", "--limit", "0").code == 2


def test_review_changes_nothing_and_needs_no_store(rmem: Rmem, clone: Path) -> None:
    answer = rmem("review", "--json")
    assert (answer.code, answer.json) == (0, {"contradictions": [], "out_of_date": [], "waiting": []})
    assert not (rmem.home / "memories.db").exists()


def test_a_review_elsewhere_does_not_see_this_repository(
    rmem: Rmem, known: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert rmem("review", "--json").json["contradictions"] == []


def test_share_and_unshare(rmem: Rmem, known: dict[str, str]) -> None:
    answer = rmem("share", known["pool"], "--to", "organisation", "--json")
    assert (answer.code, answer.json) == (0, {"id": known["pool"], "scope": "organisation"})
    assert _place(rmem, known["pool"]) == "organisation"
    assert (
        rmem("share", known["pool"]).out
        == f"{known['pool']} is for all who work in {REPOSITORY}, with the next sync.\n"
    )
    assert _place(rmem, known["pool"]) == f"repo:{REPOSITORY}"
    assert f"{known['pool']} is for you alone" in rmem("unshare", known["pool"]).out
    assert _place(rmem, known["pool"]) == "personal:ann@acme.io"
    assert rmem("unshare", known["pool"], "--json").json == {"id": known["pool"], "scope": "personal"}


def test_sharing_keeps_everything_else(rmem: Rmem, known: dict[str, str]) -> None:
    before = rmem("show", known["pool"], "--json").json
    rmem("share", known["pool"], "--to", "organisation")
    after = rmem("show", known["pool"], "--json").json
    for name in ("text", "timestamp", "actor", "agent_id"):
        assert after[name] == before[name]
    assert after["contents"]["sources"] == before["contents"]["sources"]
    assert after["contents"]["files"] == ["pool.py"]


@pytest.mark.parametrize("command", ["share", "unshare"])
def test_an_unknown_memory(rmem: Rmem, known: dict[str, str], command: str) -> None:
    answer = rmem(command, "team-nobody")
    assert answer.code == 3
    assert "team-nobody" in answer.err
    assert rmem(command, "team-nobody", "--json").error["message"]
    assert rmem(command).code == 2


def test_a_scope_that_does_not_exist_and_a_store_that_does_not(rmem: Rmem, clone: Path) -> None:
    assert rmem("share", "team-x", "--to", "everybody").code == 2
    answer = rmem("share", "team-x")
    assert answer.code != 0
    assert "there is no store" in answer.err


def _place(rmem: Rmem, memory_id: str) -> str:
    return str(rmem("show", memory_id, "--json").json["place"])


# Mining


def transcript(folder: Path, cwd: Path, session: str = "s1") -> Path:
    """A short transcript of Claude Code."""
    about = {"cwd": str(cwd), "sessionId": session, "timestamp": "2026-03-02T09:00:00.000Z", "isSidechain": False}
    said = {"role": "user", "content": "We never use print in library code"}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{session}.jsonl"
    path.write_text(json.dumps({"type": "user", "uuid": f"{session}-1", **about, "message": said}) + "\n")
    return path


def test_mining_transcripts(rmem: Rmem, clone: Path, tmp_path: Path) -> None:
    transcript(tmp_path / "kept", clone)
    words = ("import", "claude-code", "--from", str(tmp_path / "kept"))
    answer = rmem(*words)
    assert (answer.code, answer.out) == (0, "Read 1 transcripts; 1 new memories, 0 known already\n")
    assert rmem(*words, "--json").json == {"read": 0, "passed_over": 1, "memories": 0, "without_patch": 0}
    (memory,) = rmem("list", "--json").json["memories"]
    assert memory["text"] == "We never use print in library code"
    assert memory["place"] == f"repo:{REPOSITORY}"


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_mining_where_there_is_nothing(rmem: Rmem, clone: Path, tmp_path: Path, agent: str) -> None:
    answer = rmem("import", agent)
    assert answer.code == 2
    assert f"there are no transcripts of {agent} in " in answer.err
    assert "--from" in answer.err
    answer = rmem("import", agent, "--json")
    assert "no transcripts" in answer.error["message"]
    assert rmem("import", agent, "--from", str(tmp_path / "nowhere")).code == 2


def test_mining_git(rmem: Rmem, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clone / "pool.py").write_text("pool = Pool(20)\n")
    git("commit", "-qam", "Fix timeouts of the pool at night")
    assert rmem("import", "git").out == "Read 2 commits; 1 new memories, 0 known already\n"
    monkeypatch.chdir(tmp_path)
    known = {"read": 2, "passed_over": 1, "memories": 0, "without_patch": 0}
    assert rmem("import", "git", "--from", str(clone), "--json").json == known
    answer = rmem("import", "git")
    assert answer.code == 2
    assert "must lie in a git repository" in answer.err


def test_from_is_for_mining_only(rmem: Rmem, clone: Path) -> None:
    (clone / "memories.jsonl").touch()
    assert rmem("import", "memories.jsonl", "--from", str(clone)).code == 2
