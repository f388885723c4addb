"""Time words in questions: "yesterday", "last May", "two weeks ago", "between March and June", "on 7 May 2023".

Each becomes a span of time. `periods` finds single periods in English, `frames` reads the words around them,
`other_languages` knows the most common phrases of sixteen more languages, `calendar` computes.

This is a grammar of its own because a general date parser needs 0.2 s to load and tens of milliseconds a question, and
finds dates in words such as "may" and "second" (docs/decisions/0004-time-words.md)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from ..patterns import lazy_pattern

if TYPE_CHECKING:
    from .calendar import Reading

_EARLIEST, _LATEST = datetime(1, 1, 3), datetime(9999, 12, 30)  # valid as timestamps in every time zone
_PLAIN = str.maketrans("’０１２３４５６７８９", "'0123456789")
_HINT = lazy_pattern(
    r"\d|\bago\b|\b(?:last|past|this|previous|current|today|tonight|yesterday|earlier|back|before last|the other day|"
    r"weekend|christmas|new year|halloween|thanks ?giving|valentine)|day\b|\bon (?:mon|tue|wed|thu|fri|sat|sun)\b|"
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december|"
    r"jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b|(?:spring|summer|autumn|fall|winter)\b"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time in a question, and the words that state it.

    `relative`: counted back from now ("yesterday"), not a date. `every_year`: a date without its year, which may
    mean that day or month in any year; start and end are then the last that began before now.
    """

    start: datetime
    end: datetime
    words: str
    relative: bool = False
    every_year: bool = False


def time_span(question: str, now: datetime) -> Span | None:
    """Return the span that a question names, relative to `now`; None if it names none."""
    text = " ".join(question.lower().translate(_PLAIN).split())
    found = _english(text, now) if _HINT.search(text) else None
    if found is None:
        from .other_languages import find_phrase

        found = find_phrase(text, now)
    if found is None:
        return None
    start, end = max(found.bounds.start, _EARLIEST), min(found.bounds.end, _LATEST)
    return Span(start, end, text[found.first : found.last], found.relative, found.yearless) if start < end else None


def _english(text: str, now: datetime) -> Reading | None:
    from .frames import read_periods
    from .periods import find_periods

    return read_periods(text, list(find_periods(text, now)), now)


def time_ago(words: str, now: datetime) -> datetime | None:
    """Return the exact time of "two weeks ago" or "3 hours ago"; None for other words."""
    from .calendar import exactly_ago
    from .periods import counted_units, find_periods

    text = " ".join(words.lower().split())
    periods = list(find_periods(text, now))
    if len(periods) != 1 or periods[0].kind != "ago" or (periods[0].first, periods[0].last) != (0, len(text)):
        return None
    try:
        for number, unit, _ in counted_units(text):
            now = exactly_ago(number, unit, now)
    except (OverflowError, ValueError):
        return None
    return now
