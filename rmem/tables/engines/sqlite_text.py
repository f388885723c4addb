"""Compute functions of texts, on Python's strings; letters change case one by one, as in PostgreSQL's C.UTF-8."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...errors import SqlError
from ..sql.casts import item_text
from .sqlite_functions import native

MAX_TEXT = 64_000_000
"""The longest text that a function may make."""


def _change_case(text: str, change: Callable[[str], str]) -> str:
    changed = change(text)
    return changed if len(changed) == len(text) else "".join(change(c) if len(change(c)) == 1 else c for c in text)


native("lower(text)")(partial(_change_case, change=str.lower))
native("upper(text)")(partial(_change_case, change=str.upper))


def _check_length(length: int) -> int:
    if length > MAX_TEXT:
        raise SqlError("requested length too large")
    return length


@native("concat(any)", strict=False, kinds=True)
def _concat(kinds: tuple[str, ...], *values: Any) -> str:
    return "".join(item_text(value, kind) for value, kind in zip(values, kinds, strict=True) if value is not None)


@native("concat_ws(text, any)", strict=False, kinds=True)
def _concat_ws(kinds: tuple[str, ...], separator: str | None, *values: Any) -> str | None:
    if separator is None:
        return None
    pairs = zip(values, kinds[1:], strict=True)
    return separator.join(item_text(value, kind) for value, kind in pairs if value is not None)


native("left(text, int4)")(lambda text, count: text[:count])
native("right(text, int4)")(lambda text, count: text[max(len(text) - count, 0) if count >= 0 else -count :])
native("btrim(text)", "btrim(text, text)")(lambda text, signs=" ": text.strip(signs) if signs else text)
native("ltrim(text)", "ltrim(text, text)")(lambda text, signs=" ": text.lstrip(signs) if signs else text)
native("rtrim(text)", "rtrim(text, text)")(lambda text, signs=" ": text.rstrip(signs) if signs else text)


@native("replace(text, text, text)")
def _replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    _check_length(len(text) + text.count(old) * (len(new) - len(old)))
    return text.replace(old, new)


@native("split_part(text, text, int4)")
def _split_part(text: str, separator: str, at: int) -> str:
    if at == 0:
        raise SqlError("field position must not be zero")
    parts = text.split(separator) if separator else [text]
    at = at - 1 if at > 0 else at + len(parts)
    return parts[at] if 0 <= at < len(parts) else ""


native("strpos(text, text)")(lambda text, part: text.find(part) + 1)
native("starts_with(text, text)")(lambda text, part: text.startswith(part))


@native("substr(text, int4)", "substring(text, int4)", "substr(text, int4, int4)", "substring(text, int4, int4)")
def _substr(text: str, start: int, count: int | None = None) -> str:
    if count is None:
        return text[max(start - 1, 0) :]
    if count < 0:
        raise SqlError("negative substring length not allowed")
    end = start - 1 + count
    return text[max(start - 1, 0) : max(end, 0)]


native("deeplake_sync_table(text)")(lambda name: name)
