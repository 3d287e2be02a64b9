"""A windy cliff walk: the shortest way to the goal is the riskiest."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments.base import Environment, Step
from rove.errors import check_integer, check_number
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Observation, OneHot

ROWS, COLUMNS = 4, 7
START, GOAL = (ROWS - 1) * COLUMNS, ROWS * COLUMNS - 1
UP, RIGHT, DOWN, LEFT = range(4)
MOVES = np.array([(-1, 0), (0, 1), (1, 0), (0, -1)])
STEP_COST, GUST = 0.1, 2
"""Cost of a step, and the number of rows that a gust moves the agent down."""


class CliffState(NamedTuple):
    cell: Int[Array, ""]
    """Row times 7 plus column."""
    time: Int[Array, ""]
    """Number of steps taken in the episode."""


class Cliff(Environment):
    """Cliff: walk from start to goal along a cliff, or around it, while gusts push towards it.

    The grid has 4 × 7 cells. An episode starts in the bottom left corner, the goal is the bottom
    right one, and the cells between them are the cliff. A step moves up, right, down or left, if
    there is a cell, and costs 0.1. With probability `wind`, a gust then moves the agent down by two
    rows. Falling off the cliff ends the task and costs `fall`; reaching the goal ends it too. The
    short way along the edge has the highest mean return, and a detour has far better worst cases.
    """

    wind: float = eqx.field(default=0.02, static=True)
    """Probability of a gust in each step."""
    fall: float = eqx.field(default=2.0, static=True)
    """Cost of a fall."""
    horizon: int = eqx.field(default=100, static=True)
    """Maximum number of steps per episode."""

    def __check_init__(self) -> None:
        check_number("wind", self.wind, at_least=0.0, at_most=1.0)
        check_number("fall", self.fall, at_least=0.0, at_most=1e6)
        check_integer("horizon", self.horizon, at_least=1)

    @property
    def name(self) -> str:
        return "cliff"

    @property
    def observation_size(self) -> int:
        return ROWS * COLUMNS

    @property
    def coded(self) -> bool:
        return True

    @property
    def observation_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def num_actions(self) -> int:
        return len(MOVES)

    @property
    def action_names(self) -> tuple[str, ...]:
        return "up", "right", "down", "left"

    @property
    def score_range(self) -> tuple[float, float]:
        return -STEP_COST * self.horizon - self.fall, -STEP_COST

    @property
    def bins(self) -> int:
        return ROWS * COLUMNS

    @property
    def cells(self) -> tuple[int, int]:
        return ROWS, COLUMNS

    @property
    def landmarks(self) -> dict[str, int]:
        return {"start": START, "goal": GOAL}

    def bin(self, state: CliffState) -> Int[Array, ""]:
        return state.cell

    @property
    def transitions(self) -> Float[np.ndarray, "cells actions cells"]:
        """The probability of each next cell, for all cells and actions.

        The end of an episode is not part of it: see `rewards` for the cells that end it.
        """
        table = np.zeros((self.bins, len(MOVES), self.bins))
        for cell in range(self.bins):
            for action in range(len(MOVES)):
                calm = _moved(cell, action)
                table[cell, action, calm] += 1.0 - self.wind
                table[cell, action, _moved(calm, DOWN, GUST)] += self.wind
        return table

    @property
    def rewards(self) -> Float[np.ndarray, " cells"]:
        """The reward of a step that leads to each cell."""
        return -STEP_COST - self.fall * self.falls

    @property
    def falls(self) -> Float[np.ndarray, " cells"]:
        """1 for the cells of the cliff, and 0 for all others."""
        return ((np.arange(self.bins) > START) & (np.arange(self.bins) < GOAL)).astype(float)

    def probes(self) -> Mapping[str, Observation]:
        """Return the initial state, the one above it, and the one above the middle of the cliff."""
        cells = {"start": START, "edge": START - COLUMNS, "middle": START - COLUMNS + COLUMNS // 2}
        return {name: self.observe(cell) for name, cell in cells.items()}

    def observe(self, cell: int | Int[Array, ""]) -> OneHot:
        """Return the one-hot features of a cell."""
        return OneHot(jnp.asarray(cell, jnp.int32), self.bins)

    def reset(self, key: Key) -> tuple[CliffState, Observation]:
        state = CliffState(jnp.array(START, jnp.int32), jnp.zeros((), jnp.int32))
        return state, self.observe(state.cell)

    def step(self, state: CliffState, action: Int[Array, ""], key: Key) -> Step:
        table = np.array([[_moved(c, a) for a in range(len(MOVES))] for c in range(self.bins)])
        calm = jnp.asarray(table, jnp.int32)[state.cell, action]
        gust = noise.uniform(key) < self.wind
        blown = np.array([_moved(c, DOWN, GUST) for c in range(self.bins)])
        cell = jnp.where(gust, jnp.asarray(blown, jnp.int32)[calm], calm)
        after = CliffState(cell, state.time + 1)
        ends = jnp.asarray(self.falls > 0)[cell] | (cell == GOAL)
        return Step(
            state=after,
            observation=self.observe(cell),
            reward=jnp.asarray(self.rewards, jnp.float32)[cell],
            terminated=ends,
            truncated=~ends & (after.time >= self.horizon),
        )


def _moved(cell: int, action: int, steps: int = 1) -> int:
    """Return the cell that a move, or several, leads to, without wind."""
    row, column = np.divmod(cell, COLUMNS) + steps * MOVES[action]
    return int(np.clip(row, 0, ROWS - 1) * COLUMNS + np.clip(column, 0, COLUMNS - 1))
