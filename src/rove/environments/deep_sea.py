"""Deep Sea (Osband et al. 2019), as in bsuite's deterministic version."""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Int

from rove.environments.base import Environment, Step
from rove.errors import check_flag, check_integer
from rove.parts.noise import Key
from rove.parts.onehot import Observation, OneHot

MOVE_COST = 0.01
"""Total cost of N moves to the right."""


class DeepSeaState(NamedTuple):
    row: Int[Array, ""]
    column: Int[Array, ""]
    """Once the episode has ended (row N), the column it ended in."""


class DeepSea(Environment):
    """Deep Sea: N steps down an N×N grid; only going right at every one of them is rewarded.

    An episode starts in the top left cell. Each step goes down one row and left or right one
    column, stopping at the sides. A move to the right costs 0.01/N; in the last column, which
    is reached only in the last row, it also earns 1. Going right in every step earns 0.99 in
    total, and any other policy at most 0. The task ends after N steps, with an observation of all
    zeros. bsuite's experiment uses N = 10, 12, …, 50 with map_seed 42.
    """

    n: int = eqx.field(static=True)
    """N, the number of rows and of columns."""
    map_seed: int = eqx.field(default=0, static=True)
    """Seed of the random choice of actions (bsuite's mapping_seed); no effect unless randomised."""
    randomised: bool = eqx.field(default=True, static=True)
    """Choose at random, for each cell, which action moves right; if not, it is always action 1."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=2, at_most=1000)
        check_integer("map_seed", self.map_seed, at_least=0)
        check_flag("randomised", self.randomised)

    @property
    def name(self) -> str:
        return f"deep-sea-{self.n}"

    @property
    def observation_size(self) -> int:
        return self.n**2

    @property
    def coded(self) -> bool:
        return True

    @property
    def observation_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def num_actions(self) -> int:
        return 2

    @property
    def action_names(self) -> tuple[str, ...]:
        return super().action_names if self.randomised else ("left", "right")

    @property
    def optimum(self) -> float:
        return 1.0 - MOVE_COST

    @property
    def score_range(self) -> tuple[float, float]:
        return -MOVE_COST, self.optimum

    @property
    def bins(self) -> int:
        return self.n**2

    @property
    def cells(self) -> tuple[int, int]:
        return (self.n, self.n)

    @property
    def landmarks(self) -> dict[str, int]:
        return {"start": 0, "goal": self.bins - 1}

    def bin(self, state: DeepSeaState) -> Int[Array, ""]:
        """Return row·N + column; after the end, that of the last row, which was visited before."""
        return jnp.minimum(state.row, self.n - 1) * self.n + state.column

    @property
    def rightward(self) -> Int[np.ndarray, "n n"]:
        """The action that goes right in each cell, by row and column."""
        if not self.randomised:
            return np.ones((self.n, self.n), int)
        generator = np.random.RandomState(self.map_seed)  # as in bsuite, for the same maps
        return generator.binomial(1, 0.5, (self.n, self.n))

    def observe(self, row: int | Int[Array, ""], column: int | Int[Array, ""]) -> OneHot:
        """Return the one-hot features of a cell."""
        return OneHot(jnp.asarray(row * self.n + column, jnp.int32), self.n**2)

    def probes(self) -> Mapping[str, Observation]:
        """Return three cells of the diagonal, which an optimal episode follows."""
        cells = {"start": 0, "middle": self.n // 2, "last": self.n - 1}
        return {name: self.observe(i, i) for name, i in cells.items()}

    def reset(self, key: Key) -> tuple[DeepSeaState, Observation]:
        state = DeepSeaState(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))
        return state, self.observe(*state)

    def step(self, state: DeepSeaState, action: Int[Array, ""], key: Key) -> Step:
        row, column, last = state.row, state.column, self.n - 1
        right = action == jnp.asarray(self.rightward)[row, column]
        cost = MOVE_COST / self.n
        earned = jnp.where(column == last, 1.0 - cost, -cost)
        moved = jnp.clip(column + jnp.where(right, 1, -1), 0, last)
        after = DeepSeaState(row + 1, jnp.where(row == last, column, moved))
        return Step(
            state=after,
            observation=self.observe(*after),
            reward=jnp.where(right, earned, 0.0),
            terminated=after.row >= self.n,
            truncated=jnp.zeros((), bool),
        )
