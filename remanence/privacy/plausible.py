"""Whether a value that stands behind `password=` or `token:` is one, or a placeholder, a word or a piece of code."""

from __future__ import annotations

import math
import re
from collections import Counter

_TEMPLATE = re.compile(
    r"%[sdr]|\$\{|\$\(|\{\{|%\(|<[A-Za-z]|^\$[A-Za-z_]|^%[A-Za-z_]+%$|^\{[^}]*\}$|^[*•x.X_-]+$|^(.)\1*$|^\[+[A-Za-z_]+(?::[^\]]*)?\]*$"
)
_SAMPLE = re.compile(
    r"^(?:your|my|the|a|an|some|new|old|enter|insert|put|change|replace|example|sample|dummy|fake|test|todo|none|null|"
    r"nil|undefined|true|false|redacted|masked|hidden|removed|omitted|placeholder|xxx+)(?:[-_ .]|$)"
    r"|(?:[-_ ]here|[-_]goes[-_]here|[-_]placeholder)$",
    re.IGNORECASE,
)
_WORDS = frozenset(
    """password passwd passwort kennwort pass pwd passphrase secret token apikey api_key key string str text bytes int
    integer number bool boolean object array any required optional invalid incorrect wrong missing expired empty unset
    default changeme-please falsch oublié inherit identifier bearer basic oauth oauth2 user username login admin-only
    value variable env environment prompt hash hashed salt encrypted plain plaintext type name field input write read
    refresh access same reset forgot valid disabled enabled unknown""".split()
)
_NAMES_ITSELF = re.compile(r"pass(?:word|wd|phrase)?|pwd|secret|token|api_?key|credential|value\d|field|param", re.I)
_CHAIN = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+")
_SLUG = re.compile(r"[a-z]+(?:[-_./][a-z]+)*(?:[-_.]?[0-9]{1,8})?|[a-z]+(?:[A-Z][a-z]+)+[0-9]{0,4}")


def is_placeholder(value: str) -> bool:
    """`${PASS}`, `<your-password>`, `********`, `None` and the word "password" itself."""
    return bool(_TEMPLATE.search(value) or _SAMPLE.search(value)) or value.lower().strip("\"'") in _WORDS


def entropy(value: str) -> float:
    """Bits per character."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())


def is_password(value: str, *, quoted: bool) -> bool:
    """Something a person might have chosen: at least a letter with a digit or a sign, or a long quoted word."""
    if len(value) < (4 if quoted else 6) or is_placeholder(value) or not _is_literal(value, quoted):
        return False
    if _NAMES_ITSELF.search(value) and _SLUG.fullmatch(value):
        return False
    letter = any(one.isalpha() for one in value)
    digit = any(one.isdigit() for one in value)
    sign = any(not one.isalnum() and one not in "_-./:" for one in value)
    if letter and (digit or sign):
        return True
    return quoted and (len(value) >= 8 or (digit and len(value) >= 6))


def is_token(value: str) -> bool:
    """Something a machine made: long, letters and digits mixed, without the regularity of words."""
    if len(value) < 12 or is_placeholder(value) or not _is_literal(value, False) or _SLUG.fullmatch(value):
        return False
    digits = sum(one.isdigit() for one in value)
    if not digits or digits == len(value) or (digits < 2 and len(value) < 24):
        return False
    return entropy(value) >= 3.0


def _is_literal(value: str, quoted: bool) -> bool:
    """No expression of a program, no path."""
    if value.startswith(("/", "./", "~/")) or "://" in value:
        return False
    if quoted:
        return not value.startswith(" ")
    return not (re.search(r"[()\[\]{}<>]", value) or _CHAIN.fullmatch(value))
