"""Statistics over tasks and seeds, against enumeration and simulation."""

import itertools

import numpy as np
import pytest
from scipy import stats

from rove.paper.suite.statistics import (
    profile,
    score_difference,
    solved_difference,
    tasks_solved,
)

TAUS = np.array([0.0, 0.25, 0.5, 0.75])


def test_a_profile_is_a_fraction_of_runs_and_tasks_weigh_the_same():
    scores = [np.array([0.0, 0.5]), np.array([1.0, 0.25, 0.5, 0.75])]
    curve, band = profile(scores, TAUS)
    assert curve.tolist() == [(0.5 + 1) / 2, (0.5 + 0.75) / 2, (0 + 0.5) / 2, (0 + 0.25) / 2]
    assert np.all((band[0] <= curve) & (curve <= band[1]))


def test_the_band_is_that_of_all_resamples():
    """Of two tasks with two seeds, all 4 × 4 resamples can be listed."""
    scores = [np.array([0.0, 0.6]), np.array([0.3, 0.9])]
    listed = [
        np.mean([[np.mean([first[i] > t for i in a]), np.mean([second[j] > t for j in b])]
                 for t in TAUS], axis=1)
        for first, second in [scores]
        for a in itertools.product(range(2), repeat=2)
        for b in itertools.product(range(2), repeat=2)
    ]  # fmt: skip
    _, band = profile(scores, TAUS, draws=20_000)
    assert band[0].tolist() == np.min(listed, axis=0).tolist()  # each has a chance of 1/16
    assert band[1].tolist() == np.max(listed, axis=0).tolist()


def test_the_interval_of_several_tasks_is_jeffreys():
    """Against an agent that solved none of very many seeds, whose probability is almost 0."""
    solved, never = np.arange(10) < 7, np.zeros(100_000, bool)
    found = solved_difference([solved, never], [never, never])
    assert found.value == pytest.approx(0.7)
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 7.5, 3.5), abs=0.01)
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 7.5, 3.5), abs=0.01)


def test_ten_of_ten_are_not_certain():
    sure, never = [np.ones(10, bool)], [np.zeros(10, bool)]
    found = solved_difference(sure, never)
    assert found.value == 1.0
    assert 0.5 < found.low < 0.9
    assert found.p < 0.05
    assert solved_difference(sure, sure).p > 0.5


@pytest.mark.slow
def test_intervals_of_solved_tasks_contain_the_truth_about_as_often_as_they_say():
    """Ten tasks, ten seeds, probabilities at 0, at 1 and between them."""
    random = np.random.default_rng(3)
    a, b = np.array([1, 1, 1, 0.9, 0.8, 0.5, 0.3, 0.1, 0, 0]), np.array([1, 0.9, 0.5] + [0] * 7)
    truth, inside = np.sum(a) - np.sum(b), 0
    for _ in range(200):
        rows = [[random.random(10) < p for p in probabilities] for probabilities in (a, b)]
        found = solved_difference(*rows)
        assert found.value == pytest.approx(tasks_solved(rows[0]) - tasks_solved(rows[1]))
        inside += found.low <= truth <= found.high
    assert 180 <= inside <= 200


def test_a_difference_of_scores_has_the_spread_of_tasks():
    """With one seed per task, it is the bootstrap of the differences of tasks."""
    random = np.random.default_rng(1)
    a, b = random.random((2, 12))
    found = score_difference([x[None] for x in a], [x[None] for x in b])
    gaps = a - b
    listed = gaps[random.integers(12, size=(20_000, 12))].mean(axis=1)
    assert found.value == pytest.approx(gaps.mean())
    assert found.low == pytest.approx(np.quantile(listed, 0.025), abs=0.01)
    assert found.high == pytest.approx(np.quantile(listed, 0.975), abs=0.01)
    same = score_difference([x[None] for x in a], [x[None] for x in a])
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
