"""Nearest vectors from sign bits and codes against brute force, at the sizes where estimates matter."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rmem import Brain, Filter
from rmem.index import bits
from rmem.index import filtered_rows as filtered_rows_module
from rmem.index.filtered_rows import FilteredRows, nearest_rows
from rmem.index.recall_index import RecallIndex
from rmem.stores.indexed import derive, index_row
from rmem.testing.contract import example
from rmem.testing.synthetic import clustered_vectors, synthetic_memories

PATTERN = index_row(example("the same words"), derive(example("the same words")), 1, 1)


class Rows:
    """The original vectors, as a store would hand them out."""

    def __init__(self, vectors):
        self.vectors = vectors

    def vectors_at(self, seqs, dimension):
        return self.vectors[seqs - 1]

    def texts_at(self, seqs):
        return [""] * seqs.size


def index_of(vectors, batches):
    """An index that the vectors entered in batches of these sizes; the last size is used until the end."""
    index = RecallIndex(None)
    start = 0
    sizes = list(batches)
    while start < len(vectors):
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        index.extend(
            [
                replace(
                    PATTERN, seq=at + 1, original_seq=at + 1, agent=f"agent-{at % 100}", step=at, vector=vectors[at]
                )
                for at in range(start, min(start + size, len(vectors)))
            ]
        )
        start += size
    return index


def recall_at_10(index, vectors, questions, where, rows):
    """The share of the true ten nearest that were found; equally near ones are equally good."""
    found_rows = FilteredRows(index, where, Rows(vectors))
    inside = vectors if rows is None else vectors[rows]
    hits = 0
    for question in questions:
        _, scores = nearest_rows(found_rows, question, 10)
        bar = np.partition(inside @ question, -10)[-10]
        hits += int((scores >= bar - 1e-6).sum())
    return hits / (10 * len(questions))


@cache
def _vectors(count, dimension):
    return clustered_vectors(count, dimension)


@pytest.mark.parametrize("count", [30_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("dimension", "batches"),
    [
        pytest.param(64, (1, 1, 50, 5000), id="64-the first come one by one"),
        pytest.param(64, (20_000,), id="64-in bulk", marks=pytest.mark.slow),
        pytest.param(256, (1, 1, 50, 5000), id="256-the first come one by one", marks=pytest.mark.slow),
        pytest.param(256, (20_000,), id="256-in bulk"),
    ],
)
def test_nearest_of_many_thousands_are_the_true_nearest(dimension, batches, count):
    vectors = _vectors(count, dimension)
    questions = clustered_vectors(100, dimension, part=9)
    index = index_of(vectors, batches)
    for name, where, rows in (
        ("everything", Filter(), None),
        ("one agent in a hundred", Filter(agent="agent-7"), slice(7, None, 100)),
        ("a third", Filter(agent=[f"agent-{n}" for n in range(33)]), np.flatnonzero(np.arange(count) % 100 < 33)),
        ("the newest half", Filter(min_step=count // 2), slice(count // 2, None)),
    ):
        assert recall_at_10(index, vectors, questions, where, rows) >= 0.999, name


def test_neighbours_whose_bits_are_not_among_the_best_are_found_as_well(monkeypatch):
    """Among a million rows the first look takes one in a thousand, fewer than are alike; here it takes as few."""
    monkeypatch.setattr(filtered_rows_module, "_FIRST", 32)
    rng = np.random.default_rng(4)
    vectors, questions = rng.standard_normal((30_000, 256)), rng.standard_normal((50, 256))
    theme = rng.standard_normal(256)
    vectors[rng.random(30_000) < 0.03] += theme
    questions += theme
    vectors, questions = (
        (many / np.linalg.norm(many, axis=1, keepdims=True)).astype(np.float32) for many in (vectors, questions)
    )
    assert recall_at_10(index_of(vectors, (20_000,)), vectors, questions, Filter(), None) >= 0.99


def test_nearest_among_vectors_that_crowd_in_one_direction():
    """Real embeddings share a large common part; signs around zero would tell nothing."""
    rng = np.random.default_rng(8)
    vectors = _vectors(30_000, 256)[:15_000] + 2 * rng.standard_normal(256).astype(np.float32) / 16
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    questions = vectors[::375] + 0.02 * rng.standard_normal((40, 256)).astype(np.float32)
    questions /= np.linalg.norm(questions, axis=1, keepdims=True)
    assert recall_at_10(index_of(vectors, (1, 4000)), vectors, questions, Filter(), None) >= 0.999


def test_nearest_among_the_vectors_of_real_texts():
    with Brain(":memory:") as brain:
        texts = [memory["text"] for memory in synthetic_memories(8000)]
        assert brain.embedder
        vectors = brain._embedding.resolve().embed(texts)
        questions = brain._embedding.resolve().embed([" ".join(text.split()[:6]) for text in texts[::200]])
    assert recall_at_10(index_of(vectors, (1, 5000)), vectors, questions, Filter(), None) >= 0.98


@pytest.mark.parametrize("dimension", [8, 31, 32, 33, 63, 64, 65, 255, 256, 257, 1000, 4096])
def test_vectors_of_every_dimension_are_found(dimension):
    count = 2500 if dimension < 1000 else 1300
    vectors = clustered_vectors(count, dimension)
    index = index_of(vectors, (1, 700))
    assert recall_at_10(index, vectors, vectors[::251], Filter(), None) == 1.0


def test_memories_without_a_vector_are_never_near():
    vectors = clustered_vectors(3000, 64).copy()
    vectors[::3] = 0
    given = [vector if vector.any() else None for vector in vectors]
    index = index_of(given, (5, 600))
    found_rows = FilteredRows(index, Filter(), Rows(vectors))
    for question in clustered_vectors(10, 64, part=3):
        at, scores = nearest_rows(found_rows, question, 2500)
        assert len(at) == 2000
        assert (at % 3 != 0).all()
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("first", [0, 1, 1023, 1024, 1500])
def test_vectors_may_begin_after_any_number_of_memories_without(first):
    """A store may hold memories without vectors before the first one with a vector arrives."""
    vectors = clustered_vectors(2600, 48)
    given = [None if at < first else vector for at, vector in enumerate(vectors)]
    index = index_of(given, (300,))
    found_rows = FilteredRows(index, Filter(), Rows(vectors))
    for question in vectors[-10:]:
        at, _ = nearest_rows(found_rows, question, 10)
        exact = vectors[first:] @ question
        assert set(at.tolist()) == set((np.argsort(-exact, kind="stable")[:10] + first).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [64, 256])
def test_nearest_of_a_million_are_the_true_nearest(dimension):
    vectors = np.concatenate([clustered_vectors(100_000, dimension, part=part) for part in range(10)])
    questions = clustered_vectors(50, dimension, part=99)
    index = index_of(vectors, (1, 100_000))
    for where, rows in (
        (Filter(), None),
        (Filter(agent="agent-7"), slice(7, None, 100)),
        (Filter(max_step=499_999), slice(0, 500_000)),
    ):
        assert recall_at_10(index, vectors, questions, where, rows) >= 0.999


def test_dimensions_of_small_variance_do_not_spoil_the_estimate():
    rng = np.random.default_rng(3)
    spread = np.geomspace(4, 0.1, 256)  # as in an embedding whose dimensions are sorted by variance
    vectors = bits.unit((rng.standard_normal((20_000, 256)) * spread).astype(np.float32))
    columns = bits.VectorColumns(256)
    columns.append(vectors)
    found = 0
    for query in bits.unit((rng.standard_normal((40, 256)) * spread).astype(np.float32)):
        nearest = np.argsort(-(vectors @ query))[:10]
        found += len(set(nearest) & set(columns.estimate(query, None, 20_000).best(448)))
    assert found >= 0.85 * 400  # 0.90; 0.25 with the signs of the dimensions themselves


@pytest.mark.parametrize("dimension", [256, 384, 512])
def test_rotations_are_those_of_the_bits_in_existing_stores(dimension):
    numbers = np.arange(dimension, dtype=np.float32)
    waves = np.cos(np.outer(numbers + np.float32(0.5), numbers * np.float32(np.pi / dimension)))
    signs = np.random.default_rng(20_260_501).choice(np.array([-1, 1], np.float32), dimension)
    assert np.array_equal(bits.directions(dimension).T, waves * signs[:, None])
