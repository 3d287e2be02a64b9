"""A contextual bandit whose rewards are linear in the context."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.environments.bandit import BanditTask
from rove.environments.base import Step
from rove.errors import check_integer, check_number
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Observation


class LinearBanditState(NamedTuple):
    context: Int[Array, ""]
    arm: Int[Array, ""]
    """The arm that was pulled; N before the pull."""


class LinearBandit(BanditTask):
    """A contextual bandit with N arms: rewards are linear in the context; an episode is one pull.

    An episode shows one of several contexts x, each equally likely; arm a pays x·w_a plus Gaussian
    noise. The weights w_a are drawn from N(0, I) once, and the contexts from N(0, I/d) in d
    dimensions. A run's `visits` count the pulls of each arm in each context.
    """

    n: int = eqx.field(static=True)
    """N, the number of arms."""
    features: int = eqx.field(default=5, static=True)
    """Dimension d of a context."""
    contexts: int = eqx.field(default=20, static=True)
    """Number of contexts."""
    noise_std: float = eqx.field(default=0.5, static=True)
    """Standard deviation σ of rewards about their mean."""
    map_seed: int = eqx.field(default=0, static=True)
    """Seed that decides the contexts and the weights."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=2, at_most=1000)
        check_integer("features", self.features, at_least=1, at_most=1000)
        check_integer("contexts", self.contexts, at_least=1, at_most=1000)
        check_number("noise_std", self.noise_std, at_least=0.0, at_most=1e6)
        check_integer("map_seed", self.map_seed, at_least=0)

    @property
    def name(self) -> str:
        return f"linear-bandit-{self.n}"

    @property
    def observation_size(self) -> int:
        return self.features

    @property
    def observation_bounds(self) -> tuple[float, float]:
        largest = float(np.abs(self.inputs).max())
        return -largest, largest

    @property
    def num_actions(self) -> int:
        return self.n

    @property
    def bins(self) -> int:
        return self.contexts * (self.n + 1)

    def bin(self, state: LinearBanditState) -> Int[Array, ""]:
        return state.context * (self.n + 1) + state.arm

    @property
    def inputs(self) -> Float[np.ndarray, "contexts features"]:
        """The contexts x, one per row."""
        shape = (self.contexts, self.features)
        return np.random.default_rng(self.map_seed).standard_normal(shape) / self.features**0.5

    @property
    def weights(self) -> Float[np.ndarray, "features n"]:
        """The weights w_a of each arm, one per column."""
        rng = np.random.default_rng((self.map_seed, 1))
        return rng.standard_normal((self.features, self.n))

    @property
    def means(self) -> Float[np.ndarray, "contexts n"]:
        """The mean reward of each arm in each context."""
        return self.inputs @ self.weights

    @property
    def regrets(self) -> Float[np.ndarray, "contexts n"]:
        """The expected regret of a pull of each arm in each context, compared to the best arm."""
        return self.means.max(axis=1, keepdims=True) - self.means

    def regret(self, counts: np.ndarray) -> np.ndarray:
        pulls = counts.reshape(*counts.shape[:-1], self.contexts, self.n + 1)[..., : self.n]
        return np.asarray(np.sum(pulls * self.regrets, axis=(-2, -1)))

    def reset(self, key: Key) -> tuple[LinearBanditState, Observation]:
        context = noise.integers(key, (), self.contexts)
        return LinearBanditState(context, jnp.array(self.n, jnp.int32)), self._observation(context)

    def step(self, state: LinearBanditState, action: Int[Array, ""], key: Key) -> Step:
        mean = jnp.asarray(self.means, jnp.float32)[state.context, action]
        return Step(
            state=LinearBanditState(state.context, action.astype(jnp.int32)),
            observation=self._observation(state.context),
            reward=mean + self.noise_std * noise.normal(key),
            terminated=jnp.ones((), bool),
            truncated=jnp.zeros((), bool),
        )

    def _observation(self, context: Int[Array, ""]) -> Float[Array, " features"]:
        return jnp.asarray(self.inputs, jnp.float32)[context]
