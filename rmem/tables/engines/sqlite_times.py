"""Dates, times and intervals, on the numbers of `sql.moments`."""

from __future__ import annotations

import calendar
import datetime as dt
import time
from decimal import Decimal
from typing import Any

from ...errors import SqlError
from ..sql.moments import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Interval,
    date_of,
    day_number,
    in_range,
    moment,
    to_local,
    to_utc,
)
from .sqlite_calls import current, native
from .sqlite_numeric import divide


def shifted(micros: int, interval: Interval, sign: int = 1) -> int:
    """A timestamp and an interval: months first, then days, then time."""
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
    native(f"+({_kind}, interval)")(lambda value, interval: shifted(value, interval))
    native(f"+(interval, {_kind})")(lambda interval, value: shifted(value, interval))
    native(f"-({_kind}, interval)")(lambda value, interval: shifted(value, interval, -1))
native("+(date, interval)")(lambda days, interval: shifted(days * DAY, interval))
native("+(interval, date)")(lambda interval, days: shifted(days * DAY, interval))
native("-(date, interval)")(lambda days, interval: shifted(days * DAY, interval, -1))
native("+(date, time)")(lambda days, micros: days * DAY + micros)
native("+(time, date)")(lambda micros, days: days * DAY + micros)
native("+(time, interval)")(lambda micros, interval: (micros + interval.micros) % DAY)
native("+(interval, time)")(lambda interval, micros: (micros + interval.micros) % DAY)
native("-(time, interval)")(lambda micros, interval: (micros - interval.micros) % DAY)
native("-(time, time)")(lambda left, right: Interval(0, 0, left - right))


@native("-(timestamp, timestamp)", "-(timestamptz, timestamptz)")
def _between(left: int, right: int) -> Interval:
    days, rest = _split(left - right, DAY)
    return Interval(0, days, rest)


def _split(value: int, unit: int) -> tuple[int, int]:
    """Whole units towards zero, and the rest with the same sign."""
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
    """Parts of months become days, parts of days become time, as PostgreSQL does it."""
    months = interval.months * factor
    days = interval.days * factor
    whole_months, whole_days = int(months), int(days)
    month_days = _nearest((months - whole_months) * 30)
    seconds = _nearest((days - whole_days + month_days - int(month_days)) * 86_400)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    whole_days += int(month_days)
    return Interval(whole_months, whole_days, round(interval.micros * factor + seconds * SECOND))


def _nearest(value: float) -> float:
    return round(value * 1e6) / 1e6


native("*(float8, interval)")(lambda factor, interval: interval_times(interval, factor))


@native("/(interval, float8)")
def _divided(interval: Interval, divisor: float) -> Interval:
    if divisor == 0:
        raise SqlError("division by zero")
    months = interval.months / divisor
    days = interval.days / divisor
    whole_months, whole_days = int(months), int(days)
    month_days = _nearest((months - whole_months) * 30)
    seconds = _nearest((days - whole_days + month_days - int(month_days)) * 86_400)
    if abs(seconds) >= 86_400:
        whole_days += int(seconds / 86_400)
        seconds -= int(seconds / 86_400) * 86_400
    whole_days += int(month_days)
    return Interval(whole_months, whole_days, round(interval.micros / divisor + seconds * SECOND))


@native("age(timestamp, timestamp)", "age(timestamptz, timestamptz)")
def age(later: int, earlier: int) -> Interval:
    """Years, months and days between two moments, counted as a person would."""
    if later < earlier:
        reverse = age(earlier, later)
        return Interval(-reverse.months, -reverse.days, -reverse.micros)
    a, b = moment(later), moment(earlier)
    months = (a.year - b.year) * 12 + a.month - b.month
    days = a.day - b.day
    micros = later % DAY - earlier % DAY
    if micros < 0:
        micros += DAY
        days -= 1
    if days < 0:
        months -= 1
        days += calendar.monthrange(b.year, b.month)[1]
    return Interval(months, days, micros)


@native("age(timestamp)", "age(timestamptz)", stable=False)
def _age_today(value: int) -> Interval:
    return age(current.state.now // DAY * DAY, value)


# -- fields ----------------------------------------------------------------------------------------------------


def field(name: str, value: Any, kind: str) -> Decimal | None:
    """What EXTRACT gives."""
    if kind == "interval":
        return _interval_field(name, value)
    if kind == "time":
        return _clock_field(name, value, "time")
    micros = value * DAY if kind == "date" else value
    if kind == "date" and name in ("hour", "minute", "second", "milliseconds", "microseconds"):
        raise SqlError(f'unit "{name}" not supported for type date')
    days, clock = divmod(micros, DAY)
    date = date_of(days)
    year, week, weekday = date.isocalendar()
    simple: dict[str, int] = {
        "year": date.year,
        "month": date.month,
        "day": date.day,
        "quarter": (date.month + 2) // 3,
        "decade": date.year // 10,
        "century": (date.year + 99) // 100,
        "millennium": (date.year + 999) // 1000,
        "dow": weekday % 7,
        "isodow": weekday,
        "doy": date.timetuple().tm_yday,
        "week": week,
        "isoyear": year,
    }
    if name in simple:
        return Decimal(simple[name])
    if name == "epoch":
        return Decimal(days * 86_400) if kind == "date" else _micros(micros)
    if name == "julian":
        julian = Decimal(days + 2_440_588)
        return julian if kind == "date" else julian + divide(Decimal(clock), Decimal(DAY))
    return _clock_field(name, clock, kind)


def _micros(value: int) -> Decimal:
    return Decimal(value).scaleb(-6)


def _clock_field(name: str, micros: int, kind: str) -> Decimal:
    if name == "hour":
        return Decimal(micros // HOUR)
    if name == "minute":
        return Decimal(micros // MINUTE % 60)
    if name == "second":
        return _micros(micros % MINUTE)
    if name == "milliseconds":
        return Decimal(micros % MINUTE).scaleb(-3)
    if name == "microseconds":
        return Decimal(micros % MINUTE)
    if name == "epoch":
        return _micros(micros)
    raise SqlError(f'unit "{name}" not supported for type {kind}')


def _interval_field(name: str, value: Interval) -> Decimal:
    years, months = _split(value.months, 12)
    hours, rest = _split(value.micros, HOUR)
    minutes, rest = _split(rest, MINUTE)
    simple = {
        "year": years,
        "month": months,
        "quarter": months // 3 + 1 if months >= 0 else -(-months // 3) + 1,
        "day": value.days,
        "week": int(value.days / 7),
        "hour": hours,
        "minute": minutes,
        "decade": int(years / 10),
        "century": int(years / 100),
        "millennium": int(years / 1000),
    }
    if name in simple:
        return Decimal(simple[name])
    if name == "second":
        return _micros(rest)
    if name == "milliseconds":
        return Decimal(rest).scaleb(-3)
    if name == "microseconds":
        return Decimal(rest)
    if name == "epoch":
        seconds = years * 31_557_600 + months * 30 * 86_400 + value.days * 86_400
        return _micros(seconds * SECOND + value.micros)
    raise SqlError(f'unit "{name}" not supported for type interval')


_WORDS = {
    "years": "year", "months": "month", "days": "day", "hours": "hour", "minutes": "minute", "seconds": "second",
    "weeks": "week", "quarters": "quarter", "centuries": "century", "decades": "decade", "millisecond": "milliseconds",
    "microsecond": "microseconds", "y": "year", "mon": "month", "d": "day", "h": "hour", "min": "minute", "s": "second",
    "sec": "second", "ms": "milliseconds", "us": "microseconds", "m": "minute", "w": "week",
}  # fmt: skip


def unit_word(text: str) -> str:
    word = text.strip().lower()
    return _WORDS.get(word, word)


for _kind in ("timestamptz", "timestamp", "date", "time", "interval"):

    def _extract(name: str, value: Any, kind: str = _kind) -> Decimal | None:
        return field(name, value, kind)

    native(f"extract({_kind})")(_extract)

    def _part(name: str, value: Any, kind: str = _kind) -> float | None:
        if kind == "date":  # unlike EXTRACT, this takes a day as its first moment
            value, kind = value * DAY, "timestamp"
        found = field(unit_word(name), value, kind)
        return None if found is None else float(found)

    native(f"date_part(text, {_kind})")(_part)


# -- truncating ------------------------------------------------------------------------------------------------

_PARTS = {
    "microseconds": 1,
    "milliseconds": 1000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
}


def truncated(name: str, micros: int) -> int:
    name = unit_word(name)
    if name in _PARTS:
        return micros - micros % _PARTS[name]
    days = micros // DAY
    date = date_of(days)
    if name == "week":
        return (days - date.weekday()) * DAY
    year, month = date.year, 1
    if name == "month":
        month = date.month
    elif name == "quarter":
        month = (date.month - 1) // 3 * 3 + 1
    elif name == "decade":
        year = year // 10 * 10
    elif name == "century":
        year = (year - 1) // 100 * 100 + 1
    elif name == "millennium":
        year = (year - 1) // 1000 * 1000 + 1
    elif name != "year":
        raise SqlError(f'unit "{name}" not recognized for type timestamp')
    if year < 1:
        raise SqlError("timestamp out of range: only the years 1 to 9999 are supported")
    return day_number(dt.date(year, month, 1)) * DAY


native("date_trunc(text, timestamptz)", "date_trunc(text, timestamp)")(truncated)


@native("date_trunc(text, timestamptz, text)")
def _truncated_in(name: str, micros: int, zone: str) -> int:
    return to_utc(truncated(name, to_local(micros, zone)), zone)


@native("date_trunc(text, interval)")
def _truncated_interval(name: str, value: Interval) -> Interval:
    name = unit_word(name)
    if name in ("microseconds", "milliseconds", "second", "minute", "hour"):
        unit = _PARTS[name]
        whole, _ = _split(value.micros, unit)
        return Interval(value.months, value.days, whole * unit)
    if name == "day":
        return Interval(value.months, value.days, 0)
    months = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12_000}.get(name)
    if months is None:
        raise SqlError(f'unit "{name}" not supported for type interval')
    whole, _ = _split(value.months, months)
    return Interval(whole * months, 0, 0)


@native("date_bin(interval, timestamp, timestamp)", "date_bin(interval, timestamptz, timestamptz)")
def _date_bin(stride: Interval, source: int, origin: int) -> int:
    if stride.months:
        raise SqlError("timestamps cannot be binned into intervals containing months or years")
    width = stride.days * DAY + stride.micros
    if width <= 0:
        raise SqlError("stride must be greater than zero")
    return source - (source - origin) % width


# -- making ----------------------------------------------------------------------------------------------------


@native("make_date(int4, int4, int4)")
def _make_date(year: int, month: int, day: int) -> int:
    try:
        return day_number(dt.date(year, month, day))
    except ValueError:
        raise SqlError(f"date field value out of range: {year}-{month:02d}-{day:02d}") from None


@native("make_time(int4, int4, float8)")
def _make_time(hour: int, minute: int, second: float) -> int:
    micros = round(second * SECOND)
    if (
        not (0 <= hour <= 24 and 0 <= minute <= 59 and 0 <= micros <= MINUTE)
        or hour * HOUR + minute * MINUTE + micros > DAY
    ):
        raise SqlError(f"time field value out of range: {hour}:{minute:02d}:{second:g}")
    return hour * HOUR + minute * MINUTE + micros


@native(
    "make_timestamp(int4, int4, int4, int4, int4, float8)",
    "make_timestamptz(int4, int4, int4, int4, int4, float8)",
)
def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> int:
    return in_range(_make_date(year, month, day) * DAY + _make_time(hour, minute, second))


def _make_interval(*parts: float) -> Interval:
    years, months, weeks, days, hours, minutes, seconds = (parts + (0.0,) * 7)[:7]
    return Interval(
        int(years) * 12 + int(months),
        int(weeks) * 7 + int(days),
        int(hours) * HOUR + int(minutes) * MINUTE + round(seconds * SECOND),
    )


_TAKES = ("int4", "int4", "int4", "int4", "int4", "int4", "float8")
for _count in range(8):
    native(f"make_interval({', '.join(_TAKES[:_count])})")(_make_interval)

native("isfinite(date)", "isfinite(timestamp)", "isfinite(timestamptz)", "isfinite(interval)")(lambda value: True)


@native("justify_hours(interval)")
def _justify_hours(value: Interval) -> Interval:
    days, micros = _split(value.micros, DAY)
    days += value.days
    if days > 0 and micros < 0:
        days, micros = days - 1, micros + DAY
    elif days < 0 and micros > 0:
        days, micros = days + 1, micros - DAY
    return Interval(value.months, days, micros)


@native("justify_days(interval)")
def _justify_days(value: Interval) -> Interval:
    months, days = _split(value.days, 30)
    months += value.months
    if months > 0 and days < 0:
        months, days = months - 1, days + 30
    elif months < 0 and days > 0:
        months, days = months + 1, days - 30
    return Interval(months, days, value.micros)


@native("justify_interval(interval)")
def _justify_interval(value: Interval) -> Interval:
    whole, micros = _split(value.micros, DAY)
    more, days = _split(value.days + whole, 30)
    months = value.months + more
    if months > 0 and (days < 0 or (days == 0 and micros < 0)):
        months, days = months - 1, days + 30
    elif months < 0 and (days > 0 or (days == 0 and micros > 0)):
        months, days = months + 1, days - 30
    if days > 0 and micros < 0:
        days, micros = days - 1, micros + DAY
    elif days < 0 and micros > 0:
        days, micros = days + 1, micros - DAY
    return Interval(months, days, micros)


native("timezone(text, timestamptz)")(lambda zone, value: to_local(value, zone))
native("timezone(text, timestamp)")(lambda zone, value: to_utc(value, zone))


@native("clock_timestamp()", stable=False)
def _clock() -> int:
    return time.time_ns() // 1000


@native("to_timestamp(float8)")
def _to_timestamp(seconds: float) -> int:
    return in_range(round(seconds * SECOND))
