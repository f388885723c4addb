"""Find the word that was meant by one that no memory contains: words that differ by one letter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..index.analyser import Word, stemmed_hashes

_SHORTEST = 5  # letters of a word; shorter ones are one slip away from too many others
_MOST_WORDS, _MOST_FOUND = 4, 3  # unknown words of a question that are looked at, and words found for each
_CLOSENESS = 0.95  # how alike the words are, as a cosine; a word of the same meaning is less
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

RowCounts = Callable[[Sequence[int]], Mapping[int, int]]


def meant_words(words: Sequence[Word], row_counts: RowCounts) -> dict[str, list[tuple[int, str, float]]]:
    """Return, for question words that no memory contains, (term, word, closeness) of the words that may have been
    meant, the most frequent first."""
    checked = [word for word in words if _may_be_misspelt(word.text)]
    held = row_counts([term for word in checked for term in word.hashes])
    unknown = [word.text for word in checked if not any(map(held.get, word.hashes))]
    found = {}
    for word in unknown[:_MOST_WORDS]:
        variants = _variants(word)
        terms = dict(zip(variants, stemmed_hashes(variants), strict=True))
        counts = row_counts([*{term for pair in terms.values() for term in pair}])
        best = {variant: max(pair, key=lambda term: counts.get(term, 0)) for variant, pair in terms.items()}
        known = sorted((v for v in variants if counts.get(best[v])), key=lambda v: -counts[best[v]])
        distinct = {best[variant]: variant for variant in reversed(known)}
        if distinct:
            found[word] = [(term, word, _CLOSENESS) for term, word in reversed(distinct.items())][:_MOST_FOUND]
    return found


def _may_be_misspelt(word: str) -> bool:
    return len(word) >= _SHORTEST and word.isascii() and word.isalpha()


def _variants(word: str) -> list[str]:
    """Return the words that one letter too few, too many, wrong or swapped makes of a word; the first one is right."""
    cuts = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    found = dict.fromkeys(head + tail[1:] for head, tail in cuts if tail)
    found |= dict.fromkeys(head + tail[1] + tail[0] + tail[2:] for head, tail in cuts if len(tail) > 1)
    found |= dict.fromkeys(head + letter + tail[1:] for head, tail in cuts if tail for letter in _LETTERS)
    found |= dict.fromkeys(head + letter + tail for head, tail in cuts for letter in _LETTERS)
    found.pop(word, None)
    return list(found)
