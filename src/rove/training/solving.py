"""When a task counts as solved, and as lost again."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Num

TOLERANCE = 1e-4
"""Maximum distance below the optimum, as a fraction of it, at which a score counts as optimal: sums
of rewards in single precision are rounded."""
IN_A_ROW = 10
"""Number of consecutive optimal episodes after which a task counts as solved."""
LAST = 20
"""Number of last episodes that final scores are about."""


def episodes_to_solve(
    scores: Num[np.ndarray, " episodes"], optimum: float, in_a_row: int = IN_A_ROW
) -> int | None:
    """Return the episode, counted from 1, that completes the first `in_a_row` consecutive optimal
    ones, or None."""
    run = 0
    for episode, optimal in enumerate(is_optimal(scores, optimum), start=1):
        run = run + 1 if optimal else 0
        if run == in_a_row:
            return episode
    return None


def lowest_optimal(optimum: float) -> float:
    """Return the lowest score that counts as optimal."""
    return optimum - TOLERANCE * abs(optimum)


def is_optimal(
    scores: Num[np.ndarray, " episodes"], optimum: float
) -> Bool[np.ndarray, " episodes"]:
    """Return whether the score of each episode is the optimum, up to rounding."""
    return np.asarray(scores) >= lowest_optimal(optimum)


def reaches(scores: Num[np.ndarray, " episodes"], score: float) -> bool:
    """Return whether the mean of some scores is at least a given one, up to rounding."""
    return float(np.mean(scores, dtype=float)) >= lowest_optimal(score)


def is_lost(
    scores: Num[np.ndarray, " episodes"],
    optimum: float,
    evaluated: Sequence[float] | None = None,
) -> bool:
    """Return whether a solved task was lost again: fewer than half of the last 20 episodes are
    optimal, and of those of the trained policy, if their scores are given."""
    if episodes_to_solve(scores, optimum) is None:
        return False
    rows = [scores[-LAST:]] + ([] if evaluated is None else [np.array(evaluated)])
    return all(float(np.mean(is_optimal(row, optimum))) < 0.5 for row in rows)
