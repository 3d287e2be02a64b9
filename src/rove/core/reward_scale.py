"""What rewards are divided by when they are learned from, so that settings in the unit of returns
suit a task whatever the unit of its rewards is.

The buffer stores r, and r/c is computed when a step is sampled, so that steps that were stored long
ago have the scale c of now. What an agent reports is multiplied by c again.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.errors import check_number
from rove.parts.replay import Transition

__all__ = ["ConstantScale", "LargestReturn", "RewardScale"]


class ScaleState(NamedTuple):
    """What a scale has seen so far; () for what it does not need."""

    current: Any = ()
    """Of the current episode; each copy of an environment has its own."""
    largest: Any = ()
    """Of all episodes."""


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
    """A number: about the largest return that is expected. 1 leaves rewards as they are."""

    constant: float | Array = 1.0
    """The scale c."""

    def __check_init__(self) -> None:
        check_number("reward_scale", self.constant, above=0.0)

    def value(self, state: ScaleState) -> Float[Array, ""]:
        return jnp.asarray(self.constant, jnp.float32)


class LargestReturn(RewardScale):
    """The largest |Gₜ| so far, where Gₜ = rₜ + γ·Gₜ₋₁ begins at 0 in every episode.

    Later rewards count most in Gₜ, so that a single reward counts the same at any step. c is 1 as
    long as all rewards were 0. It never decreases. If all rewards are multiplied by a number, so is
    c, and the agent takes the same actions: exactly if the number is a power of two, and otherwise
    up to rounding.
    """

    least: float | Array = 0.0
    """Lower bound on c. Above 0, small rewards remain small: those that distract from a larger one
    that was not found yet, for example."""

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
