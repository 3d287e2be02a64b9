"""The test of the difference of two runs, or of two agents on several tasks.

`rove.difference`, `rove.compare`, the report and the suite call `compare_means` with one score per
seed, so that they give the same estimate, interval and p-value for the same runs.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Num

from rove.analysis.intervals import Comparison, Support, counts_test, difference_test, holm, within
from rove.analysis.permutations import permutation_test
from rove.analysis.seed_scores import TRAINING, Trained, known_range, training_scores

Values = Num[np.ndarray, " _"] | Sequence[Num[np.ndarray, " _"]]
"""A score for each seed: an array for one task, or a list with an array for each task."""
POSTERIOR_DRAWS = 10_000
Hashable = tuple[tuple[float, ...], ...]
"""The sorted scores of each task."""


def compare_means(
    a: Values, b: Values, support: Support | None = None, what: str = "difference"
) -> Comparison:
    """Test whether two groups of seeds differ in their mean score: mean(a) − mean(b) against 0.

    On one task with a known range of scores, this is the melded test, which assumes nothing else
    (`rove.analysis.intervals.difference_test`); where every score is one of the two ends, such as
    solved or not, the p-value is that of Fisher's exact test. Otherwise it is the studentised
    permutation test (`rove.analysis.permutations.permutation_test`). Of several tasks, it is the
    mean over tasks that is compared, and the tasks are fixed: the result is about these. Where all
    scores on several tasks are one of the two ends of the range, each probability of success has
    Jeffreys' posterior, Beta(k + ½, n − k + ½) for k successes of n, independently: unlike a
    bootstrap or a permutation, it does not treat ten of ten as certainty. With few seeds, it is
    pulled towards ½, so that the observed difference can lie outside the interval.

    It depends neither on the order of the seeds nor on which group comes first, except for the sign
    of the difference. The p-value is not adjusted: see `adjusted` for several comparisons.
    """
    rows, others = _rows(a), _rows(b)
    if len(rows) != len(others):
        raise ValueError(f"both groups need the same tasks, got {len(rows)} and {len(others)}")
    if not all(len(x) and np.all(np.isfinite(x)) for x in (*rows, *others)):
        raise ValueError("both groups need at least one seed, and all scores must be finite")
    x, y = _key(rows), _key(others)
    # Tests that draw at random are not symmetric to the last digit.
    test = _test(x[1], y[1], support) if x >= y else opposite(_test(y[1], x[1], support))
    return test._replace(what=what)


def opposite(test: Comparison) -> Comparison:
    """Return the comparison of the second group with the first."""
    return Comparison(0.0 - test.value, 0.0 - test.high, 0.0 - test.low, test.p, test.what)


def compare_training(runs: Sequence[Trained], first: int = 0) -> list[Comparison | None]:
    """Test one of some runs on a task, the `first`, against each other one, by the mean score of a
    seed in training over the budget that all of these runs share; None for the first itself."""
    scores, support = training_scores(runs), known_range(runs)
    return [
        None if i == first else compare_means(scores[first], row, support, TRAINING)
        for i, row in enumerate(scores)
    ]


def adjusted(tests: Sequence[Comparison | None]) -> list[float | None]:
    """Return the p-values of several comparisons, adjusted by Holm's method; None for None. That of
    a single comparison is unchanged."""
    p = iter(holm([test.p for test in tests if test is not None]))
    return [None if test is None else next(p) for test in tests]


def _rows(values: Values) -> list[np.ndarray]:
    """Return the sorted scores of each task."""
    is_one = isinstance(values, np.ndarray) and values.ndim == 1
    return [np.sort(np.asarray(x, float)) for x in ([values] if is_one else values)]


def _key(rows: Sequence[np.ndarray]) -> tuple[float, Hashable]:
    """Return a sort key: the mean over tasks, and then the scores."""
    return float(np.mean([np.mean(x) for x in rows])), tuple(tuple(x.tolist()) for x in rows)


@lru_cache(maxsize=1024)
def _test(a: Hashable, b: Hashable, support: Support | None) -> Comparison:
    rows, others = [np.array(x) for x in a], [np.array(x) for x in b]
    everything = np.concatenate([*rows, *others])
    if support is None or not within(everything, support):
        return permutation_test(rows, others)
    low, high = support
    counts = low < high and bool(np.isin(everything, support).all())
    if len(rows) > 1:
        return _successes_test(rows, others, support) if counts else permutation_test(rows, others)
    (x,), (y,) = rows, others
    test = difference_test(x, y, support)
    if counts:
        return test._replace(
            p=counts_test(int(sum(x == high)), len(x), int(sum(y == high)), len(y))
        )
    return test


def _successes_test(
    a: Sequence[np.ndarray], b: Sequence[np.ndarray], support: Support
) -> Comparison:
    """Compare mean fractions of successes over tasks by Jeffreys' posterior; see
    `compare_means`."""
    random, (low, high) = np.random.default_rng(0), support
    draws, value = np.zeros(POSTERIOR_DRAWS), 0.0
    for rows, sign in ((a, 1.0), (b, -1.0)):
        for row in rows:
            n, k = len(row), int(np.sum(row == high))
            draws += sign * random.beta(k + 0.5, n - k + 0.5, POSTERIOR_DRAWS)
            value += sign * k / n
    one_sided = max(min(np.mean(draws <= 0.0), np.mean(draws >= 0.0)), 1 / POSTERIOR_DRAWS)
    ends = np.quantile(draws, (0.025, 0.975))
    value, lower, upper = ((high - low) / len(a) * float(x) for x in (value, *ends))
    return Comparison(value, lower, upper, float(min(1.0, 2 * one_sided)))
