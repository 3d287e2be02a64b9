"""Counts: an intrinsic reward that falls with the number of visits to a cell (Strehl and Littman
2008). The cells of vectors are their SimHash (Tang et al. 2017)."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.bonuses.base import Bonus, Spread
from rove.errors import check_flag, check_integer, check_number
from rove.parts import noise
from rove.parts.masks import unmasked
from rove.parts.noise import Key
from rove.parts.normalising import Statistics
from rove.parts.onehot import OneHot
from rove.parts.replay import Transition


class Visits(NamedTuple):
    """The number of visits to each cell, and the parameters of the hash."""

    count: Int[Array, " cells"]
    normals: Float[Array, "features bits"]
    offsets: Float[Array, " bits"]
    statistics: Statistics
    """Statistics of the observations so far; of size 0 for codes, which are their own cells."""


class Counts(Bonus[Visits]):
    """i = 1/n(s′)ᵖ minus its mean over a batch; n(s′) is the number of visits to the cell of s′.

    A code is its own cell. The cell of a vector is a hash: observations are normalised by their
    running mean and standard deviation, and each bit says on which side of a random hyperplane they
    lie, so that similar observations share a cell. Visits are counted over the whole run. (A count
    that restarts in each episode would not be a function of s′, which is all that Q sees.)
    """

    weight: float | Array = 1.0
    """Weight η of the intrinsic reward."""
    power: float | Array = eqx.field(default=1.0, kw_only=True)
    """Exponent p: 1 fades fast (Kolter and Ng 2009); 0.5 is that of the theory (Strehl and Littman
    2008)."""
    centred: bool = eqx.field(default=True, static=True, kw_only=True)
    """Whether to subtract the mean of i over a batch of steps. Otherwise, i is always positive, and
    a task that ends at its goal pays more the later the goal is reached."""
    bits: int = eqx.field(default=8, static=True)
    """Number of hyperplanes of the hash, which has 2^bits cells. With fewer, novelty fades faster
    where observations have many entries."""
    uses_cells: ClassVar[bool] = True

    def __check_init__(self) -> None:
        check_number("weight", self.weight, at_least=0.0)
        check_number("power", self.power, above=0.0, at_most=10.0)
        check_flag("centred", self.centred)
        check_integer("bits", self.bits, at_least=1, at_most=24)  # a float32 stores 24 exactly

    def init(self, features: int, coded: bool, key: Key) -> Visits:
        normals = noise.normal(noise.fold(key, 0), (features, self.bits))
        offsets = noise.normal(noise.fold(key, 1), (self.bits,))
        statistics = Statistics.of_shape(0 if coded else features)
        cells = features if coded else 2**self.bits
        return Visits(jnp.zeros(cells, jnp.int32), normals, offsets, statistics)

    def observe(self, state: Visits, transition: Transition) -> tuple[Visits, Transition]:
        """Count a visit to the cell of s′, which is stored with the step."""
        x = unmasked(transition.next_observation)
        if isinstance(x, OneHot):
            cell = x.index
        else:
            state = state._replace(statistics=state.statistics.updated(x))
            cell = simhash(state, x)
        counted = state._replace(count=state.count.at[cell].add(1))
        return counted, transition._replace(cell=cell)

    def reward(self, state: Visits, steps: Transition, spread: Spread) -> Float[Array, " n"]:
        visits = jnp.maximum(state.count[steps.cell], 1)
        novelty = visits.astype(jnp.float32) ** -self.power
        if self.centred:
            novelty -= jnp.mean(novelty)
        return steps.reward + self.weight * novelty


def simhash(state: Visits, x: Float[Array, "*n features"]) -> Int[Array, "*n"]:
    """Return Σⱼ 2ʲ·[x·aⱼ + bⱼ > 0] for normalised vectors x, random vectors aⱼ and offsets bⱼ."""
    above = state.statistics.normalised(x) @ state.normals + state.offsets > 0.0
    return jnp.sum(above << jnp.arange(above.shape[-1]), axis=-1)
