"""Earlier texts of a memory that was edited in place. They are stored in its contents, so that they are encrypted,
exported and erased with it, but are no part of its words, attributes and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .contents import EARLIER

_MAX_TEXTS = 10
_MAX_LENGTH = 1 << 18  # characters of all of them; the oldest go first


class EarlierText(NamedTuple):
    """What a memory said until it was edited."""

    text: str
    until: float
    """When it was replaced, in Unix seconds."""


def earlier_texts(contents: Mapping[str, Any]) -> list[EarlierText]:
    """Return the earlier texts in the contents of a memory, the oldest first; skip damaged entries."""
    found = contents.get(EARLIER)
    return [
        EarlierText(entry["text"], float(entry["until"]))
        for entry in (found if isinstance(found, list) else ())
        if isinstance(entry, dict)
        and isinstance(entry.get("text"), str)
        and isinstance(entry.get("until"), int | float)
    ]


def add_earlier_text(contents: Mapping[str, Any], text: str, until: float) -> dict[str, Any]:
    """Return contents that also hold a text that is being replaced; the oldest ones are dropped beyond the limits."""
    texts = [*earlier_texts(contents), EarlierText(text, until)][-_MAX_TEXTS:]
    while sum(len(earlier.text) for earlier in texts) > _MAX_LENGTH:
        del texts[0]
    return {**drop_earlier_texts(contents), **({EARLIER: [earlier._asdict() for earlier in texts]} if texts else {})}


def drop_earlier_texts(contents: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in contents.items() if key != EARLIER}
