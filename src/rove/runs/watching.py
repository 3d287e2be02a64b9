"""The results of a run that its alarms are computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rove.analysis.alarms import alarms, start_value, successes_forgotten, untrained
from rove.analysis.networks import Seed, scale_of, worth_judging
from rove.environments.host import HostEnvironment
from rove.training.outcomes import Outcome
from rove.training.solving import is_lost

if TYPE_CHECKING:
    from rove.runs.result import Run


def alarms_of(run: Run) -> list[str]:
    """Return signs that training went wrong; see `Run.alarms`."""
    sentences = [sentence for seed in seeds_of(run) for sentence in alarms(seed)]
    if run.outcomes and not run.errors:
        steps = max(int(outcome.lane.step) for outcome in run.outcomes)
        starts = int(run.outcomes[0].job.agent.learning_starts)
        on_host = isinstance(run.config.environment, HostEnvironment)
        sentences += untrained(steps, run.returns.shape[1], starts, on_host)
    return sentences


def seeds_of(run: Run) -> list[Seed]:
    """Return the results that alarms are computed from. Policies are played only if a seed may have
    lost its solution."""
    task, optimum = run.config.environment, run.config.environment.optimum
    rows = [outcome.scores for outcome in run.outcomes]
    lost = optimum is not None and any(
        is_lost(row, optimum) or successes_forgotten(row, optimum) for row in rows
    )
    evaluated = run.evaluated if lost else [None] * len(rows)

    def value(outcome: Outcome) -> float | None:
        # Values of actions that are not allowed are never learned.
        if task.masked or outcome.job.agent.intrinsic:
            return None
        values = np.asarray(outcome.lane.snapshots.values)
        learned = int(np.sum(outcome.episodes.step >= outcome.job.agent.learning_starts))
        rows = outcome.scores, outcome.episodes.terminated
        return start_value(values, *rows, task.score_label, learned)

    def seed(outcome: Outcome, played: list[float] | None) -> Seed:
        ended, job = outcome.conclusion, outcome.job
        learned = int(np.sum(outcome.episodes.step >= job.agent.learning_starts))
        range_of_returns = task.score_range if task.score_label == "return" else None
        network = None if ended is None else worth_judging(ended.inspection, learned)
        return Seed(
            job.seed,
            outcome.scores,
            outcome.episodes.spread,
            optimum,
            ended.scores if ended is not None else played,
            value(outcome),
            network,
            scale_of(outcome.episodes.returns, range_of_returns),
            "mean" if ended is None else ended.delivered.policy,
            scale_of(outcome.scores, task.score_range),
            job.eval_every is not None,
        )

    return [seed(*pair) for pair in zip(run.outcomes, evaluated, strict=True)]
