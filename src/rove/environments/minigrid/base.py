"""The base class of MiniGrid's tasks: its observations, time limit and reward."""

import abc
from collections.abc import Mapping
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.environments.base import Environment, GoalReached, Step
from rove.environments.minigrid import cells
from rove.environments.minigrid.cells import GridState
from rove.errors import check_choice, check_integer
from rove.parts import noise
from rove.parts.integers import Integers
from rove.parts.noise import Key
from rove.parts.onehot import Observation

Coding = Literal["one-hot", "scaled"]
_SCALE = np.array([cells.KINDS - 1, cells.COLOURS - 1, cells.STATES - 1], np.float32)


class MiniGrid(GoalReached, Environment):
    """A task of MiniGrid: an agent in a grid, which sees the 7×7 cells in front of it.

    Actions turn left or right, go forward, pick up, drop, toggle (open or close a door), and do
    nothing. The reward for success is 1 − 0.9·t/T after t steps, where T is the time limit. The
    score is 1 for success and 0 otherwise, since the largest possible return differs between
    layouts.

    An observation is the view followed by the agent's direction (one-hot). In the view, cells that
    walls or doors hide are "unseen". With the coding one-hot, each cell has an entry for every
    thing that the task can show (an open, a closed and a locked door are three things) and, in
    tasks with several colours, an entry for every colour. With scaled, each cell has the three
    numbers of MiniGrid's image (object, colour, state), divided by their maxima. The default is
    one-hot, because these numbers are categories, not quantities.
    """

    def __check_init__(self) -> None:
        check_choice("coding", self.coding, ("one-hot", "scaled"))
        if self.max_steps is not None:
            check_integer("max_steps", self.max_steps, at_least=1, at_most=1_000_000)

    @property
    @abc.abstractmethod
    def coding(self) -> Coding:
        """The coding of the view."""

    @property
    @abc.abstractmethod
    def max_steps(self) -> int | None:
        """Maximum number of steps per episode, or None for MiniGrid's own."""

    @property
    @abc.abstractmethod
    def horizon(self) -> int:
        """Maximum number of steps per episode."""

    @property
    @abc.abstractmethod
    def shape(self) -> tuple[int, int]:
        """The width and the height of the grid."""

    @property
    def through_walls(self) -> bool:
        """Whether the agent sees through walls."""
        return False

    @property
    @abc.abstractmethod
    def things(self) -> tuple[int, ...]:
        """The things that a view can show, as cells whose colour does not matter."""

    @property
    def colours(self) -> int:
        """Number of colours that the one-hot code distinguishes; 0 if an object's kind determines
        its colour."""
        return 0

    @abc.abstractmethod
    def start(self, key: Key) -> GridState:
        """Draw an initial state."""

    @abc.abstractmethod
    def succeeded(self, state: GridState) -> Bool[Array, ""]:
        """Whether the task has been solved, which ends it."""

    @property
    def observation_size(self) -> int:
        planes = 3 if self.coding == "scaled" else len(self.things) + self.colours
        return cells.VIEW**2 * planes + 4

    @property
    def integers(self) -> Integers | None:
        return Integers(flags=True) if self.coding == "one-hot" else None

    @property
    def observation_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def num_actions(self) -> int:
        return 7

    @property
    def action_names(self) -> tuple[str, ...]:
        return ("left", "right", "forward", "pick up", "drop", "toggle", "done")

    @property
    def bins(self) -> int:
        width, height = self.shape
        return width * height

    @property
    def cells(self) -> tuple[int, int]:
        width, height = self.shape
        return height, width

    def bin(self, state: GridState) -> Int[Array, ""]:
        """Return the cell that the agent is in."""
        return state.position[1] * self.shape[0] + state.position[0]

    def probes(self) -> Mapping[str, Observation]:
        """Return the initial observation of a layout."""
        return {"start": self.observe(self.start(noise.root(0)))}

    def observe(self, state: GridState) -> Float[Array, " features"]:
        """Return the observation of a state."""
        seen = cells.view(state, self.through_walls)
        if self.coding == "scaled":
            code = cells.numbers(seen) / _SCALE
        else:
            things = cells.without_colour(jnp.array(self.things))
            code = cells.without_colour(seen)[..., None] == things
            if self.colours:
                colour = cells.numbers(seen)[..., 1]
                colours = colour[..., None] == jnp.arange(self.colours)
                code = jnp.concatenate([code, colours], axis=-1)
        direction = jax.nn.one_hot(state.direction, 4)
        return jnp.concatenate([code.astype(jnp.float32).ravel(), direction])

    def reset(self, key: Key) -> tuple[GridState, Observation]:
        state = self.start(key)
        return state, self.observe(state)

    def step(self, state: GridState, action: Int[Array, ""], key: Key) -> Step:
        after = cells.after_action(state, action)
        succeeded = self.succeeded(after)
        reward = 1.0 - 0.9 * (after.time / self.horizon)
        return Step(
            state=after,
            observation=self.observe(after),
            reward=jnp.where(succeeded, reward, 0.0),
            terminated=succeeded,
            truncated=after.time >= self.horizon,
        )


def initial_state(
    grid: Int[Array | np.ndarray, "width height"],
    position: Int[Array | np.ndarray, "2"],
    direction: int | Int[Array, ""],
) -> GridState:
    """Return the state at the beginning of an episode."""
    zero = jnp.zeros((), jnp.int32)
    return GridState(
        cells=jnp.asarray(grid, jnp.int32),
        position=jnp.asarray(position, jnp.int32),
        direction=zero + direction,
        carried=zero + cells.EMPTY,
        time=zero,
    )


def on_goal(state: GridState) -> Bool[Array, ""]:
    """Whether the agent has reached a goal."""
    return state.cells[state.position[0], state.position[1]] == cells.GOAL
