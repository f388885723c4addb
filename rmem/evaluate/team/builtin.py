"""The small history in the package: notes that people gave their agents in four repositories of one company, and 164
prompts over it. `repositories` takes histories from commits instead."""

from __future__ import annotations

import time
from importlib.resources import files

from ...brain import Brain
from ...team.memory import TeamMemory
from ...team.notes import Note
from . import Prompt, PromptResult, run_prompts

_DAY = 86_400.0


def _lines(name: str) -> list[list[str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def history() -> list[tuple[str, Note]]:
    """Return (name, note) of every note of the team."""
    now = time.time()
    found = []
    for name, repository, kind, author, days, paths, text in _lines("history.tsv"):
        where = None if repository == "*" else _repository(repository)
        note = Note(
            text,
            kind,
            author=f"{author}@acme.io",
            agent="claude-code",
            repository=where,
            scope="repository" if where else "organisation",
            files=[path for path in paths.split(",") if path],
            session=f"session-{name}",
            when=now - float(days) * _DAY,
            importance=0.7,
        )
        found.append((name, note))
    return found


def prompts() -> list[Prompt]:
    found = []
    for repository, wanted, text in _lines("prompts.tsv"):
        names = frozenset(name for name in wanted.split(",") if name)
        found.append(Prompt(repository, "issue" if names else "nothing", text, names))
    return found


def evaluate() -> list[PromptResult]:
    """Store the history in a temporary memory and search for every prompt."""
    with Brain(":memory:") as brain:
        team = TeamMemory(brain, author="reader@acme.io")
        names = {team.remember(note).memory_id: name for name, note in history()}
        return run_prompts(
            prompts(), team, lambda prompt: _repository(prompt.repository), lambda experience: [names[experience.id]]
        )


def _repository(name: str) -> str:
    return f"github.com/acme/{name}"
