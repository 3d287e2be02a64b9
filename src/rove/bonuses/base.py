"""The interface of intrinsic rewards, which an agent adds to the task's rewards for novelty.

Q learns r + η·i, where i is the intrinsic reward of a step and η its weight. The buffer stores r;
i is computed when the step is sampled, so that it fades as the state becomes familiar, also for
steps that were stored long ago. (Random network distillation was published with a second value
function for i, whose episodes never end. Here, i is part of one return, and ends with it.)
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

import equinox as eqx
from jax import Array
from jaxtyping import Float

from rove.parts.noise import Key
from rove.parts.replay import Transition

State = TypeVar("State")
"""The state of a bonus as a pytree: visit counts, for example."""
Spread: TypeAlias = Callable[[], Float[Array, " n"]]
"""Estimates the standard deviation of Q_θ(s, a) over θ ~ q_φ, for each step of a batch."""


class Bonus(eqx.Module, Generic[State]):
    """A family of intrinsic rewards. Works with every agent that learns from a replay buffer.

    A subclass implements `reward`. The other methods have defaults, for a bonus without a state.
    """

    uses_cells: ClassVar[bool] = False
    """Whether the buffer stores `Transition.cell`."""
    uses_spread: ClassVar[bool] = False
    """Whether the reward depends on the spread of Q over θ, which a point mass does not have."""

    def init(self, features: int, coded: bool, key: Key) -> Any:
        """Return the state at step 0. The arguments are those of `Learner.init`."""
        return ()

    def observe(self, state: State, transition: Transition) -> tuple[State, Transition]:
        """Return the state after one more step of the agent, and the step as it will be stored."""
        return state, transition

    def update(self, state: State, batch: Transition) -> State:
        """Return the state after learning from a minibatch; called in every update of the agent."""
        return state

    @abc.abstractmethod
    def reward(self, state: State, steps: Transition, spread: Spread) -> Float[Array, " n"]:
        """Return r + η·i for each of a batch of single steps from the buffer."""


class NoBonus(Bonus[tuple[()]]):
    """No intrinsic reward: the agent learns from the environment's rewards alone."""

    def reward(self, state: tuple[()], steps: Transition, spread: Spread) -> Float[Array, " n"]:
        return steps.reward
