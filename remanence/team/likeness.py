"""Whether two notes say the same, or the opposite: by their words, their numbers and names, and what they deny."""

from __future__ import annotations

import re
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
    ("always", "never"), ("enable", "disable"), ("allow", "forbid"), ("sync", "async"), ("tabs", "spaces"),
    ("add", "remove"), ("before", "after"), ("required", "optional"), ("public", "private"), ("true", "false"),
    ("on", "off"), ("use", "avoid"), ("merge", "rebase"), ("single", "double"), ("mutable", "immutable"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Saying:
    """What a note says, for comparison."""

    words: frozenset[int]
    numbers: frozenset[str]
    names: frozenset[str]
    denies: bool
    plain: frozenset[str]
    chosen: tuple[str, str] | None

    @classmethod
    def of(cls, text: str) -> Saying:
        words = [word for word in question_words(text) if not word.stop and not _NUMBER.fullmatch(word.text)]
        instead = _INSTEAD.search(text)
        return cls(
            words=frozenset(word.hashes[0] for word in words if word.hashes),
            numbers=frozenset(_NUMBER.findall(text)),
            names=frozenset((quoted or bare).casefold() for quoted, bare in _NAME.findall(text)),
            denies=len(_NOT.findall(text)) % 2 == 1,
            plain=frozenset(re.findall(r"[a-z]+", text.casefold())),
            chosen=(instead[1].casefold().strip("`.,;"), instead[2].casefold().strip("`.,;")) if instead else None,
        )

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
        and _opposite(one, other) is None
    )


def contradiction(one: Saying, other: Saying) -> str | None:
    """Why two notes about the same thing cannot both hold; None if they can."""
    if one.chosen and other.chosen and one.chosen == other.chosen[::-1]:
        return f"one prefers {one.chosen[0]}, the other {other.chosen[0]}"
    if one.overlap(other) < _SUBJECT:
        return None
    pair = _opposite(one, other)
    if pair is not None:
        return f"one says “{pair[0]}”, the other “{pair[1]}”"
    if one.denies != other.denies:
        return "one denies what the other says"
    if one.numbers and other.numbers and one.numbers != other.numbers and one.names == other.names:
        only = sorted(one.numbers - other.numbers), sorted(other.numbers - one.numbers)
        if only[0] and only[1]:
            return f"one says {', '.join(only[0])}, the other {', '.join(only[1])}"
    return None


def _opposite(one: Saying, other: Saying) -> tuple[str, str] | None:
    for left, right in _OPPOSITES:
        for first, second in ((left, right), (right, left)):
            if first in one.plain and second in other.plain and second not in one.plain and first not in other.plain:
                return first, second
    return None
