"""Every knob of the ranking. What each earns on which kind of memories is in docs/decisions/0019."""

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

    k1: float = 0.5
    """BM25: how soon a repeated word stops counting."""
    b: float = 0.75
    """BM25: how much long memories are held back."""
    soft_floor: float = 0.3
    """Cosine from which a word of a memory counts as a relative of a question word."""
    soft_weight: float = 0.7
    """What a relative counts, times its cosine."""
    soft_most: int = 8
    """At most so many relatives of a word, the closest first."""
    dense: float = 0.4
    """Share of the vector side; the words have the rest."""
    pool: int = 500
    """Mean and deviation of a side come from its best so many scores, so that they mean the same in any store."""
    context: float = 60.0
    """Words up to which a memory is understood by what surrounds it; `spread` to `specific` fade beyond."""
    spread: float = 0.3
    """What a word counts that stands in the neighbouring turn (half of it at two steps)."""
    near: float = 0.18
    """Score lent by each of the four turns around."""
    answer: float = 0.4
    """Further score that a question lends to the turn behind it."""
    session: float = 0.6
    """Weight of the best memory of the session."""
    asking: float = 0.8
    """Taken from turns that ask rather than tell."""
    reacting: float = 0.3
    """Taken from turns that open as a mere reaction ("Thanks", "Wow")."""
    length: float = 0.5
    """For turns that say more: times ln(1 + distinct words)."""
    specific: float = 0.3
    """For turns that name things: times ln(1 + names, numbers and quotations)."""
    own: float = 2.0
    """Taken from what an assistant said, if the question speaks of the asker ("what did I …", "my …")."""
    actor: float = 1.4
    """For memories of the one actor whom the question names."""
    quoted: float = 1.0
    """For memories that hold, word for word, what the question has in quotes."""
    when: float = 1.0
    """For memories that speak of a time, if the question asks for one."""
    time: float = 2.0
    """For memories inside the span of time that the question names, fading outside it."""
    time_before: float = 3.0
    """Days over which that fades before a date."""
    time_after: float = 14.0
    """Days over which it fades after a date: things are often told later."""
    open: float = 5.0
    """Factor on `time` and `actor` when the question asks for nothing else ("what happened yesterday?")."""
    importance: float = 1.0
    """Times the memory's importance above its default of 0.5."""
    facts: float = 0.6
    """Share of the hits that chains of facts may take; 0 leaves facts out of the ranking."""
    feedback: float = 1.5
    """At most so much is added or taken for what was said of a memory as an answer to questions like this one."""
    time_words: str = "boost"
    """What time words in a question do: "boost", "filter" or "off"."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "time_words":
                checks.one_of("time_words", value, TIME_WORDS)
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
