"""A bandit with Gaussian arms, each pull an episode: regret has a known lower bound."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove import noise
from rove.environments.base import Environment, Step
from rove.errors import check_integer, check_number
from rove.noise import Key


class BanditState(NamedTuple):
    arm: Int[Array, ""]
    """The arm that was pulled; N before any was."""


class Bandit(Environment):
    """A bandit: N arms that pay a fixed mean each, plus Gaussian noise; one pull an episode.

    The means are drawn from N(0, 1) once. A pull ends the task, so nothing is bootstrapped:
    the value of an action is the mean of its arm. `visits` of a run holds how often each arm
    was pulled, and one cell more, for the state before the pull, that every episode visits.
    """

    n: int = eqx.field(static=True)
    """N, the number of arms."""
    map_seed: int = eqx.field(default=0, static=True)
    """Which means."""
    noise_std: float = eqx.field(default=1.0, static=True)
    """Standard deviation of a reward about its arm's mean."""

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
    def observation_bounds(self) -> tuple[float, float]:
        return 0.0, 1.0  # it is always 1, but Gymnasium warns of a space of one point

    @property
    def num_actions(self) -> int:
        return self.n

    @property
    def optimum(self) -> None:
        """None: a return is noisy, so that a high one shows nothing."""
        return None

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
        """Δ_a: what one pull of each arm loses against the best arm, in the mean."""
        return self.means.max() - self.means

    @property
    def lai_robbins(self) -> float:
        """Σ 2σ²/Δ_a over all arms but the best: no consistent policy's regret grows slower
        than this times log t (Lai and Robbins 1985)."""
        gaps = self.regrets[self.regrets > 0]
        return float(np.sum(2 * self.noise_std**2 / gaps))

    def regret(self, visits: np.ndarray) -> np.ndarray:
        """What pulls have lost in the mean, counted as visits are: [bins], or [seeds, bins]."""
        return np.asarray(visits[..., : self.n] @ self.regrets)

    def probes(self) -> dict[str, Float[Array, " features"]]:
        """The one observation there is."""
        return {"start": jnp.ones(1)}

    def reset(self, key: Key) -> tuple[BanditState, Float[Array, " features"]]:
        return BanditState(jnp.array(self.n, jnp.int32)), jnp.ones(1)

    def step(self, state: BanditState, action: Int[Array, ""], key: Key) -> Step:
        return Step(
            state=BanditState(action.astype(jnp.int32)),
            observation=jnp.ones(1),
            reward=jnp.asarray(self.means)[action] + self.noise_std * noise.normal(key),
            terminated=jnp.ones((), bool),
            truncated=jnp.zeros((), bool),
        )
