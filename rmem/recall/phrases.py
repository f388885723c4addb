"""Select rows by phrases that their text must or must not contain, word for word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..index.analyser import Phrase, Word, contains_phrase, question_words
from ..index.filtered_rows import FilteredRows
from ..index.stopwords import VOTES
from .question import Question

Mask = npt.NDArray[np.bool_]


def allowed_rows(found_rows: FilteredRows, question: Question) -> Mask | None:
    """Return the mask of rows with every `must` phrase and no `must_not` phrase; None for all rows."""
    if not (question.must or question.must_not):
        return None
    allowed = np.ones(found_rows.size, np.bool_)
    for phrase in question.must:
        allowed &= rows_with_phrase(found_rows, phrase, allowed)
    for phrase in question.must_not:
        allowed &= ~rows_with_phrase(found_rows, phrase, allowed)
    return allowed


def _rows_with_word(found_rows: FilteredRows, word: Word) -> Mask:
    held = np.zeros(found_rows.size, np.bool_)
    held[found_rows.matches(word.hashes).at] = True
    return held


def rows_with_phrase(found_rows: FilteredRows, phrase: Phrase, among: Mask) -> Mask:
    """Return those rows of `among` (or of all) whose text contains a phrase word for word."""
    candidates = among.copy()
    for word in question_words(phrase.written):
        # Function words of some languages are not in the index, so they cannot exclude a row.
        if len(word.text) > 2 and word.text.isalpha() and word.text not in VOTES:
            candidates &= _rows_with_word(found_rows, word)
    at = np.flatnonzero(candidates)
    candidates[at] = [contains_phrase(text, phrase) for text in found_rows.texts(at)]
    return candidates
