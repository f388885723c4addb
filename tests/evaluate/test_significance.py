"""Significance: known differences are found, luck is not, and the same seed gives the same figure."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rmem.evaluate.significance import paired_interval, paired_p, unpaired_p


def test_a_difference_that_is_always_there_is_found():
    assert paired_p([0.1] * 20) < 0.001
    low, high = paired_interval([0.1] * 20)
    assert (low, high) == pytest.approx((0.1, 0.1))


def test_no_difference_is_no_difference():
    assert paired_p([0.0] * 50) == 1.0
    assert paired_p([]) == 1.0
    assert paired_p([0.3, -0.3]) == 1.0


def test_the_paired_test_is_the_exact_one_as_far_as_rounds_allow():
    differences = np.array([0.5, 0.2, -0.1, 0.4, 0.3, 0.05])
    signs = np.array(list(product((-1, 1), repeat=6)))
    exact = float((np.abs(signs @ differences) >= differences.sum() - 1e-12).mean())
    assert paired_p(differences.tolist(), rounds=40_000) == pytest.approx(exact, abs=0.01)


def test_luck_is_called_significant_about_as_rarely_as_promised():
    rng = np.random.default_rng(1)
    found = [paired_p(rng.normal(size=30).tolist(), rounds=400, seed=at) < 0.05 for at in range(400)]
    assert 0.02 < np.mean(found) < 0.09
    found = [
        unpaired_p(rng.integers(0, 2, 40).tolist(), rng.integers(0, 2, 50).tolist(), rounds=400, seed=at) < 0.05
        for at in range(300)
    ]
    assert np.mean(found) < 0.09


def test_the_interval_covers_the_true_difference():
    rng = np.random.default_rng(2)
    inside = 0
    for at in range(200):
        low, high = paired_interval(rng.normal(0.2, 1, 60).tolist(), rounds=500, seed=at)
        inside += low <= 0.2 <= high
    assert 0.88 < inside / 200 <= 1


def test_two_groups_that_differ_are_told_apart():
    assert unpaired_p([1.0] * 30, [0.0] * 30) < 0.001
    assert unpaired_p([1.0, 0.0], [1.0, 0.0]) > 0.5
    assert unpaired_p([1.0] * 10, [1.0] * 10) == 1.0
    assert unpaired_p([], [1.0]) == 1.0


def test_the_same_seed_gives_the_same_figure():
    differences = np.random.default_rng(3).normal(0.1, 1, 50).tolist()
    assert paired_p(differences, seed=5) == paired_p(differences, seed=5)
    assert paired_interval(differences, seed=5) == paired_interval(differences, seed=5)
    assert paired_interval(differences, seed=5) != paired_interval(differences, seed=6)
