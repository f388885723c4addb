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

_MAX_FACTS = 32  # per memory
_MAX_TEXT = 8192  # characters; the rest of a longer text is ignored
_SENTENCE_END = re.compile(r"[.!?]+[\"”')]*(?:\s+|$)|\n[ \t]*(?=[\n\-*•#>\d])")
_ABBREVIATIONS = frozenset("Mr Mrs Ms Dr St vs No Co Jr Sr Inc Ltd e.g i.e etc cf".split())
_SENTENCE_START = re.compile(r"[\"“'`(\[]?[A-Z0-9`@*\-]|$")
_MAX_SENTENCE = 400  # characters; longer sentences are skipped
_HAS_MARKDOWN = re.compile(r"\[\[|::|^---\n|^#", re.MULTILINE)


def facts_in(memory: Memory) -> tuple[FoundFact, ...]:
    """Extract the facts of a memory; at most 32, without duplicates."""
    found: dict[tuple[str, str, str], FoundFact] = {}
    for fact in _extract(memory):
        key = (fact.subject, fact.relation, fact.object)
        known = found.get(key)
        if known is None:
            if len(found) == _MAX_FACTS:
                break
            found[key] = fact
        elif fact.confidence > known.confidence:
            found[key] = fact
    return tuple(found.values())


def _extract(memory: Memory) -> Iterator[FoundFact]:
    yield from facts_in_fields(memory)
    if KEY in memory.contents:
        yield from facts_by_model(memory)
    if is_record(memory.contents):
        return
    text = memory.text if len(memory.text) <= _MAX_TEXT else memory.text[:_MAX_TEXT]
    if _HAS_MARKDOWN.search(text):
        yield from facts_in_markdown(memory, text)
    yield from facts_in_text(text, memory.actor)


def facts_in_text(text: str, actor: str | None = None) -> Iterator[FoundFact]:
    """Split a text into sentences and yield the facts that they state."""
    at = 0
    for stop in _SENTENCE_END.finditer(text):
        end = stop.end()
        if stop[0][0] == "." and not _ends_sentence(text, at, stop):
            continue
        if end - at < _MAX_SENTENCE:
            yield from facts_in_sentence(text[at:end].strip(), at, stop.end(), actor)
        at = end
    if 0 < len(text) - at < _MAX_SENTENCE:
        yield from facts_in_sentence(text[at:].strip(), at, len(text), actor)


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a full stop ends the sentence: not after an initial or abbreviation, nor before a lower-case letter."""
    if _SENTENCE_START.match(text, stop.end()) is None:
        return False
    word = text[max(start, stop.start() - 6) : stop.start()].rsplit(" ", 1)[-1]
    return stop.end() == len(text) or not (word in _ABBREVIATIONS or (len(word) == 1 and word.isupper()))
