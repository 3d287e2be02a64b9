"""Posterior sampling for reinforcement learning (Strens 2000; Osband et al. 2013)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise, replay
from rove.core.diagnostics import DRAWS, Beliefs
from rove.core.learner import AgentState, Memory
from rove.errors import check_integer, check_number
from rove.noise import Key
from rove.tabular.base import Tabular, knowing, number, point_masses

# What a key is folded with for the two parts of an MDP.
_TRANSITIONS, _REWARDS = range(2)


class Counts(NamedTuple):
    """All that the posterior over MDPs depends on."""

    next: Int[Array, "states actions outcomes"]
    """How often each pair led to each state; the last outcome is the end of the task."""
    reward: Float[Array, "states actions"]
    """Mean reward of each pair so far."""


class Model(NamedTuple):
    """An MDP."""

    transition: Float[Array, "states actions outcomes"]
    """p(s′ | s, a); the last outcome is the end of the task."""
    reward: Float[Array, "states actions"]
    """E[r | s, a]."""


def solve(
    model: Model, gamma: float | Array, sweeps: int | Array
) -> Float[Array, "states actions"]:
    """Q of the best policy over so many steps, by value iteration."""

    def sweep(_: Array, q: Array) -> Array:
        v = jnp.append(jnp.max(q, axis=1), 0.0)
        return model.reward + gamma * (model.transition @ v)

    return lax.fori_loop(0, sweeps, sweep, jnp.zeros_like(model.reward))


class PosteriorSampling(Tabular):
    """PSRL (Strens 2000; Osband et al. 2013): act for an episode as is best in an MDP drawn
    from the posterior.

    p(· | s, a) ~ Dirichlet and E[r | s, a] ~ normal, for each pair on its own. Held for the
    episode (`theta`) is the Q of the MDP that was drawn.
    """

    concentration: float | Array = 0.01
    """Sum of the Dirichlet prior's parameters, which are all alike."""
    reward_std: float | Array = 0.3
    """Standard deviation of a pair's mean reward before it is seen; its mean is 0."""
    noise_std: float | Array = 0.03
    """Standard deviation of a reward about its mean, taken as known."""
    gamma: float | Array = 0.99
    sweeps: int | Array = 150
    """Sweeps of value iteration: how many steps ahead it looks."""

    def __check_init__(self) -> None:
        check_number("concentration", self.concentration, above=0.0)
        check_number("reward_std", self.reward_std, above=0.0)
        check_number("noise_std", self.noise_std, above=0.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)
        check_integer("sweeps", self.sweeps, at_least=1)

    @property
    def name(self) -> str:
        return "psrl"

    def memory(self, features: int, actions: int) -> Memory:
        """The counts, and an MDP while it is being solved."""
        nbytes = 2 * 4 * features * actions * (features + 1)
        return Memory(nbytes, "tables", "states", features, "a smaller environment")

    def init(self, features: int, actions: int, key: Key) -> AgentState:
        counts = Counts(
            next=jnp.zeros((features, actions, features + 1), jnp.int32),
            reward=jnp.zeros((features, actions)),
        )
        return knowing(counts, features, self._solved(self.sample(counts, key)))

    def redraw(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """Draw an MDP where an episode begins, and solve it."""
        theta = lax.cond(
            begins,
            lambda: self._solved(self.sample(state.phi.held, key)),
            lambda: state.theta,
        )
        return state._replace(theta=theta)

    def act(
        self, state: AgentState, observation: Float[Array, " features"], key: Key
    ) -> Int[Array, ""]:
        """What is best in the MDP that was drawn."""
        return jnp.argmax(state.theta[number(observation)])

    def greedy(self, state: AgentState, observation: Float[Array, " features"]) -> Int[Array, ""]:
        """What is best in the mean MDP."""
        return jnp.argmax(self._solved(self.mean(state.phi.held))[number(observation)])

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """Count the transition. Also −log of the probability it had."""
        seen, counts = replay.last(state.replay), state.phi.held
        s, a = number(seen.observation), seen.number
        end = counts.next.shape[-1] - 1
        s_next = jnp.where(seen.terminated, end, number(seen.next_observation))
        alpha = self._alpha(counts.next[s, a])
        before = counts.reward[s, a]
        n = jnp.sum(counts.next[s, a]) + 1
        counts = Counts(
            next=counts.next.at[s, a, s_next].add(1),
            reward=counts.reward.at[s, a].add((seen.reward - before) / n),
        )
        loss = -jnp.log(alpha[s_next] / jnp.sum(alpha))
        return state._replace(phi=state.phi._replace(held=counts)), loss

    def beliefs(self, state: AgentState, xs: Float[Array, "n features"], key: Key) -> Beliefs:
        """Q of some MDPs drawn, and of the mean one. Nothing is said of a return's spread."""
        s = jax.vmap(number)(xs)
        draws = lax.map(
            lambda k: self._solved(self.sample(state.phi.held, k))[s], noise.folds(key, DRAWS)
        )
        mean = self._solved(self.mean(state.phi.held))[s]
        return Beliefs(draws, mean, jnp.zeros_like(mean))

    def pictures(self, outputs: Float[Array, " actions"]) -> list[tuple[Array, Array]]:
        return point_masses(outputs)

    # The posterior

    def _alpha(self, counts: Int[Array, "*n outcomes"]) -> Float[Array, "*n outcomes"]:
        """Parameters of the Dirichlet."""
        return self.concentration / counts.shape[-1] + counts

    def _reward(self, counts: Counts) -> tuple[Array, Array]:
        """Mean and standard deviation of E[r | s, a]."""
        data = jnp.sum(counts.next, axis=-1) / jnp.square(self.noise_std)
        precision = 1.0 / jnp.square(self.reward_std) + data
        return data * counts.reward / precision, lax.rsqrt(precision)

    def sample(self, counts: Counts, key: Key) -> Model:
        """An MDP from the posterior."""

        def rows(given: tuple[Array, Array]) -> Array:  # state by state, which takes less memory
            counts_of_state, k = given
            return jax.nn.softmax(noise.log_gamma(k, self._alpha(counts_of_state)))

        mean, std = self._reward(counts)
        keys = noise.folds(noise.fold(key, _TRANSITIONS), mean.shape[0])
        draws = noise.normal(noise.fold(key, _REWARDS), mean.shape)
        return Model(lax.map(rows, (counts.next, keys)), mean + std * draws)

    def mean(self, counts: Counts) -> Model:
        """The mean of the posterior."""
        alpha = self._alpha(counts.next)
        return Model(alpha / jnp.sum(alpha, axis=-1, keepdims=True), self._reward(counts)[0])

    def _solved(self, model: Model) -> Float[Array, "states actions"]:
        return solve(model, self.gamma, self.sweeps)
