"""What must and must not be said: phrases word for word, and excluded words."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..index.analyser import Phrase, Word, question_words, says
from ..index.stopwords import VOTES
from ..index.survey import Survey
from .question import Question

Mask = npt.NDArray[np.bool_]


def allowed_rows(survey: Survey, question: Question) -> Mask | None:
    """Rows that hold every phrase and nothing excluded; None for all."""
    if not (question.phrases or question.excluded or question.excluded_phrases):
        return None
    allowed = np.ones(survey.size, np.bool_)
    for words in question.excluded:  # the parts of one identifier: all of them together are excluded
        allowed &= ~np.logical_and.reduce([_holding(survey, word) for word in words])
    for phrase in question.phrases:
        allowed &= saying(survey, phrase, allowed)
    for phrase in question.excluded_phrases:
        allowed &= ~saying(survey, phrase, allowed)
    return allowed


def _holding(survey: Survey, word: Word) -> Mask:
    held = np.zeros(survey.size, np.bool_)
    held[survey.matches(word.hashes).at] = True
    return held


def saying(survey: Survey, phrase: Phrase, among: Mask) -> Mask:
    """Rows (among some) whose text holds a phrase word for word."""
    candidates = among.copy()
    for word in question_words(phrase.written):
        # Words that may be missing from the index, such as function words of some language, prove nothing.
        if len(word.text) > 2 and word.text.isalpha() and word.text not in VOTES:
            candidates &= _holding(survey, word)
    at = np.flatnonzero(candidates)
    candidates[at] = [says(text, phrase) for text in survey.texts(at)]
    return candidates
