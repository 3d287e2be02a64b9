"""Statistics against scipy and values worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from rove.statistics import (
    Estimate,
    area_under_curve,
    bootstrap_interval,
    collapsed_at,
    difference_interval,
    episodes_to_solve,
    estimate,
    held,
    interquartile_mean,
    kaplan_meier,
    log_variances,
    mean,
    mean_interval,
    mean_over_steps,
    median,
    median_episodes_to_solve,
    moving_average,
    performance_profile,
    probability_of_improvement,
    recent_at,
    score_at,
    solve_summary,
    steadiness,
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
    a, b = rng.normal(1.0, size=7), rng.normal(0.0, 3.0, size=5)
    gain, interval = difference_interval(a, b)
    assert np.isclose(gain, a.mean() - b.mean())
    oracle = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    np.testing.assert_allclose(interval, oracle)
    assert difference_interval(np.ones(5), np.zeros(5)) == (1.0, (1.0, 1.0))
    assert difference_interval(np.ones(1), np.zeros(5)) == (1.0, (-np.inf, np.inf))


def test_mean_interval_against_scipy():
    gains = np.random.default_rng(3).normal(1.0, size=5)
    mean, interval = mean_interval(gains)
    assert np.isclose(mean, gains.mean())
    np.testing.assert_allclose(interval, stats.ttest_1samp(gains, 0.0).confidence_interval())
    assert mean_interval(np.full(3, 2.0)) == (2.0, (2.0, 2.0))
    assert mean_interval(np.ones(1)) == (1.0, (-np.inf, np.inf))


def test_the_intervals_of_verdicts_hold_the_truth_as_often_as_they_say():
    """Of five seeds: 95 times of 100, and so does not a percentile bootstrap, of a mean (84) or of
    a difference of two (87)."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 5, 1000))
    intervals = [difference_interval(x, y)[1] for x, y in zip(a.T, b.T, strict=True)]
    assert _holding_zero(intervals) == pytest.approx(0.95, abs=0.02)
    assert _holding_zero([mean_interval(x)[1] for x in a.T]) == pytest.approx(0.95, abs=0.02)
    assert _holding_zero(np.transpose(bootstrap_interval(a))) == pytest.approx(0.84, abs=0.02)
    drawn = [x[rng.integers(5, size=(500, 5))].mean(axis=1) for x in (a, b)]
    ends = np.quantile(drawn[0] - drawn[1], [0.025, 0.975], axis=0)
    assert _holding_zero(ends.T) == pytest.approx(0.87, abs=0.02)


def _holding_zero(intervals):
    low, high = np.transpose(intervals)
    return np.mean((low <= 0.0) & (high >= 0.0))


def test_groups_of_one_variance_are_seldom_told_apart_by_it():
    """At most 5 times of 100, where one of four times the deviation is so 40 times."""
    a, b = np.random.default_rng(1).normal(size=(2, 200, 5, 1))

    def told_apart(times):
        pairs = zip(times * a, b, strict=True)
        return 1 - _holding_zero(
            [difference_interval(log_variances(x), log_variances(y))[1] for x, y in pairs]
        )

    assert told_apart(1.0) < 0.07
    assert told_apart(4.0) > 0.3


def test_log_variances_of_a_curve_are_of_its_mean_variance():
    """And each is n times it, less n − 1 times what it is without a seed."""
    curves = np.random.default_rng(2).normal(0.0, 3.0, (5, 20))

    def of(rows):
        return np.log(rows.var(axis=0, ddof=1).mean())

    by_hand = [5 * of(curves) - 4 * of(np.delete(curves, seed, axis=0)) for seed in range(5)]
    np.testing.assert_allclose(log_variances(curves), by_hand)
    np.testing.assert_allclose(log_variances(curves + 5.0), log_variances(curves), atol=1e-9)
    assert np.all(np.isfinite(log_variances(np.ones((5, 3)))))


def test_steadiness_by_hand():
    curves = np.array([[0.0, 1, 3, 3], [0, 3, 0, 3], [2, 2, 2, 2], [3, 1, 0, 0]])
    np.testing.assert_allclose(steadiness(curves), [1, 1 / 3, 0, -1])


def test_scores_by_steps_by_hand():
    assert mean_over_steps(np.array([2.0, 8.0]), np.array([1, 3])) == 6.5
    assert mean_over_steps(np.array([]), np.array([])) == 0.0
    ends, scores = np.array([10, 20, 25]), np.array([1.0, 3.0, 8.0])
    found = recent_at(scores, ends, np.array([9, 10, 24, 25, 99]), last=2)
    np.testing.assert_array_equal(found, [np.nan, 1.0, 2.0, 5.5, 5.5])
    found = score_at(scores, ends, np.array([1, 10, 11, 25, 26]))
    np.testing.assert_array_equal(found, [1.0, 1.0, 3.0, 8.0, np.nan])


def test_episodes_to_solve_by_hand():
    good, bad = [11.0] * 10, [11.0] * 9
    assert episodes_to_solve(np.array(good), 11.0) == 10
    assert episodes_to_solve(np.array([*bad, 0.0, *good]), 11.0) == 20
    assert episodes_to_solve(np.array([*bad, 10.0, *bad]), 11.0) is None


def lanes(*solved, watched=99):
    """Scores of lanes that end when they have solved it, or were watched for so long."""
    return [np.repeat([0.0, 11.0], [at - 10, 10] if at else [watched, 0]) for at in solved]


def test_solve_summary():
    told = solve_summary(lanes(50, 70, 60), 11.0)
    assert told == "3 of 3, median 60, 95% interval 50 to 70"
    told = solve_summary(lanes(50, None, None), 11.0)
    assert told == "1 of 3, median not reached, 95% interval 50 to not reached"
    lost = [*lanes(50, 60, 70), *lanes(None, watched=55)]
    assert solve_summary(lost, 11.0).startswith("3 of 4, median 60, ")  # of those left at 60, half
    assert solve_summary(lanes(None, None), 11.0) == "0 of 2"
    assert solve_summary(lanes(50), 11.0) == "1 of 1, median 50"


@pytest.mark.parametrize("n", [1, 3, 4, 5, 8, 11])
def test_interquartile_mean_against_scipy(n):
    values = np.random.default_rng(n).normal(size=(6, n))
    np.testing.assert_allclose(
        interquartile_mean(values), stats.trim_mean(values, 0.25, axis=1), rtol=1e-12
    )


def test_interquartile_mean_by_hand():
    assert interquartile_mean(np.array([100.0, 1, 2, 3, -50])) == 2.0
    assert interquartile_mean(np.array([0.0, 0, 4, 8, 9, 90, 99, 99])) == 27.75


@pytest.mark.parametrize(
    ("statistic", "of_scipy"),
    [
        (mean, np.mean),
        (median, np.median),
        (interquartile_mean, lambda x, axis: stats.trim_mean(x, 0.25, axis=axis)),
    ],
)
def test_estimate_against_scipy(statistic, of_scipy):
    values = np.random.default_rng(5).normal(size=12)
    found = estimate([values], statistic, resamples=20_000)
    oracle = stats.bootstrap(
        (values,), of_scipy, method="percentile", n_resamples=20_000, rng=np.random.default_rng(6)
    ).confidence_interval
    assert found.n == 12
    assert np.isclose(found.value, of_scipy(values, axis=0))
    np.testing.assert_allclose([found.low, found.high], oracle, atol=0.03)


def test_estimate_is_stratified():
    """Of two tasks far apart, no resample has more seeds of one than of the other."""
    tasks = [np.full(5, 0.0), np.full(5, 1.0)]
    assert estimate(tasks, mean) == Estimate(0.5, 0.5, 0.5, 10)
    pooled = estimate([np.concatenate(tasks)], mean)
    assert pooled.high - pooled.low > 0.3


def test_estimate_of_two_tasks_against_scipy():
    rng = np.random.default_rng(7)
    a, b = rng.normal(0.0, size=6), rng.normal(3.0, size=8)
    found = estimate([a, b], mean, resamples=20_000)
    oracle = stats.bootstrap(
        (a, b),
        lambda x, y, axis=-1: (x.sum(axis) + y.sum(axis)) / 14,
        method="percentile",
        n_resamples=20_000,
        rng=np.random.default_rng(8),
    ).confidence_interval
    np.testing.assert_allclose([found.low, found.high], oracle, atol=0.03)


def test_an_estimate_for_a_person():
    assert str(Estimate(0.5, 0.25, 1, 5)) == "0.5, 95% interval 0.25 to 1, n = 5"
    told = str(Estimate(80.0, 70.0, np.inf, 5))
    assert told == "80, 95% interval 70 to not reached, n = 5"


def test_probability_of_improvement_against_mann_and_whitney():
    rng = np.random.default_rng(9)
    a, b = rng.integers(0, 9, 12).astype(float), rng.integers(0, 7, 10).astype(float)  # with ties
    found = probability_of_improvement([a], [b])
    assert np.isclose(found.value, stats.mannwhitneyu(a, b).statistic / 120)
    assert np.isclose(probability_of_improvement([b], [a]).value, 1.0 - found.value)
    oracle = stats.bootstrap(
        (a, b),
        lambda x, y: 0.5 * (np.sign(np.subtract.outer(x, y)) + 1.0).mean(),
        method="percentile",
        vectorized=False,
        rng=np.random.default_rng(10),
    ).confidence_interval
    np.testing.assert_allclose([found.low, found.high], oracle, atol=0.03)


def test_probability_of_improvement_by_hand():
    """9 of 12 pairs won and 1 drawn on a task, all lost on another."""
    a, b = np.array([1.0, 5, 6]), np.array([0.0, 1, 3, 4])
    sure = np.array([7.0])
    assert np.isclose(probability_of_improvement([a], [b]).value, 9.5 / 12)
    assert np.isclose(probability_of_improvement([a, -sure], [b, sure]).value, 9.5 / 24)
    assert probability_of_improvement([sure], [-sure]) == Estimate(1.0, 1.0, 1.0, 1)
    both = probability_of_improvement([sure, sure], [-sure, sure])  # won, and drawn
    assert both == Estimate(0.75, 0.75, 0.75, 2)


def test_performance_profile_against_the_empirical_law():
    rng = np.random.default_rng(11)
    tasks, thresholds = [rng.normal(size=10), rng.normal(1.0, size=6)], np.linspace(-2, 3, 21)
    share, (low, high) = performance_profile(tasks, thresholds)
    law = stats.ecdf(np.concatenate(tasks)).sf
    np.testing.assert_allclose(share, law.evaluate(thresholds), atol=1e-12)
    assert np.all((low <= share) & (share <= high))
    exact = performance_profile([np.array([0.0, 1.0])], np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(exact[0], [0.5, 0.5, 0.0])


def test_performance_profiles_interval_is_of_a_share():
    """Of one task, that of a mean of ones and zeros."""
    scores = np.random.default_rng(12).normal(size=9)
    _, (low, high) = performance_profile([scores], np.array([0.2]))
    np.testing.assert_allclose([low[0], high[0]], bootstrap_interval((scores > 0.2).astype(float)))


def test_area_under_curve_by_hand():
    scores = np.array([[0.0, 0, 2, 2], [0, 3, np.nan, np.nan]])
    np.testing.assert_allclose(area_under_curve(scores), [1.0, 2.25])
    np.testing.assert_allclose(held(scores), [[0, 0, 2, 2], [0, 3, 3, 3]])


def test_kaplan_meier_by_hand():
    """Of 5: one at 10, one lost sight of at 20, one at 30, two unsolved at 50."""
    times, solved = np.array([30.0, 50, 10, 50, 20]), np.array([True, False, True, False, False])
    when, survival, (low, high) = kaplan_meier(times, solved)
    np.testing.assert_allclose(when, [10, 30])
    np.testing.assert_allclose(survival, [4 / 5, 4 / 5 * 2 / 3])
    assert np.all((low < survival) & (survival < high))


def test_kaplan_meier_against_scipy():
    rng = np.random.default_rng(13)
    times, solved = rng.integers(1, 30, 40).astype(float), rng.random(40) < 0.6
    when, survival, _ = kaplan_meier(times, solved)
    data = stats.CensoredData(uncensored=times[solved], right=times[~solved])
    np.testing.assert_allclose(survival, stats.ecdf(data).sf.evaluate(when), atol=1e-12)


def test_kaplan_meiers_interval_is_of_a_share():
    """Where no lane is lost sight of, that of a mean of ones and zeros."""
    times = np.arange(1.0, 10.0)
    when, survival, (low, high) = kaplan_meier(times, times <= 6)
    np.testing.assert_allclose(survival, 1.0 - when / 9)
    expected = bootstrap_interval((times > when[3]).astype(float))
    np.testing.assert_allclose([low[3], high[3]], expected, atol=1e-9)


def test_median_episodes_to_solve_by_hand():
    yes = np.ones(4, bool)
    assert median_episodes_to_solve(np.array([10.0, 40, 20, 30]), yes).value == 25
    assert median_episodes_to_solve(np.array([10.0, 20, 30]), yes[:3]).value == 20
    half = median_episodes_to_solve(np.array([10.0, 20, 90, 90]), np.array([1, 1, 0, 0], bool))
    assert half.value == half.high == np.inf
    assert half.low == 10
    # The first is lost sight of before any other is solved: the median is that of the rest.
    lost = median_episodes_to_solve(np.array([5.0, 10, 20, 30]), np.array([0, 1, 1, 1], bool))
    assert lost.value == 20
    none = median_episodes_to_solve(np.full(3, 50.0), np.zeros(3, bool))
    assert none == Estimate(np.inf, np.inf, np.inf, 3)


def test_median_episodes_to_solve_against_scipy():
    times = np.random.default_rng(14).integers(1, 200, 11).astype(float)
    found = median_episodes_to_solve(times, np.ones(11, bool))
    oracle = stats.bootstrap(
        (times,), np.median, method="percentile", rng=np.random.default_rng(15)
    ).confidence_interval
    assert found.value == np.median(times)
    assert found.low in times
    np.testing.assert_allclose([found.low, found.high], oracle, atol=5)


def test_collapsed_at_by_hand():
    spread = np.r_[1.0, np.full(40, 0.005)]
    assert collapsed_at(np.zeros(41), spread, 1.0) == 21
    assert collapsed_at(np.r_[np.zeros(15), np.ones(26)], spread, 1.0) is None
    assert collapsed_at(np.zeros(41), np.maximum(spread, 0.02), 1.0) is None
    assert collapsed_at(np.zeros(0), np.zeros(0), 1.0) is None
