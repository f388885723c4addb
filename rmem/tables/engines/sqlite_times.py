"""Compute with dates, times and intervals."""

from __future__ import annotations

import calendar
import datetime as dt
import operator
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from ...errors import SqlError
from ..sql.functions import check_unit
from ..sql.times import DAY, HOUR, MINUTE, SECOND, Interval, at_midnight, zone_of
from .sqlite_functions import native

_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def add_interval(moment: dt.datetime, interval: Interval, sign: int = 1) -> dt.datetime:
    """Add an interval to a timestamp: months first, then days, then time."""
    try:
        if interval.months:
            year, month = divmod(moment.year * 12 + moment.month - 1 + sign * interval.months, 12)
            day = min(moment.day, calendar.monthrange(year, month + 1)[1])
            moment = moment.replace(year=year, month=month + 1, day=day)
        return moment + sign * dt.timedelta(interval.days, microseconds=interval.micros)
    except (ValueError, OverflowError):
        raise SqlError("timestamp out of range: only the years 1 to 9999 are supported") from None


for _kind in ("timestamp", "timestamptz"):
    native(f"+({_kind}, interval)")(lambda value, interval: add_interval(value, interval))
    native(f"+(interval, {_kind})")(lambda interval, value: add_interval(value, interval))
    native(f"-({_kind}, interval)")(lambda value, interval: add_interval(value, interval, -1))
native("+(date, interval)")(lambda day, interval: add_interval(at_midnight(day), interval))
native("+(interval, date)")(lambda interval, day: add_interval(at_midnight(day), interval))
native("-(date, interval)")(lambda day, interval: add_interval(at_midnight(day), interval, -1))


@native("-(timestamp, timestamp)", "-(timestamptz, timestamptz)")
def _between(left: dt.datetime, right: dt.datetime) -> Interval:
    days, rest = _split((left - right) // _MICROSECOND, DAY)
    return Interval(0, days, rest)


def _split(value: int, unit: int) -> tuple[int, int]:
    """Split into whole units towards zero and a rest with the same sign."""
    whole, rest = divmod(abs(value), unit)
    return (whole, rest) if value >= 0 else (-whole, -rest)


native("+(interval, interval)")(lambda left, right: Interval(*map(operator.add, left, right)))
native("-(interval, interval)")(lambda left, right: Interval(*map(operator.sub, left, right)))
native("negative(interval)")(lambda value: Interval(*map(operator.neg, value)))


@native("*(interval, float8)")
def interval_times(interval: Interval, factor: float) -> Interval:
    """Turn fractions of months into days and of days into time, as PostgreSQL does."""
    months, days = interval.months * factor, interval.days * factor
    whole_months, whole_days = int(months), int(days)
    month_days = _nearest((months - whole_months) * 30)
    seconds = _nearest((days - whole_days + month_days - int(month_days)) * 86_400)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    whole_days += int(month_days)
    return Interval(whole_months, whole_days, round(interval.micros * factor + seconds * SECOND))


native("*(float8, interval)")(lambda factor, interval: interval_times(interval, factor))


def _nearest(value: float) -> float:
    return round(value * 1e6) / 1e6


_CLOCK_FIELDS = ("hour", "minute", "second")
_DATE_FIELDS: dict[str, Callable[[dt.date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "week": lambda day: day.isocalendar()[1],
    "day": lambda day: day.day,
    "dow": lambda day: day.isoweekday() % 7,
    "isodow": dt.date.isoweekday,
    "doy": lambda day: day.timetuple().tm_yday,
}


def field(name: str, value: Any, kind: str) -> Decimal:
    """Return a field as EXTRACT does."""
    if kind == "interval":
        return _interval_field(name, value)
    if name in _DATE_FIELDS and kind != "time":
        return Decimal(_DATE_FIELDS[name](value))
    if (kind == "date" and name in _CLOCK_FIELDS) or name in _DATE_FIELDS:
        raise SqlError(f'unit "{name}" not supported for type {kind}')
    if kind == "date":
        return Decimal((value - _EPOCH.date()).days * 86_400)
    moment = dt.datetime.combine(_EPOCH, value) if kind == "time" else value.replace(tzinfo=None)
    micros = (moment - _EPOCH) // _MICROSECOND
    return _micros(micros) if name == "epoch" else _clock_field(name, micros % DAY)


def _micros(value: int) -> Decimal:
    return Decimal(value).scaleb(-6)


def _clock_field(name: str, micros: int) -> Decimal:
    if name == "second":
        return _micros(_split(micros, MINUTE)[1])
    hours, rest = _split(micros, HOUR)
    return Decimal(hours if name == "hour" else _split(rest, MINUTE)[0])


def _interval_field(name: str, value: Interval) -> Decimal:
    years, months = _split(value.months, 12)
    if name in _CLOCK_FIELDS:
        return _clock_field(name, value.micros)
    if name == "epoch":
        seconds = years * 31_557_600 + months * 30 * 86_400 + value.days * 86_400
        return _micros(seconds * SECOND + value.micros)
    found = {"year": years, "month": months, "day": value.days}
    if name not in found:
        raise SqlError(f'unit "{name}" not supported for type interval')
    return Decimal(found[name])


for _kind in ("timestamptz", "timestamp", "date", "time", "interval"):
    native(f"extract({_kind})")(partial(field, kind=_kind))


_UNITS = ("year", "month", "day", "hour", "minute", "second")
_FIRST = (("month", 1), ("day", 1), ("hour", 0), ("minute", 0), ("second", 0), ("microsecond", 0))
"""The next smaller unit of each, and its first value."""


@native("date_trunc(text, timestamptz)", "date_trunc(text, timestamp)")
def _truncate(name: str, moment: dt.datetime) -> dt.datetime:
    name = name.lower()
    check_unit("date_trunc", name)
    if name == "week":
        name, moment = "day", moment - dt.timedelta(moment.weekday())
    if name == "quarter":
        name, moment = "month", moment.replace(month=(moment.month - 1) // 3 * 3 + 1, day=1)
    return moment.replace(**dict(_FIRST[_UNITS.index(name) :]))  # type: ignore[arg-type]


native("timezone(text, timestamptz)")(lambda zone, value: value.astimezone(zone_of(zone)).replace(tzinfo=None))
native("timezone(text, timestamp)")(lambda zone, value: value.replace(tzinfo=zone_of(zone)).astimezone(dt.UTC))


@native("to_timestamp(float8)")
def _to_timestamp(seconds: float) -> dt.datetime:
    return add_interval(_EPOCH.replace(tzinfo=dt.UTC), Interval(0, 0, round(seconds * SECOND)))
