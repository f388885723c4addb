"""A Finding of a detector: a span of the text and its kind. Its repr never shows the value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

KINDS = (
    "private_key", "url_credentials", "secret", "card", "iban", "national_id", "email", "phone", "mac", "ip",
)  # fmt: skip
"""All kinds, the most telling first: of two findings with the same span the earlier kind is kept."""

SECRETS = ("private_key", "url_credentials", "secret")
"""The kinds that open doors. Names of agents and sessions are refused if they hold one of these."""

ROUNDS = 5
"""What is taken out may bring others together, so a changed text is read again; twice is nearly always enough."""


class Finding(NamedTuple):
    """Characters `start` to `end` of a text are of this kind; `rule` says which pattern saw it."""

    start: int
    end: int
    kind: str
    rule: str
    canonical: str
    """The value in one way of writing, so that `+49 30 1` and `0049301` are hashed alike."""

    def __repr__(self) -> str:
        return f"Finding(start={self.start}, end={self.end}, kind={self.kind!r}, rule={self.rule!r})"


def resolved(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order and apart. The longest of those that overlap gives the kind, and all that any of them covers
    stays covered, so that no end of a value is left over."""
    kept: list[Finding] = []
    for one in sorted(findings, key=lambda found: (found.start, -found.end, KINDS.index(found.kind))):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
        elif one.end > kept[-1].end:
            last = kept.pop()
            longest = max(last, one, key=lambda found: (found.end - found.start, -KINDS.index(found.kind)))
            canonical = last.canonical + one.canonical
            kept.append(Finding(last.start, one.end, longest.kind, longest.rule, canonical))
    return kept
