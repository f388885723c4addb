"""Time words in questions: "yesterday", "last May", "two weeks ago", "between March and June", "on 7 May 2023".

Each becomes a span of time. This is a small grammar of its own because a general date parser needs 0.2 s to
load and tens of milliseconds a question, and finds dates in words such as "may" and "second"
(docs/decisions/0004-time-words.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from .patterns import lazy_pattern

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sep sept", "october oct", "november nov", "december dec",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
_DAYS = {name: number for number, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())}
_SMALL = {
    name: number
    for number, name in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
} | {"a": 1, "an": 1}
_VAGUE = {"couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4}

_NUMBER = (
    r"(?P<number>\d{1,4}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
    r"|(?:a )?couple of|(?:a )?few|several)"
)
_UNIT = r"(?P<unit>minute|hour|day|week|weekend|month|year)s?"
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = (
    rf"(?:\d{{4}}-\d\d-\d\d|{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?|{_MONTH} {_DAY}(?:,? {_YEAR})?"
    rf"|{_MONTH}(?:,? {_YEAR})?|{_YEAR})"
)


_AGO = lazy_pattern(rf"{_NUMBER} (?P<unit>minute|hour|day|week|month|year)s? ago")
_HINT = lazy_pattern(
    r"\d|ago\b|last|past|this|previous|today|tonight|yesterday|earlier|back|since|before|after|until|till|between|from|"
    r"on (?:mon|tue|wed|thu|fri|sat|sun)|(?:in|during|of|by) (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
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


def time_ago(words: str, now: datetime) -> datetime | None:
    """Return the exact time of "two weeks ago" or "3 hours ago"; None for other words."""
    found = _AGO.fullmatch(" ".join(words.lower().split()))
    if found is None:
        return None
    number, unit = _count(found["number"]), found["unit"]
    try:
        if unit in ("month", "year"):
            months = number * (12 if unit == "year" else 1)
            start = _months_later(now, -months)
            last_day = (_months_later(start, 1) - timedelta(days=1)).day
            return start.replace(day=min(now.day, last_day))
        return now - number * timedelta(
            weeks=unit == "week", days=unit == "day", hours=unit == "hour", minutes=unit == "minute"
        )
    except (OverflowError, ValueError):
        return None


def time_span(question: str, now: datetime) -> Span | None:
    """Return the span that a question names, relative to `now`; None if it names none."""
    text = " ".join(question.lower().replace("’", "'").split())
    if not _HINT.search(text):
        return None
    for pattern, reading in _readings():
        for found in pattern.finditer(text):
            try:
                start, end = reading(found, now) or (now, now)
            except (ValueError, OverflowError):  # before year 1 or after year 9999
                continue
            start, end = max(start, _EARLIEST), min(end, _LATEST)
            if start < end:
                words = found[0].strip()
                relative = reading not in _DATED or words.startswith(("last ", "this past ", "past "))
                every_year = reading is _date and not relative and not re.search(rf"\b{_YEAR}\b", words)
                return Span(start, end, words, relative, every_year)
    return None


_Reading = Callable[[re.Match[str], datetime], tuple[datetime, datetime] | None]
_FAR_PAST, _FAR_FUTURE = datetime(1970, 1, 2), datetime(9000, 1, 1)
_EARLIEST, _LATEST = datetime(1, 1, 3), datetime(9999, 12, 30)  # valid as timestamps in every time zone


def _day(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=1)


def _read_date(words: str, now: datetime) -> tuple[datetime, datetime] | None:
    """Return the span of one written date; without a year, the last one that has begun."""
    words = words.strip().rstrip(".")
    iso = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", words)
    try:
        if iso:
            start = datetime(int(iso[1]), int(iso[2]), int(iso[3]))
            return start, start + timedelta(days=1)
        year_found = re.search(rf"\b{_YEAR}\b", words)
        year = int(year_found[0]) if year_found else None
        month_found = re.search(rf"\b({_MONTH})(?=\W|$)", words)
        if month_found is None:
            return (datetime(year, 1, 1), datetime(year + 1, 1, 1)) if year else None
        month = _MONTHS[month_found[1].rstrip(".")]
        day_found = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", words)
        day = int(day_found[1]) if day_found else None
        start = datetime(year, month, day or 1) if year else _last(month, day or 1, now)
        return (start, start + timedelta(days=1)) if day else (start, _months_later(start, 1))
    except (ValueError, OverflowError):  # 31 June, the day after 9999-12-31
        return None


def _last(month: int, day: int, now: datetime) -> datetime:
    """Return the last such day that has begun; 29 February needs a leap year."""
    for year in range(now.year, now.year - 9, -1):
        try:
            start = datetime(year, month, day)
        except ValueError:
            continue
        if start <= now:
            return start
    raise ValueError


def _unit_span(unit: str, now: datetime, back: int) -> tuple[datetime, datetime]:
    """Return the span of the calendar unit `back` units before the current one."""
    today = _day(now)
    if unit == "day":
        return today - timedelta(days=back), today - timedelta(days=back - 1)
    if unit in ("week", "weekend"):
        monday = today - timedelta(days=today.weekday() + 7 * back)
        return (monday if unit == "week" else monday + timedelta(days=5)), monday + timedelta(days=7)
    if unit == "month":
        start = _months_later(today, -back)
        return start, _months_later(start, 1)
    start = datetime(today.year - back, 1, 1)
    return start, datetime(start.year + 1, 1, 1)


def _ago(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    number = _count(found["number"])
    if found["number"] not in _VAGUE:
        return _units_ago(number, found["unit"], now)
    longest, shortest = _units_ago(number + 1, found["unit"], now), _units_ago(number - 1, found["unit"], now)
    return (longest[0], shortest[1]) if longest and shortest else None


def _units_ago(number: int, unit: str, now: datetime) -> tuple[datetime, datetime] | None:
    try:
        if unit in ("minute", "hour"):
            length = timedelta(**{f"{unit}s": 1})
            return now - (number + 1) * length, now - (number - 1) * length
        if unit == "day":
            return _unit_span("day", now, number)
        if unit in ("week", "weekend"):
            middle = _day(now) - timedelta(weeks=number)
            return middle - timedelta(days=4), middle + timedelta(days=4)
        return _unit_span(unit, now, number)
    except (OverflowError, ValueError):
        return None


def _past(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    number = _count(found["number"]) if found["number"] else 1
    days = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "weekend": 7, "month": 30.5, "year": 365.25}
    try:
        return now - timedelta(days=number * days[found["unit"]]), now + timedelta(seconds=1)
    except OverflowError:
        return None


def _count(words: str) -> int:
    return int(words) if words.isdigit() else (_SMALL | _VAGUE)[words]


def _relative_day(found: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    word = found[1]
    if word.startswith("day before"):
        return _unit_span("day", now, 2)
    if word in ("yesterday", "last night"):
        start, end = _unit_span("day", now, 1)
        return (start, end + timedelta(hours=4)) if word == "last night" else (start, end)
    return _unit_span("day", now, 0)


def _this_or_last(found: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    return _unit_span(found["unit"], now, 1 if found[1] in ("last", "previous") else 0)


def _weekday(found: re.Match[str], now: datetime) -> tuple[datetime, datetime]:
    back = (now.weekday() - _DAYS[found["day"]]) % 7 or 7
    return _unit_span("day", now, back)


def _between(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    first, second = _read_date(found["from"], now), _read_date(found["to"], now)
    if first is None or second is None:
        return None
    year = re.search(rf"\b{_YEAR}\b", found["to"])
    if year and not re.search(rf"\b{_YEAR}\b", found["from"]):
        first = _read_date(f"{found['from']} {year[0]}", now) or first
    if first[0] >= second[1]:
        first = _read_date(f"{found['from']} {second[0].year}", now) or first
    if first[0] >= second[1]:
        first = _read_date(f"{found['from']} {second[0].year - 1}", now) or first
    return first[0], second[1]


def _date(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    return _read_date(found["date"], now)


def _last_month(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    """ "last May": the last one that is over."""
    read = _read_date(found["date"], now)
    if read is not None and read[1] > now:
        read = _read_date(f"{found['date']} {read[0].year - 1}", now)
    return read


def _since(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    read = _read_date(found["date"], now)
    return (read[0], _FAR_FUTURE) if read else None


def _before(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    read = _read_date(found["date"], now)
    return (_FAR_PAST, read[0]) if read else None


def _after(found: re.Match[str], now: datetime) -> tuple[datetime, datetime] | None:
    read = _read_date(found["date"], now)
    return (read[1], _FAR_FUTURE) if read else None


_DATED: tuple[_Reading, ...] = (_date, _between, _since, _before, _after)

# `may` and `march` are also verbs: they count as months only after a preposition, or with a day or a year.
_CLEAR_DATE = (
    rf"(?:\d{{4}}-\d\d-\d\d|{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?|{_MONTH} {_DAY}\b(?:,? {_YEAR})?|{_MONTH},? {_YEAR})"
)


@cache
def _readings() -> list[tuple[re.Pattern[str], _Reading]]:
    """Return patterns with their readers, the more specific first; compiled when a question first hints at a time."""
    written: tuple[tuple[str, _Reading], ...] = (
        (rf"\b(?:between|from) (?P<from>{_DATE}) (?:and|to|until|till) (?P<to>{_DATE})(?=\W|$)", _between),
        (rf"\b(?:since) (?P<date>{_DATE})(?=\W|$)", _since),
        (rf"\b(?:before|until|till) (?P<date>{_DATE})(?=\W|$)", _before),
        (rf"\b(?:after) (?P<date>{_DATE})(?=\W|$)", _after),
        (rf"\b{_NUMBER} {_UNIT} (?:ago|earlier|back)\b", _ago),
        (rf"\b(?:in|over|during|within)? ?the (?:last|past) (?:{_NUMBER} )?{_UNIT}\b", _past),
        (rf"\b(?:last|past) {_NUMBER} {_UNIT}\b", _past),
        (r"\b((?:the )?day before yesterday|yesterday|last night|today|tonight|this (?:morning|afternoon|evening))\b",
         lambda found, now: _relative_day(_bare(found), now)),
        (r"\b(this|last|previous) (?P<unit>week|weekend|month|year)\b", _this_or_last),
        (rf"\b(?:last|this past|past) (?P<date>{_MONTH})(?=\W|$)", _last_month),
        (r"\b(?:on|last|this past) (?P<day>monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b", _weekday),
        (rf"\b(?P<date>{_CLEAR_DATE})(?=\W|$)", _date),
        (rf"\b(?:in|during|of|by) (?P<date>{_DATE})(?=\W|$)", _date),
    )  # fmt: skip
    return [(re.compile(pattern), reading) for pattern, reading in written]


def _bare(found: re.Match[str]) -> re.Match[str]:
    """Return the words of a match without a leading article."""
    return re.fullmatch(r"(?:the )?(.*)", found[1]) or found
