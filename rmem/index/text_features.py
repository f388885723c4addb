"""Compute features of a text when it is stored: whether it is a question, a reaction or mentions a time, and how many
names, numbers and quotations it contains. Ranking prefers memories with substance."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..patterns import lazy_pattern

ASKS, REACTS, TELLS_TIME = 1, 2, 4
MOST_SPECIFIC = 255
SEALED = 128  # an encrypted text, whose features are not stored

_TIME_WORDS = frozenset(
    """yesterday today tonight tomorrow ago last next since soon recently just day days week weeks weekend weekends
    month months year years monday mondays tuesday tuesdays wednesday wednesdays thursday thursdays friday fridays
    saturday saturdays sunday sundays january february march april june july august september october november
    december""".split()
)
_WORD = lazy_pattern(r"[^\W\d_]+")
_ONLY_LETTERS = {code: " " for code in range(128) if not chr(code).isalpha()}  # for ASCII text
_DIGIT = lazy_pattern(r"\d")
_TIME_FORMS = lazy_pattern(
    r"\b(?:this (?:morning|afternoon|evening|summer|autumn|fall|winter|spring)|\d+(?:st|nd|rd|th)|(?:19|20)\d\d)\b"
)
_REACTION = lazy_pattern(
    r"(?:wow|thanks|thank you|congrats|congratulations|that's|that is|sounds|awesome|cool|great|nice|glad|yeah|yep"
    r"|definitely|absolutely|totally|bye|take care|sure|no problem|aww|oh|ok|okay)\b",
    re.IGNORECASE,
)
# A name inside a sentence, a number or a quotation mark. One set of first characters makes `re` skip fast.
_SPECIFIC = lazy_pattern(r"[A-Z\d\"](?:(?<=[a-z,] [A-Z])[a-z]+|(?<=\d)\d*|(?<=\"))")
_NOTE_AT_END = lazy_pattern(r"\s*\[[^\[\]]*\]\s*$")  # an annotation such as [image: …]
_MAX_CHARACTERS = 20_000  # characters; more would not change the features


class TextFeatures(NamedTuple):
    """Flags of a text (ASKS, REACTS, TELLS_TIME), and how many names, numbers and quotations it has."""

    flags: int
    specific: int


def text_features_of(text: str) -> TextFeatures:
    """Compute the features of a text."""
    tail = _without_note(text[-2000:]).rstrip()
    head = text[:_MAX_CHARACTERS]
    flags = ASKS * tail.endswith("?")
    flags |= REACTS * bool(_REACTION.match(text.lstrip()))
    flags |= TELLS_TIME * _mentions_time(head.lower())
    return TextFeatures(flags, min(len(_SPECIFIC.findall(_without_note(head))), MOST_SPECIFIC))


def _without_note(text: str) -> str:
    return _NOTE_AT_END.sub("", text) if text.rstrip().endswith("]") else text


def _mentions_time(text: str) -> bool:
    words = text.translate(_ONLY_LETTERS).split() if text.isascii() else _WORD.findall(text)
    if not _TIME_WORDS.isdisjoint(words):
        return True
    return ("this " in text or bool(_DIGIT.search(text))) and bool(_TIME_FORMS.search(text))
