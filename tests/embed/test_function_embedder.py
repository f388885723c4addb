"""Wrapping a function of one's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from rmem.embed.function import FunctionEmbedder
from rmem.errors import ConfigError, EmbedderError


def lengths_and_vowels(texts: list[str]) -> list[list[float]]:
    return [[len(text), sum(letter in "aeiou" for letter in text), 1.0] for text in texts]


class Scaled:
    def __call__(self, texts: list[str]) -> Any:
        return np.ones((len(texts), 4)) * 7


def test_answers_are_brought_to_unit_length() -> None:
    rows = FunctionEmbedder(lengths_and_vowels).embed(["hello", "sky"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1], atol=1e-6)
    np.testing.assert_allclose(rows[0], np.array([5, 2, 1]) / np.sqrt(30), atol=1e-6)
    assert rows.dtype == np.float32


def test_the_dimension_is_probed_or_given() -> None:
    assert FunctionEmbedder(lengths_and_vowels).dimension == 3
    assert FunctionEmbedder(Scaled(), dimension=4).dimension == 4


@pytest.mark.parametrize(
    ("function", "ending"),
    [
        (lengths_and_vowels, ".lengths_and_vowels"),
        (Scaled(), ".Scaled"),
        (partial(lengths_and_vowels), ".lengths_and_vowels"),
    ],
)
def test_the_name_is_that_of_the_function(function: Callable[[list[str]], Any], ending: str) -> None:
    name = FunctionEmbedder(function).name
    assert name.startswith("function:")
    assert name.endswith(ending)


def test_a_given_name_wins() -> None:
    assert FunctionEmbedder(lengths_and_vowels, name="toy-1").name == "function:toy-1"


def test_texts_without_content_are_zeros_and_not_passed_on() -> None:
    seen: list[str] = []

    def remember(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[1.0, 0.0] for _ in texts]

    rows = FunctionEmbedder(remember, dimension=2).embed(["", "a", " \n"])
    assert rows.tolist() == [[0, 0], [1, 0], [0, 0]]
    assert seen == ["a"]


def test_many_texts_are_passed_in_batches_and_stay_in_order() -> None:
    sizes: list[int] = []

    def number(texts: list[str]) -> list[list[float]]:
        sizes.append(len(texts))
        return [[float(text), 1.0] for text in texts]

    rows = FunctionEmbedder(number, dimension=2, batch=10).embed([str(n) for n in range(25)])
    assert sizes == [10, 10, 5]
    np.testing.assert_allclose(rows[:, 0] / rows[:, 1], range(25), atol=1e-4)


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([[1.0, 2.0]], "2 vectors"),
        ([[1.0, 2.0], [1.0]], "equal length"),
        ([[1.0, float("nan")], [1.0, 2.0]], "NaN"),
        ([[1.0, float("inf")], [1.0, 2.0]], "infinity"),
        ([[1.0], [1.0]], "2 numbers, got 1"),
        ([["a", "b"], ["c", "d"]], "numbers"),
        (None, "2 vectors"),
        ([[[1.0, 2.0]], [[1.0, 2.0]]], "shape"),
    ],
)
def test_a_wrong_answer_is_an_error_that_names_the_function(answer: Any, complaint: str) -> None:
    with pytest.raises(EmbedderError, match=f"function:wrong.*{complaint}"):
        FunctionEmbedder(lambda texts: answer, name="wrong", dimension=2).embed(["a", "b"])


def test_the_functions_own_exception_is_kept_as_the_cause() -> None:
    def broken(texts: list[str]) -> Any:
        raise RuntimeError("out of tokens")

    with pytest.raises(EmbedderError, match="out of tokens") as caught:
        FunctionEmbedder(broken).embed(["a"])
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="batch must be"):
        FunctionEmbedder(lengths_and_vowels, batch=0)
