"""Remove what a user marks as private, <private>like this</private>, before anything else reads it: it is neither
stored nor sent. Imports little, because every hook loads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .events import Event

_MARK = re.compile(r"<\s*(?P<end>/?)\s*private\b[^<>]*>", re.IGNORECASE)
_TEXT_FIELDS = ("prompt", "tool", "command", "files", "input", "output", "message")


def without_private(value: Any) -> Any:
    """Remove private parts from a text, or from all texts in a list or object. An unclosed part extends to the end of
    its text, an unopened one from its start."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_text(key) if isinstance(key, str) else key: without_private(member) for key, member in value.items()}
    return [without_private(member) for member in value] if isinstance(value, list | tuple) else value


def public(event: Event) -> Event:
    """Return the event without private parts in its prompt, message, input and output."""
    return event._replace(**{name: without_private(getattr(event, name)) for name in _TEXT_FIELDS})


def _text(text: str) -> str:
    kept: list[str] = []
    depth = at = 0
    for mark in _MARK.finditer(text):
        if not mark["end"]:
            if depth == 0:
                kept.append(text[at : mark.start()])
            depth += 1
        elif depth == 0:
            kept = []
        else:
            depth -= 1
        at = mark.end()
    if depth == 0:
        kept.append(text[at:])
    return "".join(kept)
