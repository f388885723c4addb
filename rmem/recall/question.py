"""Parse a question: its words, quotations, the time it names and what it asks for.

Any text is a question, and nothing in it is an operator: what must or must not be said is given beside it. What stands
in double quotes raises the memories that hold it; others may still answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
_ASKED = re.compile(r"[^?？]+[?？](?=\s|$|[^\x00-\x7f])")  # not `?_sort=`
_MAX_PARTS = 4
_ALSO = re.compile(
    r"\W*(?:(?:also|and|additionally|besides|furthermore|moreover|plus|außerdem|und|de plus|et|además|y|ещё|еще|и|"
    r"кроме того|그리고)\b|另外|此外|还有|以及|また|それから)[\s,，、:]*",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:he|she|it|they|him|his|her|hers|its|their|them|that|this|those|these|there|then|one|same|so|why)\b",
    re.IGNORECASE,
)


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
    parts: tuple[Question, ...] = ()
    """The questions in it, if it asks several that can be understood apart: each is then ranked for itself."""


def read_question(text: str, now: datetime, must: Sequence[str] = (), must_not: Sequence[str] = ()) -> Question:
    whole = _read_one(text, now, must, must_not)
    parts = [_read_one(part, now, must, must_not) for part in _split(text)]
    if any(is_open(word.text for word in part.words) for part in parts):
        return whole
    return replace(whole, parts=tuple(parts))


def _split(text: str) -> list[str]:
    """Return the questions of a text that asks several and nothing else; none if one of them points back to another."""
    found = _ASKED.findall(text[:2000])
    if not 1 < len(found) <= _MAX_PARTS or sum(map(len, found)) < len(text.rstrip()):
        return []
    parts = [found[0].strip()]
    for part in found[1:]:
        bare = _ALSO.sub("", part, count=1).strip() if _ALSO.match(part) else part.strip()
        if _POINTS_BACK.search(bare) or (bare == part.strip() and not bare.isascii()):
            return []
        parts.append(bare)
    return parts


def _read_one(text: str, now: datetime, must: Sequence[str], must_not: Sequence[str]) -> Question:
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
