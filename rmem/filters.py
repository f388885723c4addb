"""The typed filter that every interface, store and route uses. Unknown fields are refused, never ignored."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from . import checks
from .contents import laid_out
from .errors import InputError
from .models import TIERS, Memory

Names = tuple[str, ...]
Point = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Filter:
    """Selects memories. Every given field must match; a list of names matches any of them.

        Filter(agent="swe-01", type=["error_fix", "decision"], tags={"repo": ["data-pipeline", "web-app"]})
        Filter(attributes={"inventory.wood": 5}, min_step=1000, max_step=2000)
        Filter(near=(10, 20), radius=5, since="two weeks ago")

    `attributes` compares values inside `contents` by dotted path; a list there matches by any member.
    """

    agent: Names | None = None
    type: Names | None = None
    session: Names | None = None
    actor: Names | None = None
    place: Names | None = None
    tier: Names | None = None
    tags: Mapping[str, str | Names] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    min_step: int | None = None
    max_step: int | None = None
    since: float | None = None
    until: float | None = None
    min_importance: float | None = None
    max_importance: float | None = None
    box: tuple[Point, Point] | None = None
    near: Point | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        def put(key: str, value: object) -> None:
            object.__setattr__(self, key, value)

        for key in ("agent", "type", "session", "actor", "place", "tier"):
            if getattr(self, key) is not None:
                put(key, checks.names(key, getattr(self, key)))
        for tier in self.tier or ():
            checks.one_of("tier", tier, TIERS)
        if self.tags != {}:
            put("tags", checks.wanted_labels("tags", self.tags))
        if self.attributes != {}:
            attributes = checks.json_object("attributes", self.attributes)
            put("attributes", {path: _canonical(value) for path, value in attributes.items()})
        for path, value in self.attributes.items():
            if isinstance(value, dict | list):
                raise checks.refuse(f"attributes[{path!r}]", "a text, a number, True, False or None", value)
        for key in ("min_step", "max_step"):
            if getattr(self, key) is not None:
                put(key, checks.whole(key, getattr(self, key)))
        for key in ("since", "until"):
            if getattr(self, key) is not None:
                put(key, checks.moment(key, getattr(self, key), end_of_day=key == "until"))
        for key in ("min_importance", "max_importance"):
            if getattr(self, key) is not None:
                put(key, checks.share(key, getattr(self, key)))
        for low, high in (("min_step", "max_step"), ("since", "until"), ("min_importance", "max_importance")):
            below, above = getattr(self, low), getattr(self, high)
            if below is not None and above is not None and below > above:
                values = [_shown(low, value) for value in (below, above)]
                raise InputError(f"{low} must not be after {high}: {values[0]} > {values[1]}", field=low)
        self._check_space(put)

    def _check_space(self, put: Any) -> None:
        if (self.near is None) != (self.radius is None):
            raise InputError("near and radius must be given together", field="near" if self.near is None else "radius")
        if self.near is not None:
            put("near", checks.point("near", self.near))
            put("radius", checks.number("radius", self.radius, low=0))
        if self.box is not None:
            if not isinstance(self.box, list | tuple) or len(self.box) != 2:
                raise checks.refuse("box", "two corners", self.box)
            low, high = (checks.point(f"box[{at}]", corner) for at, corner in enumerate(self.box))
            if len(low) != len(high):
                raise InputError("the corners of box must have the same number of coordinates", field="box")
            if any(a > b for a, b in zip(low, high, strict=True)):
                raise InputError("the first corner of box must not be above the second", field="box")
            put("box", (low, high))

    @classmethod
    def of(cls, where: Filter | Mapping[str, Any] | None, **more: object) -> Filter:
        """Build a filter from a filter or a mapping, narrowed by `more` (values of None are ignored)."""
        if where is None:
            where = {}
        given = {key: value for key, value in more.items() if value is not None}
        if isinstance(where, Mapping):
            for key, value in where.items():
                if value is None:  # ignoring a value of None would widen the filter
                    raise checks.refuse(str(key), "left out or given a value", None)
        if isinstance(where, Filter):
            if not given:
                return where
            clash = [key for key in given if getattr(where, key) not in (None, {})]
            if clash:
                raise InputError(f"{clash[0]} is given twice: in the filter and beside it", field=clash[0])
            return replace(where, **given)  # type: ignore[arg-type]
        if not isinstance(where, Mapping):
            raise checks.refuse("where", "a Filter or a mapping", where)
        checks.known_fields("a filter", where, _FIELDS)
        for key in given:
            if key in where:
                raise InputError(f"{key} is given twice: in the filter and beside it", field=key)
        return cls(**{**where, **given})

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Filter) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def key(self) -> str:
        """Return a text that is the same for equal filters."""
        return _key(self.to_dict())  # unlike ==, JSON distinguishes True and 1

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are set, for JSON; `Filter.of` reads them back."""
        result = {}
        for name in _FIELDS:
            value = getattr(self, name)
            if value is None or value == {}:
                continue
            result[name] = list(value) if isinstance(value, tuple) else value
        return result

    def matches(self, memory: Memory) -> bool:
        """Whether a memory matches: the reference implementation for every index."""
        return (
            (not self.agent or memory.agent_id in self.agent)
            and (not self.type or memory.type in self.type)
            and (not self.session or memory.session in self.session)
            and (not self.actor or memory.actor in self.actor)
            and (not self.place or memory.place in self.place)
            and (not self.tier or memory.tier in self.tier)
            and all(memory.tags.get(key) in alternatives(value) for key, value in self.tags.items())
            and all(
                attribute_text(path, value) in attribute_texts(memory.contents)
                for path, value in self.attributes.items()
            )
            and (self.min_step is None or memory.step_number >= self.min_step)
            and (self.max_step is None or memory.step_number <= self.max_step)
            and (self.since is None or memory.timestamp >= self.since)
            and (self.until is None or memory.timestamp <= self.until)
            and (self.min_importance is None or memory.importance >= self.min_importance)
            and (self.max_importance is None or memory.importance <= self.max_importance)
            and self._in_space(memory.position)
        )

    def _in_space(self, position: Point | None) -> bool:
        if self.box is not None:
            low, high = self.box
            if position is None or len(position) < len(low):
                return False
            if not all(a <= x <= b for a, x, b in zip(low, position, high, strict=False)):
                return False
        if self.near is not None:
            if position is None or len(position) < len(self.near):
                return False
            assert self.radius is not None
            return math.dist(position[: len(self.near)], self.near) <= self.radius
        return True


_FIELDS = [f.name for f in fields(Filter)]
_key = json.JSONEncoder(sort_keys=True).encode
_json = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would create an encoder for every memory


def alternatives(wanted: str | Names) -> Names:
    """Return the values of a tag that match."""
    return (wanted,) if isinstance(wanted, str) else wanted


def attribute_text(path: str, value: object) -> str:
    """Return the searchable form of one attribute, `path=value`."""
    return f"{path}={written(value)}"


def written(value: object) -> str:
    """Write a value for an attribute text: `1` and `1.0` are one value, `True` is not `1`."""
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() else float.__repr__(value)
    return repr(value) if type(value) is int else _json(value)


def _shown(field: str, value: float) -> str:
    """Format a bound for an error: a time as such."""
    return f"{datetime.fromtimestamp(value):%Y-%m-%d %H:%M}" if field == "since" else f"{value}"


def _canonical(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def attribute_texts(contents: Mapping[str, Any]) -> set[str]:
    """Return every `path=value` in contents; list members have the path of their list."""
    layout, values = laid_out(contents)
    return set(map(attribute_text, layout.under, values))
