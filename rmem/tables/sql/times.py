"""Times as numbers, parsed and written as PostgreSQL does: timestamps are microseconds since 1970 in UTC, dates are
days, times of day are microseconds, intervals are months, days and microseconds."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...errors import SqlError, SqlUnsupportedError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_DAY = dt.date(1970, 1, 1).toordinal()
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999


class Interval(NamedTuple):
    """An interval as PostgreSQL stores it: months, days and microseconds, which do not convert into each other."""

    months: int
    days: int
    micros: int

    @property
    def total(self) -> int:
        """Return the length for comparisons: a month has 30 days, a day 24 hours."""
        return (self.months * 30 + self.days) * DAY + self.micros


def instant(moment: dt.datetime) -> int:
    """Return microseconds since 1970; naive datetimes count as UTC."""
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds


def moment(micros: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(microseconds=micros)


def day_number(date: dt.date) -> int:
    return date.toordinal() - _FIRST_DAY


def date_of(days: int) -> dt.date:
    try:
        return dt.date.fromordinal(days + _FIRST_DAY)
    except (ValueError, OverflowError):
        raise SqlError("date out of range") from None


def time_number(time: dt.time) -> int:
    return ((time.hour * 60 + time.minute) * 60 + time.second) * SECOND + time.microsecond


def time_of(micros: int) -> dt.time:
    seconds, micro = divmod(micros % DAY, SECOND)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, micro)


def in_range(micros: int, kind: str = "timestamp") -> int:
    if not EARLIEST <= micros <= LATEST:
        raise SqlError(f"{kind} out of range: only the years 1 to 9999 are supported")
    return micros


# -- reading ------------------------------------------------------------------------------------------------

_STAMP = re.compile(r"(\d{4,5})-(\d{1,2})-(\d{1,2})(?:(?:\s+|[Tt])(?P<clock>\d{1,2}:\S*))?\s*(?P<zone>.*)", re.S)
_CLOCK = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(\.\d*)?)?")
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d\d))?")


def read_timestamp(text: str, *, zoned: bool) -> int:
    """`2024-01-31`, `2024-01-31 10:20:30.5+02:00`, `2024-01-31T10:20Z`, or a zone's name at the end. The zone of a
    timestamp without one is checked and left out, as PostgreSQL does."""
    kind = "timestamp with time zone" if zoned else "timestamp"
    found = _STAMP.fullmatch(text.strip())
    if found is None:
        raise _unreadable(kind, text, "; write it as 2024-01-31 10:20:30+02")
    try:
        days = day_number(dt.date(int(found[1]), int(found[2]), int(found[3])))
    except ValueError:
        raise SqlError(f'date/time field value out of range: "{text}"') from None
    micros, zone = _read_clock(found["clock"], text, kind) if found["clock"] else (0, "")
    local = days * DAY + micros
    zone = (zone + found["zone"]).strip()
    there = _apply_zone(local, zone, text, kind) if zone else local
    return in_range(there if zoned else local, kind)


def _unreadable(kind: str, text: str, hint: str = "") -> SqlError:
    return SqlError(f'invalid input syntax for type {kind}: "{text}"{hint}')


def _read_clock(clock: str, text: str, kind: str) -> tuple[int, str]:
    """Return the microseconds of a time of day, and the rest of the text."""
    found = _CLOCK.match(clock)
    if found is None:
        raise _unreadable(kind, text)
    hours, minutes, seconds = (int(part or 0) for part in found.group(1, 2, 3))
    fraction = found[4] or ""
    micros = round(float(f"0{fraction}") * SECOND) if len(fraction) > 1 else 0
    total = (hours * 60 + minutes) * MINUTE + seconds * SECOND + micros
    if minutes > 59 or seconds > 60 or total > DAY:
        raise SqlError(f'date/time field value out of range: "{text}"')
    return total, clock[found.end() :]


def _apply_zone(micros: int, zone: str, text: str, kind: str) -> int:
    found = _OFFSET.fullmatch(zone)
    if found is not None:
        offset = int(found[2]) * HOUR + int(found[3] or 0) * MINUTE
        return micros - (offset if found[1] == "+" else -offset)
    try:
        return to_utc(micros, zone)
    except SqlError:
        raise _unreadable(kind, text) from None


@lru_cache(maxsize=256)
def zone_of(name: str) -> dt.tzinfo:
    if name.upper() in ("UTC", "Z", "GMT"):
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise SqlError(f'time zone "{name}" not recognized; write a name such as Europe/Berlin') from None


def to_utc(micros: int, zone: str) -> int:
    """Convert local time in a zone to UTC."""
    return in_range(instant(moment(in_range(micros)).replace(tzinfo=zone_of(zone))))


def to_local(micros: int, zone: str) -> int:
    """Convert UTC to local time in a zone."""
    local = moment(in_range(micros)).replace(tzinfo=dt.UTC).astimezone(zone_of(zone))
    return instant(local.replace(tzinfo=None))


def read_date(text: str) -> int:
    return read_timestamp(text, zoned=False) // DAY


def read_time(text: str) -> int:
    micros, rest = _read_clock(text.strip(), text, "time")
    if rest:
        raise _unreadable("time", text)
    return micros


_UNITS: dict[str, tuple[int, int, int]] = {
    name: size
    for names, size in (
        ("us microsecond microseconds", (0, 0, 1)),
        ("ms millisecond milliseconds", (0, 0, 1000)),
        ("s sec secs second seconds", (0, 0, SECOND)),
        ("m min mins minute minutes", (0, 0, MINUTE)),
        ("h hr hrs hour hours", (0, 0, HOUR)),
        ("d day days", (0, 1, 0)),
        ("w week weeks", (0, 7, 0)),
        ("mon mons month months", (1, 0, 0)),
        ("y year years", (12, 0, 0)),
    )
    for name in names.split()
}
"""Months, days and microseconds of the units of an interval."""
_PIECE = re.compile(r"([+-]?\d+:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)|([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-zA-Z]+)|\s+")


def read_interval(text: str) -> Interval:
    """Parse `1 year 2 months -3 days 04:05:06`."""
    months = days = micros = 0
    at, rest = 0, "0s" if text.strip() == "0" else text.strip()
    while at < len(rest):
        found = _PIECE.match(rest, at)
        unit = (found[3] or "s").lower() if found is not None else ""
        if found is None or unit not in _UNITS:
            raise _unreadable("interval", text, "; write it as 1 year 2 months 3 days 04:05:06")
        at = found.end()
        if found[1]:
            micros += _clock(found[1])
        elif found[2]:
            more = _scale(found[2], _UNITS[unit])
            months, days, micros = months + more[0], days + more[1], micros + more[2]
    if not rest:
        raise _unreadable("interval", text)
    if abs(months) > 2**31 or abs(days) > 2**31 or abs(micros) > 2**63:
        raise SqlError("interval out of range")
    return Interval(months, days, micros)


def _clock(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = text.lstrip("+-").split(":")
    seconds = float(parts[2]) if len(parts) > 2 else 0.0
    return sign * (int(parts[0]) * HOUR + int(parts[1]) * MINUTE + round(seconds * SECOND))


def _scale(number: str, size: tuple[int, int, int]) -> tuple[int, int, int]:
    """A number of some unit."""
    months, days, micros = size
    if re.fullmatch(r"[+-]?\d+", number):
        count = int(number)
        return months * count, days * count, micros * count
    if months or days:
        raise SqlUnsupportedError("a part of a day, month or year is not supported here; PostgreSQL has it. Use hours")
    return 0, 0, round(float(number) * micros)


# -- writing ------------------------------------------------------------------------------------------------


def clock_text(micros: int) -> str:
    seconds, micro = divmod(micros, SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micro:06d}".rstrip("0") if micro else text


def timestamp_text(micros: int, *, zoned: bool) -> str:
    days, rest = divmod(micros, DAY)
    return f"{date_of(days).isoformat()} {clock_text(rest)}" + ("+00" if zoned else "")


def interval_text(interval: Interval) -> str:
    """Format as PostgreSQL does: `1 year 2 mons 3 days 04:05:06`."""
    years, months = divmod(abs(interval.months), 12)
    sign = -1 if interval.months < 0 else 1
    pieces = []
    negative_before = False
    for count, word in ((years * sign, "year"), (months * sign, "mon"), (interval.days, "day")):
        if count:
            plus = "+" if negative_before and count > 0 else ""
            pieces.append(f"{plus}{count} {word}{'' if count == 1 else 's'}")
            negative_before = count < 0
    if interval.micros or not pieces:
        mark = "-" if interval.micros < 0 else "+" if negative_before else ""
        pieces.append(mark + clock_text(abs(interval.micros)))
    return " ".join(pieces)
