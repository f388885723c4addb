"""Parse a question: its words, quotations, the time it names and what it asks for.

Any text is a question, and nothing in it is an operator: what must or must not be said is given beside it. What stands
in double quotes raises the memories that hold it; others may still answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from ..index.analyser import Phrase, Word, plain, question_words
from ..timewords import Span, time_span

_PHRASE = re.compile(r'"([^"]{1,1000})"|“([^”]{1,1000})”')
_ASKS_TIME = re.compile(r"^\W*(?:\w+\W+){0,2}when\b|\b(?:what|which) (?:year|month|day|date|time)\b|\bhow long\b")
_ABOUT_ASKER = re.compile(
    r"\b(?:i|my|me|mine|myself|we|our|ours|us|ich|mein\w*|mir|mich|wir|unser\w*|je|mon|mes|moi|nous|notre|nos|yo|mi|mis|"
    r"nosotr\w+|nuestr\w+|я|мой|моя|мо[ёе]|мои|мне|меня|мы|наш\w*)\b|我|私|僕"
)
_BY_ANOTHER = re.compile(
    r"\b(?:did|have|had) you\b|\byou(?:'ve| have| had)? (?:said|told|mention|recommend|suggest|gave|given|list|explain|"
    r"provid|describ|wrote|written|made|propos|advis)|\byour (?:answer|advice|recommendation|suggestion|explanation)"
)
_EMPTY_WORDS = frozenset(
    """happen happens happened happening occur occurred do does did done doing say says said tell told talk talked
    discuss discussed go goes went going see saw seen know remember recall mention mentioned work worked working
    new news anything something everything thing things stuff event events update updates memory memories
    last next day days week weeks weekend month months year years today yesterday ago recent recently lately
    latest""".split()
)
_MAX_QUOTED = 8  # phrases; more are a pasted file, which emphasises none
_DATA = re.compile(r'"\s*:\s*["\[{\d]')  # `"level": "error"`: pasted JSON quotes everything
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Question:
    """`must` and `must_not` are phrases that a memory has to hold and must not hold; `quoted` ones raise it. `topic` is
    the text without words such as "yesterday", which say when and not what."""

    text: str
    topic: str
    words: tuple[Word, ...]
    must: tuple[Phrase, ...]
    must_not: tuple[Phrase, ...]
    quoted: tuple[Phrase, ...]
    span: Span | None
    asks_time: bool
    asks_own: bool
    """Whether it asks for what the asker said, not for what others said to the asker."""


def read_question(text: str, now: datetime, must: Sequence[str] = (), must_not: Sequence[str] = ()) -> Question:
    head = text[:2000]
    lowered = head.lower()
    span = time_span(head, now)
    return Question(
        text=text.strip(),
        topic=_without_time(text, span),
        words=tuple(word for word in question_words(text) if not word.stop),
        must=_phrases(must),
        must_not=_phrases(must_not),
        quoted=_quoted(text),
        span=span,
        asks_time=bool(_ASKS_TIME.search(lowered)),
        asks_own=bool(_ABOUT_ASKER.search(lowered)) and not _BY_ANOTHER.search(lowered),
    )


def _quoted(text: str) -> tuple[Phrase, ...]:
    """Return quoted phrases; none if there are so many that they emphasise nothing."""
    found = [one[1] or one[2] for one in islice(_PHRASE.finditer(text), _MAX_QUOTED + 1)]
    return () if len(found) > _MAX_QUOTED or _DATA.search(text) else _phrases(found)


def _phrases(written: Iterable[str]) -> tuple[Phrase, ...]:
    return tuple(Phrase(words, said) for words in dict.fromkeys(written) if (said := plain(words)))


def _without_time(text: str, span: Span | None) -> str:
    if span is None or not span.relative:
        return text.strip()
    words = r"\s+".join(map(re.escape, span.words.split()))
    return re.sub(words, " ", text, count=1, flags=re.IGNORECASE).strip()


def is_open(words: Iterable[str]) -> bool:
    """Whether the words of a question name no subject: "what happened?", "what did Ann do?"."""
    return all(word in _EMPTY_WORDS for word in words)


def without_names(text: str, names: Sequence[str]) -> str:
    """Remove the names of actors from a question; they say who and not what."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")(?:['’]s)?(?!\w)"
    return " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
