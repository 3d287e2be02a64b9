"""Statistics over tasks and seeds: performance profiles, and differences between two agents."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from rove.analysis.comparing import compare_means
from rove.analysis.intervals import Comparison

DRAWS = 10_000
TAUS = np.linspace(0.0, 1.0, 101)[:-1]
"""The scores at which a profile is drawn."""
Rows = Sequence[np.ndarray]
"""For each task, a number for every seed."""


def profile(
    scores: Rows, taus: np.ndarray = TAUS, draws: int = 2000
) -> tuple[Float[np.ndarray, " taus"], Float[np.ndarray, "2 taus"]]:
    """Return the fraction of runs with a score above each τ, every task with the same weight, and
    its 95% band (Agarwal et al. 2021).

    The band is a percentile bootstrap that resamples the seeds of every task; tasks are fixed.
    """
    above = [(row[:, None] > taus).astype(np.float32) for row in scores]
    random = np.random.default_rng(0)
    total = np.zeros((draws, len(taus)))
    for row in above:
        weights = random.multinomial(len(row), np.full(len(row), 1 / len(row)), draws) / len(row)
        total += weights @ row
    band = np.quantile(total / len(above), (0.025, 0.975), axis=0)
    return np.mean([row.mean(axis=0) for row in above], axis=0), band


def tasks_solved(solved: Rows) -> float:
    """Return the mean number of tasks that a seed solves."""
    return float(sum(np.mean(row) for row in solved))


def solved_difference(
    a: Sequence[Bool[np.ndarray, " seeds"]], b: Sequence[Bool[np.ndarray, " seeds"]]
) -> Comparison:
    """Compare the mean numbers of tasks that seeds of two agents solve. Tasks are fixed; see
    `rove.analysis.comparing.compare_means`, whose mean over tasks is multiplied by their number."""
    test = compare_means([x.astype(float) for x in a], [x.astype(float) for x in b], (0.0, 1.0))
    value, low, high = (len(a) * number for number in test[:3])
    return Comparison(value, low, high, test.p, "difference in tasks solved")


def score_difference(a: Rows, b: Rows) -> Comparison:
    """Compare the mean scores of two agents at the end, with tasks as a sample of all tasks.

    The percentile bootstrap resamples tasks, the same for both agents, and then the seeds of each
    task and agent.
    """
    random = np.random.default_rng(0)
    count = len(a)
    chosen = random.integers(count, size=(DRAWS, count))
    means = [np.stack([_resampled(row, random) for row in rows]) for rows in (a, b)]
    draws = np.mean((means[0] - means[1])[chosen.T, np.arange(DRAWS)], axis=0)
    value = float(np.mean([np.mean(x) - np.mean(y) for x, y in zip(a, b, strict=True)]))
    return _comparison(value, draws, "difference in mean score")


def _resampled(row: np.ndarray, random: np.random.Generator) -> Float[np.ndarray, " draws"]:
    """Return means of seeds that are drawn with replacement."""
    return row[random.integers(len(row), size=(DRAWS, len(row)))].mean(axis=1)


def _comparison(value: float, draws: np.ndarray, what: str) -> Comparison:
    low, high = np.quantile(draws, (0.025, 0.975))
    one_sided = max(min(np.mean(draws <= 0.0), np.mean(draws >= 0.0)), 1 / DRAWS)
    return Comparison(value, float(low), float(high), float(min(1.0, 2 * one_sided)), what)
