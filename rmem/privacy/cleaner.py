"""Apply a policy to a whole memory: text, contents with their keys, tags, actor and place. Names that identify a memory
(agent, session, type, id) cannot be changed without losing it, so they are refused if they hold a secret.

Hashes of lines that our own code stores (`PRINTS`) look like card numbers; they are left as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from ..contents import ATTACHMENTS, text_of
from ..models import Embeddings, Memory
from .replacements import Everywhere, Walk, refuse_secrets

if TYPE_CHECKING:
    from .policy import PrivacyPolicy

PRINTS = "prints"
"""The contents in which the team memory keeps hashes of files' lines, by the name of the file."""
PRINT_BITS = 48  # of a hash: no card number of 15 digits or more is one


def is_prints(value: Any) -> TypeGuard[dict[str, list[int]]]:
    """Whether these are hashes of lines, by file."""
    return isinstance(value, dict) and all(
        isinstance(hashes, list) and all(type(one) is int and 0 <= one < 1 << PRINT_BITS for one in hashes)
        for hashes in value.values()
    )


def cleaned(policy: PrivacyPolicy, memory: Memory) -> Memory:
    """The memory itself if there is nothing to find in it. Attachments stay as they are."""
    whole = memory
    for field, name in _names(memory):
        refuse_secrets(field, name, policy.actions)
    work = Walk(policy.find, policy.replacement)
    text = work.text(memory.text, "text")
    told: dict[str, tuple[Any, Any]] = {"text": (memory.text, text)}
    if ATTACHMENTS in memory.contents:  # blobs are not read, and a match inside one would only spoil it
        memory = memory.copied()
        memory.contents = {key: value for key, value in whole.contents.items() if key != ATTACHMENTS}
    if is_prints(prints := memory.contents.get(PRINTS)):
        names = work.mapping(dict.fromkeys(prints, ""), f"contents[{PRINTS!r}]")
        told[PRINTS] = prints, dict(zip(names, prints.values(), strict=True))
    contents = work.mapping(memory.contents, "contents", told=told)
    tags = work.mapping(memory.tags, "tags")
    actor = memory.actor and work.text(memory.actor, "actor", "actor")
    place = memory.place and work.text(memory.place, "place", "place")
    if not work.replaced:
        return whole
    everywhere = Everywhere(work.replaced)
    kept = memory.copied()
    kept.contents = everywhere.value(contents)
    if "text" not in memory.contents and memory.text == text_of(memory.contents):
        text = work.text(text_of(kept.contents), "text")  # the text of a record writes its keys in another way
    kept.text = everywhere.text(text)
    kept.tags = everywhere.value(tags)
    kept.actor = None if actor is None else everywhere.text(actor)
    kept.place = None if place is None else everywhere.text(place)
    if kept.text != memory.text or kept.contents != memory.contents:
        kept.embeddings = Embeddings()
    if ATTACHMENTS in whole.contents:
        kept.contents[ATTACHMENTS] = whole.contents[ATTACHMENTS]
    return kept


def _names(memory: Memory) -> Iterator[tuple[str, str]]:
    yield "agent", memory.agent_id
    yield "type", memory.type
    if memory.session is not None:
        yield "session", memory.session
    if memory.memory_id:
        yield "id", memory.memory_id
