"""Put a newer memory before an older one about the same thing, if the question asks what holds now: "where does Ann
work?" is answered by what was said last."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..index.filtered_rows import FilteredRows
from .question import Question

Scores = npt.NDArray[np.float32]
Positions = npt.NDArray[np.int64]

DEPTH = 16  # best rows that are compared with each other
_TURN = 0.5  # share of the gap for turns of a conversation, whose scores also tell who answers whom
_STATEMENT = 18  # terms of a turn that may state something anew; longer ones go on about a subject
_HELD = 0.4  # least share of the question's words in the newer memory
_COVERED = 0.6  # least share of those of the older memory that the newer one holds too


def newest_first(
    found_rows: FilteredRows, question: Question, at: Positions, scores: Scores, holds: Scores, gap: float
) -> list[int]:
    """Return the order of some rows, best first, with newer ones before older ones that they replace. `holds` has a
    row for each word of the question: 1 where one of these rows contains it. `gap` is how far a newer row may be
    behind."""
    order = list(range(at.size))
    if not question.is_present or question.span is not None:
        return order
    times, actors = found_rows.column_at("time", at), found_rows.column_at("actor", at)
    importance, sessions = found_rows.column_at("importance", at), found_rows.sessions_at(at)
    turns = found_rows.in_dialogue(at)
    gaps = np.where(turns, np.float32(_TURN * gap), np.float32(gap))
    replaces = times[:, None] > times  # a row for each newer one, a column for each older one
    replaces &= scores - scores[:, None] <= gaps[:, None]
    replaces &= (actors[:, None] == actors) & (importance[:, None] >= importance)
    replaces &= ~turns[:, None] | (sessions[:, None] != sessions)
    replaces &= (~turns | (found_rows.column_at("length", at) <= _STATEMENT))[:, None]
    replaces &= (holds.sum(axis=0) >= _HELD * len(holds))[:, None]
    replaces &= holds.T @ holds >= _COVERED * holds.sum(axis=0)
    order = []
    for row in range(at.size):
        passed = (place for place, other in enumerate(order) if replaces[row, other])
        order.insert(next(passed, len(order)), row)
    return order
