"""How well the team memory tells what fits, and keeps quiet otherwise: a history of four repositories and prompts over
it, of which half have nothing to be told. Both files are part of the package, so that anybody can measure again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from ...brain import Brain
from ...team.briefing import BAR, Briefing
from ...team.memory import TeamMemory
from ...team.notes import Note

_DAY = 86_400.0
_AUTHOR = "reader@acme.io"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in a repository, and the memories of which at least one should be told; none: nothing should."""

    repository: str
    wanted: frozenset[str]
    text: str


@dataclass(slots=True)
class Report:
    """What was measured. A prompt is told right if one of its wanted memories is among those told."""

    prompts: int
    relevant: int
    precision: float
    recall: float
    recall_at_3: float
    precision_of_memories: float
    wrongly_told: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "prompts": self.prompts,
            "relevant": self.relevant,
            "precision": self.precision,
            "recall": self.recall,
            "recall@3": self.recall_at_3,
            "precision_of_memories": self.precision_of_memories,
            "wrongly_told": self.wrongly_told,
            "missed": self.missed,
        }


def _lines(name: str) -> list[list[str]]:
    text = (files(__package__) / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def history() -> list[tuple[str, Note]]:
    """(name, note) of everything that the team learned."""
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
    return [
        Prompt(_repository(repository), frozenset(name for name in wanted.split(",") if name), text)
        for repository, wanted, text in _lines("prompts.tsv")
    ]


def evaluate(bar: float = BAR) -> Report:
    """Put the history into a memory of its own and give it every prompt."""
    with Brain(":memory:") as brain:
        team = TeamMemory(brain, author=_AUTHOR)
        names = {team.remember(note).memory_id: name for name, note in history()}
        briefing = Briefing(brain, bar=bar)
        told_right = told_prompts = told_memories = right_memories = within_three = 0
        wrongly: list[str] = []
        missed: list[str] = []
        asked = prompts()
        for prompt in asked:
            told = [names[one.id] for one in briefing.relevant(prompt.text, team, prompt.repository)]
            right = prompt.wanted.intersection(told)
            told_memories, right_memories = told_memories + len(told), right_memories + len(right)
            told_prompts += bool(told)
            told_right += bool(right)
            if told and not right:
                wrongly.append(f"{prompt.text} → {', '.join(told)}")
            if prompt.wanted:
                first = [names[one.id] for one in team.recall(prompt.text, repository=prompt.repository, k=3)]
                within_three += bool(prompt.wanted.intersection(first))
                if not right:
                    missed.append(f"{prompt.text} → {', '.join(sorted(prompt.wanted))}")
    relevant = sum(bool(prompt.wanted) for prompt in asked)
    return Report(
        prompts=len(asked),
        relevant=relevant,
        precision=told_right / max(told_prompts, 1),
        recall=told_right / relevant,
        recall_at_3=within_three / relevant,
        precision_of_memories=right_memories / max(told_memories, 1),
        wrongly_told=wrongly,
        missed=missed,
    )


def _repository(name: str) -> str:
    return f"github.com/acme/{name}"
