"""The chain MDP (Section 6.1): a small reward nearby, a large one far away, and none between."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Int

from rove.environments.base import Environment, Step
from rove.errors import check_choice, check_flag, check_integer
from rove.parts.noise import Key
from rove.parts.onehot import Observation, OneHot

LEFT, RIGHT = 0, 1


class ChainState(NamedTuple):
    position: Int[Array, ""]
    """i − 1 for the paper's state s_i."""
    time: Int[Array, ""]
    """Number of steps taken in the episode."""


class Chain(Environment):
    """The chain MDP: N states in a row with absorbing ends; the far end pays the large reward.

    An episode starts at s₂ and lasts N + 9 steps. A step spent in s₁ pays 0.001 and one spent in
    s_N pays 1: going right all the time earns 11, going left 0.001·(N + 8). The end is a time
    limit: the episode is truncated, not terminated, so that targets bootstrap from the last state.
    """

    n: int = eqx.field(static=True)
    """N, the number of states."""
    features: Literal["thermometer", "one-hot"] = eqx.field(default="thermometer", static=True)
    """Features of state s_i: ones up to i (thermometer), or a single one at i (one-hot)."""
    permuted: bool = eqx.field(default=False, static=True)
    """Swap left and right in about half of the states, so that no constant policy is optimal."""
    map_seed: int = eqx.field(default=0, static=True)
    """Seed that decides in which states left and right are swapped; no effect unless permuted."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=3, at_most=100_000)
        check_choice("features", self.features, ("thermometer", "one-hot"))
        check_flag("permuted", self.permuted)
        check_integer("map_seed", self.map_seed, at_least=0)

    @property
    def name(self) -> str:
        return f"permuted-chain-{self.n}" if self.permuted else f"chain-{self.n}"

    @property
    def observation_size(self) -> int:
        return self.n

    @property
    def coded(self) -> bool:
        return self.features == "one-hot"

    @property
    def observation_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def num_actions(self) -> int:
        return 2

    @property
    def action_names(self) -> tuple[str, ...]:
        return super().action_names if self.permuted else ("left", "right")

    @property
    def optimum(self) -> float:
        """The return of going right or, from N = 10,993 on, of staying at the left end."""
        return max(11.0, 0.001 * (self.n + 8))

    @property
    def score_range(self) -> tuple[float, float]:
        return 0.0, self.optimum

    @property
    def horizon(self) -> int:
        """Number of steps per episode."""
        return self.n + 9

    @property
    def bins(self) -> int:
        return self.n

    @property
    def landmarks(self) -> dict[str, int]:
        return {"start": 1, "goal": self.n - 1}

    def bin(self, state: ChainState) -> Int[Array, ""]:
        return state.position

    @property
    def swapped(self) -> Bool[np.ndarray, " n"]:
        """The states in which left and right are swapped."""
        if not self.permuted:
            return np.zeros(self.n, bool)
        return np.random.default_rng(self.map_seed).random(self.n) < 0.5

    def observe(self, position: int | Int[Array, ""]) -> Observation:
        """Return the features of a position."""
        if self.coded:
            return OneHot(jnp.asarray(position, jnp.int32), self.n)
        return (jnp.arange(self.n) <= position).astype(jnp.float32)

    def probes(self) -> Mapping[str, Observation]:
        """Return the initial state, one halfway, and the last one before the goal."""
        positions = {"start": 1, "middle": self.n // 2, "last": self.n - 2}
        return {name: self.observe(position) for name, position in positions.items()}

    def reset(self, key: Key) -> tuple[ChainState, Observation]:
        state = ChainState(jnp.ones((), jnp.int32), jnp.zeros((), jnp.int32))
        return state, self.observe(state.position)

    def step(self, state: ChainState, action: Int[Array, ""], key: Key) -> Step:
        position, last = state.position, self.n - 1
        reward = jnp.where(position == 0, 0.001, jnp.where(position == last, 1.0, 0.0))
        right = (action == RIGHT) != jnp.asarray(self.swapped)[position]
        moved = position + jnp.where(right, 1, -1)
        absorbed = (position == 0) | (position == last)
        after = ChainState(jnp.where(absorbed, position, moved), state.time + 1)
        return Step(
            state=after,
            observation=self.observe(after.position),
            reward=reward,
            terminated=jnp.zeros((), bool),
            truncated=after.time >= self.horizon,
        )
