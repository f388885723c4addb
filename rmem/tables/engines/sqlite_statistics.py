"""What aggregates compute from the rows that were gathered: `AGGREGATES[signature or name](call, rows)`."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from ..sql.functions import Call
from ..sql.times import Interval
from .sqlite_json import as_json, json_key
from .sqlite_numeric import divide, numeric_sqrt, select_scale

Rows = list[list[Any]]
AGGREGATES: dict[str, Callable[[Call, Rows], Any]] = {}
NULLS_COUNT = frozenset({"array_agg", "jsonb_agg", "jsonb_object_agg"})


def _aggregate(*keys: str) -> Callable[[Callable[[Call, Rows], Any]], Callable[[Call, Rows], Any]]:
    def register(function: Callable[[Call, Rows], Any]) -> Callable[[Call, Rows], Any]:
        AGGREGATES.update(dict.fromkeys(keys, function))
        return function

    return register


@_aggregate("sum(int8)", "sum(numeric)")
def _sum_numeric(call: Call, rows: Rows) -> Decimal | None:
    return exact_sum([Decimal(row[0]) for row in rows]) if rows else None


def exact_sum(values: list[Decimal]) -> Decimal:
    from ..sql.literals import EXACT

    total = Decimal(0)
    for value in values:
        total = EXACT.add(total, value)
    return total


@_aggregate("sum(float4)")
def _sum_float(call: Call, rows: Rows) -> float | None:
    if not rows:
        return None
    total = 0.0
    for row in rows:
        total += row[0]
    return total


@_aggregate("sum(interval)")
def _sum_interval(call: Call, rows: Rows) -> Interval | None:
    return Interval(*(sum(column) for column in zip(*(row[0] for row in rows), strict=True))) if rows else None


@_aggregate("avg(int8)", "avg(numeric)")
def _avg_numeric(call: Call, rows: Rows) -> Decimal | None:
    if not rows:
        return None
    return divide(exact_sum([Decimal(row[0]) for row in rows]), Decimal(len(rows)))


@_aggregate("avg(interval)")
def _avg_interval(call: Call, rows: Rows) -> Interval | None:
    from .sqlite_times import interval_times

    total = _sum_interval(call, rows)
    return None if total is None else interval_times(total, 1 / len(rows))


@_aggregate("string_agg(text, text)")
def _string_agg(call: Call, rows: Rows) -> str | None:
    if not rows:
        return None
    parts = [rows[0][0]]
    for value, separator in rows[1:]:
        parts += [separator or "", value]
    return "".join(parts)


@_aggregate("array_agg")
def _array_agg(call: Call, rows: Rows) -> list[Any] | None:
    return [row[0] for row in rows] if rows else None


@_aggregate("jsonb_agg")
def _json_agg(call: Call, rows: Rows) -> list[Any] | None:
    return [as_json(row[0], call.takes[0]) for row in rows] if rows else None


@_aggregate("jsonb_object_agg")
def _json_object_agg(call: Call, rows: Rows) -> dict[str, Any] | None:
    if not rows:
        return None
    return {json_key(key, call.takes[0]): as_json(value, call.takes[1]) for key, value in rows}


def _spread(call: Call, rows: Rows, *, root: bool) -> Any:
    count = len(rows)
    if count < 2:
        return None
    if call.gives == "float8":
        return _float_spread([row[0] for row in rows], root=root)
    from ..sql.literals import EXACT

    total = exact_sum([Decimal(row[0]) for row in rows])
    squares = exact_sum([EXACT.multiply(Decimal(row[0]), Decimal(row[0])) for row in rows])
    top = EXACT.subtract(EXACT.multiply(Decimal(count), squares), EXACT.multiply(total, total))
    if top <= 0:
        return Decimal(0)
    bottom = Decimal(count * (count - 1))
    scale = select_scale(top, bottom)
    variance = divide(top, bottom, scale)
    return numeric_sqrt(variance, scale) if root else variance


def _float_spread(values: list[float], *, root: bool) -> float:
    variance = float(np.var(values, ddof=1))
    return math.sqrt(variance) if root else variance


AGGREGATES["stddev"] = lambda call, rows: _spread(call, rows, root=True)
AGGREGATES["variance"] = lambda call, rows: _spread(call, rows, root=False)
