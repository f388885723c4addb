"""Read the facts of a memory: from its fields (`structure`), its Markdown (`markdown`) and its sentences (`sentences`),
and those that a language model was asked to read in it (`by_model`).

    facts_in(memory)   # (FoundFact("staging", "runs on", "port 5433", …),)

Most texts state nothing that a rule can read, so a cheap test comes first."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..contents import is_record
from ..models import Memory
from .by_model import KEY, facts_by_model
from .markdown import facts_in_markdown
from .model import FoundFact
from .sentences import facts_in_sentence
from .structure import facts_in_fields

_MOST_FACTS = 32  # of one memory
_MOST_TEXT = 8192  # characters that are looked at
_STOP = re.compile(r"[.!?]+[\"”')]*(?:\s+|$)|\n[ \t]*(?=[\n\-*•#>\d])")
_ABBREVIATED = frozenset("Mr Mrs Ms Dr St vs No Co Jr Sr Inc Ltd e.g i.e etc cf".split())
_OPENS = re.compile(r"[\"“'`(\[]?[A-Z0-9`@*\-]|$")
_LONGEST = 400  # characters of a sentence
_MARKDOWN = re.compile(r"\[\[|::|^---\n|^#", re.MULTILINE)


def facts_in(memory: Memory) -> tuple[FoundFact, ...]:
    """Every fact that a memory says, at most 32."""
    found: dict[tuple[str, str, str], FoundFact] = {}
    for fact in _facts_of(memory):
        key = (fact.subject, fact.relation, fact.object)
        known = found.get(key)
        if known is None:
            if len(found) == _MOST_FACTS:
                break
            found[key] = fact
        elif fact.confidence > known.confidence:
            found[key] = fact
    return tuple(found.values())


def _facts_of(memory: Memory) -> Iterator[FoundFact]:
    yield from facts_in_fields(memory)
    if KEY in memory.contents:
        yield from facts_by_model(memory)
    if is_record(memory.contents):
        return
    text = memory.text if len(memory.text) <= _MOST_TEXT else memory.text[:_MOST_TEXT]
    if _MARKDOWN.search(text):
        yield from facts_in_markdown(memory, text)
    yield from facts_in_text(text, memory.actor)


def facts_in_text(text: str, actor: str | None = None) -> Iterator[FoundFact]:
    """The facts that the sentences of a text state."""
    at = 0
    for stop in _STOP.finditer(text):
        end = stop.end()
        if stop[0][0] == "." and not _ends(text, at, stop):
            continue
        if end - at < _LONGEST:
            yield from facts_in_sentence(text[at:end].strip(), at, stop.end(), actor)
        at = end
    if 0 < len(text) - at < _LONGEST:
        yield from facts_in_sentence(text[at:].strip(), at, len(text), actor)


def _ends(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a dot ends its sentence: it does not after an initial or an abbreviation, or before a small letter."""
    if _OPENS.match(text, stop.end()) is None:
        return False
    word = text[max(start, stop.start() - 6) : stop.start()].rsplit(" ", 1)[-1]
    return stop.end() == len(text) or not (word in _ABBREVIATED or (len(word) == 1 and word.isupper()))
