"""Statistics against scipy and values worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from rove.analysis.curves import (
    aligned,
    area_under_curve,
    fill_forward,
    mean_over_steps,
    moving_average,
    pair_variances,
    recent_at,
    score_at,
    steadiness,
)
from rove.analysis.estimates import (
    Estimate,
    estimate,
    interquartile_mean,
    kaplan_meier,
    mean,
    median,
    median_episodes_to_solve,
    performance_profile,
    probability_of_improvement,
    solve_summary,
)
from rove.analysis.intervals import (
    DRAWS,
    count_and_interval,
    counts_test,
    difference_test,
    episodes_interval,
    holm,
    mean_and_interval,
    mean_interval,
    proportion_interval,
    proportion_test,
    within,
)
from rove.training.solving import episodes_to_solve


def test_moving_average_by_hand():
    np.testing.assert_allclose(moving_average(np.array([1.0, 3, 5, 7]), 2), [1, 2, 4, 6])
    np.testing.assert_allclose(moving_average(np.array([[2.0, 4, 9]]), 20), [[2, 3, 5]])


def test_moving_average_against_convolution():
    values = np.random.default_rng(0).normal(size=(3, 100))
    for row, smooth in zip(values, moving_average(values, 7), strict=True):
        np.testing.assert_allclose(smooth[6:], np.convolve(row, np.ones(7) / 7, "valid"))


def test_rows_are_aligned_by_hand():
    a, b, c = np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]), np.array([6.0])
    assert aligned([a, b], [False, False]).tolist() == [[1, 2], [3, 4]]
    assert aligned([a, b], [True, False]).tolist() == [[1, 2, 2], [3, 4, 5]]
    assert aligned([a, b, c], [True, True, True]).tolist() == [[1, 2, 2], [3, 4, 5], [6, 6, 6]]
    assert aligned([a, b, c], [False, True, True]).tolist() == [[1, 2], [3, 4], [6, 6]]
    assert aligned([a, c[:0]], [True, True]).shape == (2, 0)


UNIT = (0.0, 1.0)
"""A support."""


def ones(k, n):
    """k successes of n."""
    return np.repeat([1.0, 0.0], [k, n - k])


def test_the_interval_of_a_policy_over_its_episodes():
    """Successes and failures: SciPy's exact interval. Else Gaffke's, or Student's."""
    for k, n in ((0, 20), (3, 20), (20, 20), (1, 2)):
        exact = stats.binomtest(k, n).proportion_ci(method="exact")
        for support in (None, UNIT):
            np.testing.assert_allclose(episodes_interval(ones(k, n), support), exact, atol=1e-12)
    scores = np.array([0.0, 1.0, 3.0, 11.0])
    np.testing.assert_allclose(
        episodes_interval(scores, (0.0, 11.0)), mean_interval(scores, (0.0, 11.0))
    )
    t = stats.t.interval(0.95, 3, scores.mean(), stats.sem(scores))
    np.testing.assert_allclose(episodes_interval(scores, None), t)
    np.testing.assert_allclose(episodes_interval(scores, UNIT), t)  # the range was wrong
    wide = episodes_interval(ones(1, 2), (0.0, 11.0))  # the score may be more than 1
    assert wide[1] > 1.0


@pytest.mark.parametrize(("k", "n"), [(0, 5), (1, 5), (5, 5), (3, 10), (9, 10), (21, 30)])
def test_at_the_ends_of_its_support_a_means_interval_is_clopper_and_pearsons(k, n):
    """Within Monte Carlo error: a quantile of 100,000 draws is some 0.001 off."""
    exact = stats.binomtest(k, n).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(proportion_interval(k, n), exact, atol=1e-9)
    np.testing.assert_allclose(mean_interval(ones(k, n), UNIT), exact, atol=0.004)
    ends = [stats.beta.ppf(0.025, k, n - k + 1) if k else 0.0]
    ends += [stats.beta.ppf(0.975, k + 1, n - k) if k < n else 1.0]
    np.testing.assert_allclose(mean_interval(ones(k, n), UNIT), ends, atol=0.004)
    scaled = mean_interval(11.0 * ones(k, n) - 3.0, (-3.0, 8.0))  # equivariant
    np.testing.assert_allclose(scaled, 11.0 * np.array(mean_interval(ones(k, n), UNIT)) - 3.0)


def test_a_means_interval_of_one_value_by_hand():
    """The weight of the other point is uniform: from x = ½ a draw goes to the ends by U/2."""
    np.testing.assert_allclose(mean_interval(np.array([0.5]), UNIT), [0.0125, 0.9875], atol=0.002)


def test_a_means_interval_is_of_each_point_of_a_curve():
    curves = np.random.default_rng(0).random((6, 4))
    low, high = mean_interval(curves, UNIT, draws=5000)
    for i in range(4):
        np.testing.assert_allclose(mean_interval(curves[:, i], UNIT, draws=5000), (low[i], high[i]))
    assert np.all((low < curves.mean(axis=0)) & (curves.mean(axis=0) < high))
    again = mean_interval(curves, UNIT, draws=5000)
    np.testing.assert_array_equal(again, (low, high))
    wide = mean_interval(curves, (-1.0, 2.0), draws=5000)
    assert np.all((wide[0] < low) & (wide[1] > high))
    curves[2, 1] = np.nan  # a lane that has ended
    low, high = mean_interval(curves, UNIT)
    assert np.isnan(low[1])
    assert np.isnan(high[1])
    assert np.all(np.isfinite(low[2:]))


def test_a_value_outside_the_support_is_refused():
    assert within(np.array([0.0, 1.0 + 1e-8]), UNIT)
    assert not within(np.array([0.5, 1.1]), UNIT)
    with pytest.raises(ValueError, match="must lie in the support"):
        difference_test(np.array([0.5, 1.1]), np.array([0.5, 0.6]), UNIT)


def test_without_a_support_a_means_interval_is_students():
    values = np.random.default_rng(3).normal(1.0, size=(5, 2))
    found = np.transpose(mean_interval(values, None))
    for x, interval in zip(values.T, found, strict=True):
        oracle = stats.ttest_1samp(x, 0.0).confidence_interval()
        np.testing.assert_allclose(interval, oracle)
    assert mean_interval(np.ones(1), None) == (-np.inf, np.inf)


def test_a_mean_and_its_interval_for_a_person():
    told = mean_and_interval(ones(8, 10), UNIT)
    assert told == "0.800, 95% interval 0.444 to 0.975, n = 10"
    assert mean_and_interval(np.ones(1), UNIT) == "1.000, n = 1"
    few = mean_and_interval(np.array([0.5, 0.75, 1.0]), UNIT)
    assert few == "0.750 (seeds: 0.500, 0.750, 1.000), n = 3"
    assert mean_and_interval(np.array([-200.0, -150.0])) == "-175.0 (seeds: -200.0, -150.0), n = 2"
    assert (
        mean_and_interval(np.array([-0.002, 0.001]))
        == "-0.000500 (seeds: -0.002000, 0.001000), n = 2"
    )
    assert mean_and_interval(np.zeros(2)) == "0.000 (seeds: 0.000, 0.000), n = 2"


def test_a_count_and_its_interval_for_a_person():
    assert count_and_interval(4, 5) == "4 of 5 (95% interval 28% to 99%)"
    assert count_and_interval(4, 4) == "4 of 4"


@pytest.mark.parametrize(("k", "n", "j", "m"), [(9, 10, 3, 10), (5, 5, 0, 5), (7, 12, 1, 6)])
def test_of_successes_the_melded_difference_is_fishers_exact_test(k, n, j, m):
    """Both one-sided p-values; ours is twice the smaller of the two."""
    table = [[k, n - k], [j, m - j]]
    sides = [stats.fisher_exact(table, alternative=way).pvalue for way in ("greater", "less")]
    found = difference_test(ones(k, n), ones(j, m), UNIT)
    error = 5 * np.sqrt(min(sides) / DRAWS)
    assert found.p == pytest.approx(min(1.0, 2 * min(sides)), abs=2 * error)
    assert counts_test(k, n, j, m) == pytest.approx(min(1.0, 2 * min(sides)))
    assert counts_test(j, m, k, n) == pytest.approx(counts_test(k, n, j, m))
    assert found.value == pytest.approx(k / n - j / m)
    back = difference_test(ones(j, m), ones(k, n), UNIT)
    assert back.p == pytest.approx(found.p, abs=2 * error)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low), abs=0.01)


def test_a_p_value_is_below_a_twentieth_where_the_interval_leaves_out_0():
    rng = np.random.default_rng(1)
    for _ in range(30):
        a, b = np.clip(rng.normal(rng.random(), 0.1, 8), 0, 1), rng.random(9) ** 2
        found = difference_test(a, b, UNIT)
        assert (found.p < 0.05) == (not found.low <= 0.0 <= found.high)


def test_groups_may_have_supports_of_their_own():
    a, b = ones(4, 8), ones(6, 9)
    assert difference_test(3.0 * a, b, (0.0, 3.0), UNIT).value == pytest.approx(1.5 - 2 / 3)
    with pytest.raises(ValueError, match="must lie in the support"):
        difference_test(3.0 * a, b, UNIT)


@pytest.mark.parametrize("bad", [np.array([0.5, np.nan]), np.zeros(0)])
def test_what_is_not_a_number_is_not_judged(bad):
    with pytest.raises(ValueError, match="at least one seed"):
        difference_test(bad, ones(1, 2), UNIT)


def test_equal_values_are_not_certain():
    """Five failures leave a chance of success of up to 0.52, and five and five alike are alike."""
    low, high = mean_interval(np.zeros(5), UNIT)
    assert low == 0.0
    assert high == pytest.approx(0.522, abs=0.005)
    assert difference_test(np.zeros(5), np.zeros(5), UNIT).p == 1.0


def test_a_proportion_against_scipy():
    for k, n in [(0, 5), (5, 5), (9, 10), (10, 20), (2, 30)]:
        found = proportion_test(k, n)
        sides = [stats.binomtest(k, n, 0.5, way).pvalue for way in ("greater", "less")]
        assert found.p == pytest.approx(min(1.0, 2 * min(sides)))
        assert (found.p < 0.05) == (not found.low <= 0.5 <= found.high)
    assert proportion_test(5, 5).low == pytest.approx(0.478, abs=5e-4)
    assert proportion_test(9, 10).low == pytest.approx(0.555, abs=5e-4)


def test_holm_by_hand():
    """Of 0.01, 0.02, 0.03 and 0.04: 4 × 0.01, 3 × 0.02, then as much as the one before."""
    np.testing.assert_allclose(holm([0.03, 0.01, 0.04, 0.02]), [0.06, 0.04, 0.06, 0.06])
    np.testing.assert_allclose(holm([0.6, 0.001]), [0.6, 0.002])
    np.testing.assert_allclose(holm([0.4, 0.9]), [0.8, 0.9])
    assert holm([]) == []


def covered(intervals, truth):
    low, high = intervals
    return float(np.mean((low <= truth) & (truth <= high)))


def test_the_interval_of_a_mean_covers_it_where_students_does_not():
    """Of five or ten seeds of which 20% succeed, and of normal ones, of 1,000 samples each;
    benchmarks/coverage.py has the whole table."""
    rng = np.random.default_rng(0)
    for n, students in ((5, 0.70), (10, 0.90)):
        values = (rng.random((n, 1000)) < 0.2).astype(float)
        assert covered(mean_interval(values, UNIT, draws=2000), 0.2) > 0.94
        assert covered(mean_interval(values, None), 0.2) < students
    values = np.clip(rng.normal(0.5, 0.1, (5, 1000)), 0, 1)
    assert covered(mean_interval(values, UNIT, draws=2000), 0.5) > 0.94
    assert covered(mean_interval(values, None), 0.5) == pytest.approx(0.95, abs=0.02)


def test_the_melded_interval_covers_a_difference_in_hard_cases():
    """A group without spread against one of successes, with the same mean; groups of five and
    fifteen."""
    rng = np.random.default_rng(1)
    for n, m in ((5, 5), (15, 5)):
        found = [
            difference_test(np.full(n, 0.2), (rng.random(m) < 0.2) * 1.0, UNIT, draws=4000)
            for _ in range(300)
        ]
        assert covered(np.transpose([(each.low, each.high) for each in found]), 0.0) >= 0.93


def test_variances_of_pairs_by_hand():
    curves = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0], [5.0, 1.0], [9.0, 9.0]])
    np.testing.assert_allclose(pair_variances(curves), [1.0, 4.0])  # ½(4 + 0)/2, ½(0 + 16)/2
    draws = np.random.default_rng(2).normal(0.0, 3.0, (20_000, 1))
    assert pair_variances(draws).mean() == pytest.approx(9.0, rel=0.05)


def test_groups_are_told_apart_by_variance_only_where_they_differ():
    """Fifteen pairs of seeds of which half fail, against as many of which none does, or half."""
    rng = np.random.default_rng(3)

    def told_apart(chance):
        pairs = [(rng.random((30, 1)) < p).astype(float) for p in (0.5, chance)]
        return difference_test(*map(pair_variances, pairs), (0.0, 0.5), draws=4000).p < 0.05

    assert sum(told_apart(0.5) for _ in range(40)) <= 4
    assert sum(told_apart(0.0) for _ in range(40)) > 30


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
    assert solve_summary(lanes(50, 70, 60), 11.0) == "3 of 3, median 60 episodes"
    assert solve_summary(lanes(50, None, None), 11.0) == "1 of 3, median not reached"
    told = solve_summary(lanes(50, 70, 60, 80, None), 11.0)
    assert told == "4 of 5 (95% interval 28% to 99%), median 70 episodes"
    lost = [*lanes(50, 60, 70), *lanes(None, watched=55)]
    assert solve_summary(lost, 11.0) == "3 of 4, median 60 episodes"  # of those left at 60, half
    assert solve_summary(lanes(None, None), 11.0) == "0 of 2"
    assert solve_summary(lanes(50), 11.0) == "1 of 1, median 50 episodes"


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
    share = estimate([(scores > 0.2).astype(float)], mean)
    np.testing.assert_allclose([low[0], high[0]], [share.low, share.high])


def test_area_under_curve_by_hand():
    scores = np.array([[0.0, 0, 2, 2], [0, 3, np.nan, np.nan]])
    np.testing.assert_allclose(area_under_curve(scores), [1.0, 2.25])
    np.testing.assert_allclose(fill_forward(scores), [[0, 0, 2, 2], [0, 3, 3, 3]])


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
    share = estimate([(times > when[3]).astype(float)], mean)
    np.testing.assert_allclose([low[3], high[3]], [share.low, share.high], atol=1e-9)


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


def test_long_curves_are_taken_in_blocks_and_values_out_of_range_have_students_interval():
    rng = np.random.default_rng(0)
    curve = rng.uniform(size=(6, 1000))
    low, high = mean_interval(curve, (0.0, 1.0), draws=2000)
    for at in (0, 255, 256, 999):
        alone = mean_interval(curve[:, at], (0.0, 1.0), draws=2000)
        np.testing.assert_allclose([low[at], high[at]], alone, rtol=1e-12)
    beyond = curve[:, 0] + 1.0
    np.testing.assert_allclose(mean_interval(beyond, (0.0, 1.0)), mean_interval(beyond, None))


@pytest.mark.parametrize("support", [(0.0, np.inf), (-np.inf, np.inf), (np.nan, 1.0), (1.0, 0.0)])
def test_a_support_that_is_no_range_is_refused(support):
    with pytest.raises(ValueError, match=r"two finite ends|must lie in the support"):
        difference_test(np.zeros(2), np.zeros(2), support)


@pytest.mark.parametrize(("count", "n"), [(0, 0), (5, 3), (-1, 3)])
def test_what_is_no_proportion_is_refused(count, n):
    with pytest.raises(ValueError, match=f"{count} of {n}"):
        proportion_test(count, n)
