"""Compare two states: read values by their path, list what differs, and measure how much."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .entries import MemoryEntry
from .types import MemoryChangeRecord

Changes = dict[str, dict[str, Any]]

_MEMBER = re.compile(r"\[([0-9]+)\]")


def value_at(contents: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Return whether a path exists, and its value: `value_at(state, "inventory.wood")`, `"position[0]"`."""
    for value in _follow_path(contents, f".{path}"):
        return True, value
    return False, None


def _follow_path(value: Any, way: str) -> Iterator[Any]:
    """Follow a path such as `.inventory.wood` or `[0].name`. A key may contain dots and brackets, so the longest
    matching key is tried first."""
    if not way:
        yield value
    elif isinstance(value, Mapping) and way[0] == ".":
        for end in range(len(way), 0, -1):
            if (end == len(way) or way[end] in ".[") and way[1:end] in value:
                yield from _follow_path(value[way[1:end]], way[end:])
    elif isinstance(value, list) and (member := _MEMBER.match(way)) and int(member[1]) < len(value):
        yield from _follow_path(value[int(member[1])], way[member.end() :])


def values_under(value: Any, path: str) -> Iterator[Any]:
    """Yield every value under a dotted path; list members have the path of their list."""
    if isinstance(value, list):
        for member in value:
            yield from values_under(member, path)
    elif isinstance(value, Mapping):
        for key, inside in value.items():
            if key == path:
                yield inside
            elif path.startswith(f"{key}."):
                yield from values_under(inside, path[len(key) + 1 :])


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal at any depth; True and 1 differ."""
    if first != second:
        return False
    if isinstance(first, bool) or isinstance(second, bool):
        return type(first) is type(second)
    if isinstance(first, list):
        return all(map(same, first, second))
    if isinstance(first, Mapping):
        return all(same(value, second[key]) for key, value in first.items())
    return True


def changed_paths(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Return each changed value by its dotted path: {"inventory.wood": {"before": 5, "after": 3}}.

    What was not there before has no "before", what is gone has no "after". A list is one value.
    """
    return dict(_changes(before, after, ""))


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], above: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in {**before, **after}:
        path = f"{above}{key}"
        if key not in after:
            yield path, {"before": before[key]}
        elif key not in before:
            yield path, {"after": after[key]}
        else:
            old, new = before[key], after[key]
            if isinstance(old, Mapping) and isinstance(new, Mapping):
                yield from _changes(old, new, f"{path}.")
            elif not same(old, new):
                yield path, {"before": old, "after": new}


def amount_of(changes: Changes) -> float:
    """Sum up changes: a number counts by its relative change, anything else counts 1."""
    return sum(_amount(change) for change in changes.values())


def _amount(change: Mapping[str, Any]) -> float:
    if len(change) < 2:
        return 1.0
    old, new = change["before"], change["after"]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return max((_amount({"before": a, "after": b}) for a, b in zip(old, new, strict=True)), default=0.0)
    if any(isinstance(side, bool) or not isinstance(side, int | float) for side in (old, new)):
        return float(not same(old, new))
    try:
        old, new = float(old), float(new)
    except OverflowError:  # an int may be larger than any float
        return float(old != new)
    return min(1.0, abs(new - old) / max(abs(old), abs(new), 1e-300))


def history_of(path: str, entries: Iterable[MemoryEntry]) -> list[MemoryChangeRecord]:
    """Return the value of an attribute in each entry that has one, and whether it differs from the one before."""
    history: list[MemoryChangeRecord] = []
    for entry in entries:
        found, value = value_at(entry["contents"], path)
        if found:
            changed = not history or not same(history[-1]["value"], value)
            history.append(
                {
                    "step_number": entry["step_number"],
                    "timestamp": entry["timestamp"],
                    "value": value,
                    "changed": changed,
                    "memory_id": entry["memory_id"],
                }
            )
    return history
