"""Scan a text: cheap checks first, so that a clean text costs next to nothing, then the detectors that may find
something, then one list of findings that do not overlap."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from . import addresses, assignments, numbers, phones, providers, random_words
from .findings import KINDS, Finding, merge_overlaps

_DIGIT = re.compile(r"[0-9]")
_LONG_WORD = re.compile(r"[A-Za-z0-9_+/=-]{16}")  # no key of a provider is without one
_LONG_NUMBER = re.compile(r"[0-9](?:[ ().+/\u00a0-]{0,3}[0-9]){6,}[A-Z]?")
_STAMP = re.compile(r"(?:19|20)[0-9]{2}([-/.])[0-9]{2}\1[0-9]{2}(?: [0-9]{2})?|[0-9]+\.[0-9]+")  # or a decimal
_GLUED = frozenset("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW")  # X, Y and Z begin Spanish ids
_AROUND = 6  # characters beside a number that decide what it is; words before it are looked up in the text
_IDENTIFIER = re.compile(r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_MARKER = re.compile(rf"\[(?:{'|'.join(KINDS)})(?::[0-9a-f]{{16}})?\]")
_SEALED = re.compile(rf"\[(?:{'|'.join(KINDS)}):enc:[^\]\s]+\]")
_FROM_NUMBERS = frozenset(("card", "phone", "national_id"))


def scan(
    text: str, kinds: Collection[str] = KINDS, *, regions: Sequence[str] = phones.REGIONS, sealed: bool = False
) -> list[Finding]:
    """Return all findings of these kinds, in order. Ignore the markers of an earlier run, and with `sealed` those
    around encrypted values."""
    findings = [finding for finding in _raw(text, kinds, regions) if finding.end > finding.start]
    if not findings:
        return findings
    if any(finding.kind in _FROM_NUMBERS for finding in findings):
        blocked = [match.span() for match in _IDENTIFIER.finditer(text)]
        findings = [
            finding for finding in findings if finding.kind not in _FROM_NUMBERS or not _touches(finding, blocked)
        ]
    patterns = (_MARKER, _SEALED) if sealed else (_MARKER,)
    markers = [match.span() for pattern in patterns for match in pattern.finditer(text)] if "[" in text else []
    return merge_overlaps(
        finding
        for finding in findings
        if not any(start <= finding.start and finding.end <= end for start, end in markers)
    )


def _raw(text: str, kinds: Collection[str], regions: Sequence[str]) -> Iterator[Finding]:
    if "private_key" in kinds and ("PRIVATE KEY" in text or "Private-MAC" in text):
        yield from providers.private_keys(text)
    if "url_credentials" in kinds and "://" in text and "@" in text:
        yield from addresses.url_credentials(text)
    if "secret" in kinds:
        if _LONG_WORD.search(text):
            yield from providers.provider_keys(text)
            yield from random_words.random_words(text)
        yield from assignments.assigned_secrets(text)
    if "email" in kinds and ("@" in text or "%40" in text):
        yield from addresses.emails(text)
    if "mac" in kinds:
        yield from addresses.macs(text)
    if not _DIGIT.search(text):
        return
    if "iban" in kinds:
        yield from numbers.ibans(text)
    if "ip" in kinds:
        yield from addresses.ips(text)
    if "national_id" in kinds:
        yield from numbers.lettered_ids(text)
    if "national_id" in kinds or "card" in kinds or "phone" in kinds:
        yield from _numbers(text, kinds, regions)


def _numbers(text: str, kinds: Collection[str], regions: Sequence[str]) -> Iterator[Finding]:
    for start, end in _windows(text):
        if "card" in kinds:
            yield from numbers.cards(text, start, end)
        if "national_id" in kinds:
            yield from numbers.national_ids(text, start, end)
        if "phone" in kinds:
            yield from phones.phones(text, start, end, regions=regions)


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of long numbers; near ones are merged."""
    start = end = -1
    for number in _LONG_NUMBER.finditer(text):
        first = number.start()
        if first and text[first - 1] in _GLUED:
            first = text.find(" ", first, number.end())  # the end of a hash or a name; a number may follow a blank
            if first < 0:
                continue
        if _STAMP.fullmatch(text, first, number.end()):
            continue
        if first - _AROUND > end:
            if end >= 0:
                yield start, end
            start = max(0, first - _AROUND)
        end = number.end() + _AROUND
    if end >= 0:
        yield start, end


def _touches(finding: Finding, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < finding.end and finding.start < end for start, end in spans)
