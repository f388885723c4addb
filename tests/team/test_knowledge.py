"""Knowledge that stays right: one memory for what is said twice, successors, what is out of date, contradictions."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from rmem import Brain
from rmem.errors import InputError, NotFoundError
from rmem.team.briefing import Briefing
from rmem.team.capture import Capture
from rmem.team.events import Event, EventKind
from rmem.team.identity import repository
from rmem.team.memory import TeamMemory
from rmem.team.notes import Note
from rmem.team.review import contradictions, out_of_date
from rmem.team.staleness import prints_of, staleness


@pytest.fixture
def here(tmp_path):
    for words in ("init -q", "remote add origin git@github.com:acme/etl.git"):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    return repository(tmp_path)


def commit(here, message):
    named = ["-c", "user.name=n", "-c", "user.email=n@acme.io"]
    subprocess.run(["git", *named, "commit", "-qam", message, "--allow-empty"], cwd=here.root, check=True)
    return repository(here.root)


@pytest.fixture
def team(tmp_path):
    with Brain(tmp_path / "team.db") as brain:
        yield TeamMemory(brain, author="ann@acme.io")


def note(text, kind="decision", author="ann@acme.io", **more):
    return Note(text, kind, author=author, **more)


def test_the_same_words_are_one_memory_with_a_count_and_all_sources(team, here):
    first = team.remember(note("Use ruff for formatting.", session="1").at(here))
    again = team.remember(note("use ruff  for formatting.", author="bob@acme.io", session="2").at(here))
    assert again.memory_id == first.memory_id
    assert again.contents["count"] == 2
    assert [source["author"] for source in again.contents["sources"]] == ["ann@acme.io", "bob@acme.io"]


def test_a_source_told_twice_counts_once(team, here):
    told = {"session": "1", "when": 1_700_000_000.0}
    team.remember(note("Use ruff for formatting.", **told).at(here))
    assert team.remember(note("Use ruff for formatting.", **told).at(here)).contents["count"] == 1


def test_almost_the_same_words_are_one_memory(team, here):
    first = team.remember(note("The nightly job writes parquet files to the staging bucket.").at(here))
    again = team.remember(note("Nightly job writes the parquet files to our staging bucket", session="2").at(here))
    assert again.memory_id == first.memory_id


@pytest.mark.parametrize(
    "other",
    [
        "The upload timeout of the gateway is 60 seconds.",
        "The upload timeout of the gateway is not 30 seconds.",
        "The upload timeout of the `proxy` is 30 seconds.",
    ],
)
def test_another_number_name_or_denial_is_another_memory(team, here, other):
    first = team.remember(note("The upload timeout of the gateway is 30 seconds.").at(here))
    assert team.remember(note(other).at(here)).memory_id != first.memory_id


def test_a_new_fact_takes_the_place_of_an_old_one_which_is_still_found_as_of_then(team, here):
    old = team.remember(note("We deploy with Jenkins.", when=time.time() - 1000).at(here))
    new = team.remember(note("We deploy with GitHub Actions.", supersedes=old.memory_id).at(here))
    assert [one.id for one in team.recall("how do we deploy", repository=here)] == [new.memory_id]
    before = team.recall("how do we deploy", repository=here, as_of=time.time() - 500)
    assert [one.id for one in before] == [old.memory_id]
    kept = team.get(old.memory_id)
    assert kept.memory.contents["superseded_by"] == new.memory_id


def test_a_successor_of_nothing_is_refused_and_nothing_is_written(team, here):
    with pytest.raises(NotFoundError):
        team.remember(note("We deploy with Argo.", supersedes="team-none").at(here))
    assert team.recent(repository=here) == []


def test_what_is_said_of_a_file_that_is_gone_is_out_of_date_and_ranks_lower(team, here):
    path = here.root / "pool.py"
    path.write_text("\n".join(f"line {n}" for n in range(40)))
    subprocess.run(["git", "add", "."], cwd=here.root, check=True)
    here = commit(here, "first")
    team.remember(note("The connection pool retries three times", kind="codebase", files=["pool.py"]).at(here))
    other = team.remember(note("The connection pool of the proxy is in proxy.py", kind="codebase").at(here))
    path.unlink()
    here = commit(here, "second")
    found = team.recall("connection pool", repository=here)
    assert found[0].id == other.memory_id
    assert found[1].stale == "pool.py is gone"
    assert [one.stale for one in out_of_date(team, here)] == ["pool.py is gone"]


def test_a_file_that_changed_a_lot_makes_a_memory_out_of_date_and_a_small_change_does_not(team, here):
    path = here.root / "pool.py"
    path.write_text("\n".join(f"line {n}" for n in range(40)))
    here = commit(here, "first")
    team.remember(note("The pool retries three times", kind="codebase", files=["pool.py"]).at(here))
    path.write_text("\n".join(f"line {n}" for n in range(42)))
    here = commit(here, "second")
    assert out_of_date(team, here) == []
    path.write_text("\n".join(f"other {n}" for n in range(42)))
    assert [one.stale for one in out_of_date(team, here)] == ["pool.py changed a lot since"]


def test_names_of_files_from_others_are_never_read_outside_the_repository(tmp_path):
    root, beside = tmp_path / "etl", tmp_path / "secret.txt"
    root.mkdir()
    beside.write_text("password\n")
    (root / "link").symlink_to(beside)
    (root / "loop").symlink_to(root / "loop")
    hashes = [1, 2, 3]
    names = ("../secret.txt", "../gone.txt", str(beside), "/gone.txt", "link", "loop", "x" * 5000)
    read = set()
    before = Path.read_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: read.add(path) or before(path))
        assert [staleness(root, {name: hashes}) for name in names] == [None] * len(names)
        assert prints_of(root, names[:5]) == {}
    assert not read
    assert staleness(root, {"../secret.txt": hashes, "gone.py": hashes}) == "gone.py is gone"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Always squash commits before merging", "Never squash commits before merging"),
        ("The request timeout of the API is 30 seconds", "The request timeout of the API is 60 seconds"),
        ("Use pandas instead of polars", "For frames use polars instead of pandas"),
        ("Integration tests need the database container", "Integration tests do not need the database container"),
    ],
)
def test_two_memories_that_cannot_both_hold_are_listed(team, here, one, other):
    team.remember(note(one, when=1_700_000_000.0).at(here))
    team.remember(note(other, when=1_700_000_100.0).at(here))
    team.remember(note("The logo is blue").at(here))
    (found,) = contradictions(team, here)
    assert (found.older.text, found.newer.text) == (one, other)


def test_memories_of_different_things_do_not_contradict(team, here):
    for text in (
        "Always squash commits",
        "Never push to main on Fridays",
        "Timeouts are 30 seconds",
        "Ports start at 60",
    ):
        team.remember(note(text).at(here))
    assert contradictions(team, here) == []


def test_a_scope_decides_who_sees_a_memory(team, here):
    bob = TeamMemory(team.brain, author="bob@acme.io")
    mine = team.remember(note("My scratch database is on port 5433", scope="personal").at(here))
    assert bob.recall("scratch database port", repository=here) == []
    assert [one.id for one in team.recall("scratch database port", repository=here)] == [mine.memory_id]
    team.share(mine.memory_id, "repository")
    with pytest.raises(InputError, match=r"only ann@acme\.io"):
        bob.share(mine.memory_id, "personal")
    assert [one.id for one in bob.recall("scratch database port", repository=here)] == [mine.memory_id]
    assert bob.recall("scratch database port", repository="github.com/acme/other") == []
    team.share(mine.memory_id, "organisation")
    assert len(bob.recall("scratch database port", repository="github.com/acme/other")) == 1


def test_work_outside_a_repository_is_personal_until_it_is_shared_with_the_organisation(team, here, tmp_path_factory):
    """A session in a folder of tax papers is nobody else's rule."""
    folder = tmp_path_factory.mktemp("taxes")
    said = "Always put the receipts of 2025 into the folder of the tax adviser"
    Capture(team.brain).take(Event("1", "codex", EventKind.PROMPT, "s", str(folder), time.time(), prompt=said))
    (memory,) = team.brain.memories()
    assert memory.place == f"personal:{memory.actor}"
    other = TeamMemory(team.brain, author="bob@acme.io")
    assert other.recent(repository=here) == []
    start = Event("2", "codex", EventKind.SESSION_START, "t", str(here.root), time.time())
    assert said not in Briefing(team.brain).text_for(start, other, here)
    with pytest.raises(InputError, match="share it with the organisation"):
        team.share(memory.memory_id, "repository")
    team.share(memory.memory_id, "organisation")
    assert [one.text for one in other.recent(repository=here)] == [said]


PASTED = (
    "pytest -q tests/test_body.py -k body fails with:\n"
    'Traceback (most recent call last):\n  File "app/views.py", line 12, in show\n    return row["user_id"]\n'
    'KeyError: "user_id"'
)


@pytest.mark.parametrize("pasted", [PASTED, 'KeyError: "user_id" in show', "pytest -q -k body: KeyError user_id"])
def test_quotes_and_dashes_in_a_prompt_are_no_operators(team, here, pasted):
    text = "KeyError user_id in show: an anonymous body has no user, use row.get. Run pytest quietly (q) with k body."
    kept = team.remember(note(text, "error_fix").at(here))
    team.remember(note("The nightly job writes parquet files.").at(here))
    assert team.recall(pasted, repository=here)[0].id == kept.memory_id
    assert team.who_knows(pasted, repository=here)[0]["memories"][0] == kept.memory_id
    assert "anonymous body" in Briefing(team.brain).relevant(pasted, team, here)[0].text


@pytest.mark.parametrize("words", ['Run "pytest -q" before you push the branch', "Call rmem with -q in our scripts"])
def test_notes_with_quotes_and_dashes_are_merged_too(team, here, words):
    first = team.remember(note(words, session="1").at(here))
    assert team.remember(note(words + " please", session="2").at(here)).memory_id == first.memory_id
