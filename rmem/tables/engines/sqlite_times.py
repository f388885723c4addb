"""Compute with dates, times and intervals, on the numbers of `sql.times`."""

from __future__ import annotations

import calendar
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ...errors import SqlError
from ..sql.functions import check_unit
from ..sql.times import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Interval,
    date_of,
    day_number,
    in_range,
    to_local,
    to_utc,
)
from .sqlite_functions import native


def add_interval(micros: int, interval: Interval, sign: int = 1) -> int:
    """Add an interval to a timestamp: months first, then days, then time."""
    if interval.months:
        days, rest = divmod(micros, DAY)
        date = date_of(days)
        months = date.year * 12 + date.month - 1 + sign * interval.months
        year, month = divmod(months, 12)
        if not 1 <= year <= 9999:
            raise SqlError("timestamp out of range")
        day = min(date.day, calendar.monthrange(year, month + 1)[1])
        micros = day_number(dt.date(year, month + 1, day)) * DAY + rest
    return in_range(micros + sign * (interval.days * DAY + interval.micros))


for _kind in ("timestamp", "timestamptz"):
    native(f"+({_kind}, interval)")(lambda value, interval: add_interval(value, interval))
    native(f"+(interval, {_kind})")(lambda interval, value: add_interval(value, interval))
    native(f"-({_kind}, interval)")(lambda value, interval: add_interval(value, interval, -1))
native("+(date, interval)")(lambda days, interval: add_interval(days * DAY, interval))
native("+(interval, date)")(lambda interval, days: add_interval(days * DAY, interval))
native("-(date, interval)")(lambda days, interval: add_interval(days * DAY, interval, -1))


@native("-(timestamp, timestamp)", "-(timestamptz, timestamptz)")
def _between(left: int, right: int) -> Interval:
    days, rest = _split(left - right, DAY)
    return Interval(0, days, rest)


def _split(value: int, unit: int) -> tuple[int, int]:
    """Split into whole units towards zero and a rest with the same sign."""
    whole, rest = divmod(abs(value), unit)
    return (whole, rest) if value >= 0 else (-whole, -rest)


@native("+(interval, interval)")
def _add(left: Interval, right: Interval) -> Interval:
    return Interval(left.months + right.months, left.days + right.days, left.micros + right.micros)


@native("-(interval, interval)")
def _subtract(left: Interval, right: Interval) -> Interval:
    return Interval(left.months - right.months, left.days - right.days, left.micros - right.micros)


native("negative(interval)")(lambda value: Interval(-value.months, -value.days, -value.micros))


@native("*(interval, float8)")
def interval_times(interval: Interval, factor: float) -> Interval:
    return _scale_interval(interval, lambda part: part * factor)


native("*(float8, interval)")(lambda factor, interval: interval_times(interval, factor))


def _scale_interval(interval: Interval, scale: Callable[[int], float]) -> Interval:
    """Turn fractions of months into days and of days into time, as PostgreSQL does."""
    months, days = scale(interval.months), scale(interval.days)
    whole_months, whole_days = int(months), int(days)
    month_days = _nearest((months - whole_months) * 30)
    seconds = _nearest((days - whole_days + month_days - int(month_days)) * 86_400)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    whole_days += int(month_days)
    return Interval(whole_months, whole_days, round(scale(interval.micros) + seconds * SECOND))


def _nearest(value: float) -> float:
    return round(value * 1e6) / 1e6


# -- fields ----------------------------------------------------------------------------------------------------


_CLOCK_FIELDS = ("hour", "minute", "second")


def field(name: str, value: Any, kind: str) -> Decimal:
    """Return a field as EXTRACT does."""
    if kind == "interval":
        return _interval_field(name, value)
    if kind == "date" and name in _CLOCK_FIELDS:
        raise SqlError(f'unit "{name}" not supported for type date')
    if kind == "time":
        if name not in (*_CLOCK_FIELDS, "epoch"):
            raise SqlError(f'unit "{name}" not supported for type time')
        days, clock = 0, value
    else:
        days, clock = divmod(value * DAY if kind == "date" else value, DAY)
    if name == "epoch":
        return Decimal(days * 86_400) if kind == "date" else _micros(days * DAY + clock)
    if name in _CLOCK_FIELDS:
        return _clock_field(name, clock)
    date = date_of(days)
    _, week, weekday = date.isocalendar()
    return Decimal(
        {
            "year": date.year,
            "quarter": (date.month + 2) // 3,
            "month": date.month,
            "week": week,
            "day": date.day,
            "dow": weekday % 7,
            "isodow": weekday,
            "doy": date.timetuple().tm_yday,
        }[name]
    )


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

    def _extract(name: str, value: Any, kind: str = _kind) -> Decimal:
        return field(name, value, kind)

    native(f"extract({_kind})")(_extract)


# -- truncating ------------------------------------------------------------------------------------------------

_PARTS = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}


def truncate(name: str, micros: int) -> int:
    name = name.lower()
    check_unit("date_trunc", name)
    if name in _PARTS:
        return micros - micros % _PARTS[name]
    days = micros // DAY
    date = date_of(days)
    if name == "week":
        return (days - date.weekday()) * DAY
    month = {"month": date.month, "quarter": (date.month - 1) // 3 * 3 + 1, "year": 1}[name]
    return day_number(dt.date(date.year, month, 1)) * DAY


native("date_trunc(text, timestamptz)", "date_trunc(text, timestamp)")(truncate)


native("timezone(text, timestamptz)")(lambda zone, value: to_local(value, zone))
native("timezone(text, timestamp)")(lambda zone, value: to_utc(value, zone))


@native("to_timestamp(float8)")
def _to_timestamp(seconds: float) -> int:
    return in_range(round(seconds * SECOND))
