"""Z_θ(s, a) = N(Q_θ(s, a), σ²) with fixed σ: Section 4.3 of the paper."""

from typing import Literal

import equinox as eqx
from jax import Array
from jaxtyping import Float

from rove import noise
from rove.errors import check_choice, check_number
from rove.noise import Key
from rove.returns.base import Return


class Gaussian(Return):
    """A Gaussian of mean Q_θ and fixed standard deviation σ.

    The loss is multiplied by σ²: σ²·(Q − x)²/2σ² = ½(Q − x)². So σ = 0 is the limit of Section
    5.2: targets without noise, no weight on the entropy, the squared Bellman error alone.
    """

    sigma: float | Array
    draw: Literal["sample", "mean"] = eqx.field(default="sample", static=True)
    """What stands for r + γZ: a sample of it (the paper), or its mean (Variational DQN)."""

    def __check_init__(self) -> None:
        check_number("sigma", self.sigma, at_least=0.0)
        check_choice("draw", self.draw, ("sample", "mean"))

    @property
    def outputs(self) -> int:
        return 1

    @property
    def scale(self) -> float | Array:
        return self.sigma**2

    def mean(self, z: Float[Array, " 1"]) -> Float[Array, ""]:
        return z[0]

    def target(
        self,
        z: Float[Array, " 1"],
        reward: Float[Array, ""],
        discount: Float[Array, ""],
        key: Key,
    ) -> Float[Array, ""]:
        xi = noise.normal(key) if self.draw == "sample" else 0.0
        return reward + discount * (z[0] + self.sigma * xi)

    def loss(self, z: Float[Array, " 1"], target: Float[Array, ""]) -> Float[Array, ""]:
        return 0.5 * (z[0] - target) ** 2
