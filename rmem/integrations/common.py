"""Helpers of several adapters: opening a Brain, ids and texts of memories, filters with operators such as `$gt`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import wraps
from hashlib import blake2b
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ..brain import Brain
from ..embed import EmbedderSpec
from ..errors import InputError
from ..filters import Filter
from ..models import Memory

Params = ParamSpec("Params")
Result = TypeVar("Result")

MAX_HITS = 1000  # of one recall; a server returns no more
_PAGE = 500


def open_brain(brain: Brain | str | Path | None, embedder: EmbedderSpec = None) -> tuple[Brain, bool]:
    """Return a Brain, opened unless one is given, and whether the caller must close it."""
    return (brain, False) if isinstance(brain, Brain) else (Brain(brain, embedder=embedder), True)


def in_thread(method: Callable[Params, Result]) -> Callable[Params, Coroutine[Any, Any, Result]]:
    """Return the async version of a method, which runs it in a thread: `aput = in_thread(put)`."""

    @wraps(method)
    async def call(*args: Params.args, **options: Params.kwargs) -> Result:
        return await asyncio.to_thread(method, *args, **options)

    return call


def id_of(kind: str, *parts: str) -> str:
    """Return an id unique to these parts in this order."""
    return f"{kind}/{blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()}"


def iterate_memories(brain: Brain, where: Filter) -> Iterator[Memory]:
    """Yield the memories that match a filter, oldest first, read page by page."""
    at = 0
    while page := brain.memories(where, order="oldest", limit=_PAGE, offset=at):
        yield from page
        if len(page) < _PAGE:
            return
        at += _PAGE


def clean_text(text: str, default: str) -> str:
    """Remove NUL and lone surrogates, which memories may not have; return `default` for a blank text."""
    cleaned = text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
    return cleaned if cleaned.strip() else default


def to_text(value: object, path: str = "") -> str:
    """Return the leaves of a JSON value, one line each, as "path: leaf"; a text is returned as it is."""
    if isinstance(value, Mapping):
        if not path and list(value) == ["text"] and isinstance(value["text"], str):
            return value["text"]
        return "\n".join(
            filter(None, (to_text(member, f"{path}.{key}" if path else str(key)) for key, member in value.items()))
        )
    if isinstance(value, list | tuple):
        return "\n".join(filter(None, (to_text(item, path) for item in value)))
    if value is None:
        return ""
    return f"{path}: {value}" if path else str(value)


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value passes a filter such as {"color": "red", "score": {"$gt": 3}}; "a.b" also means b inside a."""
    return all(_compare(_member(value, key), condition) for key, condition in wanted.items())


def _member(value: Mapping[str, Any], key: str) -> Any:
    if key in value or "." not in key:
        return value.get(key)
    found: Any = value
    for name in key.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _compare(held: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(key).startswith("$") for key in wanted):
            return all(_operate(held, operator, operand) for operator, operand in wanted.items())
        return isinstance(held, Mapping) and all(_compare(held.get(key), member) for key, member in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(held, list | tuple) and len(held) == len(wanted) and all(map(_compare, held, wanted))
    return bool(held == wanted)


def _operate(held: Any, operator: str, operand: Any) -> bool:
    if operator == "$eq":
        return bool(held == operand)
    if operator == "$ne":
        return bool(held != operand)
    if operator in ("$in", "$nin"):
        if not isinstance(operand, Sequence) or isinstance(operand, str):
            raise InputError(f"{operator} in a filter must have a list, got {operand!r}", field="filter")
        return (held in operand) == (operator == "$in")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise InputError(
            f"filter has the operator {operator!r}; known are $eq, $ne, $gt, $gte, $lt, $lte, $in and $nin",
            field="filter",
        )
    texts = isinstance(held, str) and isinstance(operand, str)
    if not texts and not (isinstance(held, int | float) and isinstance(operand, int | float)):
        return False  # missing or of another type
    above, same = held > operand, held == operand
    return bool(
        above
        if operator == "$gt"
        else above or same
        if operator == "$gte"
        else held < operand or (same and operator == "$lte")
    )


def store_filter(wanted: Mapping[str, Any] | None, prefix: str) -> dict[str, Any]:
    """Return the part of a filter that a store can apply: attributes for equality of texts."""
    return {
        f"{prefix}.{key}": value
        for key, value in (wanted or {}).items()
        if isinstance(value, str) and value.isprintable() and key.isprintable() and "." not in key
    }
