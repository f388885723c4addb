"""Reading a question: its words, "phrases in quotes", -excluded words, the time it names and what it asks for.

Any text is a question; nothing in it is an operator but double quotes and a minus before a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..index.analyser import Word, plain, question_words
from .timewords import Span, time_span

_PHRASE = re.compile(r'"([^"]{1,1000})"|“([^”]{1,1000})”')
_EXCLUDED = re.compile(r"(?<!\S)-(?=[^\W\d_])([^\s\"“”]+)")
_ASKS_TIME = re.compile(
    r"^\W*(?:\w+\W+){0,2}when\b|\b(?:what|which) (?:year|month|day|date|time)\b|\bhow long\b", re.IGNORECASE
)
_ASKS_SEVERAL = re.compile(  # present perfect, a plural, "both", "how many", "in common"
    r"\b(?:has|have|had)\b(?! to\b)|^\W*(?:what|which)(?: (?:are|were)\b|(?: \w+){0,2}? \w+(?<!s)s\b(?<!'s))"
    r"|\bboth\b|\bhow many\b|\bin common\b",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    words: tuple[Word, ...]
    phrases: tuple[str, ...]
    excluded: tuple[Word, ...]
    span: Span | None
    asks_time: bool
    asks_several: bool


def read_question(text: str, now: datetime) -> Question:
    phrases = [spoken for found in _PHRASE.finditer(text) if (spoken := plain(found[1] or found[2]))]
    rest = _PHRASE.sub(lambda found: f" {found[1] or found[2]} ", text)
    excluded = [word for found in _EXCLUDED.findall(rest) for word in question_words(found)]
    rest = _EXCLUDED.sub(" ", rest) if excluded else rest
    return Question(
        text=rest.strip(),
        words=tuple(word for word in question_words(rest) if not word.stop),
        phrases=tuple(phrases),
        excluded=tuple(excluded),
        span=time_span(rest[:2000], now),
        asks_time=bool(_ASKS_TIME.search(rest[:2000])),
        asks_several=bool(_ASKS_SEVERAL.search(rest[:2000])),
    )


def without_names(text: str, names: Sequence[str]) -> str:
    """A question without the names of actors, which say who and not what."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")(?:['’]s)?(?!\w)"
    bare = " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
    return bare if _WORDS.search(bare) else text
