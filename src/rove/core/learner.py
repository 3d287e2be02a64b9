"""The interface of agents, as used by the training loop."""

import abc
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.core.diagnostics import Beliefs, Inspected
from rove.core.folding import Folded
from rove.core.reward_scale import ScaleState
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation
from rove.parts.replay import Replay, Transition


class AgentState(NamedTuple):
    """The complete state of an agent. Random keys are not part of it, but passed to each method."""

    phi: Any
    """φ, a `Phi`; for an actor–critic, a tuple with one `Phi` per critic."""
    phi_target: Any
    """The target network: `Posterior.law` of φ⁻; for an actor–critic, the φ⁻ of each critic."""
    theta: Any
    """The θ in use for control, if it is used for more than one step; otherwise ()."""
    optimiser: Any
    """The moments of Adam, or of a `Sampler`; None once a run has finished."""
    replay: Replay
    counter: Int[Array, ""]
    """Number of environment steps so far."""
    actor: Any = ()
    """The policy's part of the state of an actor–critic; otherwise ()."""
    random: Any = ()
    """The random action under way, if random actions are repeated, or the noise that is added to
    the next action; otherwise ()."""
    bonus: Any = ()
    """The state of the intrinsic reward, if it has one; None once a run has finished."""
    reward_scale: ScaleState = ScaleState()
    """The state of the scale of rewards."""

    @property
    def own_steps(self) -> Int[Array, ""]:
        """Number of steps of the copy of the environment that took the latest step. Copies take
        turns; with a single copy, this is the counter."""
        return -(-self.counter // self.replay.layout.stride)


class Memory(NamedTuple):
    """The memory that one seed of an agent needs, and how to reduce it if that is too much."""

    nbytes: int
    """Number of bytes."""
    what: str
    """The part of the agent that needs the most memory, for messages."""
    field: str
    """The field that determines the size of that part."""
    value: Any
    """The value of that field."""
    remedy: str
    """A suggestion for reducing it."""


class Learner(eqx.Module):
    """The interface of an agent: pure functions of an `AgentState`.

    Numeric settings are leaves of the pytree, so that one compiled program serves all of their
    values. Settings that determine shapes, and choices between options, are static.
    """

    random_actions: ClassVar[tuple[str, ...]] = ()
    """Names of the settings that make actions random; if all are 0, `act` is greedy on θ."""
    learning_rates: ClassVar[tuple[str, ...]] = ()
    """Names of the settings by which `learn` scales its steps; see `rove.core.settling`."""

    @property
    @abc.abstractmethod
    def learning_starts(self) -> int | Array:
        """The step of the first call of `learn`."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Display name, for agents that were not created from a settings class."""

    @abc.abstractmethod
    def dry_run(self, features: int, actions: int, form: Form = VECTORS) -> Memory:
        """Return the memory that the agent needs, from the shapes of its arrays.

        Nothing is computed. Raises `ConfigError` if a part of the agent returns a wrong shape. The
        arguments are those of `init`.
        """

    @abc.abstractmethod
    def init(self, features: int, actions: int, key: Key, form: Form = VECTORS) -> AgentState:
        """Return the state at step 0.

        **Arguments**
        - `features`: the number of entries of an observation.
        - `actions`: the number of actions or, if they are continuous, their dimension.
        - `form`: the form of observations: vectors, codes or images, with masks or without.
        """

    @abc.abstractmethod
    def resample_theta(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """Resample θ for control if it is due; called after every step.

        `begins` says whether the next step is the first of an episode.
        """

    @abc.abstractmethod
    def act(
        self, state: AgentState, observation: Observation, key: Key
    ) -> Int[Array, ""] | Float[Array, " k"]:
        """Return the action for training: its index, or a vector if actions are continuous."""

    @abc.abstractmethod
    def greedy(
        self, state: AgentState, observation: Observation
    ) -> Int[Array, ""] | Float[Array, " k"]:
        """Return the action without exploration: greedy on the posterior mean."""

    @abc.abstractmethod
    def observe(
        self, state: AgentState, transition: Transition, where: bool | Array = True
    ) -> AgentState:
        """Increment the step counter and store the transition, if `where` (see `replay.add`)."""

    @abc.abstractmethod
    def learn(self, state: AgentState, key: Key) -> tuple[AgentState, Float[Array, ""]]:
        """Perform one update from the replay buffer. Also return the loss before it."""

    @abc.abstractmethod
    def beliefs(self, state: AgentState, xs: Observation, key: Key) -> Beliefs:
        """Return value estimates in some states, for diagnostics."""

    def inspect(self, state: AgentState, xs: Observation) -> Inspected | None:
        """Return what the posterior mean says in some states; None without a value network."""
        return None

    def validate(self, observation: np.ndarray) -> None:
        """Raise `ConfigError` if the agent cannot use observations like this one."""

    def folded(self, state: AgentState) -> Folded | None:
        """Return `greedy` as a sum of networks, for export; None if it is not such a sum."""
        return None

    @property
    def continuous(self) -> bool:
        """Whether actions are vectors in [−1, 1]^k rather than indices."""
        return False

    @property
    def intrinsic(self) -> bool:
        """Whether values include intrinsic rewards, so that they can exceed the task's returns."""
        return False

    @property
    def samples(self) -> bool:
        """Whether `act` uses a sample θ ~ q_φ, so that it can differ from `greedy`."""
        return not self.continuous

    @abc.abstractmethod
    def densities(self, outputs: Float[Array, " outputs"]) -> list[tuple[Array, Array]]:
        """Return, for each action, the points and heights of a plot of Z(s, a), in the unit of
        `Beliefs.reward_scale`.

        `outputs` is a row of `Beliefs.outputs`.
        """
