"""Made-up values that have the form of real ones, and the labelled lines that are built with them.

Keys are put together from pieces when they are asked for, so that no scanner of a hosting site mistakes this file for
a leak. The same seed makes the same values."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from ..errors import InputError
from .findings import KINDS
from .numbers import luhn

_ALNUM = string.ascii_letters + string.digits
_URLSAFE = _ALNUM + "-_"
_BASE64 = _ALNUM + "+/"
_HEX = "0123456789abcdef"


class Labelled(NamedTuple):
    """A line, where it is in its file, and what there is to find in it: (start, end, kind)."""

    number: int
    source: str
    text: str
    spans: tuple[tuple[int, int, str], ...]
    held_out: bool


_MARK = re.compile(r"\{\{(" + "|".join(KINDS) + r")([|:])(.*?)\}\}", re.DOTALL)


def read_labelled(path: str | Path, seed: int = 0) -> Iterator[Labelled]:
    """The lines of a labelled file: `source<TAB>text`, in which {{kind|value}} or {{kind:maker}} marks what is to be
    found. Every third line is held out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}", field="file") from None
    count = 0
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        source, tab, marked = line.partition("\t")
        if not tab:
            raise InputError(f"{path}, line {number}: a line must be SOURCE<TAB>TEXT", field="file")
        text, spans = assembled(_unescaped(marked), Random(f"{seed}-{number}"), f"{path}, line {number}")
        yield Labelled(number, source, text, spans, count % 3 == 2)
        count += 1


def _unescaped(text: str) -> str:
    return re.sub(r"\\([nt\\])", lambda found: {"n": "\n", "t": "\t", "\\": "\\"}[found.group(1)], text)


def assembled(marked: str, random: Random, where: str) -> tuple[str, tuple[tuple[int, int, str], ...]]:
    text, spans, at = "", [], 0
    for found in _MARK.finditer(marked):
        text += marked[at : found.start()]
        kind, how, told = found.groups()
        if how == ":" and f"{kind}:{told}" not in MAKERS:
            raise InputError(f"{where}: there is no maker {kind}:{told}", field="file")
        value = told if how == "|" else MAKERS[f"{kind}:{told}"](random)
        spans.append((len(text), len(text) + len(value), kind))
        text += value
        at = found.end()
    return text + marked[at:], tuple(spans)


# Makers

Maker = Callable[[Random], str]


def _some(random: Random, letters: str, count: int) -> str:
    """Letters that are really mixed: a token without a digit would be an accident."""
    while True:
        value = "".join(random.choices(letters, k=count))
        if count < 8 or (any(c.isdigit() for c in value) and any(c.isalpha() for c in value)):
            return value


def _prefixed(prefix: str, letters: str, count: int, suffix: str = "") -> Maker:
    return lambda random: prefix + _some(random, letters, count) + suffix


def _card(prefix: str, size: int, groups: tuple[int, ...] = (), mark: str = " ") -> Maker:
    def make(random: Random) -> str:
        body = prefix + "".join(random.choices(string.digits, k=size - 1 - len(prefix)))
        digits = next(body + last for last in string.digits if luhn(body + last))
        if not groups:
            return digits
        ends = [sum(groups[: at + 1]) for at in range(len(groups))]
        return mark.join(digits[end - group : end] for group, end in zip(groups, ends, strict=True))

    return make


_ACCOUNTS = {  # the bank part is fixed where a country checks it
    "DE": "37040044" + "#" * 10, "FR": None, "NL": None, "ES": None, "GB": "NWBK" + "#" * 14, "IT": None,
    "AT": "19043" + "#" * 11, "CH": "00762" + "#" * 12, "BE": None, "PL": None, "SE": "#" * 20, "DK": "0040" + "#" * 10,
}  # fmt: skip
_EXAMPLES = {  # the examples of the banks' own documents, for countries with inner check digits
    "FR": "FR1420041010050500013M02606", "NL": "NL91ABNA0417164300", "ES": "ES9121000418450200051332",
    "IT": "IT60X0542811101000000123456", "BE": "BE68539007547034", "PL": "PL61109010140000071219812874",
    "SE": "SE4550000000058398257466", "DK": "DK5000400440116243",
}  # fmt: skip


def _iban(country: str, grouped: bool) -> Maker:
    def make(random: Random) -> str:
        pattern = _ACCOUNTS[country]
        if country in _EXAMPLES or pattern is None:
            iban = _EXAMPLES[country]
        else:
            body = re.sub("#", lambda _: random.choice(string.digits), pattern)
            number = int("".join(str(int(one, 36)) for one in f"{body}{country}00"))
            iban = f"{country}{98 - number % 97:02d}{body}"
        return " ".join(iban[at : at + 4] for at in range(0, len(iban), 4)) if grouped else iban

    return make


def _jwt(random: Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    head, body = {"alg": "HS256", "typ": "JWT"}, {"sub": str(random.randrange(10**9)), "iat": 1763206364}
    return f"{part(head)}.{part(body)}.{_some(random, _URLSAFE, 43)}"


def _basic(random: Random) -> str:
    return base64.b64encode(f"svc:{_some(random, _ALNUM, 12)}".encode()).decode()


def _pem(
    label: str, *, line: str = "\n", indent: str = "", head: str = "", whole: bool = True, lines: int = 6
) -> Maker:
    def make(random: Random) -> str:
        rows = [_some(random, _BASE64, 64) for _ in range(lines)] + [_some(random, _BASE64, 30) + "=="]
        rows = [f"-----BEGIN {label}-----", *([head] if head else []), *rows]
        if whole:
            rows.append(f"-----END {label}-----")
        text = line.join(f"{indent}{row}" for row in rows)
        return text.removeprefix(indent) if indent else text

    return make


_PRIVATE = "PRIVATE " + "KEY"
_FOUR = (4, 4, 4, 4)
MAKERS: dict[str, Maker] = {
    "secret:aws_key": _prefixed("AKI" + "A", string.ascii_uppercase + "234567", 16),
    "secret:aws_secret": _prefixed("", _BASE64, 40),
    "secret:github_pat": _prefixed("gh" + "p_", _ALNUM, 36),
    "secret:github_oauth": _prefixed("gh" + "o_", _ALNUM, 36),
    "secret:github_app": _prefixed("gh" + "s_", _ALNUM, 36),
    "secret:github_fine": lambda random: f"github_{'pat'}_{_some(random, _ALNUM, 22)}_{_some(random, _ALNUM, 59)}",
    "secret:gitlab": _prefixed("gl" + "pat-", _ALNUM, 20),
    "secret:slack_bot": lambda random: (
        f"xo{'xb'}-{random.randrange(10**11, 10**12)}-{random.randrange(10**12)}-{_some(random, _ALNUM, 24)}"
    ),
    "secret:slack_webhook": lambda random: (
        "https://hooks.slack" + f".com/services/T{_some(random, string.ascii_uppercase + '0123456789', 8)}"
        f"/B{_some(random, string.ascii_uppercase + '0123456789', 8)}/{_some(random, _ALNUM, 24)}"
    ),
    "secret:stripe_live": _prefixed("sk_" + "live_", _ALNUM, 24),
    "secret:stripe_test": _prefixed("sk_" + "test_", _ALNUM, 24),
    "secret:google_api": _prefixed("AI" + "za", _URLSAFE, 34, "x"),
    "secret:google_client": _prefixed("GOC" + "SPX-", _URLSAFE, 27, "x"),
    "secret:google_oauth": _prefixed("ya" + "29.", _URLSAFE, 60, "x"),
    "secret:openai": _prefixed("sk" + "-", _ALNUM, 48),
    "secret:openai_project": _prefixed("sk" + "-proj-", _URLSAFE, 80, "x"),
    "secret:anthropic": _prefixed("sk" + "-ant-api03-", _URLSAFE, 93, "AA"),
    "secret:npm": _prefixed("np" + "m_", _ALNUM, 36),
    "secret:pypi": _prefixed("pyp" + "i-AgEIcHlwaS5vcmc", _URLSAFE, 90, "x"),
    "secret:jwt": _jwt,
    "secret:sendgrid": lambda random: f"S{'G'}.{_some(random, _ALNUM, 22)}.{_some(random, _ALNUM, 43)}",
    "secret:twilio_key": _prefixed("S" + "K", _HEX, 32),
    "secret:telegram": lambda random: f"{random.randrange(10**9, 10**10)}:A{'A'}{_some(random, _ALNUM, 33)}",
    "secret:discord": lambda random: (
        f"M{_some(random, _ALNUM, 23)}.{_some(random, _ALNUM, 6)}.{_some(random, _ALNUM, 27)}"
    ),
    "secret:huggingface": _prefixed("h" + "f_", _ALNUM, 34),
    "secret:digitalocean": _prefixed("do" + "p_v1_", _HEX, 64),
    "secret:azure_storage": _prefixed("", _BASE64, 86, "=="),
    "secret:mailgun": _prefixed("ke" + "y-", _HEX, 32),
    "secret:mailchimp": _prefixed("", _HEX, 32, "-us" + "12"),
    "secret:shopify": _prefixed("shp" + "at_", _HEX, 32),
    "secret:vault": _prefixed("hv" + "s.", _ALNUM, 90),
    "secret:databricks": _prefixed("da" + "pi", _HEX, 32),
    "secret:linear": _prefixed("lin" + "_api_", _ALNUM, 40),
    "secret:sentry": _prefixed("sntry" + "s_", _ALNUM, 64),
    "secret:hex32": _prefixed("", _HEX, 32),
    "secret:hex40": _prefixed("", _HEX, 40),
    "secret:hex64": _prefixed("", _HEX, 64),
    "secret:b64_32": _prefixed("", _ALNUM, 32),
    "secret:b64_40": _prefixed("", _ALNUM, 40),
    "secret:b64_pw": lambda random: base64.b64encode(_some(random, _ALNUM, 14).encode()).decode(),
    "secret:basic": _basic,
    "secret:django": _prefixed("django-insecure-", _ALNUM, 50),
    "secret:wordpress": _prefixed("", _ALNUM + "!@#%^*+_ ", 63, "x"),
    "card:visa": _card("4", 16),
    "card:visa4": _card("4", 16, _FOUR),
    "card:visa4dash": _card("4", 16, _FOUR, "-"),
    "card:mastercard": _card("53", 16),
    "card:mastercard4": _card("53", 16, _FOUR),
    "card:amex": _card("37", 15),
    "card:amex465": _card("37", 15, (4, 6, 5)),
    "card:discover": _card("6011", 16),
    "card:unionpay": _card("62", 16),
    "card:unionpay4": _card("62", 16, _FOUR),
    "card:jcb4": _card("3530", 16, _FOUR),
    "card:diners": _card("36", 14),
    **{f"iban:{country}": _iban(country, False) for country in _ACCOUNTS},
    **{f"iban:{country}4": _iban(country, True) for country in _ACCOUNTS},
    "private_key:rsa": _pem(f"RSA {_PRIVATE}"),
    "private_key:pkcs8": _pem(_PRIVATE),
    "private_key:ec": _pem(f"EC {_PRIVATE}", lines=2),
    "private_key:openssh": _pem(f"OPENSSH {_PRIVATE}"),
    "private_key:escaped": _pem(_PRIVATE, line="\\n"),
    "private_key:indented": _pem(_PRIVATE, indent="  "),
    "private_key:truncated": _pem(f"RSA {_PRIVATE}", whole=False),
    "private_key:encrypted": _pem(f"ENCRYPTED {_PRIVATE}"),
    "private_key:pgp": _pem(f"PGP {_PRIVATE} BLOCK", head="\nVersion: 1"),
}
