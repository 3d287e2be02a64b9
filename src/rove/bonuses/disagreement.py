"""Disagreement: the spread of Q over θ ~ q_φ as an intrinsic reward."""

from typing import ClassVar

from jax import Array
from jaxtyping import Float

from rove.bonuses.base import Bonus, Spread
from rove.errors import check_number
from rove.parts.replay import Transition


class Disagreement(Bonus[tuple[()]]):
    """i = the standard deviation of Q_θ(s, a) over θ ~ q_φ. Needs a posterior other than Dirac."""

    weight: float | Array = 1.0
    """Weight η of the intrinsic reward."""
    uses_spread: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_number("weight", self.weight, at_least=0.0)

    def reward(self, state: tuple[()], steps: Transition, spread: Spread) -> Float[Array, " n"]:
        return steps.reward + self.weight * spread()
