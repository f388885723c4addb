"""Detect payment cards, bank accounts and national ids by their check digits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from .findings import Finding
from .libraries import require_library

# Cards

_CARD = re.compile(
    r"(?<![0-9A-Za-z_.+/-])[0-9]{4}"
    r"(?:([ -])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?|([ -])[0-9]{6}\2[0-9]{4,5}|[0-9]{8,15})"
    r"(?![0-9A-Za-z_]|[.-][0-9A-Za-z])"
)
_ISSUERS: tuple[tuple[str, int, int, tuple[int, ...]], ...] = (  # name, first and last prefix of six digits, lengths
    ("visa", 400000, 499999, (16,)),
    ("mastercard", 510000, 559999, (16,)),
    ("mastercard", 222100, 272099, (16,)),
    ("amex", 340000, 349999, (15,)),
    ("amex", 370000, 379999, (15,)),
    ("discover", 601100, 601199, (16,)),
    ("discover", 644000, 659999, (16,)),
    ("jcb", 352800, 358999, (16,)),
    ("diners", 300000, 305999, (14,)),
    ("diners", 360000, 369999, (14,)),
    ("diners", 380000, 399999, (14,)),
    ("unionpay", 620000, 629999, (16, 17, 18, 19)),
    ("maestro", 500000, 509999, (16,)),
    ("mir", 220000, 220499, (16,)),
)
_CARD_WORD = re.compile(r"(?:\b(?:card|cc|credit|visa|mastercard|pan)\b|karte|carte|tarjeta)[^0-9]{0,16}$", re.I)
_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_OTHER_NUMBER = re.compile(
    r"(?:order|tracking|invoice|offset|trace|bestell\w*|commande|pedido|\bid|_id|seq|timestamp|nonce|size|bytes)"
    r"\W*(?:n\w*\W*)?$|[\"']\s*:\s*$",  # a number in JSON is a number, unless its key speaks of cards
    re.I,
)


def luhn(digits: str) -> bool:
    numbers = [int(digit) for digit in reversed(digits)]
    return (sum(numbers[::2]) + sum(_DOUBLED[number] for number in numbers[1::2])) % 10 == 0


def cards(text: str, start: int = 0, end: int | None = None) -> Iterator[Finding]:
    for match in _CARD.finditer(text, start, len(text) if end is None else end):
        digits = re.sub(r"[ -]", "", match.group())
        prefix, size = int(digits[:6]), len(digits)
        issuers = (name for name, low, high, sizes in _ISSUERS if low <= prefix <= high and size in sizes)
        issuer = next(issuers, None)
        if issuer is None and _CARD_WORD.search(text, max(0, match.start() - 24), match.start()):
            issuer = "card"  # an old or rare length, but with a word for cards and a valid check digit
        if issuer is None or not luhn(digits) or len(set(digits)) == 1:
            continue
        before = max(0, match.start() - 24)
        if _OTHER_NUMBER.search(text, before, match.start()) and not _CARD_WORD.search(text, before, match.start()):
            continue
        yield Finding(match.start(), match.end(), "card", issuer, digits)


# Bank accounts

_IBAN = re.compile(
    r"[A-Z](?<![0-9A-Za-z].)[A-Z][0-9]{2}"
    r"(?:[A-Z0-9]{11,30}|(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,4})?)(?![0-9A-Za-z])"
)


def ibans(text: str) -> Iterator[Finding]:
    for match in _IBAN.finditer(text):
        end = match.end()
        while end > match.start() + 14:  # a word in capitals may follow the groups
            written = text[match.start() : end]
            if _stdnum("iban").is_valid(written, check_country=False):
                yield Finding(match.start(), end, "iban", written[:2], re.sub(r"[ -]", "", written))
                break
            end = max(text.rfind(" ", match.start(), end), text.rfind("-", match.start(), end))


# National ids


class NationalId(NamedTuple):
    """The stdnum module that checks numbers of this form, and words that must be near if the check is too weak."""

    module: str
    form: re.Pattern[str]
    words: re.Pattern[str] | None


def _id(module: str, form: str, words: str | None = None) -> NationalId:
    return NationalId(module, re.compile(form), None if words is None else re.compile(words, re.IGNORECASE))


_IDS = (
    _id("es.dni", r"[0-9]{8}-?[A-Z]"),
    _id("es.nie", r"[XYZ]-?[0-9]{7}-?[A-Z]"),
    _id("it.codicefiscale", r"[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]"),
    _id("mx.curp", r"[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9]"),
    _id("br.cpf", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}"),
    _id("br.cpf", r"[0-9]{11}", r"\bcpf\b"),
    _id("ch.ssn", r"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}"),
    _id("fi.hetu", r"[0-9]{6}[-+A-FU-Y][0-9]{3}[0-9A-Z]"),
    _id("cn.ric", r"[0-9]{17}[0-9X]"),
    _id("", r"[0-9]{17}[0-9X]", r"身份[证證]"),
    _id("be.nn", r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}"),
    _id("be.nn", r"[0-9]{11}", r"rijksregister|registre national|\bnrn\b|\binsz\b"),
    _id("cl.rut", r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9K]"),
    _id("fr.nir", r"[12] [0-9]{2} [0-9]{2} [0-9]{2} [0-9]{3} [0-9]{3} [0-9]{2}"),
    _id("fr.nir", r"[12][0-9]{14}", r"\bnir\b|s[ée]curit[ée] sociale|\binsee\b|num[ée]ro de s[ée]cu"),
    _id("us.ssn", r"[0-9]{3}-[0-9]{2}-[0-9]{4}"),  # has no check digit, but nothing else is written so
    _id("us.ssn", r"[0-9]{3} ?[0-9]{2} ?[0-9]{4}|[0-9]{3}-[0-9]{6}|[0-9]{5}-[0-9]{4}", r"\bssn\b|social.?security"),
    _id("us.itin", r"9[0-9]{2}-[0-9]{2}-[0-9]{4}", r"\bitin\b"),
    _id("ca.sin", r"[0-9]{3}[- ]?[0-9]{3}[- ]?[0-9]{3}", r"\bsin\b|social.?insurance"),
    _id("gb.nhs", r"[0-9]{3}[- ]?[0-9]{3}[- ]?[0-9]{4}", r"\bnhs\b"),
    _id("pl.pesel", r"[0-9]{11}", r"pesel"),
    _id("nl.bsn", r"[0-9]{4}\.?[0-9]{2}\.?[0-9]{3}", r"\bbsn\b|burgerservice"),
    _id("de.idnr", r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", r"steuer|idnr|identifikationsnummer|tax.?id"),
    _id("se.personnummer", r"(?:[0-9]{2})?[0-9]{6}[-+]?[0-9]{4}", r"person(?:al )?n|samordning|\bpnr\b"),
    _id("no.fodselsnummer", r"[0-9]{6} ?[0-9]{5}", r"f[øo]dselsnummer|personnummer|\bfnr\b"),
    _id("dk.cpr", r"[0-9]{6}-?[0-9]{4}", r"\bcpr\b"),
    _id("in_.aadhaar", r"[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}", r"aadh?aa?r|\buidai\b|आधार"),
    _id("tr.tckimlik", r"[0-9]{11}", r"kimlik|\btckn\b"),
    _id("cz.rc", r"[0-9]{6}/?[0-9]{3,4}", r"rodn[ée]|\br[čc]\b"),
    _id("ro.cnp", r"[0-9]{13}", r"\bcnp\b"),
    _id("za.idnr", r"[0-9]{13}", r"\bid(?:entity)? n|south afric"),
    _id("kr.rrn", r"[0-9]{6}-[0-9]{7}"),
    _id("", r"[0-9]{6}-?[0-9]{7}", r"주민|\brrn\b"),  # those given out since 2020 have no check digit
    _id("au.tfn", r"[0-9]{3} ?[0-9]{3} ?[0-9]{2,3}", r"\btfn\b|tax file"),
    _id("jp.in_", r"[0-9]{4} ?[0-9]{4} ?[0-9]{4}", r"マイナンバー|個人番号|my.?number"),
    _id("pt.cc", r"[0-9]{8} ?[0-9] ?[A-Z0-9]{2}[0-9]", r"cart[ãa]o de cidad[ãa]o"),
)
_NEAR, _BEHIND = 40, 20  # characters before and after a number in which such a word counts
_RUN = re.compile(
    r"(?<![0-9A-Za-z_])(?:[XYZ]-?)?[0-9](?:[ .+/-]?[0-9]){6,17}(?:[-A-FU-Y]?[0-9]{0,3}-?[0-9A-Z])?(?![0-9A-Za-z_])"
)
_LETTERED = re.compile(r"[A-Z](?<![0-9A-Za-z_].)[A-Z]{3}(?:[A-Z]{2}[0-9]{2}|[0-9]{6})[A-Z0-9]{8}(?![0-9A-Za-z_])")
_SPLIT = re.compile(r"[A-FU-Y](?<=[0-9]{6}.)[0-9]{3}[0-9A-Y](?![0-9A-Za-z_])")
_FINNISH = re.compile(r"(?<![0-9A-Za-z_])[0-9]{6}[A-FU-Y][0-9]{3}[0-9A-Y]")
_DAY = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")


def national_ids(text: str, start: int = 0, end: int | None = None) -> Iterator[Finding]:
    """Yield ids that are numbers, perhaps with a letter at an end."""
    for match in _RUN.finditer(text, start, len(text) if end is None else end):
        before = text[max(0, match.start() - 2) : match.start()]
        if before[-1:] not in ("-", ".", "/", "#") or not before[:1].isalnum():  # the end of something longer
            yield from _check_id(text, match)


def lettered_ids(text: str) -> Iterator[Finding]:
    """Yield ids that are mostly letters, or have one in the middle."""
    for match in _LETTERED.finditer(text):
        yield from _check_id(text, match)
    for letter in _SPLIT.finditer(text):
        if finnish := _FINNISH.match(text, letter.start() - 6):
            yield from _check_id(text, finnish)


def _check_id(text: str, match: re.Match[str]) -> Iterator[Finding]:
    number = match.group()
    for country in _IDS:
        if not country.form.fullmatch(number):
            continue
        if country.words is None:
            if country.module == "es.dni" and _DAY.match(number):
                continue
        elif not (
            country.words.search(text, max(0, match.start() - _NEAR), match.start())
            or country.words.search(text, match.end(), match.end() + _BEHIND)
        ):
            continue
        if not country.module or _stdnum(country.module).is_valid(number):
            canonical = re.sub(r"[ ./-]", "", number)
            yield Finding(match.start(), match.end(), "national_id", country.module or "named", canonical)
            return


@cache
def _stdnum(module: str) -> ModuleType:
    require_library()
    return import_module(f"stdnum.{module}")
