"""Find single periods in a text: "yesterday", "7 May 2023", "Q3", "last summer". The words around them, which `frames`
reads, may say which part is meant, or that it begins or ends there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ..patterns import lazy_pattern
from . import calendar
from .calendar import Bounds

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
            "september sept sep", "october oct", "november nov", "december dec",
        ),
        1,
    )
    for name in names.split()
}  # fmt: skip
WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ("monday mon", "tuesday tues tue", "wednesday wed", "thursday thurs thur thu", "friday fri", "saturday sat",
         "sunday sun")
    )
    for name in names.split()
}  # fmt: skip
_ONES = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen twenty thirty".split()
_NUMBERS = dict(zip(_ONES, (*range(1, 16), 20, 30), strict=True)) | {"a": 1, "an": 1}
_VAGUE = {"couple": 2, "couple of": 2, "few": 3, "several": 4}
_TENS = "first second third fourth fifth sixth seventh eighth ninth".split()
ORDINALS = {
    name: number
    for number, name in enumerate(
        [*_TENS, *"tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth".split(),
         "nineteenth", "twentieth", *(f"twenty-{one}" for one in _TENS), "thirtieth", "thirty-first"],
        1,
    )
}  # fmt: skip
_UNITS = {"min": "minute", "hr": "hour", "wk": "week", "yr": "year", "centurie": "century"}

WEEKDAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_WEEKDAY = "(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_NUMBER = rf"(?:\d{{1,4}}|an?|(?:an? )?(?:couple(?: of)?|few)|several|{'|'.join(_ONES)})"
_UNIT = "(?:minute|min|hour|hr|day|week|wk|weekend|month|quarter|year|yr|decade|century|centurie)s?"
_NUMBER_OF_UNITS = rf"{_NUMBER}(?: (?:more|whole|full|solid))? ?{_UNIT}"
_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?:19|20)\d\d(?!\d)"
_SPELLED_DAY = "(?:" + "|".join(sorted(ORDINALS, key=len, reverse=True)).replace("-", "[ -]") + ")"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
_SEASON = "(?:spring|summer|autumn|fall|winter)"
_HOLIDAY = (
    r"(?:christmas eve|christmas|new year'?s? eve|new year'?s(?: day)?|halloween|thanks ?giving|valentine'?s)(?: day)?"
)
_NTH = "(?:first|second|third|fourth|last|1st|2nd|3rd|4th)"
_BEGINS, _ENDS = r"(?:(?<![a-z\d_./-])|(?<=\bmid-))", r"(?![a-z\d_-]|[./]\d)"

# Kinds of periods, the more specific first. `weak` ones have other meanings and need a word such as "in" before them.
_PATTERNS = {
    "iso": r"(?:19|20)\d\d(?P<first_mark>[-/.])\d{1,2}(?P=first_mark)\d{1,2}",
    "numeric": rf"\d{{1,2}}(?P<second_mark>[/.-])\d{{1,2}}(?P=second_mark){_YEAR}|\d{{1,2}}/\d{{1,2}}/\d\d",
    "year_month_day": rf"{_YEAR}[-/, ]+{_MONTH}[-/ ]{_DAY}",
    "days": rf"(?:{_MONTH} \d{{1,2}} ?[-–—] ?\d{{1,2}}|\d{{1,2}} ?[-–—] ?\d{{1,2}}(?: of)? {_MONTH})(?:,? {_YEAR})?",
    "day_month": rf"(?:{_DAY}|{_SPELLED_DAY})(?: of)?[ -]{_MONTH}(?:,? ?-?(?:of )?{_YEAR})?",
    "month_day": rf"{_MONTH}(?: the |[ /-])?{_DAY}(?:,? {_YEAR})?|{_MONTH} (?:the )?{_SPELLED_DAY}(?:,? {_YEAR})?",
    "month_year": rf"{_MONTH},? ?-?(?:of )?{_YEAR}|{_YEAR} ?,? {_MONTH}",
    "year_month": rf"{_YEAR} ?[-/] ?(?:0?[1-9]|1[0-2])|(?:0?[1-9]|1[0-2]) ?[-/] ?{_YEAR}",
    "quarter": rf"q[1-4](?:[ /-]?(?:of )?{_YEAR}| (?:of )?(?:this|last) year)|{_YEAR}[ /-]?q[1-4]"
    rf"|(?:the )?{_NTH} quarter(?:,? (?:of |in )?(?:{_YEAR}|(?:this|last) year))",
    "half": rf"h[12][ /-]?{_YEAR}|{_YEAR}[ /-]?h[12]",
    "season": rf"(?:(?:in|during|over|since) the|this past|last|this|past) {_SEASON}(?: of {_YEAR})?"
    rf"|{_SEASON},? (?:of )?{_YEAR}",
    "decade": r"(?:the )?(?:(?:18|19|20)\d0'?s|'[0-9]0s)|the [2-9]0'?s",
    "ago": rf"{_NUMBER_OF_UNITS}(?:(?:,| and|, and)? {_NUMBER_OF_UNITS})* (?:ago|earlier|back)",
    "until_now": rf"(?:(?:in|over|during|within|for|throughout) )?(?:(?:the|these) )?(?:last|past|previous|preceding) "
    rf"{_NUMBER} ?{_UNIT}|(?:(?:in|over|during|within|for|throughout) )?the (?:last|past) {_UNIT}(?! of )",
    "relative_day": r"(?:the )?day before yesterday|yesterday|(?:earlier )?today|tonight|last night|the other day"
    r"|this (?:morning|afternoon|evening|day)",
    "unit": r"(?:this past|this|last|previous|past|current) (?:week|weekend|month|quarter|year|decade|century)(?! of )"
    r"|the (?:week|weekend|month|year) before last|(?:over|on|at|during) the weekend",
    "named_month": rf"(?:last|this past|this|past) {_MONTH}",
    "weekday": rf"(?:last|this past|past|this) (?:{WEEKDAY}|{_SHORT_WEEKDAY})|{WEEKDAY}",
    "short_weekday": rf"(?<=on ){_SHORT_WEEKDAY}",
    "holiday": rf"{_HOLIDAY}(?:,? (?:of )?(?:{_YEAR}|last year))?",
    "years": rf"{_YEAR} ?[-–—] ?{_YEAR}",
    "weak_quarter": "q[1-4]",
    "weak_month": _MONTH,
    "weak_year": _YEAR,
    "weak_day": r"the \d{1,2}(?:st|nd|rd|th)(?= ?[?.,;!)]| ?$"
    r"| (?:at|did|do|does|we|i|you|he|she|they|it|was|were|about|with|for|and|to)\b)",
    "weak_slashes": r"(?<=on )\d{1,2}/\d{1,2}|(?<=from )\d{1,2}/\d{1,2}|(?<=to )\d{1,2}/\d{1,2}",
}
_PERIOD = lazy_pattern(
    _BEGINS + "(?:" + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _PATTERNS.items()) + ")" + _ENDS
)
_NOT_ONE_DAY = lazy_pattern(r"\b(?:next|coming|every|each|most|some|all|black|good|cyber|casual|a) $")
_COUNTED = lazy_pattern(rf"(?P<number>{_NUMBER})(?: (?:more|whole|full|solid))? ?(?P<unit>{_UNIT})")


@dataclass(frozen=True, slots=True)
class Period:
    """A period that a text names, and where. `relative`: counted back from now. `yearless`: a date without its year.
    `weak`: it is a time only after a word such as "in"."""

    bounds: Bounds
    first: int
    last: int
    kind: str
    relative: bool
    yearless: bool

    @property
    def weak(self) -> bool:
        return self.kind.startswith("weak")


def find_periods(text: str, now: datetime) -> Iterator[Period]:
    """Find the periods in a text in lower case with single blanks."""
    for found in _PERIOD.finditer(text):
        kind = found.lastgroup
        assert kind is not None
        words = found[0]
        if kind.endswith("weekday") and _NOT_ONE_DAY.search(text, max(0, found.start() - 9), found.start()):
            continue
        try:
            bounds = _READERS[kind.removeprefix("weak_")](words, now)
        except (ValueError, OverflowError):  # 31 June, a time before year 1
            continue
        has_year = re.search(_YEAR, words) is not None or kind == "numeric"
        relative = kind in _RELATIVE or words.startswith(("last ", "this ", "past ")) or words.endswith("last year")
        yearless = kind in _YEARLESS and not has_year and not relative
        yield Period(bounds, found.start(), found.end(), kind, relative, yearless)


def count(words: str) -> int:
    """Return the number that words such as "12", "three" or "a few" name."""
    if words.isdigit():
        return int(words)
    bare = re.sub(r"^an? (?=couple|few)", "", words)
    number: int = (_NUMBERS | _VAGUE)[bare]
    return number


def counted_units(words: str) -> list[tuple[int, str, bool]]:
    """Return the numbers and units of "1 month and 21 days ago", and whether each number is vague."""
    return [
        (count(found["number"]), unit_name(found["unit"]), count_is_vague(found["number"]))
        for found in _COUNTED.finditer(words)
    ]


def count_is_vague(words: str) -> bool:
    return re.search("couple|few|several", words) is not None


def unit_name(words: str) -> str:
    bare = words.removesuffix("s")
    return _UNITS.get(bare, bare)


def _year_in(words: str, now: datetime) -> int | None:
    found = re.search(_YEAR, words)
    return int(found[0]) if found else now.year - 1 if "last year" in words else None


def _iso(words: str, now: datetime) -> Bounds:
    return calendar.one_day(datetime(*map(int, re.split("[-/.]", words))))  # type: ignore[arg-type]


def _numeric(words: str, now: datetime) -> Bounds:
    """Read "21/04/2016", "4/22/2016", "13.5.2015": the month comes first unless it cannot, or dots are between."""
    first, second, year = map(int, re.split("[/.-]", words))
    if year < 100:
        year += 2000 if year <= (now.year + 1) % 100 else 1900
    day_first = first > 12 or "." in words
    return calendar.one_day(datetime(year, *((second, first) if day_first else (first, second))))


def _month_of(words: str) -> int:
    found = re.search(_MONTH, words)
    assert found is not None
    return MONTHS[found[0].rstrip(".")]


def _day_of(words: str) -> int:
    bare = re.sub(_YEAR, "", words)
    found = re.search(r"\d{1,2}", bare) or re.search(_SPELLED_DAY, bare)
    assert found is not None
    return int(found[0]) if found[0].isdigit() else ORDINALS[found[0].replace(" ", "-")]


def _date(words: str, now: datetime) -> Bounds:
    month, day, year = _month_of(words), _day_of(words), _year_in(words, now)
    return calendar.one_day(datetime(year, month, day) if year else calendar.latest(month, day, now))


def _days(words: str, now: datetime) -> Bounds:
    first, last = map(int, re.findall(r"\d+", re.sub(_YEAR, "", words)))
    month, year = _month_of(words), _year_in(words, now)
    start = datetime(year, month, first) if year else calendar.latest(month, first, now)
    return Bounds(start, start.replace(day=last) + calendar.DAY)


def _month(words: str, now: datetime) -> Bounds:
    number, year = _month_of(words), _year_in(words, now)
    return calendar.month(year or calendar.latest(number, 1, now).year, number)


def _year_month(words: str, now: datetime) -> Bounds:
    found = sorted((int(number) for number in re.findall(r"\d+", words)), reverse=True)
    return calendar.month(*found)


def _named_month(words: str, now: datetime) -> Bounds:
    """ "last May": the last one that is over; "this May": that of this year."""
    found = _month(words, now)
    if not words.startswith("this ") or words.startswith("this past "):
        return found if found.end <= now else calendar.month(found.start.year - 1, found.start.month)
    return calendar.month(now.year, found.start.month)


def _quarter(words: str, now: datetime) -> Bounds:
    found = re.search(r"q([1-4])|\b([1-4])(?:st|nd|rd|th)|(first|second|third|fourth|last)\b", words)
    assert found is not None
    name = found[1] or found[2]
    number = int(name) if name else 4 if found[3] == "last" else ORDINALS[found[3]]
    year = now.year if "this year" in words else _year_in(words, now)
    first = 3 * number - 2
    return calendar.month(year or calendar.latest(first, 1, now).year, first, 3)


def _half(words: str, now: datetime) -> Bounds:
    year = _year_in(words, now)
    return calendar.month(year or now.year, 7 if "h2" in words else 1, 6)


def _season(words: str, now: datetime) -> Bounds:
    found = re.search(_SEASON, words)
    assert found is not None
    bounds = calendar.season(found[0], now, _year_in(words, now))
    if words.startswith("last ") and bounds.end > now:
        return calendar.season(found[0], now, bounds.start.year - 1)
    return bounds


def _decade(words: str, now: datetime) -> Bounds:
    digits = re.sub(r"\D", "", words)
    year = int(digits) if len(digits) == 4 else int(digits) + (2000 if int(digits) <= now.year % 100 else 1900)
    return calendar.years(year, 10)


def _ago(words: str, now: datetime) -> Bounds:
    *larger, (number, unit, vague) = counted_units(words)
    for other, name, _ in larger:
        now = calendar.exactly_ago(other, name, now)
    if not vague:
        return calendar.units_ago(number, unit, now)
    return Bounds(
        calendar.units_ago(number + 1, unit, now).start, calendar.units_ago(max(number - 1, 1), unit, now).end
    )


def _until_now(words: str, now: datetime) -> Bounds:
    units = counted_units(words)
    if units:
        return calendar.until_now(units[0][0], units[0][1], now)
    return calendar.until_now(1, unit_name(words.split()[-1]), now)


def _relative_day(words: str, now: datetime) -> Bounds:
    if words.endswith("before yesterday"):
        return calendar.unit("day", now, 2)
    if words == "the other day":
        return Bounds(calendar.unit("day", now, 10).start, calendar.unit("day", now, 2).end)
    if words in ("yesterday", "last night"):
        bounds = calendar.unit("day", now, 1)
        return during(bounds, "night") if words == "last night" else bounds
    bounds = calendar.unit("day", now, 0)
    if words == "tonight":
        return during(bounds, "night")
    return during(bounds, words.split()[-1]) if words.startswith("this ") and words != "this day" else bounds


def during(day: Bounds, part_of_day: str) -> Bounds:
    """Return a part of a day, such as "morning" or "late night". A night goes on into the next day."""
    first: float
    last: float
    first, last = {
        "morning": (5, 12), "am": (0, 12), "noon": (11, 14), "midday": (11, 14), "afternoon": (12, 18), "pm": (12, 24),
        "evening": (17, 23), "night": (18, 28),
    }[re.split("[ -]", part_of_day)[-1]]  # fmt: skip
    if part_of_day.startswith(("early", "late")):
        middle = (first + last) / 2
        first, last = (first, middle) if part_of_day.startswith("early") else (middle, last)
    return Bounds(day.start + timedelta(hours=first), day.start + timedelta(hours=last))


def _unit(words: str, now: datetime) -> Bounds:
    name = words.removesuffix(" before last").split()[-1]
    if words.endswith("before last"):
        return calendar.unit(name, now, 2)
    if name == "weekend" and not words.startswith("this weekend"):
        ended = calendar.unit(name, now, 0)
        return ended if ended.start <= now and not words.startswith("last") else calendar.unit(name, now, 1)
    return calendar.unit(name, now, 0 if words.split()[0] in ("this", "current") and "past" not in words else 1)


def _weekday(words: str, now: datetime) -> Bounds:
    day = WEEKDAYS[words.split()[-1]]
    if words.startswith("this ") and "past" not in words:
        return calendar.nth_weekday(1, day, calendar.week_of(now))
    return calendar.weekday(day, now)


def _holiday(words: str, now: datetime) -> Bounds:
    plain = re.sub("(?<=year|tine)'?s?(?= |$)", "'s", words.replace("thanks giving", "thanksgiving"))
    name = next(name for name in calendar.HOLIDAYS if plain.startswith(name))
    return calendar.holiday(name, now, _year_in(words, now))


def _year(words: str, now: datetime) -> Bounds:
    return calendar.years(int(words))


def _years(words: str, now: datetime) -> Bounds:
    first, last = (int(year) for year in re.findall(_YEAR, words))
    return calendar.years(first, last + 1 - first)


def _slashes(words: str, now: datetime) -> Bounds:
    month, day = map(int, words.split("/"))
    return calendar.one_day(calendar.latest(month, day, now) if month <= 12 else calendar.latest(day, month, now))


def _day(words: str, now: datetime) -> Bounds:
    return calendar.day_of_month(_day_of(words), now)


_READERS: dict[str, Callable[[str, datetime], Bounds]] = {
    "iso": _iso,
    "numeric": _numeric,
    "year_month_day": _date,
    "days": _days,
    "day_month": _date,
    "month_day": _date,
    "month_year": _month,
    "year_month": _year_month,
    "quarter": _quarter,
    "half": _half,
    "season": _season,
    "decade": _decade,
    "ago": _ago,
    "until_now": _until_now,
    "relative_day": _relative_day,
    "unit": _unit,
    "named_month": _named_month,
    "weekday": _weekday,
    "short_weekday": _weekday,
    "holiday": _holiday,
    "month": _month,
    "year": _year,
    "years": _years,
    "slashes": _slashes,
    "day": _day,
}
_RELATIVE = ("ago", "until_now", "relative_day", "unit", "named_month", "weekday", "short_weekday")
_YEARLESS = ("days", "day_month", "month_day", "weak_month", "holiday", "weak_quarter", "weak_slashes", "season")
