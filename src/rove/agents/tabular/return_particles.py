"""Nonparametric return distribution approximation (Morimura et al. 2010)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.agents.tabular.base import Tabular, folded_table, init_state, state_index
from rove.core.control import best_action, epsilon_greedy
from rove.core.diagnostics import DRAWS, Beliefs, density_curves
from rove.core.folding import Folded
from rove.core.learner import AgentState, Memory
from rove.errors import check_integer, check_number
from rove.parts import noise, replay
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation
from rove.returns import Quantile, Risk
from rove.returns.base import stds, values

# Indices of the random streams of an update.
_REPLACED, _PICKED = range(2)


class ReturnParticles(Tabular):
    """Return distributions as particles, one set for each state and action (Morimura et al. 2010).

    After a transition, each particle of (s, a) is replaced with probability α by r + γ·v, where v
    is a random particle of s′ and its best action a′, or by r at the end. The set thereby becomes a
    sample of the mixture of (1 − α) times the old distribution and α times that of r + γZ(s′, a′):
    a smoothed distributional Bellman update. The best action has the highest mean or, with `risk`,
    the highest risk measure.
    """

    random_actions: ClassVar[tuple[str, ...]] = ("epsilon",)
    particles: int = eqx.field(default=100, static=True)
    """Number of particles of each state and action."""
    lr: float | Array = 0.1
    """Probability α that a particle is replaced."""
    gamma: float | Array = 0.99
    """Discount factor γ."""
    epsilon: float | Array = 0.1
    """Probability ε of a uniformly random action."""
    risk: Risk | None = None
    """Risk measure that control maximises, such as `CVaR(0.1)`; None: the mean."""

    def __check_init__(self) -> None:
        check_integer("particles", self.particles, at_least=1, at_most=2**16)
        check_number("lr", self.lr, above=0.0, at_most=1.0)
        check_number("gamma", self.gamma, at_least=0.0, at_most=1.0)
        check_number("epsilon", self.epsilon, at_least=0.0, at_most=1.0)
        self.returns  # noqa: B018  checks the risk measure

    @property
    def returns(self) -> Quantile:
        """The family of distributions on equally likely values, to which particles belong."""
        return Quantile(self.particles, risk=self.risk)

    @property
    def name(self) -> str:
        return "particles"

    @property
    def samples(self) -> bool:
        return False

    def dry_run(self, features: int, actions: int, form: Form = VECTORS) -> Memory:
        nbytes = 4 * features * actions * self.particles
        return Memory(nbytes, "the particles", "particles", self.particles, "fewer particles")

    def init(self, features: int, actions: int, key: Key, form: Form = VECTORS) -> AgentState:
        particles = jnp.zeros((features, actions, self.particles))
        return init_state(particles, features, actions, form)

    def resample_theta(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """Return the state unchanged: there is no θ."""
        return state

    def act(self, state: AgentState, observation: Observation, key: Key) -> Int[Array, ""]:
        """Choose the best action, or a random one with probability ε."""
        q = values(self.returns, state.phi.fitted[state_index(observation)])
        return epsilon_greedy(q, observation, jnp.asarray(self.epsilon), key)

    def greedy(self, state: AgentState, observation: Observation) -> Int[Array, ""]:
        """Choose the best action."""
        q = values(self.returns, state.phi.fitted[state_index(observation)])
        return best_action(q, observation)

    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """Update the particles of the last pair.

        Also return the distance between them and those of the target.
        """
        transition, table = replay.last(state.replay), state.phi.fitted
        s, a = state_index(transition.observation), transition.action_index
        following = table[state_index(transition.next_observation)]
        best = best_action(values(self.returns, following), transition.next_observation)
        discount = self.gamma * (1.0 - transition.terminated)
        shape = (self.particles,)
        picked = noise.integers(noise.fold(key, _PICKED), shape, self.particles)
        target = transition.reward + discount * following[best][picked]
        replaced = noise.uniform(noise.fold(key, _REPLACED), shape) < self.lr
        loss = self.returns.error(table[s, a], target)
        table = table.at[s, a].set(jnp.where(replaced, target, table[s, a]))
        return state._replace(phi=state.phi._replace(fitted=table)), loss

    def beliefs(self, state: AgentState, xs: Observation, key: Key) -> Beliefs:
        """Return the particles, their spread, and the values that they give to actions."""
        rows = state.phi.fitted[jax.vmap(state_index)(xs)]
        q = values(self.returns, rows)
        return Beliefs(
            values=jnp.broadcast_to(q, (DRAWS, *q.shape)),
            outputs=rows.reshape(rows.shape[0], -1),
            stds=stds(self.returns, rows),
        )

    def folded(self, state: AgentState) -> Folded | None:
        return folded_table(values(self.returns, state.phi.fitted), state)

    def densities(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        """Return the particles in ascending order, and the probability of each."""
        return density_curves(self.returns, outputs)
