"""Reading a question: its words, "phrases in quotes", -excluded words, the time it names and what it asks for.

Any text is a question; nothing in it is an operator but double quotes and a minus before a word. In a search
(`oom "row group" -csv`) a quoted phrase must occur. In a sentence that asks (`Who read "Dune"?`) quotes mark a
title: memories that hold it are raised, others may still answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from ..index.analyser import Phrase, Word, plain, question_words
from ..timewords import Span, time_span

_PHRASE = re.compile(r'"([^"]{1,1000})"|“([^”]{1,1000})”')
_EXCLUDED_PHRASE = re.compile(r'(?<!\S)-(?:"([^"]{1,1000})"|“([^”]{1,1000})”)')
_EXCLUDED = re.compile(r"(?<!\S)-(?=[^\W\d_])([^\s\"“”]+)")
_SENTENCE = re.compile(
    r"\?\s*$|^\W*(?:who|whom|whose|what|when|where|which|why|how|did|do|does|is|are|was|were|has|have|had|can|could"
    r"|will|would|should|tell|name)\b"
)
_ASKS_TIME = re.compile(r"^\W*(?:\w+\W+){0,2}when\b|\b(?:what|which) (?:year|month|day|date|time)\b|\bhow long\b")
_ASKS_SEVERAL = re.compile(  # present perfect, a plural, "both", "how many", "in common"
    r"\b(?:has|have|had)\b(?! to\b)|^\W*(?:what|which)(?: (?:are|were)\b|(?: \w+){0,2}? \w+(?<!s)s\b(?<!'s))"
    r"|\bboth\b|\bhow many\b|\bin common\b"
)
_OPEN = frozenset(
    """happen happens happened happening occur occurred do does did done doing say says said tell told talk talked
    discuss discussed go goes went going see saw seen know remember recall mention mentioned work worked working
    new news anything something everything thing things stuff event events update updates memory memories
    last next day days week weeks weekend month months year years today yesterday ago recent recently lately
    latest""".split()
)
_MOST_OPERATORS = 8  # phrases and exclusions that somebody types; a pasted file has more, and means none of them
_DATA = re.compile(r'"\s*:\s*["\[{\d]')  # `"level": "error"`: pasted JSON quotes everything
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    """`phrases` must occur and `titles` should; `excluded` words and `excluded_phrases` must not. `topic` is the
    text without words such as "yesterday", which say when and not what."""

    text: str
    topic: str
    words: tuple[Word, ...]
    phrases: tuple[Phrase, ...]
    titles: tuple[Phrase, ...]
    excluded: tuple[tuple[Word, ...], ...]
    excluded_phrases: tuple[Phrase, ...]
    span: Span | None
    asks_time: bool
    asks_several: bool


def read_question(text: str, now: datetime, *, operators: bool = True) -> Question:
    """Read a question; without `operators` quotes and dashes are only what they are."""
    rest, quoted, excluded, excluded_phrases = _operators(text) if operators else (text, (), (), ())
    head = rest[:2000]
    lowered = head.lower()
    asks = bool(_SENTENCE.search(lowered if len(rest) <= 2000 else rest[-200:].lower()))
    span = time_span(head, now)
    return Question(
        text=rest.strip(),
        topic=_without_time(rest, span),
        words=tuple(word for word in question_words(rest) if not word.stop),
        phrases=() if asks else quoted,
        titles=quoted if asks else (),
        excluded=excluded,
        excluded_phrases=excluded_phrases,
        span=span,
        asks_time=bool(_ASKS_TIME.search(lowered)),
        asks_several=bool(_ASKS_SEVERAL.search(lowered)),
    )


def _is_pasted(text: str) -> bool:
    """Whether a text holds so many quotes or dashes that nobody means them as operators."""
    if _DATA.search(text):
        return True
    return any(
        sum(1 for _ in islice(pattern.finditer(text), _MOST_OPERATORS + 1)) > _MOST_OPERATORS
        for pattern in (_PHRASE, _EXCLUDED)
    )


def _operators(text: str) -> tuple[str, tuple[Phrase, ...], tuple[tuple[Word, ...], ...], tuple[Phrase, ...]]:
    """A question without its operators, its quoted phrases, its excluded words and its excluded phrases."""
    if _is_pasted(text):
        return text, (), (), ()
    excluded_phrases = _spoken(_EXCLUDED_PHRASE, text)
    rest = _EXCLUDED_PHRASE.sub(" ", text) if excluded_phrases else text
    quoted = _spoken(_PHRASE, rest)
    rest = _PHRASE.sub(lambda found: f" {found[1] or found[2]} ", rest)
    named = dict.fromkeys(_EXCLUDED.findall(rest))
    excluded = tuple(words for found in named if (words := tuple(question_words(found))))
    rest = _EXCLUDED.sub(" ", rest) if excluded else rest
    return rest, quoted, excluded, excluded_phrases


def _without_time(text: str, span: Span | None) -> str:
    if span is None or not span.relative:
        return text.strip()
    words = r"\s+".join(map(re.escape, span.words.split()))
    return re.sub(words, " ", text, count=1, flags=re.IGNORECASE).strip()


def is_open(words: Iterable[str]) -> bool:
    """Whether the words of a question ask for anything at all: "what happened?", "what did Ann do?"."""
    return all(word in _OPEN for word in words)


def _spoken(pattern: re.Pattern[str], text: str) -> tuple[Phrase, ...]:
    written = dict.fromkeys(found[1] or found[2] for found in pattern.finditer(text))
    return tuple(Phrase(words, said) for words in written if (said := plain(words)))


def without_names(text: str, names: Sequence[str]) -> str:
    """A question without the names of actors, which say who and not what."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")(?:['’]s)?(?!\w)"
    return " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
