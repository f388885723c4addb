"""Compare two notes: whether they say the same, or contradict each other, by their words, numbers, names and
negations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from ..index.analyser import Word, question_words

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
_SENTENCE = re.compile(r"(?<=[.!?;:])\s+|\n+")
_LEADS_TO_VALUE = frozenset(("is", "are", "with", "in", "by", "at", "to", "on", "use", "uses", "called"))
_SHARED, _VALUE = 2, 3  # words that say what is spoken of, at least; words of a value, at most


@dataclass(frozen=True, slots=True)
class NoteFeatures:
    """The words, numbers, names and negations of a note."""

    words: frozenset[int]
    numbers: frozenset[str]
    names: frozenset[str]
    subject: frozenset[int]
    denials: tuple[tuple[frozenset[int], str], ...]
    """Each negation with the words of its sentence."""
    plain: frozenset[str]
    chosen: tuple[str, str] | None
    order: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> NoteFeatures:
        words = [word for word in question_words(text) if not word.stop and not _NUMBER.fullmatch(word.text)]
        instead = _INSTEAD.search(text)
        return cls(
            words=frozenset(word.hashes[0] for word in words if word.hashes),
            numbers=frozenset(_NUMBER.findall(text)),
            names=frozenset(
                (quoted or bare).casefold() for quoted, bare in _NAME.findall(text) if not _NUMBER.fullmatch(bare)
            ),
            subject=_subject(words),
            denials=tuple(
                (_subject(question_words(sentence)), found.casefold())
                for sentence in _SENTENCE.split(text)
                for found in _NOT.findall(sentence)
            ),
            plain=frozenset(re.findall(r"[a-z]+", text.casefold())),
            chosen=(instead[1].casefold().strip("`.,;"), instead[2].casefold().strip("`.,;")) if instead else None,
            order=tuple(_WORD.findall(text)),
        )

    @property
    def denies(self) -> bool:
        return len(self.denials) % 2 == 1

    def denials_about(self, other: NoteFeatures) -> list[str]:
        """Return the negations in sentences that the other note speaks of too."""
        return [word for words, word in self.denials if 2 * len(words & other.subject) > len(words)]

    def overlap(self, other: NoteFeatures) -> float:
        either = self.words | other.words
        return len(self.words & other.words) / len(either) if either else 0.0


def _subject(words: Iterable[Word]) -> frozenset[int]:
    """Return the words that say what is spoken of."""
    return frozenset(
        word.hashes[0]
        for word in words
        if word.hashes
        and not word.stop
        and not _NUMBER.fullmatch(word.text)
        and word.text.casefold() not in _LIGHT
        and not _NOT.fullmatch(word.text)
    )


def says_the_same(left: NoteFeatures, right: NoteFeatures) -> bool:
    """Return whether two notes say the same."""
    return (
        left.overlap(right) >= _SAME
        and left.numbers == right.numbers
        and left.denies == right.denies
        and left.names == right.names
        and left.chosen == right.chosen
        and not _opposites(left, right)
    )


def contradiction(left: NoteFeatures, right: NoteFeatures) -> str | None:
    """Return why two notes on one subject cannot both hold, or None."""
    if left.chosen and right.chosen and left.chosen == right.chosen[::-1]:
        return f"one prefers {left.chosen[0]}, the other {right.chosen[0]}"
    values = _values(left.order, right.order)
    if values is not None:
        return f"one says {values[0]}, the other {values[1]}"
    if left.overlap(right) < _SUBJECT or (left.subject - right.subject and right.subject - left.subject):
        return None  # each speaks of something of its own
    pairs = _opposites(left, right)
    turned = {word for pair in pairs for word in pair}
    denials = [*left.denials_about(right), *right.denials_about(left)]
    denied = len([word for word in denials if word not in turned]) % 2 == 1
    if (len(pairs) + denied) % 2 == 1:  # two reversals say the same again
        return f"one says “{pairs[0][0]}”, the other “{pairs[0][1]}”" if pairs else "one denies what the other says"
    if left.numbers and right.numbers and left.subject == right.subject and left.names == right.names and not pairs:
        only = sorted(left.numbers - right.numbers), sorted(right.numbers - left.numbers)
        if only[0] and only[1]:
            return f"one says {', '.join(only[0])}, the other {', '.join(only[1])}"
    return None


def _opposites(left: NoteFeatures, right: NoteFeatures) -> list[tuple[str, str]]:
    return [
        (first, second)
        for pair in _OPPOSITES
        for first, second in (pair, pair[::-1])
        if first in left.plain and second in right.plain and second not in left.plain and first not in right.plain
    ]


def _values(left: Sequence[str], right: Sequence[str]) -> tuple[str, str] | None:
    """Return the words in which notes differ that are otherwise alike: "Jenkins" and "GitHub Actions" for "We deploy
    with Jenkins on Fridays" and "We deploy with GitHub Actions on Fridays"."""
    before = _alike(left, right)
    after = _alike(left[before:][::-1], right[before:][::-1])
    values = left[before : len(left) - after], right[before : len(right) - after]
    if before == 0 or left[before - 1].casefold() not in _LEADS_TO_VALUE:
        return None
    stems = [{word.hashes for word in question_words(" ".join(value)) if not word.stop} for value in values]
    if max(map(len, values)) > _VALUE or not all(stems) or stems[0] == stems[1] or set(values[0]) & set(values[1]):
        return None  # "cache" and "cached" are one value, and "a" is none
    shared = " ".join((*left[:before], *left[len(left) - after :]))
    if len([word for word in question_words(shared) if not word.stop]) < _SHARED:
        return None
    return " ".join(values[0]), " ".join(values[1])


def _alike(left: Sequence[str], right: Sequence[str]) -> int:
    """Count the words with which both begin."""
    alike = takewhile(lambda pair: pair[0].casefold() == pair[1].casefold(), zip(left, right, strict=False))
    return sum(1 for _ in alike)
