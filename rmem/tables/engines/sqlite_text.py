"""Compute functions of texts, on Python's strings; letters change case one by one, as in PostgreSQL's C.UTF-8.

PostgreSQL's regular expressions are rewritten for the `regex` package, which can be stopped when a pattern takes too
long. LIKE is SQLite's own, which cannot be stopped; a comparison that would take seconds is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import regex  # type: ignore[import-untyped]

from ...errors import SqlError, StatementTimeoutError
from ..deadline import left
from ..sql.casts import item_text
from ..sql.scope import unsupported
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


# -- patterns ---------------------------------------------------------------------------------------------------

LONGEST = 10.0
"""Seconds that one match may take where the statement has no time limit."""
SHORT = 32
"""Characters of a pattern of LIKE that is compared with any text: it takes the time of both lengths multiplied."""
MAX_LIKE = 400_000_000
"""Pairs of characters that any other one may compare, as on PostgreSQL; about a third of a second."""


def is_short(pattern: object) -> bool:
    return not isinstance(pattern, str) or len(pattern) <= SHORT


@native("refused like", stable=False)
def _refuse_like() -> bool:
    raise SqlError("the arguments of LIKE are too long: it would run for seconds without a chance to stop it")


_FLAGS = {"i": regex.IGNORECASE, "n": regex.MULTILINE, "x": regex.VERBOSE, "g": 0}
_PARTS = regex.compile(r"\\(?s:.)|\[\^?\]?(?:\[:\w+:\]|[^\]])*\]|\$")
"""An escape, a bracket expression, or `$`."""
_WRITTEN = {r"\y": r"\b", r"\Y": r"\B"}


@lru_cache(maxsize=512)
def expression(pattern: str, flags: str = "") -> Any:
    """Compile a PostgreSQL regular expression with its flags."""
    found = regex.VERSION0 | (0 if "n" in flags else regex.DOTALL)
    for flag in flags:
        if flag in "bcempqstw":
            raise unsupported(f'option "{flag}" of a regular expression', "There are g, i, n and x")
        if flag not in _FLAGS:
            raise SqlError(f'invalid regular expression option: "{flag}"')
        found |= _FLAGS[flag]
    if "|" in pattern and not regex.search(r"[*+?}]\?", pattern):
        found |= regex.POSIX  # the longest match, not the first
    end = "$" if "n" in flags else r"\Z"
    return _compile(_PARTS.sub(lambda part: _rewrite(part[0], end), pattern), found, pattern)


def _rewrite(part: str, end: str) -> str:
    """Rewrite what PostgreSQL writes differently from Python."""
    if part.startswith("["):
        return part[0] + part[1:-1].replace("[", r"\[").replace(r"\[:", "[:") + "]"
    return end if part == "$" else _WRITTEN.get(part, part)


def _compile(text: str, flags: int, pattern: str) -> Any:
    if len(text) > 20_000:
        raise SqlError("a regular expression is too long")
    try:
        return regex.compile(text, flags)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        raise SqlError(f"invalid regular expression: {error} in {pattern!r:.80}") from None


def matches(pattern: str, text: str, flags: str = "") -> list[Any]:
    """Return the first match, or all if the flags say so."""
    compiled, seconds = expression(pattern, flags), left() or LONGEST
    try:
        if "g" in flags:
            return list(compiled.finditer(text, timeout=seconds, concurrent=True))
        found = compiled.search(text, timeout=seconds, concurrent=True)
        return [] if found is None else [found]
    except TimeoutError:
        raise StatementTimeoutError("a regular expression took too long; the statement was stopped") from None


native("~(text, text)")(lambda text, pattern: bool(matches(pattern, text)))
native("~*(text, text)")(lambda text, pattern: bool(matches(pattern, text, "i")))
native("!~(text, text)")(lambda text, pattern: not matches(pattern, text))
native("!~*(text, text)")(lambda text, pattern: not matches(pattern, text, "i"))


@native("regexp_match(text, text)", "regexp_match(text, text, text)")
def _regexp_match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    if "g" in flags:
        raise SqlError('regexp_match() does not support the "global" option')
    for found in matches(pattern, text, flags):
        return list(found.groups()) if found.re.groups else [found[0]]
    return None


@native("regexp_replace(text, text, text)", "regexp_replace(text, text, text, text)")
def _regexp_replace(text: str, pattern: str, new: str, flags: str = "") -> str:
    out = []
    at = 0
    for found in matches(pattern, text, flags):
        out += [text[at : found.start()], _fill_groups(new, found)]
        at = found.end()
    return "".join([*out, text[at:]])


def _fill_groups(new: str, found: Any) -> str:
    """`\\1` and `\\&` in a replacement."""

    def part(mark: re.Match[str]) -> str:
        sign = mark[1]
        if sign in "123456789":
            return (found[int(sign)] or "") if int(sign) <= found.re.groups else ""
        return str(found[0]) if sign == "&" else "\\" if sign == "\\" else mark[0]

    return re.sub(r"\\(.)", part, new, flags=re.DOTALL)
