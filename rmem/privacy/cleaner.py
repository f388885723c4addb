"""Apply a policy to a whole memory: text, contents with their keys, tags, actor and place. Names that identify a memory
(agent, session, type, id) must not change, so a secret in one is refused.

Hashes of lines that the team memory stores (`PRINTS`) look like card numbers; they stay unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from ..contents import ATTACHMENTS, text_of
from ..models import Embeddings, Memory
from .replacements import Replacer, Walk, refuse_secrets

if TYPE_CHECKING:
    from .policy import PrivacyPolicy

PRINTS = "prints"
"""The contents in which the team memory keeps hashes of files' lines, by the name of the file."""
PRINT_BITS = 48  # of a hash: no card number of 15 digits or more is one


def is_prints(value: Any) -> TypeGuard[dict[str, list[int]]]:
    """Return whether a value is hashes of lines, by file."""
    return isinstance(value, dict) and all(
        isinstance(hashes, list)
        and all(type(line_hash) is int and 0 <= line_hash < 1 << PRINT_BITS for line_hash in hashes)
        for hashes in value.values()
    )


def clean_memory(policy: PrivacyPolicy, memory: Memory) -> Memory:
    """Return the memory with all findings replaced, or itself if there are none. Attachments stay unchanged."""
    original = memory
    for field, name in _names(memory):
        refuse_secrets(field, name, policy.actions)
    walk = Walk(policy.find, policy.replacement)
    text = walk.text(memory.text, "text")
    known: dict[str, tuple[Any, Any]] = {"text": (memory.text, text)}
    if ATTACHMENTS in memory.contents:  # a match inside a blob would only damage it
        memory = memory.copied()
        memory.contents = {key: value for key, value in original.contents.items() if key != ATTACHMENTS}
    if is_prints(prints := memory.contents.get(PRINTS)):
        names = walk.mapping(dict.fromkeys(prints, ""), f"contents[{PRINTS!r}]")
        known[PRINTS] = prints, dict(zip(names, prints.values(), strict=True))
    contents = walk.mapping(memory.contents, "contents", known=known)
    tags = walk.mapping(memory.tags, "tags")
    actor = memory.actor and walk.text(memory.actor, "actor", "actor")
    place = memory.place and walk.text(memory.place, "place", "place")
    if not walk.replaced:
        return original
    replacer = Replacer(walk.replaced)
    kept = memory.copied()
    kept.contents = replacer.value(contents)
    if "text" not in memory.contents and memory.text == text_of(memory.contents):
        text = walk.text(text_of(kept.contents), "text")  # the text of a record formats its keys differently
    kept.text = replacer.text(text)
    kept.tags = replacer.value(tags)
    kept.actor = None if actor is None else replacer.text(actor)
    kept.place = None if place is None else replacer.text(place)
    if kept.text != memory.text or kept.contents != memory.contents:
        kept.embeddings = Embeddings()
    if ATTACHMENTS in original.contents:
        kept.contents[ATTACHMENTS] = original.contents[ATTACHMENTS]
    return kept


def _names(memory: Memory) -> Iterator[tuple[str, str]]:
    yield "agent", memory.agent_id
    yield "type", memory.type
    if memory.session is not None:
        yield "session", memory.session
    if memory.memory_id:
        yield "id", memory.memory_id
