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
    soft_floor: float = 0.35
    """Cosine from which a word of a memory counts as a relative of a question word."""
    soft_weight: float = 0.7
    """What a relative counts, times its cosine."""
    soft_most: int = 8
    """At most so many relatives of a word, the closest first."""
    spread: float = 0.3
    """What a word counts that stands in the neighbouring memory of the session (half of it at two steps)."""
    dense: float = 0.5
    """Share of the vector side; the words have the rest."""
    pool: int = 500
    """Mean and deviation of a side come from its best so many scores, so that they mean the same in any store."""
    near: float = 0.15
    """Score lent by the direct neighbours in the session."""
    far: float = 0.2
    """Score lent by the neighbours at two steps (in a dialogue, the same speaker)."""
    answer: float = 0.35
    """Further score that a question lends to the memory behind it."""
    session: float = 0.6
    """Weight of the best memory of the session."""
    actor: float = 1.25
    """For memories of the one actor whom the question names."""
    several_session: float = 0.5
    """Factor on `session` when the question asks for several things."""
    several_actor: float = 1.3
    """Factor on `actor` when the question asks for several things."""
    length: float = 0.45
    """For memories that say more: times ln(1 + distinct words)."""
    specific: float = 0.25
    """For memories that name things: times ln(1 + names, numbers and quotations)."""
    asking: float = 0.8
    """Taken from memories that ask rather than tell."""
    reacting: float = 0.3
    """Taken from memories that open as a mere reaction ("Thanks", "Wow")."""
    title: float = 1.0
    """For memories that hold a title quoted in the question."""
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
    importance: float = 0.5
    """Times the memory's importance above its default of 0.5."""
    time_words: str = "boost"
    """What time words in a question do: "boost", "filter" or "off"."""
    operators: bool = True
    """Whether "quotes" and -words in a question are operators. Off for text that nobody wrote as a question: a prompt,
    the output of a command."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "time_words":
                checks.one_of("time_words", value, TIME_WORDS)
            elif f.name == "operators":
                checks.flag("operators", value)
            elif f.name in ("dense", "b", "soft_floor"):
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
