"""The indexes of single columns against a dictionary that is searched by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_by_hand import bm25, cosine, in_order

from rmem.index.bits import unit
from rmem.tables.search import slots as slots_module
from rmem.tables.search import vectors as vectors_module
from rmem.tables.search.scores import CosineScores, HybridScores, MaxSimScores, NoScores, TextScores
from rmem.tables.search.texts import TextColumn
from rmem.tables.search.vectors import VectorColumn, VectorsColumn

WORDS = ["disk", "full", "memory", "error", "pipeline", "parquet", "naïve", "Größe", "内存", "etl/transform.py"]
NONE = np.empty(0, np.int64)

texts = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join))
numbers = st.integers(-2, 2)
vectors = st.one_of(st.none(), st.lists(numbers, min_size=3, max_size=3))
steps = st.lists(
    st.tuples(
        st.lists(st.integers(1, 12), unique=True, max_size=4),
        st.dictionaries(st.integers(1, 12), st.tuples(texts, vectors), max_size=5),
    ),
    max_size=8,
)


def rows_of(numbers):
    return np.array(list(numbers), np.int64)


def followed(steps):
    """Indexes that went through some changes, and what the table holds in the end."""
    words, points, table = TextColumn(), VectorColumn(), {}
    for gone, changed in steps:
        table = {row: value for row, value in table.items() if row not in gone} | changed
        words.change(rows_of(gone), rows_of(changed), [text for text, _ in changed.values()])
        points.change(rows_of(gone), rows_of(changed), [vector for _, vector in changed.values()])
    return words, points, table


def as_dict(scores):
    rows, values = scores.all()
    return dict(zip(rows.tolist(), values.tolist(), strict=True))


@given(steps, st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join))
@settings(max_examples=3 * settings.default.max_examples)
def test_bm25_follows_a_column_through_its_changes(steps, question):
    words, _, table = followed(steps)
    expected, possible = bm25({row: text for row, (text, _) in table.items()}, question)
    scores = TextScores(words.texts(), question)
    assert words.texts().score(question).possible == pytest.approx(possible)
    assert as_dict(scores) == pytest.approx(expected, abs=1e-5)
    for row, (text, _) in table.items():
        assert (scores.by_row[row] is None) == (text is None)
    assert scores.by_row[99] is None
    assert scores.by_row[None] is None


@given(steps, st.lists(numbers, min_size=3, max_size=3), st.integers(0, 14), st.booleans())
@settings(max_examples=3 * settings.default.max_examples)
def test_the_best_cosines_are_those_of_all(steps, query, count, ties):
    _, points, table = followed(steps)
    asked = unit(np.array([query], np.float32))[0]
    scores = CosineScores(points.vectors(3), asked)
    expected = {row: cosine(vector, query) for row, (_, vector) in table.items() if vector is not None}
    everything = as_dict(scores)
    assert everything == pytest.approx(expected, abs=1e-6)
    rows, values = scores.best(count, ties=ties)
    order = in_order(everything)
    if ties and 0 < count < len(order):
        last = everything[order[count - 1]]
        order = [row for row in order if everything[row] >= last]
    else:
        order = order[:count]
    assert rows.tolist() == order
    assert values.tolist() == [everything[row] for row in order]


@given(steps, st.lists(st.integers(1, 14), unique=True))
def test_scores_of_some_rows_are_those_of_all(steps, wanted):
    words, points, _ = followed(steps)
    asked = unit(np.array([[1, 1, 0]], np.float32))[0]
    for make in (
        lambda: CosineScores(points.vectors(3), asked),
        lambda: TextScores(words.texts(), "memory error"),
        lambda: HybridScores(points.vectors(3), asked, words.texts(), "memory error", 0.3, 0.7),
    ):
        some, every = make(), as_dict(make())
        some.know(rows_of(wanted))
        assert [some.by_row[row] for row in wanted] == [every.get(row) for row in wanted]


@given(steps, st.floats(0, 5), st.floats(0.01, 5))
@settings(max_examples=2 * settings.default.max_examples)
def test_hybrid_scores_lie_between_0_and_1_and_need_one_side_only(steps, weight_vector, weight_words):
    words, points, table = followed(steps)
    asked = unit(np.array([[1, 2, 0]], np.float32))[0]
    scores = HybridScores(
        points.vectors(3), asked, words.texts(), "memory error disk disk", weight_vector, weight_words
    )
    found = as_dict(scores)
    assert all(0 <= score <= 1 for score in found.values())
    assert set(found) == {row for row, (text, vector) in table.items() if text is not None or vector is not None}


def test_a_column_that_changed_a_lot_is_packed(monkeypatch):
    monkeypatch.setattr(slots_module, "_DEAD", 4)
    words, points = TextColumn(), VectorColumn()
    named = [f"zork{chr(97 + turn // 26)}{chr(97 + turn % 26)}q" for turn in range(50)]
    for turn in range(50):
        rows = np.arange(1, 9)
        words.change(NONE, rows, [f"note of {named[turn]}" for row in rows])
        points.change(NONE, rows, [[float(row), float(turn), 1.0] for row in rows])
    assert words._slots.size <= 24
    assert points._groups[3].slots.size <= 24
    assert as_dict(TextScores(words.texts(), named[49])).keys() == set(range(1, 9))
    assert all(score > 0 for score in as_dict(TextScores(words.texts(), named[49])).values())
    assert not any(as_dict(TextScores(words.texts(), named[48])).values())


def test_many_rows_at_once_and_then_a_few():
    words = TextColumn()
    rows = np.arange(1, 3001)
    words.change(NONE, rows, [f"row number n{row}" for row in rows])
    before = words.texts()
    words.change(rows_of([5]), rows_of([7, 3001]), ["seven changed", "a newcomer n5"])
    assert as_dict(TextScores(before, "n5"))[5] > 0
    scores = TextScores(words.texts(), "n5 seven")
    assert [row for row, score in as_dict(scores).items() if score] == [7, 3001]
    assert scores.by_row[5] is None


def test_vectors_of_several_dimensions_are_told_apart():
    points = VectorColumn()
    points.change(NONE, rows_of([1, 2, 3]), [[1.0, 0.0], [1.0, 0.0, 0.0], None])
    assert points.dimensions() == [2, 3]
    assert points.vectors(2).rows.tolist() == [1]
    points.change(rows_of([1]), NONE, [])
    assert points.dimensions() == [3]


def test_a_vector_of_zeros_scores_0_and_one_that_is_not_finite_has_no_score():
    points = VectorColumn()
    points.change(NONE, rows_of([1, 2, 3, 4]), [[0.0, 0.0], [math.inf, 1.0], [None, 1.0], [1.0, 0.0]])
    scores = CosineScores(points.vectors(2), np.array([1, 0], np.float32))
    assert as_dict(scores) == {1: 0.0, 4: 1.0}


def test_estimates_lead_to_the_same_best_rows(monkeypatch):
    monkeypatch.setattr(vectors_module, "_ALL_EXACT", 1000)
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((40, 64))
    matrix = (centres[rng.integers(0, 40, 6000)] + 0.6 * rng.standard_normal((6000, 64))).astype(np.float32)
    matrix[17] = 0
    points, words = VectorColumn(), TextColumn()
    rows = np.arange(1, 6001)
    points.change(NONE, rows, list(matrix))
    points.change(rows_of(range(100, 200)), rows_of([50]), [matrix[3]])
    words.change(NONE, rows, [f"text of {row % 97}" for row in rows])
    held = points.vectors(64)
    query = unit(centres[:1].astype(np.float32))[0]
    assert held.estimate(query) is not None
    for make in (
        lambda: CosineScores(held, query),
        lambda: HybridScores(held, query, words.texts(), "text of 13", 0.6, 0.4),
    ):
        exact = make()
        assert exact.values.size >= held.size
        estimated, all_values = make().best(25), exact.best(25)
        assert estimated[0].tolist() == all_values[0].tolist()
        assert estimated[1].tolist() == all_values[1].tolist()
    assert not set(CosineScores(held, query).best(200)[0].tolist()) & set(range(100, 200))


def test_maxsim_sums_the_best_match_of_each_query_vector():
    many = VectorsColumn()
    many.change(NONE, rows_of([1, 2, 3, 4, 5]), [[[1, 0], [0, 2]], [[1, 1]], None, [], [[math.inf, 0]]])
    many.change(rows_of([9]), rows_of([2]), [[[-1, 0]]])
    scores = MaxSimScores(many.stack(2), unit(np.array([[3, 0], [0, 1]], np.float32)))
    assert as_dict(scores) == pytest.approx({1: 2.0, 2: -1.0, 4: 0.0})
    assert many.dimensions() == [2]


def test_a_query_that_is_null_scores_nothing():
    none = NoScores()
    assert none.by_row[1] is None
    assert NoScores().best(3)[0].size == 0


def test_words_cannot_drown_a_perfect_vector():
    """A text that says the rare word of the question a thousand times against the very vector asked for."""
    words, points = TextColumn(), VectorColumn()
    rows = np.arange(1, 1001)
    said = ["nothing to see"] * 998 + ["zyzzyva " * 1000, "quiet"]
    matrix = np.zeros((1000, 4), np.float32)
    matrix[:, 1], matrix[999] = 1, [1, 0, 0, 0]
    words.change(NONE, rows, said)
    points.change(NONE, rows, list(matrix))
    query = np.array([1, 0, 0, 0], np.float32)
    scores = TextScores(words.texts(), "zyzzyva")
    words_alone = scores.by_row[999]
    assert words_alone is not None
    assert words_alone > 5
    scores = HybridScores(points.vectors(4), query, words.texts(), "zyzzyva", 0.9, 0.1)
    assert scores.best(2)[0].tolist() == [1000, 999]
    assert HybridScores(points.vectors(4), query, words.texts(), "zyzzyva", 0.5, 0.5).best(1)[0].tolist() == [999]
