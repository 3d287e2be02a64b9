"""Posterior sampling for reinforcement learning (Strens 2000; Osband et al. 2013)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.agents.tabular.base import Tabular, folded_table, init_state, point_masses, state_index
from rove.core.control import best_action
from rove.core.diagnostics import DRAWS, Beliefs
from rove.core.folding import Folded
from rove.core.learner import AgentState, Memory
from rove.errors import check_integer, check_number
from rove.parts import noise, replay
from rove.parts.masks import allowed_actions
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation

# Indices of the random streams for the two parts of an MDP.
_TRANSITIONS, _REWARDS = range(2)


class ModelCounts(NamedTuple):
    """Sufficient statistics of the posterior over MDPs."""

    next: Int[Array, "states actions outcomes"]
    """Number of transitions from each pair to each state; the last outcome is termination."""
    reward: Float[Array, "states actions"]
    """Mean reward of each pair so far."""
    allowed: Bool[Array, "states actions"] | None = None
    """The actions that each state allows, all until it is reached; None if no action is masked."""


class Model(NamedTuple):
    """An MDP."""

    transition: Float[Array, "states actions outcomes"]
    """p(s′ | s, a); the last outcome is termination."""
    reward: Float[Array, "states actions"]
    """E[r | s, a]."""
    allowed: Bool[Array, "states actions"] | None = None
    """The actions that each state allows; None: all of them."""


def solve(
    model: Model, gamma: float | Array, sweeps: int | Array
) -> Float[Array, "states actions"]:
    """Return Q of the optimal policy over `sweeps` steps, by value iteration."""

    def sweep(_: Array, q: Array) -> Array:
        v = jnp.append(jnp.max(q, axis=1, where=model.allowed, initial=-jnp.inf), 0.0)
        return model.reward + gamma * (model.transition @ v)

    return lax.fori_loop(0, sweeps, sweep, jnp.zeros_like(model.reward))


class PosteriorSampling(Tabular):
    """Posterior sampling for RL (Strens 2000; Osband et al. 2013).

    In every episode, the agent acts optimally for an MDP drawn from the posterior. The priors are
    p(· | s, a) ~ Dirichlet and E[r | s, a] ~ normal, independently for each pair. `theta` is the Q
    of the current episode's MDP.
    """

    concentration: float | Array = 0.01
    """Sum of the parameters of the symmetric Dirichlet prior on transitions."""
    reward_std: float | Array = 0.3
    """Prior standard deviation of a pair's mean reward; the prior mean is 0."""
    noise_std: float | Array = 0.03
    """Standard deviation of rewards about their mean, which is assumed to be known."""
    gamma: float | Array = 0.99
    """Discount factor γ."""
    sweeps: int | Array = 150
    """Number of sweeps of value iteration, which is the number of steps it looks ahead."""

    def __check_init__(self) -> None:
        check_number("concentration", self.concentration, above=0.0)
        check_number("reward_std", self.reward_std, above=0.0)
        check_number("noise_std", self.noise_std, above=0.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)
        check_integer("sweeps", self.sweeps, at_least=1)

    @property
    def name(self) -> str:
        return "psrl"

    def dry_run(self, features: int, actions: int, form: Form = VECTORS) -> Memory:
        """Return the size of the counts and of an MDP while it is being solved."""
        nbytes = 2 * 4 * features * actions * (features + 1)
        return Memory(nbytes, "the tables", "states", features, "a smaller environment")

    def init(self, features: int, actions: int, key: Key, form: Form = VECTORS) -> AgentState:
        counts = ModelCounts(
            next=jnp.zeros((features, actions, features + 1), jnp.int32),
            reward=jnp.zeros((features, actions)),
            allowed=jnp.ones((features, actions), bool) if form.masked else None,
        )
        theta = self._solved(self.sample(counts, key))
        return init_state(counts, features, actions, form, theta)

    def resample_theta(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """Draw an MDP and solve it if an episode begins."""
        theta = lax.cond(
            begins,
            lambda: self._solved(self.sample(state.phi.fitted, key)),
            lambda: state.theta,
        )
        return state._replace(theta=theta)

    def act(self, state: AgentState, observation: Observation, key: Key) -> Int[Array, ""]:
        """Choose the best action in the current episode's MDP."""
        return best_action(state.theta[state_index(observation)], observation)

    def greedy(self, state: AgentState, observation: Observation) -> Int[Array, ""]:
        """Choose the best action in the mean MDP."""
        q = self._solved(self.mean(state.phi.fitted))
        return best_action(q[state_index(observation)], observation)

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """Count the last transition, and return −log of its predicted probability."""
        transition, counts = replay.last(state.replay), state.phi.fitted
        s, a = state_index(transition.observation), transition.action_index
        end = counts.next.shape[-1] - 1
        s_next = jnp.where(transition.terminated, end, state_index(transition.next_observation))
        alpha = self._alpha(counts.next[s, a])
        before = counts.reward[s, a]
        n = jnp.sum(counts.next[s, a]) + 1
        counts = ModelCounts(
            next=counts.next.at[s, a, s_next].add(1),
            reward=counts.reward.at[s, a].add((transition.reward - before) / n),
            allowed=_with_mask(counts.allowed, s_next, transition.next_observation),
        )
        loss = -jnp.log(alpha[s_next] / jnp.sum(alpha))
        return state._replace(phi=state.phi._replace(fitted=counts)), loss

    def beliefs(self, state: AgentState, xs: Observation, key: Key) -> Beliefs:
        """Return Q of several MDPs drawn and of the mean MDP; the spread of returns is 0."""
        s = jax.vmap(state_index)(xs)
        draws = lax.map(
            lambda k: self._solved(self.sample(state.phi.fitted, k))[s], noise.folds(key, DRAWS)
        )
        mean = self._solved(self.mean(state.phi.fitted))[s]
        return Beliefs(draws, mean, jnp.zeros_like(mean))

    def folded(self, state: AgentState) -> Folded | None:
        return folded_table(self._solved(self.mean(state.phi.fitted)), state)

    def densities(self, outputs: Float[Array, " actions"]) -> list[tuple[Array, Array]]:
        return point_masses(outputs)

    # The posterior

    def _alpha(self, counts: Int[Array, "*n outcomes"]) -> Float[Array, "*n outcomes"]:
        """Return the parameters of the Dirichlet posterior."""
        return self.concentration / counts.shape[-1] + counts

    def _reward(self, counts: ModelCounts) -> tuple[Array, Array]:
        """Return the posterior mean and standard deviation of E[r | s, a]."""
        data = jnp.sum(counts.next, axis=-1) / jnp.square(self.noise_std)
        precision = 1.0 / jnp.square(self.reward_std) + data
        return data * counts.reward / precision, lax.rsqrt(precision)

    def sample(self, counts: ModelCounts, key: Key) -> Model:
        """Draw an MDP from the posterior."""

        def rows(state: tuple[Array, Array]) -> Array:  # state by state, to save memory
            counts_of_state, k = state
            return jax.nn.softmax(noise.log_gamma(k, self._alpha(counts_of_state)))

        mean, std = self._reward(counts)
        keys = noise.folds(noise.fold(key, _TRANSITIONS), mean.shape[0])
        draws = noise.normal(noise.fold(key, _REWARDS), mean.shape)
        return Model(lax.map(rows, (counts.next, keys)), mean + std * draws, counts.allowed)

    def mean(self, counts: ModelCounts) -> Model:
        """Return the mean of the posterior."""
        alpha = self._alpha(counts.next)
        transition = alpha / jnp.sum(alpha, axis=-1, keepdims=True)
        return Model(transition, self._reward(counts)[0], counts.allowed)

    def _solved(self, model: Model) -> Float[Array, "states actions"]:
        return solve(model, self.gamma, self.sweeps)


def _with_mask(
    allowed: Bool[Array, "states actions"] | None, s: Int[Array, ""], observation: Observation
) -> Bool[Array, "states actions"] | None:
    """Return `ModelCounts.allowed` with the mask of state s, unless s is beyond the last state."""
    mask = allowed_actions(observation)
    if allowed is None or mask is None:
        return None
    return allowed.at[s].set(mask, mode="drop")
