"""Base classes of environments: `Task`, and `Environment` for those that can be compiled."""

import abc
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium import spaces
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.action_masks import given_mask
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.images import Image
from rove.parts.integers import Integers
from rove.parts.masks import masked
from rove.parts.noise import Key
from rove.parts.onehot import Form, Observation

State: TypeAlias = Any
Bound: TypeAlias = float | tuple[float, ...]
"""A bound for all entries of an observation, or one bound for each."""
GRID = 40
"""Number of cells along a coordinate of real numbers, and the maximum along one of integers."""


class Step(NamedTuple):
    """The result of one step.

    `terminated` means that the task has ended, `truncated` that a time limit was reached; only
    termination stops bootstrapping. The observation is the one before any reset.
    """

    state: State
    observation: Observation
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


class Coordinate(NamedTuple):
    """A coordinate of a grid of cells: its name and its range."""

    name: str
    low: float
    high: float
    cells: int = GRID
    """Number of cells, which divide the range evenly."""

    @staticmethod
    def of_integers(name: str, low: int, high: int) -> "Coordinate":
        """Return the coordinate of the integers from `low` to `high`: a cell for each of them or,
        if there are more than GRID, for as few consecutive ones as possible."""
        count = high - low + 1
        width = -(-count // GRID)
        cells = -(-count // width)
        return Coordinate(name, low - 0.5, low - 0.5 + width * cells, cells)


def cell(coordinates: tuple[Coordinate, ...], point: tuple[Array, Array]) -> Int[Array, ""]:
    """Return the index of the cell that contains a point, on a grid of two coordinates.

    Points outside the coordinates' ranges belong to the nearest cell at the edge.
    """
    row, column = (
        jnp.clip(
            jnp.floor((x - c.low) / (c.high - c.low) * c.cells).astype(jnp.int32), 0, c.cells - 1
        )
        for c, x in zip(coordinates, point, strict=True)
    )
    return row * coordinates[1].cells + column


class Task(eqx.Module):
    """The interface that training needs from any environment.

    Observations are vectors, which may be flattened images, or codes (`OneHot`). Actions are
    integers 0, 1, …, or vectors in [−1, 1]^k.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of the environment, for example chain-100."""

    @property
    @abc.abstractmethod
    def observation_size(self) -> int:
        """Number of entries of an observation."""

    @property
    def coded(self) -> bool:
        """Whether the agent's observations are `OneHot` instead of vectors."""
        return False

    @property
    def image(self) -> Image | None:
        """The form of observations that are images; None for all others."""
        return None

    @property
    def integers(self) -> Integers | None:
        """The form of observations whose entries are integers, as `agent_observation` returns them;
        None for all others. The replay buffer stores integers as bytes."""
        return None

    @property
    def form(self) -> Form:
        """The form of observations, as agents take it."""
        return Form(self.coded, self.masked, self.image, self.integers, self.copies)

    @property
    def copies(self) -> int:
        """Number of copies of the environment that a seed is trained on, side by side."""
        return 1

    @property
    @abc.abstractmethod
    def num_actions(self) -> int:
        """Number of actions, or k if actions are continuous."""

    @property
    def continuous(self) -> bool:
        """Whether actions are vectors in [−1, 1]^k."""
        return False

    @property
    def action_space(self) -> spaces.Space:
        """The actions as a space of Gymnasium."""
        if self.continuous:
            return spaces.Box(-1.0, 1.0, (self.num_actions,), np.float32)
        return spaces.Discrete(self.num_actions)

    @property
    def masked(self) -> bool:
        """Whether the agent's observations have masks: some actions may not be allowed."""
        return False

    def action_mask(self, state: State) -> Bool[Array, " actions"] | None:
        """Return which actions are allowed in a state; None if always all of them are.

        Agents take no other actions, and targets do not consider others.
        """
        return None

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions, for plots."""
        return tuple(f"action {i}" for i in range(self.num_actions))

    @property
    def optimum(self) -> float | None:
        """The best possible score of an episode, or None if it is not known."""
        return None

    @property
    def score_label(self) -> str:
        """Label of the score in plots."""
        return "return"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        """Return the score of an episode, or of an array of episodes, as plotted.

        This is the return, except for tasks that the paper scores in another way.
        """
        return returns

    @property
    def score_range(self) -> tuple[float, float] | None:
        """The minimum and maximum score of an episode, or None if they are not known.

        Confidence intervals of mean scores rely on it.
        """
        return None

    @property
    @abc.abstractmethod
    def bins(self) -> int:
        """Number of cells in which state visits are counted; 0 if they are not counted."""

    @property
    def cells(self) -> tuple[int, ...]:
        """The layout of the cells: a row, or the rows and columns of a grid."""
        return (self.bins,)

    @property
    def coordinates(self) -> tuple[Coordinate, ...]:
        """The coordinates of a grid whose cells are ranges of numbers, or ().

        First the vertical coordinate, which points upwards, then the horizontal one.
        """
        return ()

    @property
    def first_cell(self) -> int:
        """The number of the first cell of a row, in plots."""
        return 1

    @property
    def landmarks(self) -> dict[str, int]:
        """Cells with a name, such as the start and the goal, for pictures."""
        return {}

    @abc.abstractmethod
    def bin(self, state: State) -> Int[Array, ""]:
        """Return the index of a state's cell."""

    def probes(self) -> Mapping[str, Observation]:
        """Return a few observations, by name, for which diagnostics are recorded."""
        return {}

    def agent_observation(self, state: State, observation: Observation) -> Observation:
        """Return the observation as the agent sees it, for example normalised."""
        return observation

    def observation(self, given: Any, action_mask: Any = None) -> Observation:
        """Convert a user's observation to one that `agent_observation` takes, with the mask of its
        actions if there is one."""
        shape = (self.observation_size,)
        try:
            x = np.asarray(given, np.float32)
        except (TypeError, ValueError):
            x = np.full((), np.nan, np.float32)
        if x.shape != shape or not np.isfinite(x).all():
            raise ConfigError.must_be(
                "observation", given, f"an array of shape {shape} with finite numbers"
            )
        return masked(jnp.asarray(x), given_mask(self.action_space, action_mask, self.masked))

    def action(self, chosen: Array) -> int | np.ndarray:
        """Convert a learner's action to one of the environment."""
        return np.asarray(chosen) if self.continuous else int(chosen)

    @abc.abstractmethod
    def reset(self, key: Key) -> tuple[State, Observation]:
        """Return an initial state and its observation."""


class Environment(Task):
    """An environment whose `reset` and `step` can be compiled by JAX."""

    @property
    def observation_bounds(self) -> tuple[Bound, Bound]:
        """The minimum and maximum values of observations."""
        return -math.inf, math.inf

    @property
    def masked(self) -> bool:
        mask = jax.eval_shape(lambda: self.action_mask(self.reset(noise.root(0))[0]))
        return mask is not None

    @abc.abstractmethod
    def step(self, state: State, action: Int[Array, ""] | Float[Array, " k"], key: Key) -> Step:
        """Return the next state, its observation and the reward."""


class GoalReached(Task):
    """A task whose score is 1 if an episode ends by termination, at a goal, and 0 otherwise."""

    @property
    def optimum(self) -> float:
        return 1.0

    @property
    def score_label(self) -> str:
        return "goal reached"

    def score(self, returns: Any, length: Any, terminated: Any) -> Any:
        return terminated.astype(int)

    @property
    def score_range(self) -> tuple[float, float]:
        return 0.0, 1.0


def with_action_mask(task: Task, state: State, observation: Observation) -> Observation:
    """Return an observation of a state with the mask of its actions, if it has one."""
    return masked(observation, task.action_mask(state))
