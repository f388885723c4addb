"""Build memories from states, actions and interactions of agents, with their text and place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from .. import checks
from ..attachments import detach
from ..contents import ATTACHMENTS, EARLIER, text_of
from ..errors import InputError
from ..index.numbers import as_number
from ..models import Bookkeeping, Memory

KINDS = ("state", "action", "interaction")
_PLACES = ("place", "location", "position")


def record(agent_id: str, kind: str, data: object, step_number: object, priority: object) -> Memory:
    """Build a checked memory without id and vector, with blobs as attachments."""
    contents = as_data(f"{kind}_data", data, apart=detach)
    now = time.time()
    return Memory(
        memory_id="",
        agent_id=checks.no_path("agent_id", agent_id),
        step_number=checks.whole("step_number", step_number),
        timestamp=now,
        contents=contents,
        bookkeeping=Bookkeeping(
            creation_time=now,
            last_access_time=now,
            importance_score=checks.share("priority", priority),
            memory_type=kind,
        ),
        text=checks.text(f"{kind}_data", text_of(contents) or kind),
        position=position_of(contents),
        place=place_of(contents),
    )


def as_data(field: str, data: object, *, apart: Callable[[Mapping[str, Any]], Any] | None = None) -> dict[str, Any]:
    """Return a mapping, or the one of a model such as AgentState; with `apart`, its blobs become attachments."""
    as_dict = None if isinstance(data, (dict, Mapping)) else getattr(data, "as_dict", None)
    given = as_dict() if callable(as_dict) else data
    if apart is not None and isinstance(given, Mapping):
        for key, what in ((ATTACHMENTS, "blobs"), (EARLIER, "earlier texts")):
            if key in given:
                raise InputError(f"{field} must not hold the key {key!r}: {what} are kept there", field=field)
        given = apart(given)
    return checks.json_object(field, given)


def position_of(contents: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the two or three coordinates of contents: a list, x, y and z, or position_x, position_y and position_z."""
    for key in _PLACES:
        value = contents.get(key)
        if value is None:
            continue
        if isinstance(value, dict):
            value = _coordinates(value, "")
        if isinstance(value, list) and len(value) in (2, 3):
            numbers = [as_number(item) for item in value]
            if None not in numbers:
                return tuple(numbers)  # type: ignore[arg-type]
    found = _coordinates(contents, "position_")
    return tuple(found) if found is not None else None


def _coordinates(values: Mapping[str, Any], prefix: str) -> list[float] | None:
    found = [as_number(values.get(f"{prefix}{axis}")) for axis in "xyz"]
    if found[2] is None:
        found = found[:2]
    return None if None in found else found  # type: ignore[return-value]


def place_of(contents: Mapping[str, Any]) -> str | None:
    for key in _PLACES:
        value = contents.get(key)
        if isinstance(value, str) and value.strip() and len(value) <= 200:
            return value
    return None
