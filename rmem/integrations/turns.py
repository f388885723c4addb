"""Messages of any framework as memories: adapters convert a message to a `Turn` and store it here.

A `Turn` has the speaker, the words by which the message is found, and the message itself as JSON, which is returned
exactly.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..annotations import Mode
from ..brain import Brain
from ..errors import InputError
from ..filters import Filter
from ..models import Hit, Memory
from .common import MAX_HITS, clean_text, open_brain


class Turn(NamedTuple):
    """A message: who says what, and `value`, the JSON from which the framework's own object is made again."""

    actor: str
    text: str
    value: Any
    id: str | None = None
    when: float | None = None


class Turns:
    """Turns of one type in `brain`, a Brain or its address.

    A scope, such as app="a", user="ann", is stored with each turn and filters them later.
    """

    def __init__(
        self, brain: Brain | str | Path | None, kind: str, *, agent: str, value_field: str = "value", k: int = 5
    ) -> None:
        if not 1 <= k <= MAX_HITS:
            raise InputError(f"k must be from 1 to {MAX_HITS}, got {k!r}", field="k")
        self.brain, self._owned = open_brain(brain)
        self.kind, self.agent, self.k, self._value_field = kind, agent, k, value_field

    def where(self, session: str | None = None, **scope: Any) -> Filter:
        chosen: dict[str, Any] = {"agent": self.agent, "type": self.kind, "attributes": scope}
        return Filter.of(chosen if session is None else {**chosen, "session": session})

    def add(self, turns: Iterable[Turn], session: str | None = None, **scope: Any) -> list[Memory]:
        """Store turns in one transaction; replace those with the same id."""
        new = [self._memory(turn, session, scope) for turn in turns]
        return self.brain.remember_many(new) if new else []

    def _memory(self, turn: Turn, session: str | None, scope: dict[str, Any]) -> dict[str, Any]:
        optional = {"session": session, "id": turn.id, "when": turn.when}
        return {
            "agent": self.agent,
            "type": self.kind,
            "actor": turn.actor,
            "text": clean_text(turn.text, turn.actor),
            "metadata": {**scope, self._value_field: json.dumps(turn.value)},
            **{name: value for name, value in optional.items() if value is not None},
        }

    def replace(self, turns: Iterable[Turn], session: str) -> None:
        """Replace all turns of a session. If the process dies meanwhile, old and new ones are there."""
        old = self.brain.memories(self.where(session), order="last step", limit=1)
        self.add(turns, session)
        if old:
            self.brain.forget(where=replace(self.where(session), max_step=old[0].step))

    def value(self, memory: Memory) -> Any:
        """Return the message of a memory."""
        return json.loads(memory.contents[self._value_field])

    def memories(self, session: str | None = None, limit: int | None = None, **scope: Any) -> Sequence[Memory]:
        """Return the memories of the latest turns, oldest first."""
        return self.brain.memories(self.where(session, **scope), order="last step", limit=limit)[::-1]

    def read(self, session: str | None = None, limit: int | None = None, **scope: Any) -> list[Any]:
        """Return the messages of the latest turns, oldest first."""
        return [self.value(memory) for memory in self.memories(session, limit, **scope)]

    def recall(
        self,
        question: str,
        k: int | None = None,
        session: str | None = None,
        min_relevance: float | None = None,
        mode: Mode = "hybrid",
        **scope: Any,
    ) -> Sequence[Hit]:
        """Return the turns that best answer a question, best first; [] for a question without words."""
        if not question.strip():
            return []
        most = min(self.k if k is None else k, MAX_HITS)
        where = self.where(session, **scope)
        return self.brain.recall(question, most, where, mode=mode, min_relevance=min_relevance)

    def pop(self, session: str) -> Any:
        """Remove the latest turn and return its message, or None; each of several concurrent callers gets another."""
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
    """Format hits as a block for a prompt; "" if there are none."""
    lines = [f"- {' '.join(hit.text.split())}" for hit in hits]
    return "\n".join(["Relevant memories:", *lines]) if lines else ""
