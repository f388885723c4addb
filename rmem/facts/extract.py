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
from .sentences import facts_in_sentence, words_of_statement
from .structure import facts_in_fields

_MAX_FACTS = 32  # per memory
_MAX_TEXT = 8192  # characters; the rest of a longer text is ignored
# Begins with a set of characters, which `re` searches for fast. Group 1: a full stop that no sentence follows.
_SENTENCE_END = re.compile(
    r"[.!?\n](?<![.!?][.!?])"
    r"(?:(?<=\n)[ \t]*(?=[\n•>]|[-*+] |\*\*|#{1,6} |\d+[.)] |[-=~]{3})"  # but no line that begins with --option
    r"|(?<=[!?])[.!?]*[\"”')]*(?:\s+|$)"
    r"|(?<=\.)[.!?]*[\"”')]*(?:\s+|$)(?:(?=[\"“'`(\[]?[A-Z0-9`@*\-]|$)|()))"
)
_ABBREVIATIONS = frozenset("Mr Mrs Ms Dr St vs No Co Jr Sr Inc Ltd e.g i.e etc cf".split())
_MAX_SENTENCE = 400  # characters; longer sentences are skipped


def facts_in(memory: Memory) -> tuple[FoundFact, ...]:
    """Extract the facts of a memory; at most 32, without duplicates."""
    extracted = _extract(memory)
    if len(extracted) < 2:
        return tuple(extracted)
    found: dict[tuple[str, str, str], FoundFact] = {}
    for fact in extracted:
        key = (fact.subject, fact.relation, fact.object)
        known = found.get(key)
        if known is None:
            if len(found) == _MAX_FACTS:
                break
            found[key] = fact
        elif fact.confidence > known.confidence:
            found[key] = fact
    return tuple(found.values())


def _extract(memory: Memory) -> list[FoundFact]:
    found = [*facts_in_fields(memory)]
    if KEY in memory.contents:
        found += facts_by_model(memory)
    if is_record(memory.contents):
        return found
    text = memory.text if len(memory.text) <= _MAX_TEXT else memory.text[:_MAX_TEXT]
    if "[[" in text or "::" in text or text.startswith("---\n"):
        found += facts_in_markdown(memory, text)
    found += facts_in_text(text, memory.actor)
    return found


def facts_in_text(text: str, actor: str | None = None) -> Iterator[FoundFact]:
    """Split a text into sentences and yield the facts that they state."""
    at = 0
    for stop in _SENTENCE_END.finditer(text):
        end = stop.end()
        if end != len(text) and (stop.lastindex or (text[stop.start()] == "." and _is_abbreviated(text, at, stop))):
            continue
        if end - at < _MAX_SENTENCE:
            words = words_of_statement(text[at:end], actor)
            if words is not None:
                yield from facts_in_sentence(words, at, end, actor)
        at = end
    if 0 < len(text) - at < _MAX_SENTENCE:
        words = words_of_statement(text[at:], actor)
        if words is not None:
            yield from facts_in_sentence(words, at, len(text), actor)


def _is_abbreviated(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a full stop inside a text ends an initial or an abbreviation and no sentence."""
    word = text[max(start, stop.start() - 6) : stop.start()].rsplit(" ", 1)[-1]
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isupper())
