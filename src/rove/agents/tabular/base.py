"""The base class of tabular agents."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove.core.folding import Folded
from rove.core.learner import AgentState, Learner
from rove.errors import ConfigError
from rove.parts import replay
from rove.parts.masks import unmasked
from rove.parts.networks import Linear
from rove.parts.onehot import Features, Form, Observation, OneHot
from rove.parts.replay import Transition
from rove.posteriors.base import Phi, single
from rove.returns.base import normal_density


def state_index(observation: Observation) -> Int[Array, ""]:
    """Return the index of a state: the position of the last non-zero entry, or 0 if all are zero,
    such as Deep Sea's terminal observation.

    Correct for codes, and for one-hot and thermometer features; there are as many states as
    entries.
    """
    x: Features = unmasked(observation)
    if isinstance(x, OneHot):
        return jnp.where(x.index < x.size, x.index, 0)
    return jnp.max(jnp.where(x != 0, jnp.arange(x.shape[0]), 0))


class Tabular(Learner):
    """An agent whose φ is a set of tables. It learns from every transition once, immediately."""

    @property
    def learning_starts(self) -> int:
        return 1

    def validate(self, observation: np.ndarray) -> None:
        """Raise `ConfigError` unless this observation is one-hot or thermometer-coded."""
        ones = np.flatnonzero(observation)
        fits = len(ones) and np.all(observation[ones] == 1) and len(ones) in (1, ones[-1] + 1)
        if not fits:
            needed = (
                "one-hot or thermometer observations, such as those of chain-10, deep-sea-10 or "
            )
            needed += "a Gymnasium environment with a Discrete observation space"
            message = f"tabular agents require {needed}; those of this environment are neither"
            raise ConfigError("observation", observation, needed, message)

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """Store the transition for `learn`, replacing the previous one.

        `where`: False leaves the buffer's rows unchanged.
        """
        buffer = replay.add(state.replay, transition, where)
        return state._replace(replay=buffer, counter=state.counter + 1)


def folded_table(q: Float[Array, "states actions"], state: AgentState) -> Folded | None:
    """Return a table of values as a network; None unless observations are codes."""
    layer = Linear(q, jnp.zeros(q.shape[1]))
    return Folded(single((layer,))) if state.replay.layout.coded else None


def point_masses(values: Float[Array, " actions"]) -> list[tuple[Array, Array]]:
    """Return point masses to plot, for agents that only model the mean of the return."""
    return [normal_density(value, jnp.zeros(())) for value in values]


def init_state(tables: Any, features: int, actions: int, form: Form, theta: Any = ()) -> AgentState:
    """Return an initial state: φ consists of the tables, and the replay buffer holds one
    transition. The other arguments are those of `Learner.init`."""
    return AgentState(
        phi=Phi(learned=(), fitted=tables),
        phi_target=(),
        theta=theta,
        optimiser=None,
        replay=replay.init(1, features, coded=form.coded, masked=actions * form.masked),
        counter=jnp.zeros((), jnp.int32),
    )
