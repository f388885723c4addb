"""Detect phone numbers: in international form anywhere, in national form after a word for phones or in a notation that
only phone numbers have. phonenumbers validates them, except those that the text calls phone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from .findings import Finding
from .libraries import require_library

REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "CN", "JP", "IN", "BR", "AU", "CH", "AT", "PL", "SE", "RU")
"""Countries whose national numbers are recognized."""

_RUN = re.compile(
    r"(?<![0-9A-Za-z_.+/#-])(?<![0-9]:)(?<![0-9][,:])"
    r"(?:\+|00|\()?\(?[0-9](?:[ .()/\u00a0-]{0,3}[0-9]){6,15}"
    r"(?![0-9A-WYZa-wyz_]|[,:/-][0-9]|[xX](?![0-9]{1,6}(?![0-9A-Za-z_])))"
)
_ABROAD = re.compile(r"\+|00[1-9]")
_FORMED = re.compile(r"\([2-9][0-9]{2}\) ?[0-9]{3}[-. ][0-9]{4}|[2-9][0-9]{2}([-.])[0-9]{3}\1[0-9]{4}")
_PHONE = (
    r"(?:\b(?:tele|cell|mobile)?[ _-]?phone?s?(?![a-z])|\btel\b|telefo+n|téléphone|puhelin|tel[ée]fono|"
    r"\bmobile?\b|m[óo]vil|\bhandy\b|\bfax\b|whatsapp|\bsms\b|anrufen|celular|numero di tel|"
    r"\bcall (?:me|us|him|her|them|back)\b|"
    r"\b(?:call|dial|ring) (?:at|on)\b|电话|手机|電話|携帯|전화|телеф|\bтел\b|फ़ोन)"
)
_CALL = r"(?:\bcell|\bcall\b|\bdial\b|\bruf|ll[áa]ma|ligar|звон|номер|नंबर)"
_NEAR = re.compile(rf"(?:{_PHONE}|{_CALL})[^0-9]{{0,24}}$", re.IGNORECASE)
"""A word for phones, or one for calls and cells, which has other meanings too."""
_NAMED = re.compile(
    _PHONE + r"(?:[\s:：=.,\"'#()/>_-]|\b(?:is|are|was|at|on|my|me|number|numbers?|no|nr|num|nummer|n[uú]m[eé]ro|ist|"
    r"lautet|est|es|è|é|jest|unter)\b|номер[а-я]*|号码?|是|は|番号|번호|는|नंबर|है){0,10}$",
    re.IGNORECASE,
)
"""A word for a phone with nothing but words for "number" and "is" between it and the digits."""
_AFTER = re.compile(r"[ -]{0,2}(?:\(?(?:office|fax|mobile|cell|home|work|phone|tel)\b)", re.IGNORECASE)
_MEASURE = re.compile(
    r"\s?(?:[nmµu]s|s|secs?|seconds?|milliseconds?|nanoseconds?|bytes?|[kMGT]i?B|rows?|times|tokens?|items?|px|%|€|\$)"
    r"(?!\w)"
)
_WRITTEN = re.compile(r"^[+0(]|[0-9][ .()/\u00a0-]{1,3}[0-9]")
"""How phone numbers are written and counts are not: +, 0 or a bracket first, or in groups."""
_EXTENSION = re.compile(r" ?(?:x|ext\.? ?)[0-9]{1,6}(?![0-9A-Za-z_])")
_DATE = re.compile(
    r"(?:19|20)[0-9]{2}[-./ ](?:0?[1-9]|1[0-2])[-./ ][0-3]?[0-9]|[0-3]?[0-9][-./][01]?[0-9][-./](?:19|20)[0-9]{2}"
)

_YEARS = re.compile(r"(?:19|20)[0-9]{2}[-/ ]{1,3}(?:19|20)[0-9]{2}(?![0-9])")


def phones(text: str, start: int = 0, end: int | None = None, *, regions: Sequence[str] = REGIONS) -> Iterator[Finding]:
    for match in _RUN.finditer(text, start, len(text) if end is None else end):
        run = match.group()
        if _DATE.match(run) or _YEARS.match(run) or _MEASURE.match(text, match.end()):
            continue
        before = max(0, match.start() - 40)
        named = _NAMED.search(text, before, match.start()) or (_AFTER.match(text, match.end()) and _WRITTEN.search(run))
        if _ABROAD.match(run) or _FORMED.fullmatch(run):
            yield from _longest(text, match.start(), match.end(), ("US",), named is not None)
        elif named:
            yield from _longest(text, match.start(), match.end(), regions, True)
        elif _WRITTEN.search(run) and _NEAR.search(text, before, match.start()):
            yield from _longest(text, match.start(), match.end(), regions, False)


def _longest(text: str, start: int, end: int, regions: Sequence[str], named: bool) -> Iterator[Finding]:
    """Yield the longest prefix of the run that is a valid number; after a blank another may begin. If `named`, a number
    need not be valid."""
    whole = end
    while end - start >= 7:
        written = text[start:end]
        if written.count("(") == written.count(")"):
            number = _normalize(written, regions)
            if number is not None:
                yield _phone_finding(text, start, end, number)
                return
        end = text.rfind(" ", start, end)
    written = text[start:whole]
    digits = re.sub("[^0-9]", "", written)
    closed = written.count("(") == written.count(")")
    if closed and (named or written.startswith("+")) and _LEAST <= len(digits) <= _MOST:
        yield _phone_finding(text, start, whole, digits)


def _phone_finding(text: str, start: int, end: int, number: str) -> Finding:
    extension = _EXTENSION.match(text, end)
    return Finding(start, extension.end() if extension else end, "phone", "phone", number)


_LEAST, _MOST = 7, 15


def _normalize(written: str, regions: Sequence[str]) -> str | None:
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
    require_library()
    import phonenumbers

    return phonenumbers
