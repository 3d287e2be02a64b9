"""What the training loop asks of an agent."""

import abc
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from rove import noise
from rove.errors import ConfigError, check_integer
from rove.noise import Key
from rove.posteriors.base import Draw, Law, Phi
from rove.replay import Replay, Transition


class AgentState(NamedTuple):
    """Everything an agent knows. It holds no key: those come with each call."""

    phi: Phi
    phi_target: Law
    """q_φ⁻, in the form its draws use."""
    theta: Draw
    """The θ being acted on, where it is held for more than a step."""
    optimiser: Any
    """Adam's moments; None once a lane has finished."""
    replay: Replay
    counter: Int[Array, ""]
    actor: Any = ()
    """What an actor–critic knows besides: its policy."""


DRAWS = 16
"""Of θ, for diagnostics."""


class Beliefs(NamedTuple):
    """What an agent thinks of n states."""

    values: Float[Array, "draws n actions"]
    """Q_θ(s, ·) for some θ ~ q_φ."""
    outputs: Float[Array, "n outputs"]
    """The parameters of Z(s, ·) on the posterior mean, as the network puts them out."""
    stds: Float[Array, "n actions"]
    """The standard deviation of Z(s, ·), from those."""


class Memory(NamedTuple):
    """What a lane of an agent takes, and what to say where that is too much."""

    nbytes: int
    what: str
    """What takes most of it."""
    field: str
    """The field that sets how much, and its value."""
    value: Any
    remedy: str


class Learner(eqx.Module):
    """An agent as the training loop sees it: pure functions of an `AgentState`.

    Numbers are pytree leaves: one compiled program serves every value of them. Shapes and
    choices are static.
    """

    @property
    @abc.abstractmethod
    def learning_starts(self) -> int | Array:
        """The step of the first call of `learn`."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What to call it where it has no settings."""

    @abc.abstractmethod
    def memory(self, features: int, actions: int) -> Memory:
        """What its largest arrays take, known before they are allocated."""

    @abc.abstractmethod
    def init(self, features: int, actions: int, key: Key) -> AgentState:
        """What it knows at step 0. `actions`: how many there are; or, where they are continuous,
        how many numbers make one."""

    @abc.abstractmethod
    def redraw(self, state: AgentState, begins: Bool[Array, ""], key: Key) -> AgentState:
        """After a step: draw what is acted on anew, where an episode begins or it is time."""

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
        """One update from the replay, and a number that tells how wrong it was before."""

    @abc.abstractmethod
    def beliefs(self, state: AgentState, xs: Float[Array, "n features"], key: Key) -> Beliefs:
        """For diagnostics: what it thinks of some states."""

    def needs(self, observation: np.ndarray) -> str | None:
        """What observations it needs, if this one will not do."""
        return None

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
        """Z(s, a) of every action to draw, from a row of `Beliefs.outputs`: where, and how high."""


def memory_of(
    agent: Learner, features: int, actions: int, buffer_size: int, hidden: tuple[int, ...]
) -> Memory:
    """That of an agent of networks: what `init` would allocate."""
    state = jax.eval_shape(lambda: agent.init(features, actions, noise.root(0)))
    each = {"replay": state.replay, "all": state}
    sizes = {k: sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(v)) for k, v in each.items()}
    if sizes["replay"] >= sizes["all"] / 2:
        told = "the replay", "buffer_size", buffer_size, "a smaller buffer"
    elif hidden:
        told = "the parameters", "hidden", hidden, "narrower layers"
    else:
        told = "the parameters", "features", features, "a smaller environment"
    return Memory(sizes["all"], *told)


def check_resample(resample: Any) -> None:
    """Refuse anything but "step", "episode" or a number of steps."""
    if resample not in ("step", "episode"):
        if isinstance(resample, str):
            raise ConfigError("resample", resample, "step, episode, or a number of steps")
        check_integer("resample", resample, at_least=1)


def redraw_due(
    resample: Literal["step", "episode"] | int, counter: Int[Array, ""], begins: Bool[Array, ""]
) -> Bool[Array, ""]:
    """Whether a θ that is held for an episode, or so many steps, is to be drawn anew."""
    return begins if isinstance(resample, str) else counter % resample == 0
