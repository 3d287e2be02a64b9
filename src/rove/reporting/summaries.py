"""Means, differences and counts over seeds for the page, with the intervals that verdicts use.

An estimate is a list: value, lower and upper limit of its 95% interval, number of seeds, and the
seeds themselves. It has the limits from five seeds on, and the seeds below that.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rove.analysis import estimates, intervals
from rove.analysis.intervals import DRAWN, MIN_SEEDS, Comparison, Support
from rove.reporting.numbers import number, numbers

Estimate = list[Any]


def mean(values: np.ndarray, support: Support | None) -> Estimate:
    """Return the mean over seeds."""
    if len(values) < MIN_SEEDS:
        return [number(np.mean(values)), None, None, len(values), numbers(values)]
    low, high = intervals.mean_interval(values, support)
    return [number(np.mean(values)), number(low), number(high), len(values), None]


def difference(test: Comparison, n: int) -> Estimate:
    """Return a difference of means that was tested on at least n seeds. It has the limits of the
    interval unless that is unbounded."""
    limits = (test.low, test.high) if np.isfinite([test.low, test.high]).all() else (np.nan, np.nan)
    return [*map(number, (test.value, *limits)), n, None]


def curve(values: np.ndarray) -> dict[str, Any]:
    """Return the mean over seeds of a curve that is described rather than estimated, [seeds,
    points], with the seeds if they are few, and otherwise their range."""
    few = len(values) <= DRAWN
    return {
        "mean": numbers(values.mean(axis=0)),
        "range": None if few else [numbers(values.min(axis=0)), numbers(values.max(axis=0))],
        "seeds": numbers(values, 3) if few else None,
    }


def band(
    values: np.ndarray, support: Support | None, seen: Support | None = None
) -> list[list[Any]] | None:
    """Return the 95% interval of the mean over seeds at each point; None for few seeds. `seen` is
    the range of the scores that were observed."""
    if len(values) < MIN_SEEDS:
        return None
    low, high = intervals.mean_band(values, support, seen)
    return [numbers(low), numbers(high)]


def solved(when: Sequence[int | None], watched: np.ndarray) -> dict[str, Any]:
    """Return how many seeds solved their task, and the fraction that had by each episode, from 0
    on, with the exact intervals of counts. `when` has the episode for each seed, or None, and
    `watched` has the number of episodes of each seed. The curve ends where an unsolved seed
    does."""
    n, known = len(when), np.array([time is not None for time in when])
    times = np.where(known, [time or 0 for time in when], watched).astype(float)
    until = float(min(watched[~known], default=times.max()))
    at = np.unique([0.0, *times[known & (times <= until)]])
    counts = [int(np.sum(times[known] <= time)) for time in at]
    sides = [intervals.proportion_interval(count, n) for count in [*counts, int(known.sum())]]
    few = n < MIN_SEEDS
    median = estimates.median_episodes_to_solve(times, known).value
    return {
        "count": int(known.sum()),
        "interval": None if few else [number(side) for side in sides[-1]],
        "median": number(median),
        "at": numbers(at),
        "share": [number(count / n) for count in counts],
        "band": None if few else [[number(s[k]) for s in sides[:-1]] for k in (0, 1)],
        "until": int(until),
    }
