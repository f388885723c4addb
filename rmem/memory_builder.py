"""Build a checked memory from the arguments of `remember` and `update`. Nothing here knows about stores or
embedders."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from . import checks
from .errors import InputError
from .index.bits import unit_vector
from .models import BOOKKEEPING, FIELDS, Bookkeeping, Embeddings, Memory

_ARGUMENTS = {one.stored.argument: one for one in (*FIELDS, *BOOKKEEPING) if one.stored.argument is not None}
_BODY = ("text", "metadata", "vector")
"""The arguments that make text, contents and vector, which go together. The others are fields of their own."""
_OWN = {
    name: (one.stored.check, one.name, bool(one.inside), one.default)
    for name, one in _ARGUMENTS.items()
    if name not in _BODY
}
_TAKES_NONE = {name for name in _OWN if _ARGUMENTS[name].takes_none}
WRITABLE = (*_BODY, *_OWN)
_CHANGEABLE = [name for name in WRITABLE if name not in _ARGUMENTS or not _ARGUMENTS[name].stored.fixed]
_NEVER_NONE = [name for name in _CHANGEABLE if name not in _ARGUMENTS or not _ARGUMENTS[name].nullable]


def build_memory(**fields: object) -> Memory:
    """A checked memory from the arguments of `remember`. It has no vector yet, nor an id, unless they are given."""
    return build_memory_of(fields)


def build_memory_of(fields: Mapping[str, Any]) -> Memory:
    """The same from a mapping, in which there may be no others than the arguments of `remember`."""
    text, own, vector = fields.get("text"), fields.get("metadata"), fields.get("vector")
    contents: dict[str, Any] = {"text": checks.text("text", text)}
    if own is not None:
        contents |= checks.json_object("metadata", own)
        if "text" in own:
            raise InputError("metadata must not hold the key 'text': the text itself is kept there", field="metadata")
    now = time.time()
    bookkeeping = Bookkeeping(now, now)
    embeddings = Embeddings(None if vector is None else unit_vector("vector", vector))
    memory = Memory("", "default", -1, now, contents, bookkeeping, embeddings, contents["text"])
    for name, value in fields.items():
        if value is None and name in _TAKES_NONE:
            continue
        own_field = _OWN.get(name)
        if own_field is not None:
            check, attribute, in_bookkeeping, default = own_field
            if value is not default:
                setattr(bookkeeping if in_bookkeeping else memory, attribute, check(name, value))
        elif name not in _BODY:
            checks.known_fields("a memory to remember", fields, WRITABLE)
    return memory


def build_changes(changes: Mapping[str, Any]) -> Memory:
    """A draft that holds what is to be changed in a memory; its other fields mean nothing."""
    checks.known_fields("an update", changes, _CHANGEABLE)
    if not changes:
        raise InputError("an update must change at least one field", field="changes")
    for key in _NEVER_NONE:
        if key in changes and changes[key] is None:
            raise checks.refuse(key, "given a value", None)
    return build_memory_of({"text": "unchanged", **changes})


def apply_changes(memory: Memory, changes: Mapping[str, Any], drafted: Memory) -> None:
    """Change a memory to what was drafted; what a change does not name stays, and the vector goes with the text."""
    if "text" in changes:
        memory.text = drafted.text
        memory.contents = {**memory.contents, "text": drafted.text}
    if "metadata" in changes:
        memory.contents = {**drafted.contents, "text": memory.text}
    if "text" in changes or drafted.embeddings.full_vector is not None:
        memory.embeddings = drafted.embeddings
    for name in changes:
        if name in _OWN:
            _, attribute, in_bookkeeping, _ = _OWN[name]
            before, after = (memory.bookkeeping, drafted.bookkeeping) if in_bookkeeping else (memory, drafted)
            setattr(before, attribute, getattr(after, attribute))
