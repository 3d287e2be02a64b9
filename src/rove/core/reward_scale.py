"""Scales by which rewards are divided before an agent learns from them, so that its settings suit
tasks with rewards of any size.

The buffer stores r, and r/c is computed when a step is sampled, so that old steps are divided by
the current scale c as well. The values that an agent reports are multiplied by c.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import ConfigError, check_number
from rove.parts.replay import Transition

__all__ = ["ConstantScale", "LargestReturn", "RewardScale"]


LEAST_SCALE = 1e-37
"""Minimum scale; smaller numbers are 0 in the arithmetic of some processors."""


class ScaleState(NamedTuple):
    """Running statistics of a scale; () for those that it does not use."""

    current: Any = ()
    """Statistic of the current episode; each copy of an environment has a separate one."""
    largest: Any = ()
    """Statistic of all episodes."""


class RewardScale(eqx.Module):
    """A family of scales c. Q learns r/c plus the intrinsic reward, whose weight is in this unit.

    So are the other settings of an agent that have the unit of a return: σ, κ, the support of a
    categorical return, and the scale of prior functions.
    """

    def init(self) -> ScaleState:
        """Return the state at step 0."""
        return ScaleState()

    def observe(self, state: ScaleState, step: Transition, gamma: float | Array) -> ScaleState:
        """Return the state after one more step of the agent, whose discount factor is γ."""
        return state

    @abc.abstractmethod
    def value(self, state: ScaleState) -> Float[Array, ""]:
        """Return c, which is above 0."""

    def scaled(self, state: ScaleState, steps: Transition) -> Transition:
        """Return single steps from the buffer with r/c as their rewards."""
        return steps._replace(reward=steps.reward / self.value(state))


class ConstantScale(RewardScale):
    """A constant scale, ideally close to the largest return. 1 leaves rewards unchanged."""

    constant: float | Array = 1.0
    """The scale c."""

    def __check_init__(self) -> None:
        check_number("reward_scale", self.constant, above=0.0)
        if float(self.constant) < LEAST_SCALE:
            raise ConfigError.must_be("reward_scale", self.constant, f"at least {LEAST_SCALE:g}")

    def value(self, state: ScaleState) -> Float[Array, ""]:
        return jnp.asarray(self.constant, jnp.float32)


class LargestReturn(RewardScale):
    """The largest |Gₜ| so far, where Gₜ = rₜ + γ·Gₜ₋₁ begins at 0 in every episode.

    Gₜ discounts earlier rewards, not later ones, so that a single reward contributes its full value
    at whichever step it is received. c is 1 until the first reward that is not 0, and after that it
    never decreases. If all rewards are multiplied by a number, so is c, and the agent takes the
    same actions: exactly if the number is a power of two, and otherwise up to rounding.
    """

    least: float | Array = 0.0
    """Lower bound on c. It keeps small rewards small, such as those that would distract from a
    larger one that has not been found yet."""

    def __check_init__(self) -> None:
        check_number("least", self.least, at_least=0.0)

    def init(self) -> ScaleState:
        return ScaleState(jnp.zeros(()), jnp.zeros(()))

    def observe(self, state: ScaleState, step: Transition, gamma: float | Array) -> ScaleState:
        current = step.reward + gamma * state.current
        ended = step.terminated if step.truncated is None else step.terminated | step.truncated
        largest = jnp.maximum(state.largest, jnp.abs(current))
        return ScaleState(jnp.where(ended, 0.0, current), largest)

    def value(self, state: ScaleState) -> Float[Array, ""]:
        c = jnp.maximum(state.largest, self.least)
        return jnp.where(c > 0.0, c, 1.0)
