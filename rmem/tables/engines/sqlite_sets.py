"""Compile functions in FROM: each gives SQLite a JSON list, and json_each makes rows of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate, islice, repeat, takewhile
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from ...errors import SqlError
from ..sql import functions
from ..sql.json_values import sorted_keys
from ..sql.scope import Source
from ..sql.times import Interval
from .sqlite_functions import Native, scalar
from .sqlite_json import as_text
from .sqlite_storage import writer
from .sqlite_times import add_interval

if TYPE_CHECKING:
    from .sqlite_compile import Compiler

MAX_SERIES = 2_000_000


def set_call(compiler: Compiler, node: exp.Table, source: Source, alias: str) -> str:
    call: functions.FunctionCall = node.this.meta["call"]
    items = [
        compiler.expressions.sql_as(argument, want)
        for argument, want in zip(node.this.expressions, call.takes, strict=True)
    ]
    name = call.signature.name
    pairs = len(functions.SET_COLUMNS.get(name, ())) > 1
    kind = source.columns[pairs][1]
    value = f"{alias}.value"
    if kind in ("float4", "float8"):
        value = f"rmem_float({value})"
    elif kind in ("bytea", "float4[]", "float4[][]"):
        value = f"rmem_bytes({value})"
    compiler.place(source, "", [f"{alias}.key", value] if pairs else [value])
    udf = scalar(f"rows of {call.key}", call.takes, "text", Native(_rows_of(name, kind)))
    return f"json_each({compiler.call(udf, items)}) AS {alias}"


def _rows_of(name: str, kind: str) -> Callable[..., str]:
    """Return a function from the arguments of a set function to the JSON of its rows: a list, or an object for those
    that give keys and values."""
    rows, write = _SETS[name], writer(kind)

    def to_stored(value: Any) -> Any:
        item = None if value is None and kind != "jsonb" else write(value)
        if isinstance(item, bytes):
            return item.hex()
        return repr(item) if isinstance(item, float) else item

    def run(*arguments: Any) -> str:
        found = rows(*arguments)
        if isinstance(found, dict):
            return json.dumps({key: to_stored(value) for key, value in found.items()})
        return json.dumps([to_stored(value) for value in found])

    return run


def _series(start: Any, end: Any, step: Any = None) -> list[Any]:
    size = 1 if step is None else step.total if isinstance(step, Interval) else step
    if size == 0:
        raise SqlError("step size cannot equal zero")
    if not isinstance(step, Interval):
        found: Sequence[Any] = range(start, end + (1 if size > 0 else -1), size)
    else:
        times = takewhile(
            lambda at: at <= end if size > 0 else at >= end, accumulate(repeat(step), add_interval, initial=start)
        )
        found = list(islice(times, MAX_SERIES + 1))
    if len(found) > MAX_SERIES:
        raise SqlError(f"generate_series of more than {MAX_SERIES:,} values is not supported")
    return list(found)


def _elements(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise SqlError(f"cannot extract elements from {'an object' if isinstance(value, dict) else 'a scalar'}")
    return value


def _pairs(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SqlError("cannot call jsonb_each on a non-object")
    return {key: value[key] for key in sorted_keys(value)}


_SETS: dict[str, Any] = {
    "generate_series": _series,
    "unnest": lambda array: array,
    "jsonb_array_elements": _elements,
    "jsonb_array_elements_text": lambda value: [as_text(item) for item in _elements(value)],
    "jsonb_object_keys": lambda value: list(_pairs(value)),
    "jsonb_each": _pairs,
    "jsonb_each_text": lambda value: {key: as_text(item) for key, item in _pairs(value).items()},
}
