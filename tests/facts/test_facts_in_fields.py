"""Facts read from the fields of memories that agents and teams write."""

from __future__ import annotations

from typing import Any

from rmem.agents.records import record
from rmem.facts.extract import facts_in
from rmem.team.notes import Note


def triples(memory: Any) -> list[tuple[str, str, str]]:
    return [fact[:3] for fact in facts_in(memory)]


def test_a_state_gives_where_and_how_an_agent_is_and_no_numbers() -> None:
    state = {"position": "market", "status": "trading", "health": 0.9, "inventory": {"wood": 3}}
    assert triples(record("ann", "state", state, 1, 0.5)) == [
        ("ann", "located in", "market"),
        ("ann", "status", "trading"),
    ]


def test_an_action_gives_what_was_done_and_what_came_of_it() -> None:
    action = {"action_type": "trade", "target": "bob", "outcome": "success", "reward": 1.0}
    assert triples(record("ann", "action", action, 1, 0.5)) == [
        ("ann", "did", "trade"),
        ("ann", "acted on", "bob"),
        ("trade", "result", "success"),
    ]


def test_an_interaction_joins_two_agents() -> None:
    met = {"interaction_type": "trades with", "target": "bob"}
    assert triples(record("ann", "interaction", met, 1, 0.5)) == [("ann", "trades with", "bob")]


def test_a_commit_gives_its_author_its_repository_and_its_files(tmp_path: Any) -> None:
    from rmem import Brain

    note = Note(
        "Use poll", "decision", author="ann", agent="git", repository="acme/pool", commit="f" * 40, files=["a.py"]
    )
    with Brain(":memory:") as brain:
        kept = brain.remember(note.text, agent="git", actor="ann", metadata=note.contents(1.7e9))
    assert triples(kept) == [
        ("f" * 12, "author", "ann"),
        ("f" * 12, "in repository", "acme/pool"),
        ("f" * 12, "changes", "a.py"),
    ]


def test_an_error_is_fixed_by_its_fix() -> None:
    from rmem import Brain

    note = Note(
        "x", "error_fix", author="ann", repository="acme/pool", error="KeyError: 'a'", fix="use get", files=["a.py"]
    )
    with Brain(":memory:") as brain:
        kept = brain.remember(note.text, actor="ann", metadata=note.contents(1.7e9))
    assert ("KeyError: 'a'", "fixed by", "use get") in triples(kept)
    assert ("KeyError: 'a'", "occurs in", "a.py") in triples(kept)


def test_what_a_commit_fixes_is_fixed_by_the_commit_and_occurs_in_none_of_its_files() -> None:
    """A commit changes its changelog and tests, too: no error occurs there."""
    from rmem import Brain

    title = "Fix rendering when `prompt_suffix` is empty"
    note = Note(
        title, "error_fix", author="ann", agent="git", repository="pallets/click", commit="f" * 40, error=title,
        fix="changed CHANGES.rst, termui.py", files=["CHANGES.rst", "termui.py"],
    )  # fmt: skip
    with Brain(":memory:") as brain:
        kept = brain.remember(note.text, agent="git", actor="ann", metadata=note.contents(1.7e9))
        (path,) = brain.graph.paths(title, "termui.py")
    about_title = [fact for fact in triples(kept) if fact[0] == title]
    assert about_title == [(title, "fixed by", "f" * 12)]
    assert path.names == (title, "f" * 12, "termui.py")


def test_files_counted_from_many_commits_are_no_facts_about_the_last_commit() -> None:
    """The note has the last commit and whoever imported in its fields; neither changed these files."""
    from types import SimpleNamespace

    from rmem import Brain
    from rmem.team.importers.git import FilePairs

    pairs = FilePairs()
    for number in range(40):
        pairs.add(["etl/rows.py", "etl/schema.sql"] if number % 4 == 0 else [f"other{number}.py"])
    repository: Any = SimpleNamespace(id="acme/etl", commit="f" * 40)
    (note,) = pairs.notes(repository, "eve", 1.7e9, {"etl/rows.py", "etl/schema.sql"})
    with Brain(":memory:") as brain:
        kept = brain.remember(note.text, agent="git", actor="eve", metadata=note.contents(1.7e9))
    assert triples(kept) == [("etl/rows.py", "changes with", "etl/schema.sql")]
