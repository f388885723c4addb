"""to_char, to_date and to_timestamp: PostgreSQL's patterns for times."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Any

from ...errors import SqlError
from ..sql.moments import DAY, HOUR, MINUTE, SECOND, Interval, day_number, in_range, moment
from .sqlite_calls import native
from .sqlite_number_formats import check_pattern

_MONTHS = "January February March April May June July August September October November December".split()
_DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
_ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()
_CODES = (
    "HH24 HH12 HH MI SSSSS SSSS SS MS US FF1 FF2 FF3 FF4 FF5 FF6 A.M. P.M. a.m. p.m. AM PM am pm Y,YYY YYYY YYY YY Y "
    "IYYY IYY IY I BC AD bc ad MONTH Month month MON Mon mon MM DAY Day day DDD DD DY Dy dy ID IDDD D WW W IW CC J Q "
    "RM rm TZH TZM TZ tz OF"
).split()
_CODE = re.compile(
    r"(FM|TM|FX)?("
    + "|".join(sorted(map(re.escape, _CODES), key=len, reverse=True))
    + r')(TH|th)?|"((?:[^"\\]|\\.)*)"|(FM|TM|FX)'
)


@lru_cache(maxsize=256)
def _pieces(pattern: str) -> list[tuple[str, str, bool, str]]:
    """A pattern as (code, text, without padding, ordinal); one of code and text is empty."""
    check_pattern(pattern)
    found: list[tuple[str, str, bool, str]] = []
    at = 0
    fill = False
    for match in _CODE.finditer(pattern):
        if match.start() > at:
            found.append(("", pattern[at : match.start()], False, ""))
        at = match.end()
        if match[5]:
            fill = match[5] == "FM" and not fill
        elif match[4] is not None:
            found.append(("", re.sub(r"\\(.)", r"\1", match[4]), False, ""))
        else:
            found.append((match[2], "", fill or match[1] in ("FM", "TM"), match[3] or ""))
    if at < len(pattern):
        found.append(("", pattern[at:], False, ""))
    return found


def _ordinal(number: int, form: str) -> str:
    word = "th" if 10 <= abs(number) % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(abs(number) % 10, "th")
    return word.upper() if form == "TH" else word


def _cased(word: str, code: str) -> str:
    return word.upper() if code.isupper() else word.lower() if code.islower() else word


def _time_code(code: str, time: dict[str, int], fill: bool, ordinal: str) -> str:
    """One code of a pattern for a time."""
    text = _word(code, time, fill)
    if text is not None:
        return text
    number, width = _number(code, time)
    text = str(number) if fill else f"{number:0{width + (number < 0)}d}"
    return text + (_ordinal(number, ordinal) if ordinal else "")


def _word(code: str, time: dict[str, int], fill: bool) -> str | None:
    upper = code.upper()
    if upper in ("AM", "PM", "A.M.", "P.M."):
        word = "PM" if time["hour"] % 24 >= 12 else "AM"
        return _cased(word if "." not in code else f"{word[0]}.{word[1]}.", code)
    if upper in ("BC", "AD"):
        return _cased("AD", code)
    if upper in ("MONTH", "MON", "RM"):
        if not time["month"]:
            return "" if fill else " " * (9 if upper == "MONTH" else 3 if upper == "MON" else 4)
        word = _ROMAN[time["month"] - 1] if upper == "RM" else _MONTHS[time["month"] - 1]
        word = _cased(word[:3] if upper == "MON" else word, code)
        return word if fill or upper == "MON" else word.ljust(4 if upper == "RM" else 9)
    if upper in ("DAY", "DY"):
        word = _cased(_DAYS[time["dow"]][: 3 if upper == "DY" else 9], code)
        return word if fill or upper == "DY" else word.ljust(9)
    if upper == "TZ":
        return _cased("UTC", code) if time["zoned"] else ""
    if code in ("TZH", "OF"):
        return "+00"
    if code == "TZM":
        return "00"
    if code == "Y,YYY":
        return f"{time['year'] // 1000},{time['year'] % 1000:03d}"
    if code.startswith("FF"):
        return f"{time['micro']:06d}"[: int(code[2])]
    return None


def _number(code: str, time: dict[str, int]) -> tuple[int, int]:
    """The number of a code, and how many digits it is written with."""
    year, micro, hour = time["year"], time["micro"], time["hour"]
    numbers = {
        "HH24": (hour, 2),
        "HH12": ((abs(hour) - 1) % 12 + 1, 2),
        "HH": ((abs(hour) - 1) % 12 + 1, 2),
        "MI": (time["minute"], 2),
        "SS": (time["second"], 2),
        "MS": (micro // 1000, 3),
        "US": (micro, 6),
        "SSSS": ((hour * 60 + time["minute"]) * 60 + time["second"], 1),
        "SSSSS": ((hour * 60 + time["minute"]) * 60 + time["second"], 1),
        "YYYY": (year, 4),
        "YYY": (year % 1000, 3),
        "YY": (year % 100, 2),
        "Y": (year % 10, 1),
        "IYYY": (time["isoyear"], 4),
        "IYY": (time["isoyear"] % 1000, 3),
        "IY": (time["isoyear"] % 100, 2),
        "I": (time["isoyear"] % 10, 1),
        "MM": (time["month"], 2),
        "DD": (time["day"], 2),
        "DDD": (time["doy"], 3),
        "IDDD": ((time["isoweek"] - 1) * 7 + (time["dow"] or 7), 3),
        "D": (time["dow"] + 1, 1),
        "ID": (time["dow"] or 7, 1),
        "W": ((time["day"] - 1) // 7 + 1, 1),
        "WW": ((time["doy"] - 1) // 7 + 1, 2),
        "IW": (time["isoweek"], 2),
        "CC": ((year + 99) // 100, 2),
        "Q": ((time["month"] + 2) // 3, 1),
        "J": (time["julian"], 1),
    }
    return numbers[code]


def _of_timestamp(micros: int, *, zoned: bool) -> dict[str, int]:
    when = moment(micros)
    iso = when.isocalendar()
    return {
        "year": when.year,
        "month": when.month,
        "day": when.day,
        "hour": when.hour,
        "minute": when.minute,
        "second": when.second,
        "micro": when.microsecond,
        "dow": iso.weekday % 7,
        "doy": when.timetuple().tm_yday,
        "isoyear": iso.year,
        "isoweek": iso.week,
        "julian": micros // DAY + 2_440_588,
        "zoned": int(zoned),
    }


def _of_interval(value: Interval) -> dict[str, int]:
    sign = -1 if value.micros < 0 else 1
    clock = abs(value.micros)
    years, months = divmod(abs(value.months), 12)
    flip = -1 if value.months < 0 else 1
    return {
        "year": years * flip,
        "month": months * flip,
        "day": value.days,
        "hour": sign * (clock // HOUR),
        "minute": sign * (clock // MINUTE % 60),
        "second": sign * (clock // SECOND % 60),
        "micro": sign * (clock % SECOND),
        "dow": 0,
        "doy": value.days,
        "isoyear": years,
        "isoweek": 1,
        "julian": 0,
        "zoned": 0,
    }


def _formatted(time: dict[str, int], pattern: str) -> str:
    return "".join(
        _time_code(code, time, fill, ordinal) if code else text for code, text, fill, ordinal in _pieces(pattern)
    )


native("to_char(timestamptz, text)")(lambda value, pattern: _formatted(_of_timestamp(value, zoned=True), pattern))
native("to_char(timestamp, text)")(lambda value, pattern: _formatted(_of_timestamp(value, zoned=False), pattern))
native("to_char(interval, text)")(lambda value, pattern: _formatted(_of_interval(value), pattern))


# -- reading times ---------------------------------------------------------------------------------------------

_WIDTHS = {"YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "MM": 2, "DD": 2, "HH24": 2, "HH12": 2, "HH": 2, "MI": 2, "SS": 2}
_WIDTHS |= {"MS": 3, "US": 6, "DDD": 3, "J": 7, "SSSS": 5, "SSSSS": 5, "IYYY": 4, "IW": 2, "ID": 1, "D": 1, "CC": 2}


def _parsed(text: str, pattern: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    pieces = _pieces(pattern)
    at = 0
    for place, (code, words, _, ordinal) in enumerate(pieces):
        if not code:
            for sign in words:
                if (at < len(text) and (sign.isspace() or not sign.isalnum()) and not text[at].isalnum()) or (
                    sign.isalnum() and at < len(text)
                ):
                    at += 1
            continue
        while at < len(text) and text[at].isspace():
            at += 1
        upper = code.upper()
        if upper in ("MONTH", "MON", "DAY", "DY"):
            at = _parsed_name(text, at, upper, found)
        elif upper in ("AM", "PM", "A.M.", "P.M."):
            match = re.compile(r"([ap])\.?m\.?", re.I).match(text, at)
            if match is None:
                raise SqlError(f'invalid value "{text[at : at + 2]}" for "{code}"')
            found["half"] = match[1].lower()
            at = match.end()
        elif upper in ("TZH", "OF"):
            match = re.compile(r"([+-])(\d{1,2})(?::?(\d\d))?").match(text, at)
            if match is None:
                raise SqlError(f'invalid value "{text[at : at + 3]}" for "{code}"')
            seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60
            found["offset"] = seconds if match[1] == "+" else -seconds
            at = match.end()
        elif upper in ("BC", "AD", "TZ", "TZM", "RM"):
            raise SqlError(f'"{code}" is not supported in to_timestamp and to_date')
        else:
            width = int(code[2]) if code.startswith("FF") else _WIDTHS.get(code, 0)
            following = pieces[place + 1] if place + 1 < len(pieces) else None
            tight = following is not None and following[0] != "" and following[0] in _WIDTHS
            fixed = tight or code in ("MS", "US") or code.startswith("FF")
            digits = re.compile(rf"[+-]?\d{{1,{width if fixed else 9}}}")
            match = digits.match(text, at)
            if match is None:
                raise SqlError(f'invalid value "{text[at : at + 4]}" for "{code}"')
            _store(found, code, match[0])
            at = match.end()
            if ordinal:
                at += 2
    return found


def _parsed_name(text: str, at: int, code: str, found: dict[str, Any]) -> int:
    names = _MONTHS if code.startswith("MON") else _DAYS
    short = code in ("MON", "DY")
    for number, name in enumerate(names, 1):
        word = name[:3] if short else name
        if text[at : at + len(word)].lower() == word.lower():
            if names is _MONTHS:
                found["month"] = number
            return at + len(word)
    raise SqlError(f'invalid value "{text[at : at + 3]}" for "{code}"')


_KEYS = {
    "YYYY": "year",
    "IYYY": "isoyear",
    "MM": "month",
    "DD": "day",
    "DDD": "doy",
    "HH24": "hour",
    "HH12": "hour12",
    "HH": "hour12",
    "MI": "minute",
    "SS": "second",
    "J": "julian",
    "SSSS": "clock",
    "SSSSS": "clock",
    "IW": "isoweek",
    "ID": "isoday",
    "D": "weekday",
    "CC": "century",
}


def _store(found: dict[str, Any], code: str, digits: str) -> None:
    number = int(digits)
    if code == "MS":
        found["micro"] = int(digits.ljust(3, "0")) * 1000
    elif code == "US" or code.startswith("FF"):
        found["micro"] = int(digits.ljust(6, "0"))
    elif code in ("Y", "YY") or (code == "YYY" and len(digits) <= 3):
        short = number < 100
        found["year"] = number + (2000 if number < (70 if short else 520) else 1900 if short else 1000)
    elif code in _KEYS:
        found[_KEYS[code]] = number
    else:
        raise SqlError(f'"{code}" is not supported in to_timestamp and to_date')


def _instant(text: str, pattern: str) -> int:
    found = _parsed(text, pattern)
    if "julian" in found:
        days = found["julian"] - 2_440_588
    elif "isoyear" in found and "isoweek" in found:
        days = day_number(dt.date.fromisocalendar(found["isoyear"], found["isoweek"], found.get("isoday", 1)))
    else:
        year = found.get("year", 1 if "century" not in found else found["century"] * 100)
        try:
            if "doy" in found:
                days = day_number(dt.date(year, 1, 1)) + found["doy"] - 1
            else:
                days = day_number(dt.date(year, found.get("month", 1), found.get("day", 1)))
        except ValueError:
            raise SqlError(f'date/time field value out of range: "{text}"') from None
    hour = found.get("hour", 0)
    if "hour12" in found:
        if not 1 <= found["hour12"] <= 12:
            raise SqlError(f'hour "{found["hour12"]}" is invalid for the 12-hour clock')
        hour = found["hour12"] % 12 + (12 if found.get("half") == "p" else 0)
    minute, second = found.get("minute", 0), found.get("second", 0)
    if hour > 23 or minute > 59 or second > 59:
        raise SqlError(f'date/time field value out of range: "{text}"')
    clock = found["clock"] * SECOND if "clock" in found else hour * HOUR + minute * MINUTE + second * SECOND
    return in_range(days * DAY + clock + found.get("micro", 0) - found.get("offset", 0) * SECOND)


native("to_timestamp(text, text)")(_instant)
native("to_date(text, text)")(lambda text, pattern: _instant(text, pattern) // DAY)
