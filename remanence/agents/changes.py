"""Values by their path in a state, what is different between two states, and how much."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Changes = dict[str, dict[str, Any]]

_PART = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def value_at(contents: Mapping[str, Any], path: str) -> tuple[bool, Any]:
    """Whether there is such a value, and the value: `value_at(state, "inventory.wood")`, `"position[0]"`."""
    if path in contents:  # a key may itself hold a dot
        return True, contents[path]
    value: Any = contents
    for index, key in _PART.findall(path):
        if index and isinstance(value, list) and int(index) < len(value):
            value = value[int(index)]
        elif key and isinstance(value, Mapping) and key in value:
            value = value[key]
        else:
            return False, None
    return True, value


def changed_paths(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """Each value that changed, by its dotted path: {"inventory.wood": {"before": 5, "after": 3}}.

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
            elif isinstance(old, bool) is not isinstance(new, bool) or old != new:
                yield path, {"before": old, "after": new}


def amount_of(changes: Changes) -> float:
    """How much changed, at least 0: each number counts by its relative change, anything else counts 1."""
    return sum(_amount(change) for change in changes.values())


def _amount(change: Mapping[str, Any]) -> float:
    if len(change) < 2:
        return 1.0
    old, new = change["before"], change["after"]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return max((_amount({"before": a, "after": b}) for a, b in zip(old, new, strict=True)), default=0.0)
    if any(isinstance(side, bool) or not isinstance(side, int | float) for side in (old, new)):
        return float(old != new)
    try:
        old, new = float(old), float(new)
    except OverflowError:  # whole numbers may be larger than any float
        return float(old != new)
    return min(1.0, abs(new - old) / max(abs(old), abs(new), 1e-300))
