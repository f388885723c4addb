"""Read the words around periods: "since Monday", "from May to July", "the first week of 2023", "yesterday morning"."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from ..patterns import lazy_pattern
from . import calendar
from .calendar import Bounds, Reading
from .periods import ORDINALS, WEEKDAY, WEEKDAYS, Period, during

_TO = lazy_pattern(r" ?(?P<word>and|to|until|till|through|thru|[-–—]) ?(?:the )?")
_FROM = lazy_pattern(r"\b(?P<word>between|from) (?:the )?$")
_UNTIL_NOW = lazy_pattern(r" (?:to|and|until|till|up to|through) (?:now|today|the present)\b")
_DAY_TO = lazy_pattern(
    r"\b(?:(?:between|from) )?(?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)? (?:and|to|until|till|through) (?:the )?$"
)
_TO_DAY = lazy_pattern(r" (?:and|to|until|till|through) (?:the )?(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\w:/.-])")
_OPEN = lazy_pattern(r"\b(?:ever )?(?P<word>since|before|prior to|earlier than|until|till|after|later than)(?: the)? $")
_PREPOSITION = lazy_pattern(
    r"\b(?:(?:back )?in|on|during|over|within|throughout|around|at|by|of|for|about)(?: the| a| this)? $"
)
_IN = lazy_pattern(r"\b(?:in|during|throughout|around|of|by) $")
_ON = lazy_pattern(r"\b(?:on|for|by|from|to|of) $")
_PART = lazy_pattern(
    r"\b(?:(?:in|at|during|by|around) )?(?:the )?(?P<part>early|earlier|late|later|mid|beginning|start|end|middle"
    r"|first half|second half)(?: (?:of|in))?(?: the)?[ -]$"
)
_NTH = lazy_pattern(
    rf"\b(?:(?:in|on|during) )?(?:the )?(?P<nth>first|second|third|fourth|fifth|last|[1-5](?:st|nd|rd|th)) "
    rf"(?P<what>week|weekend|day|{WEEKDAY}) (?:of|in)(?: the)? $"
)
_WEEK_OF = lazy_pattern(
    r"\b(?:(?:in|during) )?(?:the )?week (?P<how>of|starting|beginning|commencing)(?: on)?(?: the)? $"
)
_WEEKDAY_OF = lazy_pattern(rf"\b(?:on )?(?P<day>{WEEKDAY})(?: of)? $")
_ITS_WEEKDAY = lazy_pattern(rf",? (?:on )?(?P<day>{WEEKDAY})\b")
_TIMES = "morning|afternoon|evening|night|noon|midday"
_TIME_OF = lazy_pattern(
    rf"\b(?:(?:in|on|at|during) )?(?:the )?(?P<time>(?:(?:early|late)[ -])?(?:{_TIMES}))(?: of| on)?(?: the)? $"
)
_ITS_TIME = lazy_pattern(
    rf"(?:'s)?,? (?:in the |at |during the )?(?P<time>(?:(?:early|late)[ -])?(?:{_TIMES}|am|pm))\b"
)

_DATES = ("iso", "numeric", "year_month_day", "day_month", "month_day", "month_year", "year_month")
_DATES_OF_WEEKDAYS = (*_DATES, "weak_day")
_ONE_DAY = timedelta(days=1)
_NEAR = 48  # characters before a period that are read


def read_periods(text: str, periods: list[Period], now: datetime) -> Reading | None:
    """Return what the periods of a text mean with the words around them: a range before an open end before one
    period, and of these the first."""
    periods = [
        period
        for number, period in enumerate(periods)
        if not any(_is_weekday_of(text, period, following) for following in periods[number + 1 : number + 2])
    ]
    for number, period in enumerate(periods):
        found = _range(text, period, periods[number + 1] if number + 1 < len(periods) else None, now)
        if found is not None:
            return found
    readings = [(period, _narrow(text, period, now)) for period in periods]
    readings = [
        (period, reading)
        for period, reading in readings
        if not any(other.first <= period.first and period.last <= other.last for at, other in readings if at != period)
    ]
    for _, reading in readings:
        if (opened := _open(text, reading)) is not None:
            return opened
    for period, reading in readings:
        if period.weak and reading.first == period.first and not _is_time(text, period):
            continue
        before = _before(_PREPOSITION, text, reading.first)
        return reading._replace(first=before.start()) if before and before.end() == reading.first else reading
    return None


def _before(pattern: re.Pattern[str], text: str, end: int) -> re.Match[str] | None:
    """Match a pattern in the words that end at a place."""
    return pattern.search(text, max(0, end - _NEAR), end)


def _is_time(text: str, period: Period) -> bool:
    """Whether a word before a weak period shows that it is a time."""
    pattern = _ON if period.kind in ("weak_day", "weak_slashes") else _IN
    return _before(pattern, text, period.first) is not None


def _is_weekday_of(text: str, period: Period, following: Period) -> bool:
    """Whether a weekday belongs to the date that follows it, as in "Thursday, 21 May"."""
    between = text[period.last : following.first]
    return (
        period.kind == "weekday" and following.kind in _DATES_OF_WEEKDAYS and between in (" ", ", ", " the ", ", the ")
    )


def _range(text: str, period: Period, following: Period | None, now: datetime) -> Reading | None:
    """Read "from A to B", "A to B", "between A and now", "4 to 22 January", "January 4 to 22"."""
    said = _before(_FROM, text, period.first)
    first = said.start() if said else period.first
    if following is not None and (to := _TO.fullmatch(text, period.last, following.first)):
        dated = period.kind in _DATES or (period.weak and _is_time(text, period))
        if said or (to["word"] != "and" and dated and (following.kind in _DATES or following.weak)):
            bounds = _join(period, following)
            relative = period.relative and following.relative
            return Reading(bounds, first, following.last, relative) if bounds.start < bounds.end else None
    if said and not period.bounds.start > now and (until := _UNTIL_NOW.match(text, period.last)):
        return Reading(Bounds(period.bounds.start, now + timedelta(seconds=1)), first, until.end(), period.relative)
    if period.kind not in ("day_month", "month_day"):
        return None
    start, end = period.bounds
    if earlier := _before(_DAY_TO, text, period.first):
        begin = _same_month(start, earlier["day"])
        return Reading(Bounds(begin, end), earlier.start(), period.last, False) if begin and begin < end else None
    if later := _TO_DAY.match(text, period.last):
        stop = _same_month(start, later["day"])
        return Reading(Bounds(start, stop + _ONE_DAY), first, later.end(), False) if stop and stop > start else None
    return None


def _same_month(moment: datetime, day: str) -> datetime | None:
    try:
        return moment.replace(day=int(day))
    except ValueError:
        return None


def _join(period: Period, following: Period) -> Bounds:
    """Return the span from one period to another. A date without its year takes the other's, or that before."""
    start, end = period.bounds.start, following.bounds.end
    if period.kind == following.kind == "weekday" and start >= end:
        return Bounds(start - 7 * _ONE_DAY, end)
    if not period.relative and (period.yearless or period.kind == "weak_month"):
        for year in (following.bounds.start.year, following.bounds.start.year - 1):
            if not following.yearless or start >= end:
                try:
                    start = start.replace(year=year)
                except ValueError:  # 29 February
                    continue
            if start < end:
                break
    return Bounds(start, end)


def _narrow(text: str, period: Period, now: datetime) -> Reading:
    """Read what stands next to one period and says which part of it, or what around it, is meant."""
    start, end = period.bounds
    reading = Reading(period.bounds, period.first, period.last, period.relative, period.yearless)
    length = end - start
    if length <= _ONE_DAY:
        if week := _before(_WEEK_OF, text, period.first):
            bounds = calendar.week_of(start) if week["how"] == "of" else Bounds(start, start + 7 * _ONE_DAY)
            return reading._replace(bounds=bounds, first=week.start())
        if length == _ONE_DAY and (after := _ITS_TIME.match(text, period.last)):
            return reading._replace(bounds=during(period.bounds, after["time"]), last=after.end())
        if length == _ONE_DAY and (time := _before(_TIME_OF, text, period.first)):
            return reading._replace(bounds=during(period.bounds, time["time"]), first=time.start())
        return reading
    if nth := _before(_NTH, text, period.first):
        bounds = _nth(nth["nth"], nth["what"], period.bounds)
        return reading._replace(bounds=bounds, first=nth.start()) if bounds.start < end else reading
    if length == 7 * _ONE_DAY:
        if after := _ITS_WEEKDAY.match(text, period.last):
            day = calendar.nth_weekday(1, WEEKDAYS[after["day"]], period.bounds)
            return reading._replace(bounds=day, last=after.end())
        if day_of := _before(_WEEKDAY_OF, text, period.first):
            day = calendar.nth_weekday(1, WEEKDAYS[day_of["day"]], period.bounds)
            return reading._replace(bounds=day, first=day_of.start())
    if (part := _before(_PART, text, period.first)) and period.kind not in ("ago", "until_now"):
        bounds = _part(part["part"], period.bounds, now)
        if bounds.start < bounds.end:
            return reading._replace(bounds=bounds, first=part.start())
    return reading


def _nth(nth: str, what: str, inside: Bounds) -> Bounds:
    number = -1 if nth == "last" else ORDINALS.get(nth) or int(nth[0])
    if what in ("week", "weekend"):
        week = calendar.nth_week(number, inside)
        return week if what == "week" else Bounds(week.start + 5 * _ONE_DAY, week.end)
    if what == "day":
        return calendar.one_day(inside.end - _ONE_DAY if number < 0 else inside.start + (number - 1) * _ONE_DAY)
    return calendar.nth_weekday(number, WEEKDAYS[what], inside)


def _part(name: str, inside: Bounds, now: datetime) -> Bounds:
    if name in ("earlier", "later"):
        return (
            Bounds(inside.start, min(now, inside.end))
            if name == "earlier"
            else Bounds(max(now, inside.start), inside.end)
        )
    if name in ("first half", "second half"):
        return calendar.part(inside, 0, 0.5) if name == "first half" else calendar.part(inside, 0.5, 1)
    third = 1 / 2 if inside.end - inside.start <= 7 * _ONE_DAY else 1 / 3
    if name in ("early", "beginning", "start"):
        return calendar.part(inside, 0, third)
    return calendar.part(inside, 1 - third, 1) if name in ("late", "end") else calendar.part(inside, 1 / 3, 2 / 3)


def _open(text: str, reading: Reading) -> Reading | None:
    """Read "since", "before" or "after" in front of a period."""
    found = _before(_OPEN, text, reading.first)
    if found is None:
        return None
    start, end = reading.bounds
    if found["word"] == "since":
        bounds = Bounds(start, calendar.FAR_FUTURE)
    elif found["word"] in ("after", "later than"):
        bounds = Bounds(end, calendar.FAR_FUTURE)
    else:
        bounds = Bounds(calendar.FAR_PAST, start)
    return Reading(bounds, found.start(), reading.last, reading.relative) if bounds.start < bounds.end else None
