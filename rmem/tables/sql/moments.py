"""Times as numbers, and PostgreSQL's ways to read and write them: timestamps are microseconds since 1970 in UTC, dates
are days, times of day are microseconds, intervals are months, days and microseconds."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...errors import SqlError

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_DAY = dt.date(1970, 1, 1).toordinal()
EARLIEST, LATEST = -62_135_596_800_000_000, 253_402_300_799_999_999  # the years 1 to 9999


class Interval(NamedTuple):
    months: int
    days: int
    micros: int

    @property
    def total(self) -> int:
        """By which intervals are compared: a month has 30 days, a day 24 hours."""
        return (self.months * 30 + self.days) * DAY + self.micros


def instant(moment: dt.datetime) -> int:
    """Microseconds since 1970; an aware moment in UTC, a naive one as it stands."""
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

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATES = [
    re.compile(r"(?P<y>\d{4,5})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"),
    re.compile(r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})"),
    re.compile(r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})"),
    re.compile(r"(?P<m>\d{1,2})-(?P<d>\d{1,2})-(?P<y>\d{4})"),
    re.compile(rf"{_MONTH}\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y>\d{{4}})", re.I),
    re.compile(rf"(?P<d>\d{{1,2}})[\s-]{_MONTH}\.?[\s-](?P<y>\d{{4}})", re.I),
    re.compile(rf"(?P<y>\d{{4}})-{_MONTH}-(?P<d>\d{{1,2}})", re.I),
    re.compile(r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?!\d)"),
]
_TIME = re.compile(
    r"(?P<h>\d{1,2}):(?P<mi>\d{1,2})(?::(?P<s>\d{1,2})(?P<f>\.\d*)?)?(?:\s*(?P<half>[ap]m)\b)?|"
    r"(?P<h2>\d\d)(?P<mi2>\d\d)(?P<s2>\d\d)(?P<f2>\.\d*)?",
    re.I,
)
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d\d))?(?::(?P<s>\d\d))?$")


def read_timestamp(text: str, *, zoned: bool) -> int:
    kind = "timestamp with time zone" if zoned else "timestamp"
    rest = text.strip()
    special = _special(rest)
    if special is not None:
        return special
    days, rest = _read_date(rest, text, kind)
    rest = rest.lstrip()
    if rest[:1] in ("T", "t") and rest[1:2].isdigit():
        rest = rest[1:]
    micros = 0
    if rest and rest[0].isdigit():
        micros, rest = _read_clock(rest, text, kind)
    micros += days * DAY
    zone = rest.strip()
    if zone and zoned:
        micros = _unzoned(micros, zone, text, kind)
    elif zone:
        _unzoned(micros, zone, text, kind)  # checked, and then not looked at, as PostgreSQL does
    return in_range(micros, kind)


def _special(text: str) -> int | None:
    now = dt.datetime.now(dt.UTC)
    word = text.lower()
    if word == "epoch":
        return 0
    if word == "now":
        return instant(now)
    shift = {"today": 0, "yesterday": -1, "tomorrow": 1}.get(word)
    return None if shift is None else (instant(now) // DAY + shift) * DAY


def _read_date(rest: str, text: str, kind: str) -> tuple[int, str]:
    for pattern in _DATES:
        found = pattern.match(rest)
        if found is None:
            continue
        parts = found.groupdict()
        month = int(parts["m"]) if parts.get("m") else _MONTHS.index(parts["month"].lower()[:3]) + 1
        try:
            return day_number(dt.date(int(parts["y"]), month, int(parts["d"]))), rest[found.end() :]
        except ValueError:
            raise SqlError(f'date/time field value out of range: "{text}"') from None
    raise SqlError(f'invalid input syntax for type {kind}: "{text}"')


def _read_clock(rest: str, text: str, kind: str) -> tuple[int, str]:
    found = _TIME.match(rest)
    if found is None:
        raise SqlError(f'invalid input syntax for type {kind}: "{text}"')
    hours = int(found["h"] or found["h2"])
    minutes = int(found["mi"] or found["mi2"])
    seconds = int(found["s"] or found["s2"] or 0)
    fraction = found["f"] or found["f2"] or ""
    if found["half"]:
        if not 1 <= hours <= 12:
            raise SqlError(f'date/time field value out of range: "{text}"')
        hours = hours % 12 + (12 if found["half"].lower() == "pm" else 0)
    micros = round(float(f"0{fraction}") * SECOND) if len(fraction) > 1 else 0
    total = (hours * 60 + minutes) * MINUTE + seconds * SECOND + micros
    if minutes > 59 or seconds > 60 or total > DAY:
        raise SqlError(f'date/time field value out of range: "{text}"')
    return total, rest[found.end() :]


def _unzoned(micros: int, zone: str, text: str, kind: str) -> int:
    found = _OFFSET.match(zone)
    if found is not None:
        seconds = int(found["h"]) * 3600 + int(found["m"] or 0) * 60 + int(found["s"] or 0)
        return micros - (seconds if found["sign"] == "+" else -seconds) * SECOND
    try:
        return to_utc(micros, zone)
    except SqlError:
        raise SqlError(f'invalid input syntax for type {kind}: "{text}"') from None


@lru_cache(maxsize=256)
def _zone(name: str) -> dt.tzinfo:
    word = name.strip()
    if word.lower() in ("utc", "z", "gmt", "zulu", "ut"):
        return dt.UTC
    found = _OFFSET.match(word)
    if found is not None:  # POSIX: the other way round than in a timestamp
        seconds = int(found["h"]) * 3600 + int(found["m"] or 0) * 60
        return dt.timezone(dt.timedelta(seconds=-seconds if found["sign"] == "+" else seconds))
    fixed = {
        "est": -5,
        "edt": -4,
        "cst": -6,
        "cdt": -5,
        "mst": -7,
        "mdt": -6,
        "pst": -8,
        "pdt": -7,
        "cet": 1,
        "cest": 2,
    }
    if word.lower() in fixed:
        return dt.timezone(dt.timedelta(hours=fixed[word.lower()]))
    try:
        return ZoneInfo(word)
    except (KeyError, ValueError, OSError):
        pass
    parts = "/".join("_".join(piece.capitalize() for piece in part.split("_")) for part in word.split("/"))
    try:
        return ZoneInfo(parts)
    except (KeyError, ValueError, OSError):
        raise SqlError(f'time zone "{name}" not recognized') from None


def to_utc(micros: int, zone: str) -> int:
    """Local time in a zone, as UTC."""
    return in_range(instant(moment(in_range(micros)).replace(tzinfo=_zone(zone))))


def to_local(micros: int, zone: str) -> int:
    """UTC, as local time in a zone."""
    local = moment(in_range(micros)).replace(tzinfo=dt.UTC).astimezone(_zone(zone))
    return instant(local.replace(tzinfo=None))


def read_date(text: str) -> int:
    return read_timestamp(text, zoned=False) // DAY


def read_time(text: str) -> int:
    rest = text.strip()
    if not rest[:1].isdigit():
        raise SqlError(f'invalid input syntax for type time: "{text}"')
    if re.match(r"\d{4}-", rest):
        return read_timestamp(text, zoned=False) % DAY
    micros, rest = _read_clock(rest, text, "time")
    if rest.strip() and _OFFSET.match(rest.strip()) is None and rest.strip().lower() not in ("z", "utc"):
        raise SqlError(f'invalid input syntax for type time: "{text}"')
    return micros


_UNITS: dict[str, tuple[int, int, int]] = {}
for _names, _size in (
    ("us usec usecs microsecond microseconds microsec microsecs", (0, 0, 1)),
    ("ms msec msecs millisecond milliseconds millisec millisecs", (0, 0, 1000)),
    ("s sec secs second seconds", (0, 0, SECOND)),
    ("m min mins minute minutes", (0, 0, MINUTE)),
    ("h hr hrs hour hours", (0, 0, HOUR)),
    ("d day days", (0, 1, 0)),
    ("w week weeks", (0, 7, 0)),
    ("mon mons month months", (1, 0, 0)),
    ("y yr yrs year years", (12, 0, 0)),
    ("decade decades dec decs", (120, 0, 0)),
    ("century centuries c cent", (1200, 0, 0)),
    ("millennium millennia mil mils", (12000, 0, 0)),
):
    for _name in _names.split():
        _UNITS[_name] = _size
_PIECE = re.compile(
    r"\s*(?:(?P<clock>[+-]?\d+:\d{1,2}(?::\d{1,2}(?:\.\d*)?)?)|(?P<ym>[+-]?\d+-\d+)(?![\d.])|"
    r"(?P<number>[+-]?\s*(?:\d+\.?\d*|\.\d+))\s*(?P<unit>[a-zA-Z]*))\s*,?"
)
_ISO = re.compile(
    r"P(?=.)(?:(?P<y>-?[\d.]+)Y)?(?:(?P<mo>-?[\d.]+)M)?(?:(?P<w>-?[\d.]+)W)?(?:(?P<d>-?[\d.]+)D)?"
    r"(?:T(?:(?P<h>-?[\d.]+)H)?(?:(?P<mi>-?[\d.]+)M)?(?:(?P<s>-?[\d.]+)S)?)?$"
)


def read_interval(text: str) -> Interval:
    rest = text.strip()
    wrong = SqlError(f'invalid input syntax for type interval: "{text}"')
    iso = _ISO.match(rest)
    if iso is not None:
        parts = [
            _scaled(iso[key], _UNITS[unit])
            for key, unit in (("y", "y"), ("mo", "mon"), ("w", "w"), ("d", "d"), ("h", "h"), ("mi", "m"), ("s", "s"))
            if iso[key]
        ]
        return _limited(Interval(*(sum(column) for column in zip(*parts, strict=True))))
    ago = re.search(r"\s+ago$", rest, re.I)
    if ago:
        rest = rest[: ago.start()]
    rest = re.sub(r"^@\s*", "", rest)
    months = days = micros = 0
    if not rest:
        raise wrong
    while rest:
        found = _PIECE.match(rest)
        if found is None or found.end() == 0:
            raise wrong
        rest = rest[found.end() :]
        if found["clock"]:
            micros += _clock(found["clock"])
        elif found["ym"]:
            years, _, more = found["ym"].lstrip("+-").partition("-")
            sign = -1 if found["ym"].startswith("-") else 1
            months += sign * (int(years) * 12 + int(more))
        else:
            unit = found["unit"].lower()
            if not unit:
                size = _UNITS["d"] if re.match(r"[+-]?\d+:", rest) else _UNITS["s"]
                if rest and size == _UNITS["s"]:
                    raise wrong
            elif unit not in _UNITS:
                raise wrong
            else:
                size = _UNITS[unit]
            more_months, more_days, more_micros = _scaled(found["number"].replace(" ", ""), size)
            months, days, micros = months + more_months, days + more_days, micros + more_micros
    if ago:
        months, days, micros = -months, -days, -micros
    return _limited(Interval(months, days, micros))


def _limited(interval: Interval) -> Interval:
    if abs(interval.months) > 2**31 or abs(interval.days) > 2**31 or abs(interval.micros) > 2**63:
        raise SqlError("interval out of range")
    return interval


def _clock(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = text.lstrip("+-").split(":")
    seconds = float(parts[2]) if len(parts) > 2 else 0.0
    return sign * (int(parts[0]) * HOUR + int(parts[1]) * MINUTE + round(seconds * SECOND))


def _scaled(number: str, size: tuple[int, int, int]) -> tuple[int, int, int]:
    """A number of some unit; what is left of a month becomes days, what is left of a day becomes time."""
    months, days, micros = size
    if re.fullmatch(r"[+-]?\d+", number):
        count = int(number)
        return months * count, days * count, micros * count
    value = float(number)
    if months:
        whole = int(value * months)
        left = (value * months - whole) * 30
        return whole, *_days(left)
    if days:
        return 0, *_days(value * days)
    return 0, 0, round(value * micros)


def _days(value: float) -> tuple[int, int]:
    whole = int(round(value * 1e9) / 1e9)
    return whole, round((value - whole) * 86_400 * 1e6)


# -- writing ------------------------------------------------------------------------------------------------


def clock_text(micros: int) -> str:
    seconds, micro = divmod(micros, SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micro:06d}".rstrip("0") if micro else text


def timestamp_text(micros: int, *, zoned: bool) -> str:
    days, rest = divmod(micros, DAY)
    return f"{date_of(days).isoformat()} {clock_text(rest)}" + ("+00" if zoned else "")


def interval_text(interval: Interval) -> str:
    """As PostgreSQL prints it: `1 year 2 mons 3 days 04:05:06`."""
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
