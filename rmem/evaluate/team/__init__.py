"""Measure what the team memory adds to prompts: run prompts over histories and count right and wrong memories. Half of
the prompts have no answer. Histories come from repositories that the caller names (`repositories`) or from the package
(`builtin`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...team.briefing import MOST_SHOWN, Briefing, Place, select_relevant
from ...team.memory import TeamMemory
from ...team.notes import Experience

BARS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8)
"""Thresholds of relevance at which the curve is drawn."""
KINDS = ("issue", "error", "how", "nothing")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in a repository, and its answers: names of memories or prefixes of commit ids; empty if nothing should
    be shown. The kind "error" is the output of a failed command; other prompts are typed."""

    repository: str
    kind: str
    text: str
    answers: frozenset[str]


@dataclass(slots=True)
class Found:
    """A memory found for a prompt."""

    id: str
    title: str
    relevance: float
    is_right: bool


@dataclass(slots=True)
class PromptResult:
    """A prompt and the memories found for it, the most relevant first."""

    prompt: Prompt
    found: list[Found]

    def select_shown(self, bar: float) -> list[Found]:
        """Return the memories that a hook shows at this threshold of relevance."""
        return select_relevant(self.found, bar)[:MOST_SHOWN]


@dataclass(slots=True)
class Figures:
    """Counts over some prompts at one threshold of relevance."""

    prompts: int = 0
    with_answer: int = 0
    shown: int = 0
    right: int = 0
    recalled: int = 0
    first_three: int = 0
    shown_wrongly: int = 0

    @property
    def precision(self) -> float:
        """Return the share of shown memories that are right."""
        return self.right / max(self.shown, 1)

    @property
    def recall(self) -> float:
        """Return the share of prompts with an answer for which a right memory was shown."""
        return self.recalled / max(self.with_answer, 1)

    @property
    def recall_at_3(self) -> float:
        """Return the share of prompts with an answer that have a right one among the first three, at any threshold."""
        return self.first_three / max(self.with_answer, 1)

    @property
    def wrongly(self) -> float:
        """Return the share of prompts without an answer for which something was shown."""
        return self.shown_wrongly / max(self.prompts - self.with_answer, 1)

    def to_dict(self) -> dict[str, Any]:
        return {
            "prompts": self.prompts,
            "with_answer": self.with_answer,
            "precision": {"value": self.precision, "right": self.right, "of": self.shown},
            "recall": {"value": self.recall, "right": self.recalled, "of": self.with_answer},
            "told_although_nothing_fits": {
                "value": self.wrongly, "told": self.shown_wrongly, "of": self.prompts - self.with_answer
            },
            "right_among_first_three": {"value": self.recall_at_3, "right": self.first_three, "of": self.with_answer},
        }  # fmt: skip


def run_prompts(
    prompts: Sequence[Prompt],
    team: TeamMemory,
    place_of: Callable[[Prompt], Place],
    names_of: Callable[[Experience], Iterable[str]],
    on_progress: Callable[[int, int], None] | None = None,
) -> list[PromptResult]:
    """Search for every prompt as a hook does. A memory is right if one of its `names_of` starts with an answer."""
    briefing = Briefing(team.brain)
    results = []
    for number, prompt in enumerate(prompts, 1):
        where = place_of(prompt)
        if prompt.kind == "error":
            found = briefing.failure_candidates("", prompt.text, team, where)
        else:
            found = briefing.candidates(prompt.text, team, where)
        wanted = tuple(prompt.answers)
        rated = [
            Found(hit.id, hit.text.partition("\n")[0], hit.relevance, is_right(names_of(hit), wanted)) for hit in found
        ]
        results.append(PromptResult(prompt, rated))
        if on_progress is not None:
            on_progress(number, len(prompts))
    return results


def is_right(names: Iterable[str], wanted: tuple[str, ...]) -> bool:
    return any(name.startswith(wanted) for name in names)


def measure(results: Iterable[PromptResult], bar: float) -> Figures:
    """Count results at one threshold of relevance."""
    figures = Figures()
    for result in results:
        shown = result.select_shown(bar)
        right = sum(found.is_right for found in shown)
        figures.prompts += 1
        figures.shown += len(shown)
        figures.right += right
        if result.prompt.answers:
            figures.with_answer += 1
            figures.recalled += right > 0
            figures.first_three += any(found.is_right for found in result.found[:MOST_SHOWN])
        else:
            figures.shown_wrongly += bool(shown)
    return figures


def mistakes(results: Iterable[PromptResult], bar: float) -> dict[str, list[str]]:
    """List what was shown wrongly and what was missed, one line per prompt."""
    wrong, missed = [], []
    for result in results:
        text = " ".join(result.prompt.text.split())[:160]
        shown = result.select_shown(bar)
        errors = [found for found in shown if not found.is_right]
        if errors:
            wrong.append(f"{text} → {'; '.join(f'{found.title[:90]} ({found.relevance:.2f})' for found in errors)}")
        if result.prompt.answers and len(errors) == len(shown):
            missed.append(f"{text} → {', '.join(sorted(result.prompt.answers))}")
    return {"wrongly_told": wrong, "missed": missed}
