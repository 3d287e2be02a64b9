"""Alarms: signs that a seed's training went wrong."""

import numpy as np
from jaxtyping import Num

PATIENCE = 20
"""Number of episodes after which an alarm is raised."""
EXPLORE_MORE = (
    "to explore more: ige or bootstrapped_dqn with a larger {0}prior, ge with {0}resample episode "
    "or a larger {0}rho, or more episodes"
)
"""Advice if nothing was found. What precedes the name of a setting is filled in."""


def untrained(steps: int, episodes: int, learning_starts: int) -> list[str]:
    """Return a sentence if a run ended without an episode, and one if it ended before learning
    started."""
    sentences = []
    if not episodes:
        sentences.append(
            "no episode has ended: train for more steps, or limit the length of episodes "
            "(gymnasium.wrappers.TimeLimit)"
        )
    if steps < learning_starts:
        sentences.append(
            f"nothing was learned: learning starts at step {learning_starts:,}, but the run ended "
            f"after {steps:,} steps"
        )
    return sentences


def alarms(
    seed: int,
    scores: Num[np.ndarray, " episodes"],
    spread: Num[np.ndarray, " episodes"],
    optimum: float | None,
) -> list[str]:
    """Return a sentence for each alarm of a seed. `spread` is that of Q over θ, and `optimum` the
    best possible score; if it is not known, a collapse of the posterior cannot be detected."""
    sentences = []
    at = None if optimum is None else collapsed_at(scores, spread, optimum)
    if at is not None:
        sentences.append(
            f"seed {seed}: q_φ collapsed by episode {at}, before any episode scored half of the "
            "optimum"
        )
    if found_nothing(scores, optimum):
        sentences.append(
            f"seed {seed}: all {len(scores)} episodes scored {scores[0]:g}: nothing better was "
            "found"
        )
    return sentences


def collapsed_at(
    scores: Num[np.ndarray, " episodes"], spread: Num[np.ndarray, " episodes"], optimum: float
) -> int | None:
    """Return the episode by which the posterior had collapsed, or None. It has collapsed if its
    spread stays below 1% of its maximum so far for 20 episodes before any episode scores half of
    the optimum."""
    successes = np.flatnonzero(scores >= 0.5 * optimum)
    before = spread[: successes[0]] if len(successes) else spread
    low = before < 0.01 * np.maximum.accumulate(before) if len(before) else before
    enough = len(low) >= PATIENCE
    runs = np.convolve(low, np.ones(PATIENCE), "valid") if enough else np.zeros(0)
    found = np.flatnonzero(runs >= PATIENCE)
    return int(found[0]) + PATIENCE if len(found) else None


def found_nothing(scores: Num[np.ndarray, " episodes"], optimum: float | None) -> bool:
    """Return whether all episodes, at least 20, had the same score, below the optimum if known."""
    if len(scores) < PATIENCE or np.any(scores != scores[0]):
        return False
    return optimum is None or bool(scores[0] < optimum)
