"""What must and must not be said, word for word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..index.analyser import Phrase, Word, question_words, says
from ..index.stopwords import VOTES
from ..index.survey import Survey
from .question import Question

Mask = npt.NDArray[np.bool_]


def allowed_rows(survey: Survey, question: Question) -> Mask | None:
    """Rows that hold every phrase that they must and none that they must not; None for all."""
    if not (question.must or question.must_not):
        return None
    allowed = np.ones(survey.size, np.bool_)
    for phrase in question.must:
        allowed &= saying(survey, phrase, allowed)
    for phrase in question.must_not:
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
