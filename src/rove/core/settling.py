"""Settling: a number of updates after training, at learning rates that decrease to 0.

At a constant learning rate φ never stops moving, and the greedy policy of one moment can be worse
than the behaviour of many: it may walk in a circle, which the next updates would have broken up.
"""

import equinox as eqx
import jax
from jax import Array, lax
from jaxtyping import Int

from rove.core.learner import AgentState, Learner
from rove.parts import noise
from rove.parts.noise import Key

UPDATES = 2_000
"""Number of updates."""


def can_settle(agent: Learner) -> bool:
    """Whether an agent learns at a rate, so that it can be decreased."""
    return bool(agent.learning_rates)


@jax.jit
def settled(agent: Learner, state: AgentState, key: Key) -> AgentState:
    """Return the state after more updates from its replay buffer, without new steps of the
    environment. The learning rates decrease linearly to 0, and target networks are updated as often
    as in training."""
    rates = [getattr(agent, name) for name in agent.learning_rates]

    def update(i: Int[Array, ""], state: AgentState) -> AgentState:
        now = [rate * (1.0 - i / UPDATES) for rate in rates]
        slower = eqx.tree_at(lambda x: [getattr(x, name) for name in x.learning_rates], agent, now)
        state, _ = slower.learn(state, noise.fold(key, i))
        return state._replace(counter=state.counter + 1)

    return lax.fori_loop(0, UPDATES, update, state)
