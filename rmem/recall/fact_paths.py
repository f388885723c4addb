"""Chains of facts that answer a question: names in it are linked to entities, and facts are followed from there as far
as their relations explain words of the question that no earlier one explained.

    What is the place of death of the author of Endymion?
    Endymion → author → John Keats → died in the city of → Rome
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from operator import mul, sub
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..facts.model import StoredFact, name_id
from ..facts.synonyms import meaning, stem

WordVectors = Callable[[Sequence[str]], npt.NDArray[np.float32]]


class FactSource(Protocol):
    """The part of a store that fact search reads."""

    @property
    def word_vectors(self) -> WordVectors | None:
        """Return the function that embeds single words."""

    def facts_about(self, subjects: Sequence[int] = (), *, newest: bool = False, limit: int) -> list[StoredFact]: ...

    def facts_at(self, seqs: Sequence[int]) -> list[StoredFact]: ...


Inside = Callable[[Sequence[StoredFact]], list[StoredFact]]
"""Selects the facts whose memories are inside the filter."""


MAX_HOPS = 4
_BEAM = 12  # paths followed at each hop
_MAX_MENTIONS = 4
_MAX_FACTS = 400  # read for one hop
_MAX_NAME, _MAX_NOUN = 9, 3  # words of a name, and of a lower-case name
_MAX_WORDS = 60  # of a question; longer ones are pasted text, not questions about an entity
_HOP_COST = 0.3
_OLDER_COST = 0.25  # of an older one of several values
_UNEXPLAINED_COST = 0.6  # of a hop that no word of the question explains
_FEW = 8  # such a hop starts only at entities with at most this many facts
_WEAK = 0.6  # weight of a general word
_MIN_FIT = 0.45  # least similarity of a relation and a word of the question to follow it
_WORD = re.compile(r"[^\W_](?:[\w'’./&+-]*\w)?\.?|\"[^\"]{1,80}\"|“[^”]{1,80}”|[-–&]")
_STOP = frozenset(
    """a an the of in on at to for from by with and or is was are were be been being do does did has have had which
    what who whom whose where when why how that this these those it its his her their he she they as than
    then there into about can could would will shall should may might must i you we me my your our us not no
    any some one name named called person individual someone thing people current currently s""".split()
)
_WEAK_WORDS = frozenset(
    "place location located title responsible hold holds serve serves associated known go goes work".split()
)


class FactPath(NamedTuple):
    """A chain of facts that starts at an entity of the question."""

    score: float
    facts: tuple[StoredFact, ...]
    explained: tuple[float, ...]
    """How well each word of the question is explained, 0 to 1."""
    end: int
    """The entity at its end."""
    silent: int = 0
    """Number of its facts that no word of the question explains."""

    def __str__(self) -> str:
        """`Endymion → author → John Keats`."""
        names = [
            self.facts[0].subject_name,
            *(part for fact in self.facts for part in (fact.relation_name, fact.object_name)),
        ]
        return " → ".join(names)


class Mention(NamedTuple):
    """A name in the question that is a known entity."""

    entity: int
    start: int
    end: int


def find_name_spans(question: str, *, named: bool) -> dict[tuple[int, int], int]:
    """Return every run of words in a question that may be a name, with its id: if `named`, those that begin with a
    capital or a quote, else the others."""
    words = list(_WORD.finditer(question))
    if len(words) > _MAX_WORDS:
        return {}
    found: dict[tuple[int, int], int] = {}
    for first, word in enumerate(words):
        start, text = word.start(), word[0]
        if text[0] in '"“':
            if named:
                found[start, word.end()] = name_id(text)
            continue
        if text.islower() is named:
            continue
        common = text.lower() in _STOP
        if common and (not named or first + 1 == len(words) or words[first + 1][0].islower()):
            continue  # "What is …", but "The Wheel of Time"
        for last in words[first : first + (_MAX_NAME if named else _MAX_NOUN)]:
            if last[0][0] in '"“':
                break
            if last[0] not in _STOP and not (common and last is word):
                found[start, last.end()] = name_id(question[start : last.end()])
    return found


def link(spans: dict[tuple[int, int], int], known: Collection[int]) -> list[Mention]:
    """Return the spans that are known entities; of overlapping ones the longest."""
    mentions = [Mention(entity, *span) for span, entity in spans.items() if entity in known]
    mentions.sort(key=lambda mention: mention.start - mention.end)
    kept: list[Mention] = []
    for mention in mentions:
        if all(mention.end <= other.start or mention.start >= other.end for other in kept):
            kept.append(mention)
    return kept


class Similarity:
    """Similarity of a question word and a word of a relation, 0 to 1."""

    def __init__(self, vectors: WordVectors | None) -> None:
        self._vectors_of = vectors
        self._vectors: dict[str, npt.NDArray[np.float32]] = {}
        self._pairs: dict[tuple[str, str], float] = {}

    def of(self, question_word: str, word: str) -> float:
        found = self._pairs.get((question_word, word))
        if found is None:
            if len(self._pairs) > 200_000:
                self._pairs.clear()
            found = self._pairs[question_word, word] = self._compare(question_word, word)
        return found

    def _compare(self, question_word: str, word: str) -> float:
        question_stem, relation_stem = stem(question_word), stem(word)
        if question_stem == relation_stem:
            return 1.0
        listed = meaning(relation_stem, question_stem)
        if listed or self._vectors_of is None:
            return listed
        cosine = float(self._vector(question_word) @ self._vector(word))
        return min(max((cosine - 0.25) / 0.5, 0.0), 0.8)

    def _vector(self, word: str) -> npt.NDArray[np.float32]:
        found = self._vectors.get(word)
        if found is None:
            if len(self._vectors) > 4096:
                self._vectors.clear()
            assert self._vectors_of is not None
            found = self._vectors[word] = self._vectors_of([word])[0]
        return found


@lru_cache(maxsize=8)
def cached_similarity(vectors: WordVectors | None) -> Similarity:
    """Return the cached Similarity for a function of word vectors."""
    return Similarity(vectors)


@lru_cache(maxsize=4096)
def relation_words(relation: str) -> tuple[str, ...]:
    """Return the words of a relation that a question may mention."""
    words = [word for word in re.findall(r"[^\W_]+", relation.lower()) if word not in _STOP]
    return tuple(words) or (relation.lower(),)


def content_words(question: str, mentions: Iterable[Mention]) -> list[str]:
    """Return the content words of a question, without the names in it."""
    left = question
    for mention in mentions:
        left = left[: mention.start] + " " * (mention.end - mention.start) + left[mention.end :]
    words = (word.removesuffix("'s").removesuffix("’s") for word in re.findall(r"[^\W_][\w'’]*", left.lower()))
    return [word for word in words if word not in _STOP and len(word) > 1]


class FactSearch:
    """Searches the facts for one question: its names, its other words, and which relations match them."""

    def __init__(
        self, question: str, source: FactSource, similarity: Similarity, inside: Inside, until: float | None = None
    ) -> None:
        self.mentions: list[Mention] = []
        self._facts: list[StoredFact] = []
        for named in (True, False):  # try lower-case names only if there are no others
            spans = {} if self.mentions else find_name_spans(question, named=named)
            if spans:
                read = source.facts_about(list(set(spans.values())), newest=True, limit=_MAX_FACTS)
                self._facts = inside(read)
                self.mentions = link(spans, {fact.subject for fact in self._facts})
        self.words = content_words(question, self.mentions)
        self._weights = [_WEAK if word in _WEAK_WORDS else 1.0 for word in self.words]
        self._most = sum(self._weights) or 1.0
        self._source, self._similarity, self._inside, self._until = source, similarity, inside, until
        self._fits: dict[str, tuple[float, ...]] = {}

    def paths(self, most: int = 8) -> list[FactPath]:
        """Return the chains of current facts that explain the question best, best first."""
        if not self.mentions or not self.words:
            return []
        nothing = (0.0,) * len(self.words)
        open_paths = [FactPath(0.0, (), nothing, mention.entity) for mention in self.mentions[:_MAX_MENTIONS]]
        found: list[FactPath] = []
        facts = self._facts
        for hop in range(MAX_HOPS):
            if hop:
                ends = list({path.end for path in open_paths})
                facts = self._inside(self._source.facts_about(ends, newest=True, limit=_MAX_FACTS))
            longer = self._step(open_paths, facts) if facts else []
            found += [path for path in longer if path.score > 0]
            # Stop if the unexplained rest of the question is worth less than a hop.
            open_paths = [path for path in longer if (1 - self.share(path)) * self._most > _HOP_COST]
            if not open_paths:
                break
        found.sort(key=lambda path: -path.score)
        return found[:most]

    def share(self, path: FactPath) -> float:
        """Return the share of the question that a path explains, 0 to 1."""
        return (
            sum(weight * explained for weight, explained in zip(self._weights, path.explained, strict=True))
            / self._most
        )

    def fits(self, relation: str) -> bool:
        """Return whether the question mentions a relation."""
        return max(self._fit(relation), default=0.0) >= _MIN_FIT

    def _step(self, paths: list[FactPath], facts: list[StoredFact]) -> list[FactPath]:
        """Extend every path by one fact; return the best."""
        by_subject = current_facts(facts, self._until)
        longer: list[FactPath] = []
        for path in paths:
            around = by_subject.get(path.end, ())
            for fact, age in around:
                if fact.object == path.end or any(fact.object == earlier.subject for earlier in path.facts):
                    continue
                fit = self._fit(fact.relation_name)
                explained = tuple(map(max, path.explained, fit))
                gain = sum(map(mul, self._weights, map(sub, explained, path.explained)))
                if gain > _HOP_COST and max(fit) >= _MIN_FIT:
                    score = path.score + gain - _HOP_COST - _OLDER_COST * age
                    longer.append(FactPath(score, (*path.facts, fact), explained, fact.object, path.silent))
                elif not path.silent and not age and len(around) <= _FEW:
                    longer.append(
                        FactPath(path.score - _UNEXPLAINED_COST, (*path.facts, fact), path.explained, fact.object, 1)
                    )
        longer.sort(key=lambda path: -path.score)
        return longer[:_BEAM]

    def _fit(self, relation: str) -> tuple[float, ...]:
        """Return how well each word of the question matches a relation."""
        found = self._fits.get(relation)
        if found is None:
            words = relation_words(relation)
            similarity = self._similarity.of
            found = self._fits[relation] = tuple(
                [max([similarity(question_word, word) for word in words]) for question_word in self.words]
            )
        return found


def newest_first(facts: Iterable[StoredFact], until: float | None) -> list[StoredFact]:
    """Sort facts by the time they began: those that began by `until` first, from the newest; then the others, from the
    one that began next."""

    def key(fact: StoredFact) -> tuple[bool, float, int, int]:
        began = until is None or fact.valid_from <= until
        return began, fact.valid_from if began else -fact.valid_from, fact.seq, fact.number

    return sorted(facts, key=key, reverse=True)


def current_facts(facts: Sequence[StoredFact], until: float | None = None) -> dict[int, list[tuple[StoredFact, int]]]:
    """Return the facts of each subject that hold now, or at `until`, with the number of newer values: 0 for the newest.
    Of a relation with a single value only the newest is returned; facts whose latest statement is a denial are not."""
    ages: dict[tuple[int, int], int] = {}
    seen: set[tuple[int, int, int]] = set()
    found: dict[int, list[tuple[StoredFact, int]]] = {}
    for fact in newest_first(facts, until):
        key = (fact.subject, fact.relation, fact.object)
        if key in seen:
            continue
        seen.add(key)
        if fact.negated:
            continue
        age = ages.get(key[:2], 0)
        ages[key[:2]] = age + 1
        if age == 0 or not fact.single:
            found.setdefault(fact.subject, []).append((fact, age))
    return found
