"""Number the parameters of a statement, `$1` or `:name`, and check their values."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from sqlglot import exp

from ...errors import SqlError
from .expression_types import UNKNOWN
from .json_values import check_text
from .scope import replace_node

MAX_PARAMETERS = 60_000


@dataclass(frozen=True, slots=True)
class Parameters:
    """The names of a statement's parameters, or how many there are."""

    names: tuple[str, ...] = ()
    count: int = 0
    unused: int = 0
    """A number below `count` that the statement does not use."""

    def values(self, params: Sequence[Any] | Mapping[str, Any] | None) -> list[Any]:
        """Return the values by number; the error names what is missing or superfluous."""
        given = "nothing" if params is None else type(params).__name__
        if isinstance(params, (str, bytes)) or (params is not None and not isinstance(params, (Sequence, Mapping))):
            raise SqlError(f"params must be a list or a mapping, got {given}")
        if isinstance(params, Mapping) and (self.names or params):
            for name in self.names:
                if name not in params:
                    raise SqlError(f"parameter :{name} is missing")
            known = frozenset(self.names)
            for name in params:
                if name not in known:
                    raise SqlError(f"parameter {name!r} was given, but the statement has no :{name}")
            return [check_value(params[name], f":{name}") for name in self.names]
        if self.names:
            raise SqlError(f"parameter :{self.names[0]} needs a mapping of names to values, got {given}")
        if self.unused:
            raise SqlError(f"the statement has a parameter ${self.count}, but it does not use ${self.unused}")
        values = list(params or [])
        if len(values) != self.count:
            raise SqlError(
                f"the statement has {self.count} {'parameter' if self.count == 1 else 'parameters'} "
                f"(up to ${self.count}), but {len(values)} were given"
            )
        return [check_value(value, f"${number}") for number, value in enumerate(values, 1)]


def number_parameters(tree: exp.Expression) -> Parameters:
    placed = list(tree.find_all(exp.Parameter))
    named = [node for node in tree.find_all(exp.Placeholder) if isinstance(node, exp.Placeholder)]
    if any(node.name in ("", "?") or node.args.get("jdbc") for node in named):
        raise SqlError("parameters are written $1 or :name, not %s; `?` is an operator of JSONB")
    if placed and named:
        raise SqlError("parameters are either all $1, $2 … or all :name, not both")
    if named:
        names = list(dict.fromkeys(node.name for node in named))
        numbers = {name: number for number, name in enumerate(names, 1)}
        for node in named:
            replace_node(node, exp.Parameter(this=exp.Literal.number(numbers[node.name])))
        return Parameters(names=tuple(names))
    used = set()
    for parameter in placed:
        digits = parameter.name if isinstance(parameter.this, exp.Literal) else ""
        if not digits.isdecimal() or not 1 <= int(digits[:10]) <= MAX_PARAMETERS:
            raise SqlError(f"parameters are written $1, $2 …, got ${parameter.name[:20]}")
        used.add(int(digits))
    count = max(used, default=0)
    return Parameters(count=count, unused=next((number for number in range(1, count) if number not in used), 0))


def check_value(value: Any, name: str) -> Any:
    """Check a parameter value and convert it to plain Python."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        check_text(value, f"parameter {name}")
    elif isinstance(value, float) and math.isnan(value):
        raise SqlError(f"parameter {name} is NaN; use NULL for a value that is not known")
    elif isinstance(value, Decimal) and not value.is_finite():
        raise SqlError(f"parameter {name} must be a finite number, got {value}")
    elif not isinstance(value, _CLASSES):
        raise SqlError(
            f"parameter {name} must be a number, text, bool, bytes, date, time, UUID, list, dict or None, "
            f"got {type(value).__name__}"
        )
    return value


_CLASSES = (
    *(int, float, Decimal, bytes, UUID, dt.date, dt.time, dt.timedelta, list, tuple, dict, np.ndarray),
    type(None),
)


def parameter_type(value: Any) -> str:
    """Return the type of a value; texts, lists and dicts get theirs from their place."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return integer_type(value)
    for kind, name in _BY_CLASS:
        if isinstance(value, kind):
            return name
    if isinstance(value, dt.datetime):
        return "timestamp" if value.tzinfo is None else "timestamptz"
    return "date" if isinstance(value, dt.date) else UNKNOWN


_BY_CLASS: tuple[tuple[type, str], ...] = (
    (float, "float8"),
    (Decimal, "numeric"),
    (bytes, "bytea"),
    (dt.time, "time"),
    (dt.timedelta, "interval"),
    (UUID, "uuid"),
)


def integer_type(value: int) -> str:
    """Return the smallest type from int4 upwards that holds a whole number."""
    if -(2**31) <= value < 2**31:
        return "int4"
    return "int8" if -(2**63) <= value < 2**63 else "numeric"


def shape(value: Any) -> str:
    """Return everything about a value that affects binding."""
    found = parameter_type(value)
    return found if found != UNKNOWN else f"{type(value).__name__} {lone_type(value)}"


def lone_type(value: Any) -> str:
    """Return the type of a list or dict whose place expects none."""
    if isinstance(value, dict):
        return "jsonb"
    if isinstance(value, np.ndarray):
        return "float4[]" if value.ndim == 1 else "float4[][]"
    if isinstance(value, (list, tuple)):
        known = [item for item in value if item is not None]
        if known and all(isinstance(item, int) and not isinstance(item, bool) for item in known):
            return "int8[]"
        if known and all(isinstance(item, (int, float)) and not isinstance(item, bool) for item in known):
            return "float8[]"
        if all(isinstance(item, str) for item in known):
            return "text[]"
        return "jsonb"
    return "text"
