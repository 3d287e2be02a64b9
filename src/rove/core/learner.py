"""What the training loop asks of an agent."""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.core.diagnostics import Beliefs
from rove.parts.noise import Key
from rove.parts.replay import Replay, Transition


class AgentState(NamedTuple):
    """Everything an agent knows. It holds no key: those come with each call."""

    phi: Any
    """φ, a `Phi`; of an actor–critic, a tuple of one for each critic."""
    phi_target: Any
    """q_φ⁻, as the posterior's `law` writes it out; of an actor–critic, one for each critic."""
    theta: Any
    """The θ being acted on, where it is held for more than a step; otherwise ()."""
    optimiser: Any
    """Adam's moments; None once a run has finished."""
    replay: Replay
    counter: Int[Array, ""]
    """Number of environment steps so far."""
    actor: Any = ()
    """The policy of an actor–critic."""


class Memory(NamedTuple):
    """How much memory one seed of an agent takes, and what to say where that is too much."""

    nbytes: int
    what: str
    """What takes most of it."""
    field: str
    """The name of the field that decides how much."""
    value: Any
    """The value of that field."""
    remedy: str
    """What to do instead."""


class Learner(eqx.Module):
    """An agent as the training loop sees it: pure functions of an `AgentState`.

    Numbers are leaves of the pytree, so one compiled program serves all of their values. Shapes
    and choices are static.
    """

    @property
    @abc.abstractmethod
    def learning_starts(self) -> int | Array:
        """The step of the first call of `learn`."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of an agent that was composed by hand and so has no settings."""

    @abc.abstractmethod
    def memory(self, features: int, actions: int) -> Memory:
        """How much memory it will need, before any is allocated."""

    @abc.abstractmethod
    def init(self, features: int, actions: int, key: Key) -> AgentState:
        """The state at step 0. `actions` is the number of actions or, where these are continuous,
        the number of entries of one."""

    @abc.abstractmethod
    def redraw(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """After a step: draw a new θ to act on, where an episode begins or it is time."""

    @abc.abstractmethod
    def act(
        self, state: AgentState, observation: Float[Array, " features"], key: Key
    ) -> Int[Array, ""] | Float[Array, " k"]:
        """The action to explore with: its number, or a vector where actions are continuous."""

    @abc.abstractmethod
    def greedy(
        self, state: AgentState, observation: Float[Array, " features"]
    ) -> Int[Array, ""] | Float[Array, " k"]:
        """The action that is best on average, without noise."""

    @abc.abstractmethod
    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """Count the step and put the transition into the replay (`where` as in `replay.add`)."""

    @abc.abstractmethod
    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """One update from the replay. Also the loss before it."""

    @abc.abstractmethod
    def beliefs(self, state: AgentState, xs: Float[Array, "n features"], key: Key) -> Beliefs:
        """For diagnostics: what it believes of some states."""

    def validate(self, observation: np.ndarray) -> None:
        """Raise a `ConfigError` if it cannot use such observations, naming what it can use."""

    @property
    def continuous(self) -> bool:
        """Whether an action is a vector in [−1, 1]^k rather than a number."""
        return False

    @property
    def discrete(self) -> bool:
        """Whether Z has atoms rather than a density."""
        return False

    @abc.abstractmethod
    def pictures(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        """Z(s, a) of every action, to draw, from a row of `Beliefs.outputs`: positions and
        heights."""
