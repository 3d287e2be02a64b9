"""Bayesian Q-learning (Dearden, Friedman and Russell 1998)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.agents.tabular.base import Tabular, folded_table, init_state, state_index
from rove.core.control import best_action
from rove.core.diagnostics import DRAWS, Beliefs
from rove.core.folding import Folded
from rove.core.learner import AgentState, Memory
from rove.errors import check_number
from rove.parts import noise, replay
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation
from rove.returns.base import normal_density

# Indices of the random streams for the two parts of a draw.
_TAU, _MU = range(2)


class NormalGamma(NamedTuple):
    """Normal-gamma distributions of the mean μ and the precision τ of a return.

    τ ~ Gamma(α, β) and μ | τ ~ N(μ₀, 1/λτ), with one set of parameters per state and action.
    """

    mu: Float[Array, "*n"]
    """μ₀."""
    lam: Float[Array, "*n"]
    """λ."""
    alpha: Float[Array, "*n"]
    """α."""
    beta: Float[Array, "*n"]
    """β."""

    def moments(self) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
        """Return E[R] and Var[R] of a return R ~ N(μ, 1/τ)."""
        return self.mu, (1.0 + 1.0 / self.lam) * self.beta / (self.alpha - 1.0)

    def updated(self, mean: Float[Array, "*n"], variance: Float[Array, "*n"]) -> "NormalGamma":
        """Return the posterior after one return with the given moments."""
        return NormalGamma(
            mu=(self.lam * self.mu + mean) / (self.lam + 1.0),
            lam=self.lam + 1.0,
            alpha=self.alpha + 0.5,
            beta=self.beta
            + 0.5 * variance
            + 0.5 * self.lam / (self.lam + 1.0) * jnp.square(mean - self.mu),
        )

    def sample(self, key: Key) -> Float[Array, "*n"]:
        """Draw one μ from each distribution."""
        tau = jnp.exp(noise.log_gamma(noise.fold(key, _TAU), self.alpha)) / self.beta
        return self.mu + noise.normal(noise.fold(key, _MU), self.mu.shape) * lax.rsqrt(
            self.lam * tau
        )


class QValueSampling(Tabular):
    """Bayesian Q-learning with moment updating and Q-value sampling (Dearden et al. 1998).

    The return of each state–action pair has a normal-gamma distribution. The return of (s, a) is
    r + γR, where R is the return of s′ and the action with the highest mean; its first two moments
    update the distribution of the pair.
    """

    mu: float | Array = 0.0
    """Prior mean μ₀ of every Q-value."""
    lam: float | Array = 0.1
    """Weight λ of the prior mean, as a number of observed returns."""
    alpha: float | Array = 2.0
    """Shape α of the prior on the precision, worth 2α observed returns; above 1."""
    beta: float | Array = 0.1
    """Rate β of the prior on the precision: a return's prior variance is about β/(α − 1)."""
    gamma: float | Array = 0.99
    """Discount factor γ."""

    def __check_init__(self) -> None:
        check_number("mu", self.mu)
        check_number("lam", self.lam, above=0.0)
        check_number("alpha", self.alpha, above=1.0)
        check_number("beta", self.beta, above=0.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)

    @property
    def name(self) -> str:
        return "bayesian_q_learning"

    def dry_run(self, features: int, actions: int, form: Form = VECTORS) -> Memory:
        nbytes = 4 * 4 * features * actions
        return Memory(nbytes, "the tables", "states", features, "a smaller environment")

    def init(self, features: int, actions: int, key: Key, form: Form = VECTORS) -> AgentState:
        prior = (self.mu, self.lam, self.alpha, self.beta)
        tables = NormalGamma(*(jnp.full((features, actions), jnp.float32(x)) for x in prior))
        return init_state(tables, features, actions, form)

    def resample_theta(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """Return the state unchanged: nothing is drawn for longer than a step."""
        return state

    def act(self, state: AgentState, observation: Observation, key: Key) -> Int[Array, ""]:
        """Q-value sampling: draw a μ for each action, and choose the highest."""
        return best_action(_row(state.phi.fitted, observation).sample(key), observation)

    def greedy(self, state: AgentState, observation: Observation) -> Int[Array, ""]:
        """Choose the action with the highest mean."""
        return best_action(_row(state.phi.fitted, observation).mu, observation)

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """Update the last pair's distribution, and return its squared error before the update."""
        transition, tables = replay.last(state.replay), state.phi.fitted
        s, a = state_index(transition.observation), transition.action_index
        next_actions = _row(tables, transition.next_observation)
        best = best_action(next_actions.mu, transition.next_observation)
        mean, variance = (x[best] for x in next_actions.moments())
        discount = self.gamma * (1.0 - transition.terminated)
        mean, variance = transition.reward + discount * mean, jnp.square(discount) * variance
        pair = NormalGamma(*(table[s, a] for table in tables))
        rows = zip(tables, pair.updated(mean, variance), strict=True)
        tables = NormalGamma(*(table.at[s, a].set(new) for table, new in rows))
        loss = jnp.square(mean - pair.mu)
        return state._replace(phi=state.phi._replace(fitted=tables)), loss

    def beliefs(self, state: AgentState, xs: Observation, key: Key) -> Beliefs:
        """Return draws of μ, and means and standard deviations of the return."""
        rows = jax.vmap(_row, (None, 0))(state.phi.fitted, xs)
        mean, variance = rows.moments()
        return Beliefs(
            values=jax.vmap(rows.sample)(noise.folds(key, DRAWS)),
            outputs=jnp.concatenate([mean, jnp.sqrt(variance)], axis=1),
            stds=jnp.sqrt(variance),
        )

    def folded(self, state: AgentState) -> Folded | None:
        return folded_table(state.phi.fitted.mu, state)

    def densities(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        """Return Gaussians with the return's mean and standard deviation."""
        return [normal_density(mean, std) for mean, std in outputs.reshape(2, -1).T]


def _row(tables: NormalGamma, observation: Observation) -> NormalGamma:
    """Return the distributions of a state's actions."""
    s = state_index(observation)
    return NormalGamma(*(table[s] for table in tables))
