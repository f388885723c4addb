"""Detect keys by their form: the rules of gitleaks for tokens (`data/gitleaks.tsv`, made by
`rmem_bench.privacy.go_patterns`) and ours for the rest (`data/tokens.tsv`), each with keywords that a text must hold
before its pattern is tried."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from .findings import Finding
from .plausibility import entropy, is_mixed, is_wordy

_SHUT = r"(?![A-Za-z0-9_])"
_INSIDE = frozenset("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


_LONG = re.compile(r"[A-Za-z0-9_+/=.~:|!$%?&@-]{16,}")  # no token is without such a word
_PLAIN = re.compile(r"[a-z_./:=-]+|[0-9a-f]{4}[0-9a-f-]*|[0-9T:.+Z-]+")  # words, paths, hashes, UUIDs, times: no tokens
_FILE_END = re.compile(r"\.(?:min\.|chunk\.)?(?:js|css|map|png|jpg|svg|woff2?)\b")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{60,}")
_LONGEST = 4096
_DIGIT = re.compile("[0-9]")
_EXAMPLE = re.compile(r"[xX]{8}|(?:[xX]{3,}-?){3}|[*.]{4}|[-_](?:here|HERE)$|Here$|abcdefghijklmnop|0123456789abcdef$")


class Rule(NamedTuple):
    """A pattern of tokens; it is tried only if the text contains one of the keywords, in lower case."""

    name: str
    keywords: tuple[str, ...]
    entropy: float
    """Least bits per character of a token; placeholders have less."""
    pattern: str


@cache
def _rules() -> tuple[tuple[Rule, ...], tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return all rules, and for each keyword the places of its rules."""
    rules = [
        Rule(name, tuple(words.split()), float(least), pattern)
        for file in ("gitleaks.tsv", "tokens.tsv")
        for line in (Path(__file__).parent / "data" / file).read_text("utf-8").splitlines()
        if not line.startswith("#")
        for name, words, least, pattern in [line.split("\t")]
    ]
    needed: dict[str, list[int]] = {}
    for at, rule in enumerate(rules):
        for word in rule.keywords:
            needed.setdefault(word, []).append(at)
    return tuple(rules), tuple((word, tuple(ats)) for word, ats in needed.items())


@cache
def _compile(at: int) -> re.Pattern[str]:
    bounded = re.sub(r"\{(\d+),\}", rf"{{\1,{_LONGEST}}}", _rules()[0][at].pattern)  # so that time stays linear
    return re.compile(f"(?:{bounded}){_SHUT}")


def provider_keys(text: str) -> Iterator[Finding]:
    """Yield tokens that are recognizable by their form. Keywords are searched in long words only, which are few."""
    words = "\n".join(word for word in _LONG.findall(text) if not _PLAIN.fullmatch(word)).lower()
    if not words:
        return
    rules, needed = _rules()
    for at in sorted({at for word, ats in needed if word in words for at in ats}):
        rule = rules[at]
        for match in _compile(at).finditer(text):
            start, token = match.start(), match.group().rstrip(".")  # the end of a sentence
            if start and text[start - 1] in _INSIDE:
                continue  # a lookbehind in the pattern would take three times as long
            if _is_token(rule, token) and not _is_inside(text, start, start + len(token)):
                yield Finding(start, start + len(token), "secret", rule.name, token)


def _is_inside(text: str, start: int, end: int) -> bool:
    """Return whether a match is a part of longer Base64, or of the name of a file."""
    if _FILE_END.match(text, end):
        return True
    if text[start - 1 : start] not in ("+", "/") and text[end : end + 1] not in ("+", "/"):
        return False
    around = _BASE64.search(text, max(0, start - 100), end + 100)
    while around and around.end() < end:
        around = _BASE64.search(text, around.end(), end + 100)
    return around is not None and around.start() <= start and "+" in around.group()


def _is_token(rule: Rule, token: str) -> bool:
    if entropy(token) < rule.entropy or _EXAMPLE.search(token) or not (_DIGIT.search(token) or is_mixed(token)):
        return False
    if rule.name == "vault" and token[1] == ".":
        return not is_wordy(token[2:])  # r.acceptOAuth2LoginRequest
    if rule.name == "environment" and is_wordy(token):
        return False  # test_api_key_creation_fails_on_405
    return rule.name != "jwt" or _is_jwt(token)


def _is_jwt(token: str) -> bool:
    head = token.split(".", 1)[0]
    if head.startswith(("eyJhbGci", "eyJ0eXAi")):  # {"alg" and {"typ", also where a letter of the rest is lost
        return True
    try:
        return "alg" in json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, TypeError, binascii.Error):
        return False


# Private keys

_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----BEGIN )[\s\S]){0,20000}?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"|(?:(?:\\[nr]|\s)+[A-Za-z0-9+/=:,\- ]*)*)"  # or cut off
)
_HEAD = 27  # characters of the shortest first line
_BODY = re.compile(r"[A-Za-z0-9+/=]{24}")
_PUTTY = re.compile(r"PuTTY-User-Key-File-[0-9]: [\s\S]{0,20000}?Private-MAC: [0-9a-f]+")


def private_keys(text: str) -> Iterator[Finding]:
    for pattern in (_PEM, _PUTTY):
        for match in pattern.finditer(text):
            end = match.start() + len(match.group().rstrip())
            if _BODY.search(text, match.start() + _HEAD, end):
                yield Finding(match.start(), end, "private_key", "pem", text[match.start() : end])
