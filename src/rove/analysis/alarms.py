"""Alarms: signs that a seed's training went wrong, and what to try."""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Num

from rove.training.solving import LAST, episodes_to_solve, is_optimal

PATIENCE = 20
"""Number of episodes after which an alarm is raised."""
EXPLORE_MORE = (
    "to explore more: ige or bootstrapped_dqn with a larger --agent.prior, ge with "
    "--agent.resample episode or a larger --agent.rho, or more episodes"
)
KEEP_IT = (
    "to keep a solution: a smaller --agent.lr, a larger --agent.target-period or "
    "--agent.buffer-size, or --until-solved, which stops a seed when it has solved the task"
)


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
    lost: bool = False,
) -> list[str]:
    """Return a sentence for each alarm of a seed. `spread` is that of Q over θ, and `optimum` the
    best possible score; if it is not known, a collapse of the posterior cannot be detected. `lost`
    says whether the seed solved its task and lost it again."""
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
    if optimum is not None and lost:
        solved_at, last = episodes_to_solve(scores, optimum), is_optimal(scores, optimum)[-LAST:]
        sentences.append(
            f"seed {seed}: solved at episode {solved_at} and lost again: of the last {len(last)} "
            f"episodes {last.sum()} are optimal"
        )
    return sentences


def remedies(
    scores: Sequence[Num[np.ndarray, " _"]], optimum: float | None, lost: Sequence[bool]
) -> list[str]:
    """Return what to try against the alarms of some seeds, as options of the command line."""
    tips = []
    if any(found_nothing(row, optimum) for row in scores):
        tips.append(EXPLORE_MORE)
    if any(lost):
        tips.append(KEEP_IT)
    return tips


def for_python(advice: str) -> str:
    """Return advice with names of settings and arguments in place of options."""
    return re.sub(r"--(?:agent\.)?([a-z-]+)", lambda match: match[1].replace("-", "_"), advice)


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
