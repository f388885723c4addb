"""The tests that every vector engine must pass: subclass the contract, provide the `index` fixture, run pytest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import pytest

from ..errors import InputError, VectorError
from ..vectors.base import FieldFilter, Fields, VectorIndex

DIMENSION = 16


def _vectors(count: int, seed: int = 0, dimension: int = DIMENSION) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    unit: npt.NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _fill(index: VectorIndex, count: int = 60) -> npt.NDArray[np.float32]:
    """Store vectors under the numbers 1 to `count`, with different fields; return them."""
    vectors = _vectors(count)
    fields = [
        Fields(f"agent-{n % 3}", "" if n % 4 == 0 else f"s-{n % 4}", ("fact", "error")[n % 2], "ann", 1.7e9 + n)
        for n in range(1, count + 1)
    ]
    index.upsert(list(range(1, count + 1)), vectors, fields)
    return vectors


class VectorIndexContract:
    """Tests of a VectorIndex that is empty."""

    def test_an_empty_index_finds_nothing(self, index: VectorIndex) -> None:
        assert index.search(_vectors(1)[0], 5) == []
        assert index.count() in (0, None)
        index.delete([1, 2])
        index.upsert([], np.zeros((0, DIMENSION), np.float32), [])

    def test_the_nearest_come_first_with_their_cosines(self, index: VectorIndex) -> None:
        vectors = _fill(index)
        for query in _vectors(5, seed=9):
            cosines = vectors @ query
            expected = np.argsort(-cosines)[:10]
            found = index.search(query, 10)
            assert [number for number, _ in found] == (expected + 1).tolist()
            if index.exact:
                assert np.allclose([score for _, score in found], cosines[expected], atol=2e-3)

    def test_more_than_there_are_is_all(self, index: VectorIndex) -> None:
        _fill(index, 7)
        assert sorted(number for number, _ in index.search(_vectors(1)[0], 100)) == list(range(1, 8))
        assert index.count() in (7, None)

    def test_a_number_that_is_upserted_again_is_replaced(self, index: VectorIndex) -> None:
        vectors = _fill(index, 20)
        index.upsert([3], -vectors[2:3], [Fields("agent-9")])
        assert index.search(-vectors[2], 1)[0][0] == 3
        assert 3 not in [number for number, _ in index.search(vectors[2], 5)]
        assert index.count() in (20, None)

    def test_of_a_number_that_comes_twice_the_last_counts(self, index: VectorIndex) -> None:
        vectors = _vectors(2)
        index.upsert([5, 5], vectors, [Fields(), Fields()])
        assert [number for number, _ in index.search(vectors[1], 5)] == [5]
        assert index.count() in (1, None)

    def test_what_is_deleted_is_gone(self, index: VectorIndex) -> None:
        vectors = _fill(index, 20)
        index.delete([1, 2, 3, 999])
        index.delete([3])
        assert {number for number, _ in index.search(vectors[0], 50)} == set(range(4, 21))
        assert index.count() in (17, None)

    def test_large_numbers_come_back_whole(self, index: VectorIndex) -> None:
        numbers = [1, 2**31, 2**53 + 1, 2**63 - 1]
        vectors = _vectors(4)
        index.upsert(numbers, vectors, [Fields()] * 4)
        assert [index.search(vector, 1)[0][0] for vector in vectors] == numbers
        index.delete([2**63 - 1])
        assert sorted(number for number, _ in index.search(vectors[0], 9)) == numbers[:3]

    def test_filters_are_regarded_or_left_to_the_store(self, index: VectorIndex) -> None:
        vectors = _fill(index)
        query = vectors[0]
        if not index.filters:
            pytest.skip(f"{type(index).__name__} does not filter; the store does")
        for where, inside in (
            (FieldFilter(agent=("agent-1",)), lambda n: n % 3 == 1),
            (FieldFilter(agent=("agent-0", "agent-2")), lambda n: n % 3 != 1),
            (FieldFilter(type=("error",), session=("s-1", "s-3")), lambda n: n % 2 == 1),
            (FieldFilter(since=1.7e9 + 10, until=1.7e9 + 20), lambda n: 10 <= n <= 20),
            (FieldFilter(agent=("nobody",)), lambda n: False),
            (FieldFilter(), lambda n: True),
        ):
            found = index.search(query, 60, where)
            assert sorted(number for number, _ in found) == [n for n in range(1, 61) if inside(n)], where

    def test_names_with_quotes_and_signs_are_only_names(self, index: VectorIndex) -> None:
        names = ['a"b', "a'b", "a\\b", 'x" or agent != "', "ü€𝄞", "%", "new\nline", "-"]
        vectors = _vectors(len(names))
        index.upsert(list(range(1, len(names) + 1)), vectors, [Fields(name, name, name, name, 1.0) for name in names])
        if not index.filters:
            pytest.skip(f"{type(index).__name__} does not filter; the store does")
        for number, name in enumerate(names, 1):
            found = index.search(vectors[0], 50, FieldFilter(agent=(name,), session=(name,)))
            assert [hit for hit, _ in found] == [number], name

    def test_vectors_of_another_dimension_are_refused(self, index: VectorIndex) -> None:
        _fill(index, 5)
        with pytest.raises(VectorError, match="16 numbers, got 8"):
            index.upsert([9], _vectors(1, dimension=8), [Fields()])
        with pytest.raises(VectorError, match="16 numbers, got 8"):
            index.search(_vectors(1, dimension=8)[0], 3)
        with pytest.raises(InputError, match="2 ids need as many vectors"):
            index.upsert([1, 2], _vectors(1), [Fields()])

    def test_after_clear_another_dimension_may_come(self, index: VectorIndex) -> None:
        _fill(index, 5)
        index.clear(range(1, 6))
        assert index.search(_vectors(1)[0], 3) == []
        assert index.count() in (0, None)
        index.upsert([2], _vectors(1, dimension=24), [Fields()])
        assert [number for number, _ in index.search(_vectors(1, dimension=24)[0], 3)] == [2]

    def test_threads_do_not_disturb_each_other(self, index: VectorIndex) -> None:
        vectors = _vectors(80)
        index.upsert([1], vectors[:1], [Fields()])

        def work(part: int) -> list[int]:
            numbers = list(range(1 + 10 * part, 11 + 10 * part))
            index.upsert(numbers, vectors[10 * part : 10 * part + 10], [Fields()] * 10)
            return [index.search(vectors[number - 1], 1)[0][0] for number in numbers]

        with ThreadPoolExecutor(4) as pool:
            assert [number for part in pool.map(work, range(8)) for number in part] == list(range(1, 81))

    def test_closing_twice_is_harmless(self, index: VectorIndex) -> None:
        _fill(index, 3)
        index.close()
        index.close()
