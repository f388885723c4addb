"""What a store is filled with and asked: synthetic memories of any number, or sets of real ones from files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any, Protocol

from rmem.evaluate.recall_sets import files_in, memories_of, read
from rmem.testing.synthetic import synthetic_memories, synthetic_questions


class Material(Protocol):
    """A source of memories and of questions about them; `step` numbers the memories from 0."""

    def memories(self, size: int, seed: int) -> Iterator[dict[str, Any]]: ...

    def questions(self, number: int, seed: int, size: int) -> list[str]: ...


class Synthetic:
    """Made-up memories: the same for everybody, whatever the number."""

    def memories(self, size: int, seed: int) -> Iterator[dict[str, Any]]:
        return synthetic_memories(size, seed)

    def questions(self, number: int, seed: int, size: int) -> list[str]:
        return synthetic_questions(number, seed, size)


class RealTexts:
    """Sets of `rmem eval recall`: what people and programs really wrote. Each store of a set is one agent."""

    def __init__(self, path: Path) -> None:
        self._memories: list[dict[str, Any]] = []
        self._questions: list[str] = []
        for recall_set in map(read, files_in([path])):
            for at, store in enumerate(recall_set.stores):
                agent = f"{recall_set.name}-{at}"
                self._memories += [{**memory, "agent": agent} for memory in memories_of(store)]
                self._questions += [question["question"] for question in store["questions"]]
        self.size = len(self._memories)

    def memories(self, size: int, seed: int) -> Iterator[dict[str, Any]]:
        """Return stores in a random order, so that fewer memories are also of every kind; again from the first one if
        more are wanted than there are."""
        agents = sorted({memory["agent"] for memory in self._memories})
        random.Random(seed).shuffle(agents)
        rank = {agent: place for place, agent in enumerate(agents)}
        ordered = sorted(self._memories, key=lambda memory: rank[memory["agent"]])
        endless = (memory for _ in count() for memory in ordered)
        return ({**memory, "step": step} for step, memory in enumerate(islice(endless, size)))

    def questions(self, number: int, seed: int, size: int) -> list[str]:
        chosen = random.Random(seed)
        return [chosen.choice(self._questions) for _ in range(number)]


def material_of(texts: Path | None) -> Material:
    return Synthetic() if texts is None else RealTexts(texts)
