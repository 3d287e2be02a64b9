"""When a task counts as solved."""

import numpy as np
from jaxtyping import Num

TOLERANCE = 1e-4
"""Maximum distance below the optimum at which a score still counts as optimal."""
IN_A_ROW = 10
"""Number of consecutive optimal episodes after which a task counts as solved."""


def episodes_to_solve(
    scores: Num[np.ndarray, " episodes"], optimum: float, in_a_row: int = IN_A_ROW
) -> int | None:
    """Return the episode, counted from 1, that completes the first `in_a_row` consecutive optimal
    ones, or None."""
    run = 0
    for episode, value in enumerate(scores, start=1):
        run = run + 1 if value >= optimum - TOLERANCE else 0
        if run == in_a_row:
            return episode
    return None
