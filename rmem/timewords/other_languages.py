"""Times in other languages than English: "gestern", "il y a trois jours", "上周", "7 мая 2023".

The phrases are those of Unicode CLDR (`phrases.tsv`, written by training/time_phrases.py). A language is compiled when
a question first contains one of its words."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import calendar
from .calendar import Bounds, Reading

_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_DATE_MARKS = {"ja": "年月", "zh": "年月", "ko": "년월"}  # languages without blanks, and how they mark a date
_CJK_NUMBER = "[一二三四五六七八九十〇零]{1,3}"
_DIGITS = dict(zip("〇零一二三四五六七八九", (0, 0, *range(1, 10)), strict=True))
_WEEKDAYS_HAVE_OTHER_MEANINGS = ("ru", "uk", "pl", "tr")  # среда: Wednesday, and an environment
_IN = {"de": "im|seit", "fr": "en", "es": "en", "it": "a|in", "pt": "em", "nl": "in", "sv": "i"}  # before a month
_ENGLISH = frozenset("april august september november mars an a on in second".split())
_GERMAN = re.compile(r"\b(?:ich|was|ist|der|die|das|und|wir|haben|habe|hat|nicht|ein|eine|wie|wo|wer|gibt|wird|im)\b")


_MONTH_AND_DAY = rf"(?P<month>\d{{1,2}}|{_CJK_NUMBER}) ?[月월](?:の? ?(?P<day>\d{{1,2}}|{_CJK_NUMBER}) ?[日号號일])"
_MARKED_DATES = (
    rf"(?P<year>(?:19|20)\d\d) ?[年년]の? ?(?:{_MONTH_AND_DAY}?)?"
    rf"|{_MONTH_AND_DAY.replace('month', 'month_2').replace('day', 'day_2')}"
)


class _Language(NamedTuple):
    keys: frozenset[str]
    """Words of which one is in every phrase."""
    rows: list[tuple[str, str]]
    """What a phrase means, and the phrase."""


def find_phrase(text: str, now: datetime) -> Reading | None:
    """Return the first time in a text in lower case with single blanks."""
    words = set(re.findall(r"[\w'-]+", text))
    found = []
    for name, language in _languages().items():
        if name in _DATE_MARKS:
            if text.isascii() or not any(key in text for key in (*language.keys, *_DATE_MARKS[name])):
                continue
        elif words.isdisjoint(language.keys):
            continue
        for match in _pattern(name).finditer(text):
            if match[0] != "hier" or not _GERMAN.search(text):
                found.append((_is_weekday(name, match), match.start(), -match.end(), name, match))
    for *_, name, match in sorted(found, key=lambda one: one[:3]):
        try:
            return _read(name, match, now)
        except (ValueError, OverflowError):
            continue
    return None


def _is_weekday(language: str, match: re.Match[str]) -> bool:
    """Whether a match is a weekday alone, which may belong to a date."""
    return match.lastgroup == "said" and _meanings(language)[match[0]].startswith("weekday")


@cache
def _languages() -> dict[str, _Language]:
    rows: dict[str, list[tuple[str, str]]] = {}
    for line in Path(__file__).with_name("phrases.tsv").read_text("utf-8").splitlines():
        language, meaning, phrase = line.split("\t")
        rows.setdefault(language, []).append((meaning, phrase))
    return {
        name: _Language(frozenset(_key(phrase) for meaning, phrase in said if "number" not in meaning) - _ENGLISH, said)
        for name, said in rows.items()
    }


def _key(phrase: str) -> str:
    """Return the most telling word of a phrase."""
    parts = phrase.replace("{0}", " ").split()
    return max(parts, key=len) if parts else phrase


@cache
def _meanings(language: str) -> dict[str, str]:
    return {phrase: meaning for meaning, phrase in _languages()[language].rows}


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """Return one pattern for all times in a language."""
    rows = _languages()[language].rows
    joined = language in _DATE_MARKS
    kinds: dict[str, list[str]] = {}
    for meaning, phrase in rows:
        kinds.setdefault(meaning.split()[0], []).append(phrase)
    if language in _WEEKDAYS_HAVE_OTHER_MEANINGS:
        kinds["weekday"] = []
    number = rf"(?:\d{{1,4}}|{_any(kinds['number'])})"
    ago = "|".join(
        re.escape(phrase).replace(r"\{0\}", f" ?{number} ?").replace(r"\ ", " ?" if joined else " ").replace("  ?", " ")
        for phrase in sorted(kinds["ago"], key=len, reverse=True)
    )
    said = _any([*kinds["unit"], *kinds["last"], *kinds["weekday"]])
    months = _any(kinds["month"])
    named_dates = (
        rf"(?P<day>\d{{1,2}})(?:\. ?|er |º | )(?:de |d')?(?P<name>{months})(?:,? (?:de |del )?{_YEAR})?"
        rf"|(?P<name_2>{months}),? (?:de |del )?{_YEAR.replace('year', 'year_2')}"
        + (rf"|(?<!\w)(?:{_IN[language]}) (?P<name_3>{months})" if language in _IN else "")
    )
    dates = _MARKED_DATES if joined else named_dates
    whole = rf"(?P<ago>{ago})|(?P<date>{dates})|(?P<said>{said})"
    if language == "zh":
        return re.compile(f"(?<![上大])(?:{whole})")  # 上上周 is the week before last
    return re.compile(whole if joined else rf"(?<![\w-])(?:{whole})(?![\w-])")


def _any(phrases: list[str]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(set(phrases), key=len, reverse=True)) or "(?!)"


def _read(language: str, match: re.Match[str], now: datetime) -> Reading:
    bounds, relative, yearless = _READERS[match.lastgroup or ""](language, match, now)
    return Reading(bounds, match.start(), match.end(), relative, yearless)


def _ago(language: str, match: re.Match[str], now: datetime) -> tuple[Bounds, bool, bool]:
    words = match["ago"]
    meanings = _meanings(language)
    for phrase, meaning in meanings.items():
        if not meaning.startswith("ago"):
            continue
        before, _, after = (part.replace(" ", "") for part in phrase.partition("{0}"))
        bare = words.replace(" ", "")
        if "{0}" not in phrase and bare == before:
            _, unit, number = meaning.split()
            return calendar.units_ago(int(number), unit, now), True, False
        inside = bare[len(before) : len(bare) - len(after)]
        if "{0}" in phrase and bare.startswith(before) and bare.endswith(after) and inside:
            if inside.isdigit():
                return calendar.units_ago(int(inside), meaning.split()[1], now), True, False
            if (named := meanings.get(inside, "")).startswith("number"):
                return calendar.units_ago(int(named.split()[1]), meaning.split()[1], now), True, False
    raise ValueError(words)


def _said(language: str, match: re.Match[str], now: datetime) -> tuple[Bounds, bool, bool]:
    kind, *rest = _meanings(language)[match["said"]].split()
    if kind == "unit":
        return calendar.unit(rest[0], now, int(rest[1])), True, False
    if kind == "last" and language in _DATE_MARKS:  # 上周一 is the Monday of last week
        return calendar.nth_weekday(1, int(rest[0]), calendar.unit("week", now, 1)), True, False
    return calendar.weekday(int(rest[0]), now), True, False


def _number(words: str) -> int:
    """Read "21" or "二十一"."""
    if words.isdigit() and words.isascii():
        return int(words)
    tens, ten, ones = words.rpartition("十")
    number: int = (10 * _DIGITS.get(tens, 1) if ten else 0) + _DIGITS.get(ones, 0)
    return number


def _date(language: str, match: re.Match[str], now: datetime) -> tuple[Bounds, bool, bool]:
    found = {name.partition("_")[0]: text for name, text in match.groupdict().items() if text is not None}
    month = int(_meanings(language)[found["name"]].split()[1]) if "name" in found else _number(found.get("month", "0"))
    year, day = int(found.get("year", 0)), _number(found.get("day", "0"))
    if not month:
        return calendar.years(year), False, False
    if not year:
        start = calendar.latest(month, day or 1, now)
        return calendar.one_day(start) if day else calendar.month(start.year, month), False, True
    return calendar.one_day(datetime(year, month, day)) if day else calendar.month(year, month), False, False


_READERS: dict[str, Callable[[str, re.Match[str], datetime], tuple[Bounds, bool, bool]]] = {
    "ago": _ago,
    "said": _said,
    "date": _date,
}
