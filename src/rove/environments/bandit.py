"""A Gaussian bandit, whose regret has a known lower bound."""

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


class BanditState(NamedTuple):
    arm: Int[Array, ""]
    """The arm that was pulled; N before the pull."""


class Bandit(Environment):
    """A bandit with N arms: each pays a fixed mean plus Gaussian noise; an episode is one pull.

    The means are drawn from N(0, 1) once. A pull ends the task, so nothing is bootstrapped: the
    value of an action is the mean of its arm. A run's `visits` contain the fraction of pulls of
    each arm, and a last cell for the state before the pull, which every episode visits.
    """

    n: int = eqx.field(static=True)
    """N, the number of arms."""
    map_seed: int = eqx.field(default=0, static=True)
    """Seed that decides the means of the arms."""
    noise_std: float = eqx.field(default=1.0, static=True)
    """Standard deviation σ of rewards about their arm's mean."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=2, at_most=10_000)
        check_integer("map_seed", self.map_seed, at_least=0)
        check_number("noise_std", self.noise_std, at_least=0.0, at_most=1e6)

    @property
    def name(self) -> str:
        return f"bandit-{self.n}"

    @property
    def observation_size(self) -> int:
        return 1

    @property
    def coded(self) -> bool:
        return True

    @property
    def observation_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0  # always 1, but Gymnasium warns about spaces with a single point

    @property
    def num_actions(self) -> int:
        return self.n

    @property
    def bins(self) -> int:
        return self.n + 1

    def bin(self, state: BanditState) -> Int[Array, ""]:
        return state.arm

    @property
    def means(self) -> Float[np.ndarray, " n"]:
        """The mean reward of each arm."""
        return np.random.default_rng(self.map_seed).standard_normal(self.n)

    @property
    def regrets(self) -> Float[np.ndarray, " n"]:
        """The expected regret Δ_a of one pull of each arm, compared to the best arm."""
        return self.means.max() - self.means

    @property
    def lai_robbins(self) -> float:
        """The Lai–Robbins constant, Σ 2σ²/Δ_a over all arms except the best.

        No consistent policy's regret grows more slowly than this times log t (Lai and Robbins
        1985).
        """
        gaps = self.regrets[self.regrets > 0]
        return float(np.sum(2 * self.noise_std**2 / gaps))

    def regret(self, counts: np.ndarray) -> np.ndarray:
        """Return the total expected regret, given how often each arm was pulled, of shape [bins] or
        [seeds, bins]."""
        return np.asarray(counts[..., : self.n] @ self.regrets)

    def probes(self) -> Mapping[str, Observation]:
        """Return the only observation."""
        return {"start": self.reset(noise.root(0))[1]}

    def reset(self, key: Key) -> tuple[BanditState, Observation]:
        return BanditState(jnp.array(self.n, jnp.int32)), OneHot(jnp.zeros((), jnp.int32), 1)

    def step(self, state: BanditState, action: Int[Array, ""], key: Key) -> Step:
        return Step(
            state=BanditState(action.astype(jnp.int32)),
            observation=OneHot(jnp.zeros((), jnp.int32), 1),
            reward=jnp.asarray(self.means)[action] + self.noise_std * noise.normal(key),
            terminated=jnp.ones((), bool),
            truncated=jnp.zeros((), bool),
        )
