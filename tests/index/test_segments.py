"""Segments: packed and read back they hold exactly what the index held, without the dead."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rmem import Filter
from rmem.index import best_scores, bits, segments
from rmem.index.postings import Postings
from rmem.index.recall_index import RecallIndex
from rmem.stores.indexed import derive, index_row
from rmem.testing.contract import FILTERS, WORDS, clustered_vectors, example


def _rows(count, dimension=48, seed=1):
    rng = np.random.default_rng(seed)
    vectors = clustered_vectors(count, dimension, seed=seed)
    rows = []
    for number in range(count):
        memory = example(
            " ".join(rng.choice(WORDS, 5)),
            memory_id=f"m{number}",
            agent_id=f"agent-{number % 3}",
            session=None if number % 5 == 0 else f"s-{number % 4}",
            actor=(None, "alice", "bob")[number % 3],
            tags={"repo": f"r{number % 4}"},
            contents={"count": number % 6},
            step_number=number,
            timestamp=1_700_000_000.0 + number,
            importance_score=(number % 11) / 10,
            position=None if number % 4 == 3 else (float(number % 10), float(number // 10)),
            vector=None if number % 17 == 16 else vectors[number],
        )
        rows.append(index_row(memory, derive(memory), number + 1, number + 1))
    return rows


def _index(rows):
    index = RecallIndex(None)
    index.extend(rows)
    return index


def _stored(segment):
    """There and back through what a store keeps."""
    blobs = {name: np.ascontiguousarray(array).tobytes() for name, array in segment.arrays.items()}
    head = segments.header(segment)
    return segments.read(segment.first_seq, segment.last_seq, segment.rows, segment.changes, head, blobs)


def _seen(index):
    """Every filter and every word, by seq."""
    seq = index.columns["seq"]
    selected = []
    for where in ({}, *FILTERS):
        rows = index.select(Filter.of(where))
        selected.append((seq if rows is None else seq[rows]).tolist())
    words = []
    for memory in (example(word) for word in WORDS):
        for term in derive(memory).terms.hashes.tolist():
            found, counts, _ = index.postings.lookup([term])
            alive = index.columns["alive"][found]
            words.append((seq[found[alive]].tolist(), counts[alive].tolist()))
    alive = index.columns["alive"]
    links = {}
    for name in ("previous", "next"):
        rows = index.columns[name][alive]
        links[name] = [int(seq[row]) if row >= 0 else None for row in rows]
    vectors = (index.vectors.codes[: index.size][alive], index.vectors.scales[: index.size][alive])
    return selected, words, links, vectors


@given(
    st.integers(1, 60),
    st.lists(st.integers(0, 59), max_size=30),
    st.lists(st.integers(1, 59), max_size=3, unique=True),
)
@settings(max_examples=2 * settings.default.max_examples)
def test_an_index_packed_in_any_number_of_segments_is_the_same_index(count, dead, cuts):
    index = _index(_rows(60)[:count])
    for row in dead:
        index.kill(row + 1)
    bounds = [0, *sorted(cut for cut in cuts if cut < count), count]
    again = RecallIndex(None)
    for first, last in pairwise(bounds):
        segments.absorb(again, _stored(segments.pack(index, first + 1, last, 0)))
    assert again.alive == index.alive
    left, right = _seen(index), _seen(again) if again.vectors is not None else None
    if right is None:
        assert index.alive == 0 or not (index.vectors.scales[: index.size][index.columns["alive"]] > 0).any()
        return
    assert left[:3] == right[:3]
    assert np.array_equal(left[3][0], right[3][0])
    assert np.array_equal(left[3][1], right[3][1])


def test_rows_that_come_after_segments_join_them():
    rows = _rows(120)
    whole, later = _index(rows), RecallIndex(None)
    segments.absorb(later, _stored(segments.pack(_index(rows[:50]), 1, 50, 0)))
    later.extend(rows[50:80])
    for row in rows[80:]:
        later.extend([row])
    left, right = _seen(whole), _seen(later)
    assert left[:3] == right[:3]
    assert np.array_equal(left[3][0], right[3][0])


@pytest.mark.parametrize("seed", range(2))
def test_the_best_are_found_among_any_scores(seed):
    """`top` guesses a threshold from a sample in large arrays; the guess must never change the answer."""
    rng = np.random.default_rng(seed)
    for size in (1, 10, 1000, 20_000, 70_000):
        for scores in (
            rng.standard_normal(size).astype(np.float32),
            rng.integers(0, 3, size).astype(np.float32),
            np.zeros(size, np.float32),
            np.where(rng.random(size) < 0.001, rng.random(size), 0).astype(np.float32),
            np.arange(size, dtype=np.float32),
            np.where(np.arange(size) % 12 == 0, 1.0, rng.random(size)).astype(np.float32),
            np.where(rng.random(size) < 0.5, -np.inf, rng.random(size)).astype(np.float32),
        ):
            order = np.argsort(-scores, kind="stable")
            for count in (1, 10, 2000, size, size + 5):
                expected = order[:count]
                assert np.array_equal(best_scores.top(scores, count), expected)
                low = best_scores.least(-scores, count)
                assert len(np.unique(low)) == len(low) >= min(count, size)
                assert (scores[low] >= scores[expected[-1]]).sum() >= min(count, size)


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=40), st.lists(st.booleans(), max_size=40))
def test_postings_find_the_rows_of_every_term_however_they_were_added(rows, packed):
    postings = Postings()
    expected: dict[int, list[tuple[int, int]]] = {}
    for number, terms in enumerate(rows):
        counted = {term: terms.count(term) for term in terms}
        postings.add(number, counted.keys(), counted.values())
        for term, count in counted.items():
            expected.setdefault(term, []).append((number, count))
        if number < len(packed) and packed[number]:
            postings.pack_tail()
    asked = [*range(10), 99, 3]
    found, counts, ends = postings.lookup(asked)
    entries = list(zip(found.tolist(), counts.tolist(), strict=True))
    for term, (start, end) in zip(asked, pairwise([0, *ends]), strict=True):
        assert entries[start:end] == expected.get(term, [])
    assert postings.row_counts(asked) == {term: len(expected.get(term, [])) for term in asked}
    postings.blind_term_lookup = lambda term: (term + 5,) if term < 5 else ()
    assert postings.row_counts([0, 7]) == {
        0: len(expected.get(0, [])) + len(expected.get(5, [])),
        7: len(expected.get(7, [])),
    }


def test_codes_are_close_to_the_vectors_they_stand_for():
    for dimension in (8, 48, 256, 1000):
        vectors = clustered_vectors(500, dimension)
        codes, scales = bits.encode(vectors)
        close = (codes.astype(np.float32) * scales[:, None]) @ vectors[:20].T
        assert np.abs(close - vectors @ vectors[:20].T).max() < 0.006


@given(st.lists(st.integers(1, 5000), max_size=8), st.integers(1, 5000))
def test_merging_keeps_the_number_of_segments_small(sizes, fresh):
    """Whatever was there, after many additions the segments are few and the newest is not dwarfed."""
    held = list(sizes)
    for _ in range(200):
        taken = segments.count_to_absorb(held, fresh)
        assert 0 <= taken <= len(held)
        merged = fresh + sum(held[len(held) - taken :])
        assert merged <= segments.MAX_ROWS or taken == 0
        held = [*held[: len(held) - taken], merged]
    assert len(held) <= len(sizes) + 12 + sum(held) // (segments.MAX_ROWS // 2)


def test_sign_bits_of_an_earlier_kind_are_computed_again():
    index = _index(_rows(1200, dimension=256))
    segment = segments.pack(index, 0, index.last_seq, 0)
    segment.arrays["vectors.bits"] = ~segment.arrays.pop("vectors.signs")  # what earlier versions wrote, not rotated
    read = RecallIndex(None)
    segments.absorb(read, _stored(segment))
    for now, before in zip(read.vectors.words, index.vectors.words, strict=True):
        np.testing.assert_array_equal(now[:1200], before[:1200])
