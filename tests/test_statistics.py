"""Statistics against scipy and values worked out by hand."""

import numpy as np
from scipy import stats

from rove.statistics import (
    bootstrap_interval,
    difference_interval,
    episodes_to_solve,
    moving_average,
    solve_summary,
)


def test_moving_average_by_hand():
    np.testing.assert_allclose(moving_average(np.array([1.0, 3, 5, 7]), 2), [1, 2, 4, 6])
    np.testing.assert_allclose(moving_average(np.array([[2.0, 4, 9]]), 20), [[2, 3, 5]])


def test_moving_average_against_convolution():
    values = np.random.default_rng(0).normal(size=(3, 100))
    for row, smooth in zip(values, moving_average(values, 7), strict=True):
        np.testing.assert_allclose(smooth[6:], np.convolve(row, np.ones(7) / 7, "valid"))


def test_bootstrap_interval_against_scipy():
    values = np.random.default_rng(1).normal(size=9)
    low, high = bootstrap_interval(values, resamples=20_000)
    oracle = stats.bootstrap(
        (values,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(2)
    ).confidence_interval
    # Both are Monte Carlo: about 0.01 apart at 20,000 resamples.
    np.testing.assert_allclose([low, high], oracle, atol=0.03)


def test_bootstrap_interval_of_equal_values_is_a_point():
    low, high = bootstrap_interval(np.full((5, 3), 2.5))
    np.testing.assert_allclose([low, high], 2.5)


def test_difference_interval_against_scipy():
    rng = np.random.default_rng(3)
    a, b = rng.normal(1.0, size=7), rng.normal(0.0, size=5)
    gain, interval = difference_interval(a, b, resamples=20_000)
    assert np.isclose(gain, a.mean() - b.mean())
    oracle = stats.bootstrap(
        (a, b),
        lambda x, y, axis=-1: x.mean(axis) - y.mean(axis),
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(4),
    ).confidence_interval
    np.testing.assert_allclose(interval, oracle, atol=0.04)


def test_episodes_to_solve_by_hand():
    good, bad = [11.0] * 10, [11.0] * 9
    assert episodes_to_solve(np.array(good), 11.0) == 10
    assert episodes_to_solve(np.array([*bad, 0.0, *good]), 11.0) == 20
    assert episodes_to_solve(np.array([*bad, 10.0, *bad]), 11.0) is None


def test_solve_summary():
    assert solve_summary([50, 70, 60]) == "3 of 3, median 60"
    assert solve_summary([50, None, None]) == "1 of 3, median not reached"
    assert solve_summary([None, None]) == "0 of 2"
