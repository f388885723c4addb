"""Times as Python's datetime has them, parsed and written as PostgreSQL does. An interval is months, days and
microseconds, which do not convert into each other."""

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


class Interval(NamedTuple):
    """An interval as PostgreSQL stores it."""

    months: int
    days: int
    micros: int

    @property
    def total(self) -> int:
        """Return the length for comparisons: a month has 30 days, a day 24 hours."""
        return (self.months * 30 + self.days) * DAY + self.micros


def at_midnight(day: dt.date, zone: dt.tzinfo | None = None) -> dt.datetime:
    return dt.datetime(day.year, day.month, day.day, tzinfo=zone)


_STAMP = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:(?:\s+|[Tt])(\d\d?):(\d\d?)(?::(\d\d?)(\.\d*)?)?)?\s*"
    r"(?:([+-])(\d\d?)(?::?(\d\d))?|([A-Za-z]\S*))?"
)


def read_timestamp(text: str, *, zoned: bool, kind: str = "timestamp") -> dt.datetime:
    """`2024-01-31`, `2024-01-31 10:20:30.5+02:00`, `2024-01-31T10:20Z`, or a zone's name at the end. The zone of a
    timestamp without one is checked and left out, as PostgreSQL does."""
    found = _STAMP.fullmatch(text.strip())
    if found is None:
        raise _unreadable(kind, text, "; write it as 2024-01-31 10:20:30+02")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.group(1, 2, 3, 4, 5, 6))
    fraction, sign, hours, minutes, name = found.group(7, 8, 9, 10, 11)
    try:
        local = dt.datetime(year, month, day, hour, minute, second)
        if fraction and len(fraction) > 1:
            local += dt.timedelta(microseconds=round(float(fraction) * SECOND))
        offset = dt.timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = zone_of(name) if name else dt.timezone(-offset if sign == "-" else offset)
        return local.replace(tzinfo=zone).astimezone(dt.UTC) if zoned else local
    except SqlError:
        raise _unreadable(kind, text) from None
    except (ValueError, OverflowError):
        raise SqlError(f'date/time field value out of range: "{text}"') from None


def _unreadable(kind: str, text: str, hint: str = "") -> SqlError:
    return SqlError(f'invalid input syntax for type {kind}: "{text}"{hint}')


@lru_cache(maxsize=256)
def zone_of(name: str) -> dt.tzinfo:
    if name.upper() in ("UTC", "Z", "GMT"):
        return dt.UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise SqlError(f'time zone "{name}" not recognized; write a name such as Europe/Berlin') from None


def read_time(text: str) -> dt.time:
    if ":" not in text:
        raise _unreadable("time", text)
    return read_timestamp(f"2000-01-01 {text.strip()}", zoned=False, kind="time").time()


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
_PIECE = re.compile(r"([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?|([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-zA-Z]+)|\s+")


def read_interval(text: str) -> Interval:
    """Parse `1 year 2 months -3 days 04:05:06`."""
    months = days = micros = 0
    at, rest = 0, "0s" if text.strip() == "0" else text.strip()
    while at < len(rest):
        found = _PIECE.match(rest, at)
        unit = (found[6] or "s").lower() if found is not None else ""
        if found is None or unit not in _UNITS:
            raise _unreadable("interval", text, "; write it as 1 year 2 months 3 days 04:05:06")
        at = found.end()
        if found[2]:
            clock = int(found[2]) * HOUR + int(found[3]) * MINUTE + round(float(found[4] or 0) * SECOND)
            micros += -clock if found[1] == "-" else clock
        elif found[5]:
            more = _scale(found[5], _UNITS[unit])
            months, days, micros = months + more[0], days + more[1], micros + more[2]
    if not rest:
        raise _unreadable("interval", text)
    if abs(months) > 2**31 or abs(days) > 2**31 or abs(micros) > 2**63:
        raise SqlError("interval out of range")
    return Interval(months, days, micros)


def _scale(number: str, size: tuple[int, int, int]) -> tuple[int, int, int]:
    """Multiply the size of a unit."""
    months, days, micros = size
    if re.fullmatch(r"[+-]?\d+", number):
        count = int(number)
        return months * count, days * count, micros * count
    if months or days:
        raise SqlUnsupportedError("a part of a day, month or year is not supported here; PostgreSQL has it. Use hours")
    return 0, 0, round(float(number) * micros)


def time_text(value: dt.time) -> str:
    text = value.isoformat()
    return text.rstrip("0") if value.microsecond else text


def timestamp_text(value: dt.datetime) -> str:
    return f"{value.date()} {time_text(value.time())}" + ("+00" if value.tzinfo else "")


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
        seconds, micros = divmod(abs(interval.micros), SECOND)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        pieces.append(mark + clock + (f".{micros:06d}".rstrip("0") if micros else ""))
    return " ".join(pieces)
