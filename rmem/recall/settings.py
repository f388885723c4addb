"""All settings of the ranking. What each earns on which kind of memories is in docs/decisions/0027."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from .. import checks

TIME_WORDS = ("boost", "filter", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How hybrid recall ranks. All weights are in standard deviations of the score; 0 turns a part off.

    Brain(settings=RecallSettings(dense=0.7, session=0)) or brain.recall(…, settings={"dense": 0.7}).
    """

    k1: float = 0.5
    """BM25 k1: how soon repetitions of a word stop counting."""
    b: float = 0.75
    """BM25 b: how much long memories are penalised."""
    soft_floor: float = 0.3
    """Least cosine of a word in the memories and a question word to count as similar."""
    soft_weight: float = 0.7
    """Weight of a similar word, times its cosine."""
    soft_most: int = 8
    """Most similar words per question word, the closest first."""
    dense: float | None = None
    """Weight of vectors, 0 to 1; words have the rest. None: that of the embedder, 0.4 or 0.5 for a transformer."""
    pool: int = 500
    """Number of best scores that give mean and deviation, so that these are comparable between stores."""
    context: float = 60.0
    """Length in words up to which context counts for a memory; `spread` to `specific` decay beyond."""
    spread: float = 0.3
    """Weight of a word in the neighbouring turn (half of it at two steps)."""
    near: float = 0.18
    """Share of the score that each of the four surrounding turns adds."""
    answer: float = 0.4
    """Further share that a question adds to the turn after it."""
    session: float = 0.6
    """Weight of the best score in the session."""
    asking: float = 0.8
    """Subtracted from turns that are questions."""
    reacting: float = 0.3
    """Subtracted from turns that begin as a reaction ("Thanks", "Wow")."""
    length: float = 0.5
    """Added for substance: times ln(1 + distinct words)."""
    specific: float = 0.3
    """Added for details: times ln(1 + names, numbers and quotations)."""
    own: float = 2.0
    """Subtracted from what an assistant said, if the question is about the asker ("what did I …", "my …")."""
    actor: float = 1.4
    """Added for memories of the one actor whom the question names."""
    quoted: float = 1.0
    """Added for memories that contain what the question quotes, word for word."""
    when: float = 1.0
    """Added for memories that mention a time, if the question asks for one."""
    time: float = 2.0
    """Added for memories inside the time span that the question names, decaying outside it."""
    time_before: float = 3.0
    """Days over which that decays before a date."""
    time_after: float = 14.0
    """Days over which it decays after a date: things are often told later."""
    open: float = 5.0
    """Factor on `time` and `actor` when the question asks for nothing else ("what happened yesterday?")."""
    importance: float = 1.0
    """Added times the importance above its default of 0.5."""
    facts: float = 0.6
    """Share of the hits that chains of facts may take; 0 leaves facts out of the ranking."""
    feedback: float = 1.5
    """Most that feedback on similar questions adds to or subtracts from a score."""
    time_words: str = "boost"
    """What time words in a question do: "boost", "filter" or "off"."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "time_words":
                checks.one_of("time_words", value, TIME_WORDS)
            elif f.name == "dense" and value is None:
                continue
            elif f.name in ("dense", "b", "soft_floor", "facts"):
                object.__setattr__(self, f.name, checks.share(f.name, value))
            elif f.name in ("pool", "soft_most"):
                checks.whole(f.name, value, low=2 if f.name == "pool" else 0, high=100_000)
            else:
                object.__setattr__(self, f.name, checks.number(f.name, value, low=0, high=1000))

    @classmethod
    def of(cls, settings: RecallSettings | Mapping[str, Any] | None) -> RecallSettings:
        if isinstance(settings, RecallSettings):
            return settings
        if settings is None:
            return cls()
        if not isinstance(settings, Mapping):
            raise checks.refuse("settings", "RecallSettings or a mapping", settings)
        checks.known_fields("recall settings", settings, [f.name for f in fields(cls)])
        return cls(**settings)


@lru_cache(64)
def with_dense(settings: RecallSettings, dense: float) -> RecallSettings:
    """Return settings with this weight of vectors, unless they have one."""
    return settings if settings.dense is not None else replace(settings, dense=dense)
