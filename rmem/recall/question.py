"""Parse a question: its words, quotations, the time it names and what it asks for.

Any text is a question and has no operators: required and excluded phrases are separate arguments. A phrase in double
quotes raises the memories that contain it; others may still answer."""

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
_ONE_QUESTION = re.compile(r"[^?？]+[?？](?=\s|$|[^\x00-\x7f])")  # not `?_sort=`
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
    """`must` and `must_not` are required and excluded phrases; `quoted` ones raise a memory. `topic` is the text
    without words such as "yesterday", which say when and not what."""

    text: str
    topic: str
    words: tuple[Word, ...]
    must: tuple[Phrase, ...]
    must_not: tuple[Phrase, ...]
    quoted: tuple[Phrase, ...]
    span: Span | None
    asks_time: bool
    asks_own: bool
    """Whether it is about what its author said, not about what others replied."""
    parts: tuple[Question, ...] = ()
    """Its single questions, if it has several that are independent; each is then ranked separately."""


def parse_question(text: str, now: datetime, must: Sequence[str] = (), must_not: Sequence[str] = ()) -> Question:
    """Parse a text and, if it has several independent questions, each of them."""
    whole = _parse(text, now, must, must_not)
    parts = [_parse(part, now, must, must_not) for part in _split(text)]
    if any(is_open(word.text for word in part.words) for part in parts):
        return whole
    return replace(whole, parts=tuple(parts))


def _split(text: str) -> list[str]:
    """Return the questions of a text that asks several and nothing else; none if one of them points back to another."""
    found = _ONE_QUESTION.findall(text[:2000])
    if not 1 < len(found) <= _MAX_PARTS or sum(map(len, found)) < len(text.rstrip()):
        return []
    parts = [found[0].strip()]
    for part in found[1:]:
        bare = _ALSO.sub("", part, count=1).strip() if _ALSO.match(part) else part.strip()
        if _POINTS_BACK.search(bare) or (bare == part.strip() and not bare.isascii()):
            return []
        parts.append(bare)
    return parts


def _parse(text: str, now: datetime, must: Sequence[str], must_not: Sequence[str]) -> Question:
    head = text[:2000]
    lowered = head.lower()
    span = time_span(head, now)
    return Question(
        text=text.strip(),
        topic=_without_time(text, span),
        words=tuple(word for word in question_words(text) if not word.stop),
        must=_phrases(must),
        must_not=_phrases(must_not),
        quoted=_quoted_phrases(text),
        span=span,
        asks_time=bool(_ASKS_TIME.search(lowered)),
        asks_own=bool(_ABOUT_ASKER.search(lowered)) and not _BY_ANOTHER.search(lowered),
    )


def _quoted_phrases(text: str) -> tuple[Phrase, ...]:
    """Return quoted phrases; none if there are so many that they emphasise nothing."""
    quotes = [match[1] or match[2] for match in islice(_PHRASE.finditer(text), _MAX_QUOTED + 1)]
    return () if len(quotes) > _MAX_QUOTED or _DATA.search(text) else _phrases(quotes)


def _phrases(written: Iterable[str]) -> tuple[Phrase, ...]:
    return tuple(Phrase(words, normalized) for words in dict.fromkeys(written) if (normalized := plain(words)))


def _without_time(text: str, span: Span | None) -> str:
    if span is None or not span.relative:
        return text.strip()
    words = r"\s+".join(map(re.escape, span.words.split()))
    return re.sub(words, " ", text, count=1, flags=re.IGNORECASE).strip()


def is_open(words: Iterable[str]) -> bool:
    """Return whether the words of a question name no subject: "what happened?", "what did Ann do?"."""
    return all(word in _EMPTY_WORDS for word in words)


def without_names(text: str, names: Sequence[str]) -> str:
    """Remove the names of actors from a question; they say who and not what."""
    if not names:
        return text
    longest_first = sorted(names, key=len, reverse=True)
    pattern = r"\b(?:" + "|".join(map(re.escape, longest_first)) + r")(?:['’]s)?(?!\w)"
    return " ".join(re.sub(pattern, " ", text, flags=re.IGNORECASE).split())
