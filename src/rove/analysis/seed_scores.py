"""The score of a seed that runs are compared by: its mean score in training.

It is the mean over the part of the budget that all compared runs have: over episodes or, if a
budget is in steps, over steps, each with the score of its episode. A seed that stopped early
because it solved its task keeps its last score to the end of the budget, one that stopped at a
score the mean of its last 20 episodes; a diverged seed has its lowest score from there on.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Num

from rove.analysis.curves import area_under_curve, fill_forward, mean_over_steps, score_at
from rove.analysis.intervals import Support, within
from rove.training.solving import LAST

POINTS = 250
"""Maximum number of points of a curve over steps."""
TRAINING = "mean score in training"
"""The name of the score that runs are compared by."""


class Trained(NamedTuple):
    """The training of a run, as far as scores of seeds depend on it."""

    scores: Sequence[Num[np.ndarray, " _"]]
    """The scores of the episodes of each seed."""
    ends: Sequence[Num[np.ndarray, " _"]]
    """The training steps at which they ended."""
    lengths: Sequence[Num[np.ndarray, " _"]]
    """Their numbers of steps."""
    episodes: int | None
    """The budget in episodes; None if it is in steps."""
    steps: int | None
    stops_early: bool
    """Whether a seed may stop before the end of its budget."""
    finished: Sequence[bool]
    """For each seed, whether it has finished."""
    stopped: Sequence[bool]
    """For each seed, whether it has reached the score at which to stop."""
    diverged: Sequence[bool]
    """For each seed, whether it diverged."""
    score_range: Support | None
    """The range of scores, if it is known."""


def unit_of(runs: Sequence[Trained]) -> str:
    """Return the unit in which runs are compared: steps if the budget of any of them is in
    steps."""
    return "episode" if all(run.episodes for run in runs) else "step"


def budget_of(run: Trained, unit: str) -> int:
    """Return the budget of a run; of one that has a budget of episodes, also in steps."""
    budget = run.episodes if unit == "episode" else run.steps
    return budget or int(max(ends[-1] for ends in run.ends))


def spacing(runs: Sequence[Trained]) -> int:
    """Return the number of steps between the points of curves; 0 for curves over episodes."""
    unit = unit_of(runs)
    return max(max(budget_of(x, unit) for x in runs) // POINTS, 1) if unit == "step" else 0


def score_table(run: Trained, every: int) -> Float[np.ndarray, "seeds points"]:
    """Return scores by episode, [seeds, episodes], or every `every` steps, [seeds, points]. See
    above for seeds that stopped early or diverged."""
    if every:
        at = np.arange(every, budget_of(run, "step") + 1, every)
        pairs = zip(run.scores, run.ends, strict=True)
        table = np.stack([score_at(scores, ends, at) for scores, ends in pairs])
        budget = len(at)
    else:
        table = np.full((len(run.scores), max(map(len, run.scores))), np.nan)
        for row, scores in zip(table, run.scores, strict=True):
            row[: len(scores)] = scores
        budget = run.episodes or 0
    if run.stops_early or np.any(run.diverged):
        more = np.full((len(table), max(budget - table.shape[1], 0)), np.nan)
        table = np.concatenate([table, more], axis=1)
    seeds = zip(table, run.scores, run.diverged, run.stopped, run.finished, strict=True)
    for row, scores, diverged, stopped, finished in seeds:
        if diverged:
            row[np.isnan(row)] = np.nanmin(row)
        elif stopped:
            row[np.isnan(row)] = np.mean(scores[-LAST:])
        elif run.stops_early and finished:
            row[:] = fill_forward(row[None])[0]
    return table


def common_episodes(table: np.ndarray) -> np.ndarray:
    """Return the episodes that all seeds have finished."""
    return table[:, : int(np.sum(np.all(~np.isnan(table), axis=0)))]


def shared(run: Trained, common: int, every: int) -> list[int]:
    """Return the number of episodes of each seed within a budget that all runs share."""
    return [max(int(np.sum(x <= common)) if every else common, 1) for x in run.ends]


def training_scores(runs: Sequence[Trained]) -> list[Float[np.ndarray, " seeds"]]:
    """Return the mean score in training of each seed of each run, over the budget that all of these
    runs share."""
    unit, every = unit_of(runs), spacing(runs)
    common = min(budget_of(run, unit) for run in runs)
    return [_training_scores(run, common, every) for run in runs]


def _training_scores(run: Trained, common: int, every: int) -> Float[np.ndarray, " seeds"]:
    if every and not run.stops_early and not np.any(run.diverged):
        seeds = zip(run.scores, run.lengths, shared(run, common, every), strict=True)
        return np.array([mean_over_steps(x[:n], lengths[:n]) for x, lengths, n in seeds])
    table = common_episodes(score_table(run, every))
    return area_under_curve(table[:, : max(common // (every or 1), 1)])


def known_range(runs: Sequence[Trained]) -> Support | None:
    """Return the range of the scores of some runs: the widest that any of them states. None if none
    does, or if an episode lies outside."""
    stated = [run.score_range for run in runs if run.score_range is not None]
    if not stated:
        return None
    widest = min(low for low, _ in stated), max(high for _, high in stated)
    return widest if all(within(x, widest) for run in runs for x in run.scores) else None
