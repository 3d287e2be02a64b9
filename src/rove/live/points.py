"""What lanes tell, as points of curves: the same for every tracker.

A lane's points are written when its checkpoint is, and never before: a lane that is killed goes on
from its checkpoint, so no point is made twice, and what the tracker had not yet been given follows
from the checkpoint's episodes. A tracker that fails costs the training nothing, for that reason.
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
from rove.runs import Config, flat
from rove.training import outcomes
from rove.training.lanes import Progress
from rove.training.outcomes import Episodes, Job

WINDOW = 100
"""Episodes that a mean is over, as in stable-baselines3."""
OFTEN = 256
"""Points of a curve between an episode (or step) and its double, at the most."""
_dropping = threading.Lock()


class Point(NamedTuple):
    """Some curves at an environment step."""

    step: int
    values: dict[str, float]


class Lane(NamedTuple):
    """A lane as a tracker knows it: a run of its own."""

    folder: Path
    """The run folder it is in."""
    name: str
    """Agent, environment and seed."""
    settings: dict[str, Any]
    """By the names that the command has for them."""


class Tracker(abc.ABC):
    """Where points go. Called from lanes' own threads, for one lane by one at a time."""

    command: ClassVar[str]
    """What a person types to see the runs of {root}."""
    dropped = False
    """Whether it has failed, and is given nothing more."""

    @abc.abstractmethod
    def begin(self, lane: Lane) -> dict[str, int]:
        """Note the lane and its settings, unless they are there; and of each of its curves that
        has a point, the step of the last."""

    @abc.abstractmethod
    def write(self, lane: Lane, points: Sequence[Point]) -> None:
        """Add points, in the order of their steps, for good."""

    def close(self) -> None:
        """Nothing more is to come."""
        return


class Logger:
    """Listens to the lanes of a run, and gives a tracker their points. A tracker that fails is
    dropped, with a warning: what trains goes on without it."""

    def __init__(self, tracker: Tracker, config: Config):
        self._tracker, self._config = tracker, config
        self._heard: dict[int, _Track] = {}

    def hear(self, told: Progress) -> None:
        def tell() -> None:
            track = self._track(told.job)
            track.hear(told)
            if told.finished:  # and saved
                track.write()

        self._unless_dropped(tell)

    def saved(self, job: Job, episodes: Episodes) -> None:
        self._unless_dropped(lambda: self._track(job).write(episodes))

    def _unless_dropped(self, tell: Callable[[], None]) -> None:
        if self._tracker.dropped:
            return
        try:
            tell()
        except Exception as error:  # whatever it is, it is the tracker's alone
            with _dropping:  # lanes may find out at once
                first, self._tracker.dropped = not self._tracker.dropped, True
            if first:
                _warn(self._tracker, error)

    def _track(self, job: Job) -> "_Track":
        if job.seed not in self._heard:
            name = f"{self._config.default_folder.name}-seed-{job.seed}"
            lane = Lane(job.folder, name, settings(self._config, job.seed))
            self._heard[job.seed] = track = _Track(self._tracker, lane)
            if outcomes.exists(job):
                track.write(outcomes.glance(job)[0])
        return self._heard[job.seed]


def _warn(tracker: Tracker, error: Exception) -> None:
    why = str(error) if isinstance(error, RoveError) else repr(error)
    name = type(tracker).__name__
    then = f"training goes on without {name}; the same command, later, gives it the episodes"
    print("warning:", " ".join(why.split()) + ":", then, file=sys.stderr)


class _Track:
    """A lane: how far its curves are, and what awaits its next checkpoint."""

    def __init__(self, tracker: Tracker, lane: Lane):
        self._tracker, self._lane = tracker, lane
        last = tracker.begin(lane)
        self._episodes_to = last.get("rollout/ep_rew_mean", 0)
        self._progress_to = max(last.get("train/loss", 0), last.get("time/fps", 0))
        self._awaiting: list[Point] = []

    def hear(self, told: Progress) -> None:
        # A worker that died may have told of steps that its successor takes again.
        self._awaiting = [point for point in self._awaiting if point.step < told.step]
        last = self._awaiting[-1].step if self._awaiting else self._progress_to
        values = {"train/loss": told.loss, "time/fps": told.steps_per_second or math.nan}
        values = {key: value for key, value in values.items() if math.isfinite(value)}
        if values and told.step > last + last // OFTEN:
            self._awaiting.append(Point(told.step, values))

    def write(self, episodes: Episodes | None = None) -> None:
        points, self._awaiting = self._awaiting, []
        self._progress_to = max([self._progress_to, *(point.step for point in points)])
        if episodes is not None:
            points = sorted([*points, *rollout(episodes, self._episodes_to)], key=lambda p: p.step)
            self._episodes_to = max([self._episodes_to, *episodes.step[-1:].tolist()])
        if points:
            self._tracker.write(self._lane, points)


def rollout(episodes: Episodes, after: int = 0) -> Iterator[Point]:
    """Points at the ends of episodes, past a step: at each of the first 512, and then at OFTEN of
    those up to twice as many."""
    number = np.arange(1, len(episodes.step) + 1)
    octave = np.frexp(number)[1] - 1  # 2ᵏ ≤ number < 2ᵏ⁺¹
    every = 1 << np.maximum(octave - int(math.log2(OFTEN)), 0)
    for i in np.flatnonzero((number % every == 0) & (episodes.step > after)).tolist():
        window = slice(max(0, i + 1 - WINDOW), i + 1)
        values = {
            "rollout/ep_rew_mean": np.mean(episodes.returns[window], dtype=float),
            "rollout/ep_len_mean": np.mean(episodes.length[window], dtype=float),
            "explore/spread": episodes.spread[i],
            "explore/return_spread": episodes.return_spread[i],
        }
        if episodes.coverage[i]:  # where an environment has cells
            values["explore/coverage"] = episodes.coverage[i]
        yield Point(int(episodes.step[i]), {key: float(value) for key, value in values.items()})


def settings(config: Config, seed: int) -> dict[str, Any]:
    """A lane's settings, flat: agent.rho, env.n, …"""
    told = config.identity()
    agent = told["agent"].get("settings") or told["agent"].get("composition", {})
    found = {"agent": config.agent_name, "environment": config.environment.name, "seed": seed}
    found |= flat(agent, "agent") | flat(told["environment"]["options"], "env")
    budget = {key: told[key] for key in ("episodes", "steps", "until_solved")}
    return found | {key: value for key, value in budget.items() if value is not None}
