"""Bandits with Gaussian and with Bernoulli rewards, whose regret has a known lower bound."""

import abc
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


class BanditTask(Environment):
    """A task whose episodes are single pulls of an arm, with a known regret."""

    @property
    @abc.abstractmethod
    def regrets(self) -> Float[np.ndarray, "..."]:
        """The expected regret of one pull of each arm, compared to the best arm."""

    @property
    def lai_robbins(self) -> float | None:
        """The constant of Lai and Robbins' lower bound, or None if it is not known."""
        return None

    @abc.abstractmethod
    def regret(self, counts: np.ndarray) -> np.ndarray:
        """Return the total expected regret, given how often each cell was visited, of shape [bins]
        or [seeds, bins]."""

    def probes(self) -> Mapping[str, Observation]:
        """Return the first observation."""
        return {"start": self.reset(noise.root(0))[1]}


class Arms(BanditTask):
    """A bandit with N arms; an episode is one pull.

    A pull ends the task, so nothing is bootstrapped: the value of an action is the mean of its arm.
    A run's `visits` contain the fraction of pulls of each arm, and a last cell for the state before
    the pull, which every episode visits.
    """

    n: int = eqx.field(static=True)
    """N, the number of arms."""
    map_seed: int = eqx.field(default=0, static=True)
    """Seed that decides the means of the arms."""

    def __check_init__(self) -> None:
        check_integer("n", self.n, at_least=2, at_most=10_000)
        check_integer("map_seed", self.map_seed, at_least=0)

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
    @abc.abstractmethod
    def means(self) -> Float[np.ndarray, " n"]:
        """The mean reward of each arm."""

    @property
    def regrets(self) -> Float[np.ndarray, " n"]:
        """The expected regret Δ_a of one pull of each arm, compared to the best arm."""
        return self.means.max() - self.means

    @property
    @abc.abstractmethod
    def divergences(self) -> Float[np.ndarray, " n"]:
        """The Kullback–Leibler divergence of the rewards of the best arm from those of each arm."""

    @property
    def lai_robbins(self) -> float:
        """The Lai–Robbins constant, Σ Δ_a/KL_a over all arms except the best.

        No consistent policy's regret grows more slowly than this times log t (Lai and Robbins
        1985).
        """
        worse = self.regrets > 0
        return float(np.sum(self.regrets[worse] / self.divergences[worse]))

    def regret(self, counts: np.ndarray) -> np.ndarray:
        return np.asarray(counts[..., : self.n] @ self.regrets)

    def reset(self, key: Key) -> tuple[BanditState, Observation]:
        return BanditState(jnp.array(self.n, jnp.int32)), OneHot(jnp.zeros((), jnp.int32), 1)

    @abc.abstractmethod
    def reward(self, action: Int[Array, ""], key: Key) -> Float[Array, ""]:
        """Draw the reward of a pull."""

    def step(self, state: BanditState, action: Int[Array, ""], key: Key) -> Step:
        return Step(
            state=BanditState(action.astype(jnp.int32)),
            observation=OneHot(jnp.zeros((), jnp.int32), 1),
            reward=self.reward(action, key),
            terminated=jnp.ones((), bool),
            truncated=jnp.zeros((), bool),
        )


class Bandit(Arms):
    """A bandit with N arms: each pays a fixed mean plus Gaussian noise; an episode is one pull.

    The means are drawn from N(0, 1) once.
    """

    noise_std: float = eqx.field(default=1.0, static=True)
    """Standard deviation σ of rewards about their arm's mean."""

    def __check_init__(self) -> None:
        check_number("noise_std", self.noise_std, at_least=0.0, at_most=1e6)

    @property
    def name(self) -> str:
        return f"bandit-{self.n}"

    @property
    def means(self) -> Float[np.ndarray, " n"]:
        return np.random.default_rng(self.map_seed).standard_normal(self.n)

    @property
    def divergences(self) -> Float[np.ndarray, " n"]:
        """Δ²/2σ²."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.regrets**2 / np.float64(2 * self.noise_std**2)

    def reward(self, action: Int[Array, ""], key: Key) -> Float[Array, ""]:
        return jnp.asarray(self.means)[action] + self.noise_std * noise.normal(key)


class BernoulliBandit(Arms):
    """A bandit with N arms that pay 1 with a fixed probability, else 0; an episode is one pull.

    The probabilities are drawn uniformly from [0, 1] once.
    """

    @property
    def name(self) -> str:
        return f"bernoulli-bandit-{self.n}"

    @property
    def score_range(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def means(self) -> Float[np.ndarray, " n"]:
        return np.random.default_rng(self.map_seed).random(self.n)

    @property
    def divergences(self) -> Float[np.ndarray, " n"]:
        """p·log(p/p*) + (1 − p)·log((1 − p)/(1 − p*))."""
        p, best = self.means, self.means.max()
        return p * np.log(p / best) + (1 - p) * np.log((1 - p) / (1 - best))

    def reward(self, action: Int[Array, ""], key: Key) -> Float[Array, ""]:
        probability = jnp.asarray(self.means, jnp.float32)[action]
        return (noise.uniform(key) < probability).astype(jnp.float32)
