"""Calendar arithmetic for time words: days, weeks, months, seasons and holidays as spans of local time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

DAY = timedelta(days=1)
FAR_PAST, FAR_FUTURE = datetime(1970, 1, 2), datetime(9000, 1, 1)

_DAYS = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7, "weekend": 7, "month": 30.5, "year": 365.25}
_DAYS |= {"quarter": 91.5, "decade": 3652.5, "century": 36525}
_YEARS = {"year": 1, "decade": 10, "century": 100}
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first months, north of the equator
HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
    "new year's": (1, 1),
    "halloween": (10, 31),
    "valentine's": (2, 14),
    "thanksgiving": (11, 0),  # the fourth Thursday
}


class Bounds(NamedTuple):
    """A span of time: its first instant, and the first one after it."""

    start: datetime
    end: datetime


class Reading(NamedTuple):
    """What the words of a text from `first` to `last` mean. `relative`: counted back from now. `yearless`: a date
    without its year."""

    bounds: Bounds
    first: int
    last: int
    relative: bool
    yearless: bool = False


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def add_months(moment: datetime, months: int) -> datetime:
    """Return the first day of the month so many months later."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=1)


def one_day(moment: datetime) -> Bounds:
    start = midnight(moment)
    return Bounds(start, start + DAY)


def month(year: int, number: int, months: int = 1) -> Bounds:
    start = datetime(year, number, 1)
    return Bounds(start, add_months(start, months))


def years(first: int, count: int = 1) -> Bounds:
    return Bounds(datetime(first, 1, 1), datetime(first + count, 1, 1))


def latest(month_number: int, day: int, now: datetime) -> datetime:
    """Return the last such day that has begun; 29 February needs a leap year."""
    for year in range(now.year, now.year - 9, -1):
        try:
            start = datetime(year, month_number, day)
        except ValueError:
            continue
        if start <= now:
            return start
    raise ValueError


def day_of_month(day: int, now: datetime) -> Bounds:
    """Return the last day of this number that has begun."""
    for back in range(4):
        try:
            start = add_months(midnight(now), -back).replace(day=day)
        except ValueError:
            continue
        if start <= now:
            return one_day(start)
    raise ValueError


def weekday(number: int, now: datetime) -> Bounds:
    """Return the last such day before today; Monday is 0."""
    return one_day(midnight(now) - timedelta(days=(now.weekday() - number) % 7 or 7))


def week_of(moment: datetime) -> Bounds:
    """Return the week, from Monday on, that contains a moment."""
    monday = midnight(moment) - timedelta(days=moment.weekday())
    return Bounds(monday, monday + 7 * DAY)


def unit(name: str, now: datetime, back: int) -> Bounds:
    """Return the calendar unit so many units before the current one."""
    today = midnight(now)
    if name == "day":
        return one_day(today - timedelta(days=back))
    if name in ("week", "weekend"):
        monday, after = week_of(today - timedelta(weeks=back))
        return Bounds(monday if name == "week" else monday + 5 * DAY, after)
    if name in ("month", "quarter"):
        length = 3 if name == "quarter" else 1
        return month(*_first_month(today, back, length), length)
    if name in _YEARS:
        length = _YEARS[name]
        return years((today.year // length - back) * length, length)
    length_of = timedelta(days=_DAYS[name])
    return Bounds(now - back * length_of, now - (back - 1) * length_of)


def _first_month(today: datetime, back: int, length: int) -> tuple[int, int]:
    start = add_months(today, -((today.month - 1) % length) - length * back)
    return start.year, start.month


def units_ago(number: int, name: str, now: datetime) -> Bounds:
    """Return what "three days ago" may mean: that calendar unit, or the days around it."""
    if name in ("minute", "hour"):
        length = timedelta(days=_DAYS[name])
        return Bounds(now - (number + 1) * length, now - (number - 1) * length)
    if name in ("week", "weekend"):
        middle = midnight(now) - timedelta(weeks=number)
        return Bounds(middle - 4 * DAY, middle + 4 * DAY)
    return unit(name, now, number)


def until_now(number: int, name: str, now: datetime) -> Bounds:
    """Return the last so many units, up to now."""
    return Bounds(now - timedelta(days=number * _DAYS[name]), now + timedelta(seconds=1))


def exactly_ago(number: int, name: str, now: datetime) -> datetime:
    """Return the instant so many units ago."""
    if name not in ("month", "quarter", *_YEARS):
        return now - timedelta(days=number * _DAYS[name])
    start = add_months(now, -number * (12 * _YEARS[name] if name in _YEARS else 3 if name == "quarter" else 1))
    return start.replace(day=min(now.day, (add_months(start, 1) - DAY).day))


def season(name: str, now: datetime, year: int | None) -> Bounds:
    """Return the season of a year, or the last one that has begun. A winter is named after the year it begins in."""
    first = _SEASONS[name]
    return month(year or latest(first, 1, now).year, first, 3)


def holiday(name: str, now: datetime, year: int | None) -> Bounds:
    """Return the holiday of a year, or the last one that has begun."""
    month_number, day = HOLIDAYS[name]
    if day:
        return one_day(datetime(year, month_number, day) if year else latest(month_number, day, now))
    found = nth_weekday(4, 3, month(year or now.year, month_number))
    return found if year or found.start <= now else nth_weekday(4, 3, month(now.year - 1, month_number))


def nth_weekday(number: int, day: int, inside: Bounds) -> Bounds:
    """Return the first (1), second … or last (-1) such weekday of a span."""
    if number < 0:
        last = inside.end - DAY
        return one_day(last - timedelta(days=(last.weekday() - day) % 7))
    first = inside.start + timedelta(days=(day - inside.start.weekday()) % 7)
    return one_day(first + timedelta(weeks=number - 1))


def nth_week(number: int, inside: Bounds) -> Bounds:
    """Return the first (1), second … or last (-1) week of a span: one with most of its days inside."""
    if number < 0:
        return week_of(inside.end - 4 * DAY)
    return week_of(inside.start + 3 * DAY + timedelta(weeks=number - 1))


def part(inside: Bounds, share_from: float, share_to: float) -> Bounds:
    """Return a part of a span, in whole days."""
    days = (inside.end - inside.start).days
    start = inside.start + timedelta(days=round(days * share_from))
    return Bounds(start, max(inside.start + timedelta(days=round(days * share_to)), start + DAY))
