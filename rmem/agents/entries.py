"""The results of the API: lists of dictionaries with exactly the documented keys. Scores, tiers and missing tiers are
attributes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from ..attachments import restore
from ..contents import own_contents
from ..errors import InputError, MemoryInputError
from ..feedback import Recall
from ..models import Memory


class MemoryEntry(dict[str, Any]):
    """One memory in the documented structure. `score` is how well it fits the question, where there was one; `tier` is
    where it was found; `place` is the memory's."""

    score: float | None
    tier: str
    place: str | None
    recall: Recall | None = None
    """The recall that found this memory, if it was found by words or by similarity."""

    def __init__(self, memory: Memory, score: float | None = None, *, attachments: bool = False) -> None:
        """Without `attachments`, contents have only their names, which fit into a prompt."""
        super().__init__(memory.document())
        self["contents"] = (restore if attachments else own_contents)(memory.contents)
        self.score = score
        self.tier = memory.tier
        self.place = memory.place

    def useful(self, useful: bool = True) -> None:
        """Give feedback: whether this memory helped to answer the question; `rmem eval online` reads it. For results of
        a question in words or of `retrieve_similar_states`, in the same process."""
        if self.recall is None:
            raise MemoryInputError(
                "only a memory that was found by words or by similarity, in this process, can be judged", field="useful"
            )
        try:
            self.recall.record(self.recall.of_memory(self["memory_id"], useful))
        except InputError as error:
            raise MemoryInputError.caused_by(error) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _entry, (dict(self), self.score, self.tier, self.place)


def _entry(data: dict[str, Any], score: float | None, tier: str, place: str | None = None) -> MemoryEntry:
    entry = MemoryEntry.__new__(MemoryEntry)
    entry.update(data)
    entry.score, entry.tier, entry.place = score, tier, place
    return entry


class MemoryEntries(list[MemoryEntry]):
    """A sorted list of memories. `missing_tiers` are those whose store did not answer; the archive answered for them,
    so nothing is missing."""

    def __init__(self, entries: Iterable[MemoryEntry] = (), missing_tiers: tuple[str, ...] = ()) -> None:
        super().__init__(entries)
        self.missing_tiers = missing_tiers

    def set_recall(self, recall: Recall) -> Self:
        """Set the recall of all entries, so that they can get feedback."""
        for entry in self:
            entry.recall = recall
        return self
