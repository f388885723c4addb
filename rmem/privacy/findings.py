"""A Finding of a detector: a span of the text and its kind. Its repr never shows the value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

KINDS = (
    "private_key", "url_credentials", "secret", "card", "iban", "national_id", "email", "phone", "mac", "ip",
)  # fmt: skip
"""All kinds, the most specific first: of two findings with the same span the earlier kind is kept."""

SECRETS = ("private_key", "url_credentials", "secret")
"""The kinds that give access. Names of agents and sessions that contain one are refused."""

ROUNDS = 5
"""Most passes over a text: a replacement may create a new match. Two passes are nearly always enough."""


class Finding(NamedTuple):
    """Characters `start` to `end` of a text are of this kind; `rule` names the pattern that matched."""

    start: int
    end: int
    kind: str
    rule: str
    canonical: str
    """The normalized value, so that `+49 30 1` and `0049301` are hashed alike."""

    def __repr__(self) -> str:
        return f"Finding(start={self.start}, end={self.end}, kind={self.kind!r}, rule={self.rule!r})"


def merge_overlaps(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in order, with those that overlap merged into one: it covers all of them and has the kind of the
    longest, so that no part of a value remains."""
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda found: (found.start, -found.end, KINDS.index(found.kind))):
        if not kept or finding.start >= kept[-1].end:
            kept.append(finding)
        elif finding.end > kept[-1].end:
            last = kept.pop()
            longest = max(last, finding, key=lambda found: (found.end - found.start, -KINDS.index(found.kind)))
            canonical = last.canonical + finding.canonical
            kept.append(Finding(last.start, finding.end, longest.kind, longest.rule, canonical))
    return kept
