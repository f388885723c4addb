"""Match regular expressions: PostgreSQL's are rewritten for the `regex` package, which can be stopped when a pattern
takes too long. LIKE is SQLite's own, which cannot be stopped; a comparison that would take seconds is refused."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Any

import regex  # type: ignore[import-untyped]

from ...errors import SqlError, StatementTimeoutError
from ..deadline import left
from ..sql.scope import unsupported
from .sqlite_functions import native

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
    try:
        found = expression(pattern, flags).finditer(text, timeout=left() or LONGEST, concurrent=True)
        return list(found if "g" in flags else islice(found, 1))
    except TimeoutError:
        raise StatementTimeoutError("a regular expression took too long; the statement was stopped") from None


native("~(text, text)")(lambda text, pattern: bool(matches(pattern, text)))
native("~*(text, text)")(lambda text, pattern: bool(matches(pattern, text, "i")))
native("!~(text, text)")(lambda text, pattern: not matches(pattern, text))
native("!~*(text, text)")(lambda text, pattern: not matches(pattern, text, "i"))


@native("regexp_match(text, text)", "regexp_match(text, text, text)")
def _match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    if "g" in flags:
        raise SqlError('regexp_match() does not support the "global" option')
    for found in matches(pattern, text, flags):
        return list(found.groups()) if found.re.groups else [found[0]]
    return None


@native("regexp_replace(text, text, text)", "regexp_replace(text, text, text, text)")
def _replace(text: str, pattern: str, new: str, flags: str = "") -> str:
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
