"""What is said in a framework, as memories: turns in, turns and memories out.

Frameworks differ in the classes of their messages. Here a message is a `Turn`: who spoke, the words it is found by, and
the message itself as JSON data, which comes back exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..brain import Brain
from ..errors import InputError
from ..filters import Filter
from ..models import Hit, Memory
from .values import opened, sound

_MOST_HITS = 1000  # of one recall; a server gives no more


class Turn(NamedTuple):
    actor: str
    text: str
    value: Any
    id: str | None = None
    when: float | None = None


class Turns:
    """Turns of one type in a Brain, which may be given as itself or by its address.

    A scope, such as app="a", user="ann", is kept with each turn and chooses among them later.
    """

    def __init__(
        self, brain: Brain | str | Path | None, kind: str, *, agent: str, under: str = "value", k: int = 5
    ) -> None:
        if not 1 <= k <= _MOST_HITS:
            raise InputError(f"k must be from 1 to {_MOST_HITS}, got {k!r}", field="k")
        self.brain, self._owned = opened(brain)
        self.kind, self.agent, self.k, self._under = kind, agent, k, under

    def where(self, session: str | None = None, **scope: Any) -> Filter:
        chosen: dict[str, Any] = {"agent": self.agent, "type": self.kind, "attributes": scope}
        return Filter.of(chosen if session is None else {**chosen, "session": session})

    def add(self, turns: Iterable[Turn], session: str | None = None, **scope: Any) -> list[Memory]:
        """Keep turns in one transaction; one with the id of an earlier turn replaces it."""
        new = [self._memory(turn, session, scope) for turn in turns]
        return self.brain.remember_many(new) if new else []

    def _memory(self, turn: Turn, session: str | None, scope: dict[str, Any]) -> dict[str, Any]:
        optional = {"session": session, "id": turn.id, "when": turn.when}
        return {
            "agent": self.agent,
            "type": self.kind,
            "actor": turn.actor,
            "text": sound(turn.text, turn.actor),
            "metadata": {**scope, self._under: json.dumps(turn.value)},
            **{name: value for name, value in optional.items() if value is not None},
        }

    def replace(self, turns: Iterable[Turn], session: str) -> None:
        """Put turns in the place of all that a session has; if the process dies in between, both are there."""
        old = self.brain.memories(self.where(session), order="last step", limit=1)
        self.add(turns, session)
        if old:
            self.brain.forget(where=replace(self.where(session), max_step=old[0].step))

    def value(self, memory: Memory) -> Any:
        """The message of a memory."""
        return json.loads(memory.contents[self._under])

    def memories(self, session: str | None = None, limit: int | None = None, **scope: Any) -> Sequence[Memory]:
        """The latest turns, oldest first."""
        return self.brain.memories(self.where(session, **scope), order="last step", limit=limit)[::-1]

    def read(self, session: str | None = None, limit: int | None = None, **scope: Any) -> list[Any]:
        """The messages of the latest turns, oldest first."""
        return [self.value(memory) for memory in self.memories(session, limit, **scope)]

    def recall(
        self,
        question: str,
        k: int | None = None,
        session: str | None = None,
        min_relevance: float | None = None,
        **scope: Any,
    ) -> Sequence[Hit]:
        """The turns that best answer a question, best first; none for a question without words."""
        if not question.strip():
            return []
        most = min(self.k if k is None else k, _MOST_HITS)
        return self.brain.recall(question, most, self.where(session, **scope), min_relevance=min_relevance)

    def pop(self, session: str) -> Any:
        """Remove the latest turn and return its message, or None; each of several callers gets another."""
        while newest := self.brain.memories(self.where(session), order="last step", limit=1):
            if self.brain.forget(newest[0].id):
                return self.value(newest[0])
        return None

    def clear(self, session: str | None = None, **scope: Any) -> None:
        self.brain.forget(where=self.where(session, **scope))

    def close(self) -> None:
        """Close the Brain if it was opened here."""
        if self._owned:
            self.brain.close()


def as_prompt(hits: Iterable[Hit]) -> str:
    """Hits as a block for a prompt; nothing for none."""
    lines = [f"- {' '.join(hit.text.split())}" for hit in hits]
    return "\n".join(["Relevant memories:", *lines]) if lines else ""
