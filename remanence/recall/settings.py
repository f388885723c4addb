"""Every knob of the ranking, with the values that `rmem eval locomo` was measured with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from .. import checks

TIME_WORDS = ("boost", "filter", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """How hybrid recall ranks. All weights are in standard deviations of the score; 0 turns a part off.

    Brain(settings=RecallSettings(dense=0.7, session=0)) or brain.recall(…, settings={"dense": 0.7}).
    """

    k1: float = 0.9
    """BM25: how soon a repeated word stops counting."""
    b: float = 0.4
    """BM25: how much long memories are held back."""
    soft_floor: float = 0.4
    """Cosine from which a word of a memory counts as a relative of a question word."""
    soft_weight: float = 0.7
    """What a relative counts, times its cosine."""
    spread: float = 0.2
    """What a word counts that stands in the neighbouring memory of the session (half of it at two steps)."""
    dense: float = 0.5
    """Share of the vector side; the words have the rest."""
    near: float = 0.25
    """Score lent by the direct neighbours in the session."""
    far: float = 0.15
    """Score lent by the neighbours at two steps."""
    answer: float = 0.15
    """Further score that a question lends to the memory behind it."""
    session: float = 0.2
    """Weight of the best memory of the session."""
    actor: float = 1.0
    """For memories of the one actor whom the question names."""
    length: float = 0.3
    """For memories that say more (log of distinct words)."""
    asking: float = 0.6
    """Taken from memories that ask rather than tell."""
    when: float = 0.3
    """For memories that speak of a time, if the question asks for one."""
    time: float = 0.6
    """For memories inside the span of time that the question names, fading outside it."""
    importance: float = 0.2
    """Weight of the memory's importance around its default of 0.5."""
    time_words: str = "boost"
    """What time words in a question do: "boost", "filter" or "off"."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "time_words":
                checks.one_of("time_words", value, TIME_WORDS)
            elif f.name in ("dense", "b", "soft_floor"):
                object.__setattr__(self, f.name, checks.share(f.name, value))
            else:
                object.__setattr__(self, f.name, checks.number(f.name, value, low=0, high=100))

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
