"""Compare two notes: whether they say the same, or contradict each other, by their words, numbers, names and
negations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..index.analyser import question_words

_SAME = 0.75  # share of common words from which on two notes say the same
_SUBJECT = 0.45  # … are about the same thing
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_NOT = re.compile(
    r"\b(?:not|never|no longer|don't|do not|doesn't|must not|mustn't|shouldn't|should not|avoid|without|isn't|aren't|"
    r"cannot|can't|won't|stop|stopped|forbid(?:den)?|disable[ds]?|remove[ds]?|drop(?:ped)?|deprecated)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"`([^`]+)`|\b(\w+(?:[._/-]\w+)+|[A-Z]{2,}\w*|\w*[a-z][A-Z]\w*)\b")
_INSTEAD = re.compile(
    r"\b(?:use|prefer|choose|with)\s+(\S+)\s+(?:instead of|rather than|over|not)\s+(\S+)", re.IGNORECASE
)
_OPPOSITES = (
    ("always", "never"), ("enable", "disable"), ("enabled", "disabled"), ("allow", "forbid"), ("allowed", "forbidden"),
    ("sync", "async"), ("tabs", "spaces"), ("add", "remove"), ("before", "after"), ("required", "optional"),
    ("true", "false"), ("on", "off"), ("use", "avoid"), ("merge", "rebase"), ("single", "double"), ("start", "stop"),
    ("mutable", "immutable"), ("keep", "drop"), ("upper", "lower"), ("ascending", "descending"), ("eager", "lazy"),
)  # fmt: skip
_LIGHT = frozenset(word for pair in _OPPOSITES for word in pair) | {"longer", "must", "should", "please", "now"}
_WORD = re.compile(r"`[^`]+`|[\w./#+-]*\w")
_LEADS_TO_VALUE = frozenset(("is", "are", "with", "in", "by", "at", "to", "uses"))
_SHARED, _VALUE = 3, 3  # words that say what is spoken of, at least; words of a value, at most


@dataclass(frozen=True, slots=True)
class Saying:
    """What a note says, for comparison."""

    words: frozenset[int]
    numbers: frozenset[str]
    names: frozenset[str]
    subject: frozenset[int]
    denials: tuple[str, ...]
    plain: frozenset[str]
    chosen: tuple[str, str] | None
    order: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Saying:
        words = [word for word in question_words(text) if not word.stop and not _NUMBER.fullmatch(word.text)]
        instead = _INSTEAD.search(text)
        return cls(
            words=frozenset(word.hashes[0] for word in words if word.hashes),
            numbers=frozenset(_NUMBER.findall(text)),
            names=frozenset((quoted or bare).casefold() for quoted, bare in _NAME.findall(text)),
            subject=frozenset(
                word.hashes[0]
                for word in words
                if word.hashes and word.text.casefold() not in _LIGHT and not _NOT.fullmatch(word.text)
            ),
            denials=tuple(found.casefold() for found in _NOT.findall(text)),
            plain=frozenset(re.findall(r"[a-z]+", text.casefold())),
            chosen=(instead[1].casefold().strip("`.,;"), instead[2].casefold().strip("`.,;")) if instead else None,
            order=tuple(_WORD.findall(text)),
        )

    @property
    def denies(self) -> bool:
        return len(self.denials) % 2 == 1

    def overlap(self, other: Saying) -> float:
        either = self.words | other.words
        return len(self.words & other.words) / len(either) if either else 0.0


def says_the_same(one: Saying, other: Saying) -> bool:
    """Whether two notes differ in nothing that matters."""
    return (
        one.overlap(other) >= _SAME
        and one.numbers == other.numbers
        and one.denies == other.denies
        and one.names == other.names
        and one.chosen == other.chosen
        and not _opposites(one, other)
    )


def contradiction(one: Saying, other: Saying) -> str | None:
    """Why two notes about the same thing cannot both hold; None if they can."""
    if one.chosen and other.chosen and one.chosen == other.chosen[::-1]:
        return f"one prefers {one.chosen[0]}, the other {other.chosen[0]}"
    values = _values(one.order, other.order)
    if values is not None:
        return f"one says {values[0]}, the other {values[1]}"
    if one.overlap(other) < _SUBJECT or (one.subject - other.subject and other.subject - one.subject):
        return None  # each speaks of something of its own
    pairs = _opposites(one, other)
    turned = {word for pair in pairs for word in pair}
    denials = [len([word for word in saying.denials if word not in turned]) for saying in (one, other)]
    denied = sum(denials) % 2 == 1
    if (len(pairs) + denied) % 2 == 1:  # two reversals say the same again
        return f"one says “{pairs[0][0]}”, the other “{pairs[0][1]}”" if pairs else "one denies what the other says"
    if one.numbers and other.numbers and one.names == other.names and not pairs:
        only = sorted(one.numbers - other.numbers), sorted(other.numbers - one.numbers)
        if only[0] and only[1]:
            return f"one says {', '.join(only[0])}, the other {', '.join(only[1])}"
    return None


def _opposites(one: Saying, other: Saying) -> list[tuple[str, str]]:
    return [
        (first, second)
        for left, right in _OPPOSITES
        for first, second in ((left, right), (right, left))
        if first in one.plain and second in other.plain and second not in one.plain and first not in other.plain
    ]


def _values(one: Sequence[str], other: Sequence[str]) -> tuple[str, str] | None:
    """Where two notes begin alike and end in different names, those: "We deploy the site with Jenkins" and "… with
    GitHub Actions"."""
    alike = 0
    while alike < min(len(one), len(other)) and one[alike].casefold() == other[alike].casefold():
        alike += 1
    before, ends = " ".join(one[:alike]), (one[alike:], other[alike:])
    if alike == 0 or one[alike - 1].casefold() not in _LEADS_TO_VALUE:
        return None
    if len([word for word in question_words(before) if not word.stop]) < _SHARED:
        return None
    if not all(0 < len(end) <= _VALUE and (end[0][0] == "`" or end[0][0].isupper()) for end in ends):
        return None
    return " ".join(ends[0]), " ".join(ends[1])
