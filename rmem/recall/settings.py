"""All settings of the ranking. What each earns on which kind of memories is in docs/decisions/0027."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

from .. import checks

TIME_WORDS = ("boost", "filter")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How hybrid recall ranks. All weights are in standard deviations of the score; 0 turns a part off.

    Brain(settings=RecallSettings(dense=0.7, context=0)) or brain.recall(…, settings={"dense": 0.7}).
    """

    dense: float | None = None
    """Weight of vectors, 0 to 1; words have the rest. None: that of the embedder, 0.4 or 0.5 for a transformer."""
    similar: float = 0.7
    """Weight of a word of similar meaning, times its cosine to the question word, and of one that was misspelt."""
    context: float = 0.2
    """Weight of the turns around a turn: what each of them lends to it, twice that if it answers a question, three
    times for the best turn of its session."""
    substance: float = 0.4
    """Added to turns for what they say: times ln(1 + distinct words) and ln(1 + names and numbers). Subtracted from
    mere reactions, and twice from questions."""
    named: float = 1.4
    """Added for memories of the person whom the question names, and for those that contain what it quotes."""
    own: float = 2.0
    """Subtracted from what an assistant said, if the question is about the asker ("what did I …", "my …")."""
    time: float = 2.0
    """Added for memories of the time that the question names, decaying outside it; half of it for memories that mention
    a time, if the question asks for one."""
    time_words: str = "boost"
    """What time words in a question do: "boost" raises memories of that time, "filter" leaves out all others."""
    newer: float = 3.0
    """How far a newer memory may be behind an older one about the same thing to come before it, if the question asks
    what holds now; half of it for turns of a conversation."""
    importance: float = 1.0
    """Added times the importance above its default of 0.5."""
    facts: float = 0.6
    """Share of the hits that chains of facts may take; 0 leaves facts out of the ranking."""
    feedback: float = 1.5
    """Most that feedback on similar questions adds to or subtracts from a score."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "time_words":
                checks.one_of("time_words", value, TIME_WORDS)
            elif f.name == "dense" and value is None:
                continue
            elif f.name in ("dense", "facts"):
                object.__setattr__(self, f.name, checks.share(f.name, value))
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
