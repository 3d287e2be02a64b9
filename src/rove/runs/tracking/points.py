"""Points of the curves that trackers show, which are the same for all trackers.

The points of a seed are written only after its checkpoint. An interrupted run resumes from its
checkpoint, so no point is written twice, and points that the tracker has missed are recovered from
the checkpoint's episodes. For the same reason, a tracker that fails does not affect training.
"""

import abc
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rove.errors import RoveError
from rove.runs.config import OPTIONAL, Config
from rove.runs.tables import flat
from rove.training import storage
from rove.training.outcomes import Episodes, Evaluations, Job, Tables
from rove.training.progress import Progress

WINDOW = 100
"""Number of episodes that means are computed over, as in stable-baselines3."""
POINTS_PER_OCTAVE = 256
"""Maximum number of points of a curve between an episode (or step) and its double."""
EVALUATION = "eval/mean_score"
"""Name of the curve of evaluations during training."""
_disabling = threading.Lock()


class CurvePoint(NamedTuple):
    """The values of one or more curves at an environment step."""

    step: int
    values: dict[str, float]


class SeedRun(NamedTuple):
    """One seed of a run, which a tracker shows as a separate run."""

    folder: Path
    """Its run folder."""
    name: str
    """Agent, environment and seed."""
    settings: dict[str, Any]
    """Its settings, by their names on the command line."""


class Tracker(abc.ABC):
    """Writes points for an experiment tracker.

    Methods are called from the threads of the seeds, but never for one seed from two threads at
    once.
    """

    command: ClassVar[str]
    """The shell command that shows the runs in the folder {root}."""
    dropped = False
    """Whether the tracker has failed, and receives nothing more."""

    @abc.abstractmethod
    def begin(self, lane: SeedRun) -> dict[str, int]:
        """Write the seed's settings, unless they exist; return the last step of each curve."""

    @abc.abstractmethod
    def write(self, lane: SeedRun, points: Sequence[CurvePoint]) -> None:
        """Append points, in the order of their steps, and make them durable."""

    def close(self) -> None:
        """Release all resources."""
        return


class Logger:
    """Passes the points of a run's seeds to a tracker.

    If the tracker fails, a warning is printed, and training continues without it.
    """

    def __init__(self, tracker: Tracker, config: Config):
        self._tracker, self._config = tracker, config
        self._curves: dict[int, _Curves] = {}

    def on_progress(self, progress: Progress) -> None:
        """Record the progress of a seed, to be written after its next checkpoint."""

        def record() -> None:
            curves = self._curves_of(progress.job)
            curves.record(progress)
            if progress.finished:  # the last checkpoint has been written
                curves.write()

        self._unless_dropped(record)

    def saved(self, job: Job, tables: Tables) -> None:
        """Write the points up to a checkpoint."""
        self._unless_dropped(lambda: self._curves_of(job).write(tables))

    def _unless_dropped(self, action: Callable[[], None]) -> None:
        if self._tracker.dropped:
            return
        try:
            action()
        except Exception as error:  # any error disables the tracker, not the training
            with _disabling:  # several seeds may fail at once
                first, self._tracker.dropped = not self._tracker.dropped, True
            if first:
                _warn(self._tracker, error)

    def _curves_of(self, job: Job) -> "_Curves":
        if job.seed not in self._curves:
            name = f"{self._config.slug}-seed-{job.seed}"
            lane = SeedRun(job.folder, name, settings(self._config, job.seed))
            self._curves[job.seed] = curves = _Curves(self._tracker, lane)
            if storage.exists(job):
                curves.write(storage.load_tables(job)[0])
        return self._curves[job.seed]


def _warn(tracker: Tracker, error: Exception) -> None:
    reason = str(error) if isinstance(error, RoveError) else repr(error)
    name = type(tracker).__name__
    hint = f"Training continues without {name}. Run the same command again to log its episodes."
    print("warning:", " ".join(reason.split()) + ".", hint, file=sys.stderr)


class _Curves:
    """The curves of one seed: how far they are written, and points for the next checkpoint."""

    def __init__(self, tracker: Tracker, lane: SeedRun):
        self._tracker, self._lane = tracker, lane
        last = tracker.begin(lane)
        self._episodes_to = last.get("rollout/ep_rew_mean", 0)
        self._evaluations_to = last.get(EVALUATION, 0)
        self._progress_to = max(last.get("train/loss", 0), last.get("time/fps", 0))
        self._pending: list[CurvePoint] = []

    def record(self, progress: Progress) -> None:
        # A worker that died may have reported steps that its replacement repeats.
        self._pending = [point for point in self._pending if point.step < progress.step]
        last = self._pending[-1].step if self._pending else self._progress_to
        values = {"train/loss": progress.loss, "time/fps": progress.steps_per_second or math.nan}
        values = {key: value for key, value in values.items() if math.isfinite(value)}
        if values and progress.step > last + last // POINTS_PER_OCTAVE:
            self._pending.append(CurvePoint(progress.step, values))

    def write(self, tables: Tables | None = None) -> None:
        points, self._pending = self._pending, []
        self._progress_to = max([self._progress_to, *(point.step for point in points)])
        if tables is not None:
            episodes, evaluations = tables
            points += [*rollout(episodes, self._episodes_to)]
            points += [*evaluation(evaluations, self._evaluations_to)]
            points.sort(key=lambda point: point.step)
            self._episodes_to = max([self._episodes_to, *episodes.step[-1:].tolist()])
            self._evaluations_to = max([self._evaluations_to, *evaluations.step[-1:].tolist()])
        if points:
            self._tracker.write(self._lane, points)


def rollout(episodes: Episodes, after: int = 0) -> Iterator[CurvePoint]:
    """Yield points at the ends of episodes after a given step.

    There is a point for each of the first 512 episodes, and then POINTS_PER_OCTAVE points whenever
    the number of episodes doubles.
    """
    number = np.arange(1, len(episodes.step) + 1)
    octave = np.frexp(number)[1] - 1  # 2ᵏ ≤ number < 2ᵏ⁺¹
    period = 1 << np.maximum(octave - int(math.log2(POINTS_PER_OCTAVE)), 0)
    for i in np.flatnonzero((number % period == 0) & (episodes.step > after)).tolist():
        window = slice(max(0, i + 1 - WINDOW), i + 1)
        values = {
            "rollout/ep_rew_mean": np.mean(episodes.returns[window], dtype=float),
            "rollout/ep_len_mean": np.mean(episodes.length[window], dtype=float),
            "explore/spread": episodes.spread[i],
            "explore/return_spread": episodes.return_spread[i],
        }
        if episodes.coverage[i]:  # the environment has cells
            values["explore/coverage"] = episodes.coverage[i]
        yield CurvePoint(
            int(episodes.step[i]), {key: float(value) for key, value in values.items()}
        )


def evaluation(evaluations: Evaluations, after: int = 0) -> Iterator[CurvePoint]:
    """Yield the mean score of each evaluation after a given step."""
    for step, mean in zip(evaluations.step.tolist(), evaluations.mean.tolist(), strict=True):
        if step > after:
            yield CurvePoint(step, {EVALUATION: mean})


def settings(config: Config, seed: int) -> dict[str, Any]:
    """Return the settings of a seed as a flat dictionary: agent.rho, env.n, …

    The number of episodes or steps is not among them, since a run may be extended.
    """
    identity = config.identity()
    agent = identity["agent"].get("settings") or identity["agent"].get("composition", {})
    values = {"agent": config.agent_name, "environment": config.environment.name, "seed": seed}
    values |= flat(agent, "agent") | flat(identity["environment"]["options"], "env")
    run = ("until_solved", *OPTIONAL)
    return values | {key: identity[key] for key in run if identity[key] is not None}
