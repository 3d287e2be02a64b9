"""The tasks of the suite: two halves of similar kinds, fixed before any default was chosen.

Defaults may be chosen on the development half. Nothing may be chosen on the other half.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rove.environments import Task, make
from rove.errors import ConfigError

Half = Literal["development", "held-out"]
HALVES: tuple[Half, ...] = ("development", "held-out")
RECENT = 50
"""Number of last training episodes that are scored."""


@dataclass(frozen=True)
class SuiteTask:
    """A task with a budget, a scale of scores, and what counts as solved."""

    name: str
    half: Half
    environment: str
    """The name of the environment, as `rove.make` takes it."""
    steps: int
    """Number of environment steps per seed."""
    zero: float
    one: float
    """The mean scores that count as 0 and as 1."""
    solved: float
    """Minimum normalised score of the last episodes of a seed that has solved the task."""
    scale: str
    """The meaning of the scores 0 and 1."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the environment."""
    extra: str = ""
    """The extra of the package that the task needs."""

    def make(self) -> Task:
        """Create the environment."""
        return make(self.environment, **self.options)

    def normalised(self, score: float | np.ndarray) -> np.ndarray:
        """Return mean scores on the scale from 0 to 1."""
        return np.clip((np.asarray(score, float) - self.zero) / (self.one - self.zero), 0.0, 1.0)

    @property
    def missing(self) -> str | None:
        """Return why the task has to be left out; None if it can be created."""
        try:
            self.make()
        except ConfigError as error:
            if not self.extra:
                raise
            return f"{self.name} is left out: {error}"
        return None


def _reached(name: str, half: Half, environment: str, steps: int, **options: Any) -> SuiteTask:
    """Return a task whose score is 1 for an episode that reaches the goal, and 0 otherwise."""
    scale = "fraction of episodes that reach the goal"
    if environment.startswith("gym/"):
        options |= {"optimum": 1.0, "score_range": (0.0, 1.0)}
    return SuiteTask(name, half, environment, steps, 0.0, 1.0, 0.9, scale, options)


def _deep_sea(half: Half, n: int, solved: float) -> SuiteTask:
    scale = "0 (never going right) and 0.99 (the optimum)"
    return SuiteTask(f"deep-sea-{n}", half, f"deep-sea-{n}", 30_000, 0.0, 0.99, solved, scale)


def _chain(half: Half, n: int, solved: float) -> SuiteTask:
    name = f"permuted-chain-{n}"
    return SuiteTask(name, half, name, 30_000, 0.0, 11.0, solved, "0 and 11 (the optimum)")


_DEVELOPMENT: Half = "development"
_HELD_OUT: Half = "held-out"
TASKS: tuple[SuiteTask, ...] = (
    _reached("minigrid-empty-6", _DEVELOPMENT, "minigrid-empty-6", 30_000),
    _reached("minigrid-doorkey-5", _DEVELOPMENT, "minigrid-doorkey-5", 100_000),
    _reached("frozenlake-4x4", _DEVELOPMENT, "gym/FrozenLake-v1", 30_000, is_slippery=False),
    SuiteTask(
        "frozenlake-4x4-slippery", _DEVELOPMENT, "gym/FrozenLake-v1", 30_000, 0.0, 0.7, 0.65,
        "0 and 0.7 (Gymnasium's threshold); the optimum is 0.74", {"score_range": (0.0, 1.0)},
    ),
    _reached("sparse-mountain-car", _DEVELOPMENT, "sparse-mountain-car", 30_000),
    _deep_sea(_DEVELOPMENT, 10, solved=0.7),
    _chain(_DEVELOPMENT, 20, solved=0.8),
    _reached("point-rooms", _DEVELOPMENT, "point-rooms", 40_000),
    SuiteTask(
        "minatar-breakout", _DEVELOPMENT, "gymnax/Breakout-MinAtar", 30_000, 0.4, 5.0, 0.5,
        "0.4 (random actions) and 5 bricks per episode", extra="gymnax",
    ),
    _reached("minigrid-multiroom", _HELD_OUT, "minigrid-multiroom", 30_000),
    _reached("minigrid-unlock", _HELD_OUT, "minigrid-unlock", 40_000),
    _reached("frozenlake-8x8", _HELD_OUT, "gym/FrozenLake8x8-v1", 30_000, is_slippery=False),
    SuiteTask(
        "cliffwalking", _HELD_OUT, "gym/CliffWalking-v1", 30_000, -200.0, -13.0, 0.8,
        "−200 (never ending) and −13 (the optimum)", {"time_limit": 200, "optimum": -13.0},
    ),
    SuiteTask(
        "sparse-acrobot", _HELD_OUT, "sparse-acrobot", 30_000, -500.0, -100.0, 0.9,
        "−500 (never arriving) and −100 (Gymnasium's threshold)",
    ),
    _deep_sea(_HELD_OUT, 20, solved=0.5),
    _chain(_HELD_OUT, 50, solved=0.65),
    _reached("swing-up", _HELD_OUT, "swing-up", 40_000),
    SuiteTask(
        "minatar-space-invaders", _HELD_OUT, "gymnax/SpaceInvaders-MinAtar", 30_000, 4.2, 20.0, 0.5,
        "4.2 (random actions) and 20 aliens per episode", extra="gymnax",
    ),
)  # fmt: skip
"""All tasks. Where a single random action spoils an episode, `solved` is low enough that an optimal
policy with 5% random actions reaches it."""
BY_NAME = {task.name: task for task in TASKS}


def of_half(half: str, among: Sequence[SuiteTask] = TASKS) -> list[SuiteTask]:
    """Return the tasks of a half."""
    return [task for task in among if task.half == half]
