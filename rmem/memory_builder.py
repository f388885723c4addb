"""Build a checked memory from the arguments of `remember` and `update`. Nothing here knows about stores or
embedders."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from . import checks
from .contents import EARLIER
from .earlier_texts import add_earlier_text, drop_earlier_texts
from .errors import InputError
from .index.bits import unit_vector
from .models import BOOKKEEPING, FIELDS, Bookkeeping, Embeddings, Memory

_ARGUMENTS = {field.stored.argument: field for field in (*FIELDS, *BOOKKEEPING) if field.stored.argument is not None}
_BODY = ("text", "metadata", "vector")
"""The arguments for text, contents and vector, which belong together. Each other argument is one field."""
_OWN = {
    name: (field.check_new if field.stored.bound else field.stored.check, field.name, bool(field.inside), field.default)
    for name, field in _ARGUMENTS.items()
    if name not in _BODY
}
_TAKES_NONE = {name for name in _OWN if _ARGUMENTS[name].takes_none}
WRITABLE = (*_BODY, *_OWN)
_CHANGEABLE = [name for name in WRITABLE if name not in _ARGUMENTS or not _ARGUMENTS[name].stored.fixed]
_NEVER_NONE = [name for name in _CHANGEABLE if name not in _ARGUMENTS or not _ARGUMENTS[name].nullable]


def check_argument(name: str, value: object, field: str | None = None) -> Any:
    """Check an argument as `remember` does; `field` is what the caller calls it."""
    return _ARGUMENTS[name].check_new(field or name, value)


def current_time() -> float:
    """Return the time to a microsecond, so that `memory.when` is it exactly."""
    return round(time.time(), 6)


def build_memory(**fields: object) -> Memory:
    """Build a checked memory from the arguments of `remember`, without vector and id unless they are given."""
    return build_memory_of(fields)


def build_memory_of(fields: Mapping[str, Any], now: float | None = None) -> Memory:
    """Build a memory from a mapping of the arguments of `remember`; refuse other keys. `now` is its time if it names
    none: memories that came together have one, so that none of them is newer than another."""
    if "text" not in fields:  # the text may be there under a misspelt name
        checks.known_fields("a memory to remember", fields, WRITABLE)
    text, own, vector = fields.get("text"), fields.get("metadata"), fields.get("vector")
    contents: dict[str, Any] = {"text": checks.text("text", text)}
    if own is not None:
        contents |= checks.json_object("metadata", own)
        if "text" in own:
            raise InputError("metadata must not hold the key 'text': the text itself is kept there", field="metadata")
        if EARLIER in own:
            raise InputError(
                f"metadata must not hold the key {EARLIER!r}: earlier texts are kept there", field="metadata"
            )
    now = current_time() if now is None else now
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
    """Build a memory that holds the changed fields; its other fields have no meaning."""
    checks.known_fields("an update", changes, _CHANGEABLE)
    if not changes:
        raise InputError("an update must change at least one field", field="changes")
    for key in _NEVER_NONE:
        if key in changes and changes[key] is None:
            raise checks.refuse(key, "given a value", None)
    return build_memory_of({"text": "unchanged", **changes})


def apply_changes(memory: Memory, changes: Mapping[str, Any], drafted: Memory, *, keep_earlier: bool = True) -> None:
    """Copy the changed fields into a memory; a new text without a vector removes the old vector. The replaced text is
    kept as an earlier one. Without `keep_earlier` there are none afterwards, nor after a change of the place: who may
    see it now did not see them."""
    if "metadata" in changes:
        held = {EARLIER: memory.contents[EARLIER]} if EARLIER in memory.contents else {}
        memory.contents = {**drafted.contents, "text": memory.text, **held}
    if "text" in changes:
        if drafted.text != memory.text:
            memory.contents = add_earlier_text(memory.contents, memory.text, time.time())
        memory.text = drafted.text
        memory.contents = {**memory.contents, "text": drafted.text}
    if not keep_earlier or ("place" in changes and drafted.place != memory.place):
        memory.contents = drop_earlier_texts(memory.contents)
    if "text" in changes or drafted.embeddings.full_vector is not None:
        memory.embeddings = drafted.embeddings
    for name in changes:
        if name in _OWN:
            _, attribute, in_bookkeeping, _ = _OWN[name]
            before, after = (memory.bookkeeping, drafted.bookkeeping) if in_bookkeeping else (memory, drafted)
            setattr(before, attribute, getattr(after, attribute))
