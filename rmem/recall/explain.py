"""`Explanation`: the parts of the score of a hit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class WordMatch:
    """A question word, the word of the memory that matched it, and its share of the BM25 score."""

    word: str
    matched: str
    score: float


@dataclass(slots=True)
class Explanation:
    """`components` add up to the score. `bm25` and `cosine` are the raw scores before fusion."""

    mode: str
    components: dict[str, float]
    bm25: float = 0.0
    cosine: float | None = None
    words: list[WordMatch] = field(default_factory=list)
    asked: dict[str, float] = field(default_factory=dict)
    """Every word of the question and its weight (idf) among the `rows` memories that were searched."""
    rows: int = 0
    notes: list[str] = field(default_factory=list)
    signals: dict[str, float] = field(default_factory=dict)
    """The inputs of `relevance`."""

    @property
    def score(self) -> float:
        return sum(self.components.values())

    def to_dict(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "score": self.score,
            "components": dict(self.components),
            "bm25": self.bm25,
            "cosine": self.cosine,
            "words": [{"word": m.word, "matched": m.matched, "score": m.score} for m in self.words],
            "asked": dict(self.asked),
            "rows": self.rows,
            "notes": list(self.notes),
            "signals": dict(self.signals),
        }

    def __str__(self) -> str:
        parts = " ".join(f"{name} {value:+.2f}" for name, value in self.components.items() if abs(value) >= 0.005)
        words = ", ".join(m.word if m.word == m.matched else f"{m.word}~{m.matched}" for m in self.words)
        return f"{parts}" + (f" | words: {words}" if words else "")
