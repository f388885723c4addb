"""Phone numbers, judged by phonenumbers: in international form anywhere, in national form next to a word that speaks
of phones or in the way that only phone numbers are written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from .findings import Finding
from .libraries import missing

REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "CN", "JP", "IN", "BR", "AU", "CH", "AT", "PL", "SE", "RU")
"""Countries whose national numbers are understood."""

_RUN = re.compile(
    r"(?<![0-9A-Za-z_.+/#-])(?<![0-9]:)(?<![0-9][,:])"
    r"(?:\+|00|\()?\(?[0-9](?:[ .()/\u00a0-]{0,3}[0-9]){6,15}(?![0-9A-Za-z_]|[,:/-][0-9])"
)
_ABROAD = re.compile(r"\+|00[1-9]")
_FORMED = re.compile(r"\([2-9][0-9]{2}\) ?[0-9]{3}[-. ][0-9]{4}|[2-9][0-9]{2}([-.])[0-9]{3}\1[0-9]{4}")
_SPEAKS_OF_PHONES = re.compile(
    r"(?:\b(?:tele)?phone?s?\b|\btel\b|telefon|téléphone|telephone|tel[ée]fono|\bmobile?\b|m[óo]vil|\bcell|\bhandy\b|"
    r"\bfax\b|\bcall\b|\bdial\b|whatsapp|\bsms\b|\bruf|anrufen|ll[áa]ma|numero di tel|ligar|celular|"
    r"电话|手机|電話|携帯|전화|звон|телеф|\bтел\b|номер|नंबर|फ़ोन)[^0-9]{0,24}$",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?:19|20)[0-9]{2}[-./ ](?:0?[1-9]|1[0-2])[-./ ][0-3]?[0-9]|[0-3]?[0-9][-./][01]?[0-9][-./](?:19|20)[0-9]{2}"
)

_YEARS = re.compile(r"(?:19|20)[0-9]{2}[-/ ]{1,3}(?:19|20)[0-9]{2}(?![0-9])")


def phones(text: str, start: int = 0, end: int | None = None, *, regions: Sequence[str] = REGIONS) -> Iterator[Finding]:
    for found in _RUN.finditer(text, start, len(text) if end is None else end):
        run = found.group()
        if _DATE.match(run) or _YEARS.match(run):
            continue
        abroad = _ABROAD.match(run)
        if not abroad and not _FORMED.fullmatch(run):
            if not _SPEAKS_OF_PHONES.search(text, max(0, found.start() - 40), found.start()):
                continue
            tried: Sequence[str] = regions
        else:
            tried = ("US",)
        yield from _longest(text, found.start(), found.end(), tried)


def _longest(text: str, start: int, end: int, regions: Sequence[str]) -> Iterator[Finding]:
    """The longest beginning of the run that is a number; what follows a blank may be another one."""
    while end - start >= 7:
        written = text[start:end]
        if written.count("(") == written.count(")"):
            number = _valid(written, regions)
            if number is not None:
                yield Finding(start, end, "phone", "phone", number)
                return
        end = text.rfind(" ", start, end)


def _valid(written: str, regions: Sequence[str]) -> str | None:
    library = _phonenumbers()
    plain = written.replace("(0)", "") if written.startswith(("+", "00")) else written
    if plain.startswith("00"):
        plain = "+" + plain[2:]
    for region in regions:
        try:
            number = library.parse(plain, region)
        except library.NumberParseException:
            continue
        if library.is_valid_number(number):
            return str(library.format_number(number, library.PhoneNumberFormat.E164))
    return None


@cache
def _phonenumbers() -> Any:
    try:
        import phonenumbers
    except ImportError:
        raise missing("phonenumbers") from None
    return phonenumbers
