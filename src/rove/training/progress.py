"""Progress reports during training, and the time between reports and between checkpoints."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rove.training.outcomes import Job, Outcome, Tables

CHUNK_SECONDS = 0.5
"""Seconds between two reports of a seed."""
CHECKPOINT_SECONDS = 10.0
"""Seconds between two checkpoints of a seed."""


class Progress(NamedTuple):
    """The progress of one seed, reported after every chunk of steps."""

    job: Job
    step: int
    episode: int
    recent: float
    """Mean score of the last 20 episodes; NaN before the first has ended."""
    steps_per_second: float
    finished: bool
    loss: float
    """Loss of the last update; NaN before the first, and where it was not read."""
    coverage: int = 0
    """Number of cells visited so far."""
    stopped: bool = False
    """Whether it has reached the score at which to stop."""


Report = Callable[[Progress], None]
"""A function that receives the progress of a seed."""
Saved = Callable[[Job, Tables], None]
"""A function that is called after a checkpoint, with the results so far."""


def ignore(*_: object) -> None:
    """Do nothing: the default report."""


def progress_of(outcome: Outcome, step: int, episode: int, steps_per_second: float) -> Progress:
    """Return the progress of a seed that has reached a step and an episode. The loss is known if
    the outcome was read at that step."""
    scores, lane = outcome.scores, outcome.lane
    read = int(lane.step) == step and step >= int(outcome.job.agent.learning_starts)
    return Progress(
        job=outcome.job,
        step=step,
        episode=episode,
        recent=float(np.mean(scores[-20:])) if len(scores) else float("nan"),
        steps_per_second=steps_per_second,
        finished=outcome.finished,
        loss=float(lane.loss) if read else float("nan"),
        coverage=int(outcome.episodes.coverage[-1]) if len(scores) else 0,
        stopped=outcome.stopped,
    )
