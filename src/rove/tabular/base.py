"""What tabular agents have in common."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove import replay
from rove.core.learner import AgentState, Learner
from rove.errors import ConfigError
from rove.posteriors.base import Phi
from rove.replay import Transition
from rove.returns.gaussian import bell


def number(observation: Float[Array, " states"]) -> Int[Array, ""]:
    """The number of a state: the position of the last entry that is not zero (0 if all are).
    Right for one-hot and for thermometer features; there are as many states as entries."""
    return jnp.max(jnp.where(observation != 0, jnp.arange(observation.shape[0]), 0))


class Tabular(Learner):
    """An agent with tables for φ, which learns from each transition once, when it is seen."""

    @property
    def learning_starts(self) -> int:
        return 1

    def validate(self, observation: np.ndarray) -> None:
        """Refuse what is neither one-hot nor a thermometer."""
        ones = np.flatnonzero(observation)
        fits = len(ones) and np.all(observation[ones] == 1) and len(ones) in (1, ones[-1] + 1)
        if not fits:
            what = "observations that number the states, such as those of chain-10 or deep-sea-10"
            raise ConfigError("observation", observation, what)

    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """Keep the transition for `learn`, over the one before."""
        memory = replay.add(state.replay, transition, where)
        return state._replace(replay=memory, counter=state.counter + 1)


def point_masses(values: Float[Array, " actions"]) -> list[tuple[Array, Array]]:
    """Spikes to draw, where nothing is said of a return but its mean."""
    return [bell(value, jnp.zeros(())) for value in values]


def knowing(tables: Any, features: int, theta: Any = ()) -> AgentState:
    """The state at step 0: φ is these tables, and B holds one transition."""
    return AgentState(
        phi=Phi(learned=(), held=tables),
        phi_target=(),
        theta=theta,
        optimiser=None,
        replay=replay.init(1, features),
        counter=jnp.zeros((), jnp.int32),
    )
