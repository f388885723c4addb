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
from ..patterns import lazy_pattern
from ..timewords import Span, time_span

_PHRASE = re.compile(r'"([^"]{1,1000})"|“([^”]{1,1000})”')
_ASKS_TIME = re.compile(r"^\W*(?:\w+\W+){0,2}when\b|\b(?:what|which) (?:year|month|day|date|time)\b|\bhow long\b")
_ABOUT_ASKER = re.compile(
    r"\b(?:i|my|me|mine|myself|we|our|ours|us|ich|mein\w*|mir|mich|wir|unser\w*|je|mon|mes|moi|nous|notre|nos|yo|mi|mis|"
    r"nosotr\w+|nuestr\w+|я|мой|моя|мо[ёе]|мои|мне|меня|мы|наш\w*)\b|我|私|僕"
)
_BY_ANOTHER = lazy_pattern(
    r"\b(?:did|have|had) you\b|(?<!\bcan )(?<!\bcould )\byou(?:'ve| have| had)? (?:said|told|mention|recommend|suggest|"
    r"gave|given|list|explain|provid|describ|wrote|written|made|propos|advis)|"
    r"\byour (?:answer|advice|recommendation|suggestion|explanation)"
)
_EMPTY_WORDS = frozenset(
    """happen happens happened happening occur occurred do does did done doing say says said tell told talk talked
    discuss discussed go goes went going see saw seen know remember recall mention mentioned work worked working
    new news anything something everything thing things stuff event events update updates memory memories
    last next day days week weeks weekend month months year years today yesterday ago recent recently lately
    latest""".split()
)
_ASKS = r"^\W*(?:\w+\W+){0,3}?(?:what|which|where|who|whose|when|how)"
_PRESENT = re.compile(
    _ASKS + r"(?:['’]s\b|\b.*?\b(?:is|are|am|do|does|should|now|current(?:ly)?|latest|newest)\b)"
    r"|\b(?:jetzt|derzeit|momentan|aktuell\w*|maintenant|actuellement|ahora|actualmente|сейчас|теперь)\b"
    r"|现在|目前|当前|现时|現在|今は|الآن"
)
_PAST = lazy_pattern(
    r"\b(?:did|was|were|had|been|used to|previous\w*|before|original\w*|first|ever|last|ago|earlier|so far|since|"
    r"mention\w*|said|told|talk\w*|discuss\w*|conversation\w*)\b|\b(?:19|20)\d\d\b"
)
_MAX_QUOTED = 8  # phrases; more are a pasted file, which emphasises none
_DATA = lazy_pattern(r'"\s*:\s*["\[{\d]')  # `"level": "error"`: pasted JSON quotes everything
_ONE_QUESTION = lazy_pattern(r"[^?？]+[?？](?=\s|$|[^\x00-\x7f])")  # not `?_sort=`
_MAX_PARTS = 4
_MAX_ASKED = 2000  # characters; a longer text is pasted and asks nothing
_ALSO = lazy_pattern(
    r"\W*(?:(?:also|and|additionally|besides|furthermore|moreover|plus|außerdem|und|de plus|et|además|y|ещё|еще|и|"
    r"кроме того|그리고)\b|另外|此外|还有|以及|また|それから)[\s,，、:]*",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\bhow many(?: (?:different|distinct|other|more|total))*(?: (?:types|kinds|sorts) of\b)?|\bin total\b"
    r"|\b(?:what|which) (?:types?|kinds?|sorts?) of\b"
    r"|\bthe (?:chronological )?order (?:of|in which)\b|\bin (?:chronological )?order\b"
    r"|\bfrom (?:the )?(?:earliest|first|oldest) to (?:the )?(?:latest|last|newest)\b"
    r"|\b(?:can|could) you (?:please )?(?:remind|tell|list|show|give|walk)(?: me)?(?: (?:of|about|through))?\b"
    r"|\b(?:mention|list|name) (?:only )?(?:and only )?\w+ items?\b"
    r"|\bi was wondering\b|\bi (?:just )?want(?:ed)? to (?:know|ask|confirm|check|follow up)\b|\bi remember\b"
    r"|\bi(?:'m| am| was) (?:going|looking) (?:back|through)\b"
    r"|\b(?:i|we|you)(?:'ve| have| had)?(?: ever)? (?:mention(?:ed)?|say|said|tell|told|talk(?:ed)? about"
    r"|discuss(?:ed)?|bring up|brought up|ask(?:ed)? about)\b(?: (?:me|you|different))*"
    r"|\b(?:(?:in|throughout|across|during|from|to|on|through) )?(?:all )?(?:our|my) "
    r"(?:(?:previous|earlier|last|past|recent) )?(?:conversation|chat|discussion|session|request)s?\b(?: about)?",
    re.IGNORECASE,
)
"""Phrases that ask for a count, an order or a reminder, or say that something was said. They say what to do with the
answer; the memories that hold it do not contain them."""
_TWO_EVENTS = lazy_pattern(
    r"\b(?:(?:minutes?|hours?|days?|weeks?|months?|years?|time|long)\b.*?\bbetween|between when) "
    r"(.+?) and (?:when )?((?:the|my|i|a|an|that|our)\b.+)\?\s*$"
    r"|\b(?:first|last|earlier|later)\s*[,:] (.+?) or (.+)\?\s*$",
    re.IGNORECASE | re.DOTALL,
)
"""How much time passed between one event and another, or which came first: each is told in a memory of its own."""
_OUTPUT = re.compile(r"\s*(?:[$#%❯] |>>> |In \[|Traceback \(|File \"|Exception in thread |([=_*-])\1{3})")
_POINTS_BACK = lazy_pattern(
    r"\b(?:he|she|it|they|him|his|her|hers|its|their|them|that|this|those|these|there|then|one|same|so|why)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Question:
    """`must` and `must_not` are required and excluded phrases; `quoted` ones raise a memory. `topic` is the text
    without words such as "yesterday", which say when and not what, and "how many", which say what to do with it."""

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
    is_present: bool
    """Whether it asks what holds now."""
    is_output: bool
    """Whether it begins like a pasted output and not with what it is about."""
    parts: tuple[Question, ...] = ()
    """Its single questions, if it has several that are independent; each is then ranked separately."""


def parse_question(text: str, now: datetime, must: Sequence[str] = (), must_not: Sequence[str] = ()) -> Question:
    """Parse a text and, if it has several independent questions, each of them."""
    whole = _parse(text, now, must, must_not)
    parts = [_parse(part, now, must, must_not) for part in _split(text)]
    start = text[:2000].rstrip()
    if not parts and start.endswith("?") and (events := _TWO_EVENTS.search(start)):
        found = [_parse(event.removeprefix("when "), now, must, must_not) for event in events.groups() if event]
        parts = [replace(event, asks_own=whole.asks_own) for event in found]
    if any(is_open(word.text for word in part.words) for part in parts):
        return whole
    return replace(whole, parts=tuple(parts))


def _split(text: str) -> list[str]:
    """Return the questions of a text that asks several and nothing else; none if one of them points back to another."""
    if text.count("?") + text.count("？") < 2:
        return []
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
    words = tuple(word for word in question_words(text) if not word.stop)
    return Question(
        text=text.strip(),
        topic=_without_asking(_without_time(text, span)),
        words=words,
        must=_phrases(must),
        must_not=_phrases(must_not),
        quoted=_quoted_phrases(text),
        span=span,
        asks_time=bool(_ASKS_TIME.search(lowered)),
        asks_own=bool(_ABOUT_ASKER.search(lowered)) and not _BY_ANOTHER.search(lowered),
        # Two words, such as "staging port", name a thing and what is wanted of it.
        is_present=(len(words) == 2 or _PRESENT.search(lowered) is not None) and not _PAST.search(lowered),
        is_output=_OUTPUT.match(text) is not None,
    )


def _quoted_phrases(text: str) -> tuple[Phrase, ...]:
    """Return quoted phrases; none if there are so many that they emphasise nothing."""
    quotes = [match[1] or match[2] for match in islice(_PHRASE.finditer(text), _MAX_QUOTED + 1)]
    return () if not quotes or len(quotes) > _MAX_QUOTED or _DATA.search(text) else _phrases(quotes)


def _phrases(written: Iterable[str]) -> tuple[Phrase, ...]:
    return tuple(Phrase(words, normalized) for words in dict.fromkeys(written) if (normalized := plain(words)))


def _without_time(text: str, span: Span | None) -> str:
    if span is None or not span.relative:
        return text.strip()
    words = r"\s+".join(map(re.escape, span.words.split()))
    return re.sub(words, " ", text, count=1, flags=re.IGNORECASE).strip()


def _without_asking(text: str) -> str:
    """Remove what asks and names no subject, unless nothing else is asked."""
    bare = " ".join(_ASKING.sub(" ", text).split()) if len(text) <= _MAX_ASKED else text
    return text if bare == text or is_open(word.text for word in question_words(bare) if not word.stop) else bare


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
