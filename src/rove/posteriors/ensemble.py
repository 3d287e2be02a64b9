"""q_φ(θ): K networks, each as likely as another (Bootstrapped DQN)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.errors import check_integer, check_number
from rove.parts import networks, noise
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.posteriors.base import OneTheta, Phi, Posterior, Rows
from rove.posteriors.priors import Input


class EnsembleLaw(NamedTuple):
    members: Theta
    """K networks, stacked."""
    bootstrap: Key
    """What the masks are drawn with."""


class Ensemble(Posterior[EnsembleLaw, Array]):
    """A finite q_φ, so its expectation is taken whole: every member learns from every transition
    that its bootstrap sample holds. It has no density: its entropy is taken as 0."""

    size: int = eqx.field(default=10, static=True)
    """K, the number of members."""
    mask: float = eqx.field(default=1.0, static=True)
    """Probability that a member's bootstrap sample holds a transition. Of a minibatch of N, a
    member learns from the first ⌈mask·N⌉ that it holds."""
    prior: float | Array | None = None
    """β: member k is f_k + β·g_k, with g_k a prior function; None: f_k alone."""
    paired: bool = eqx.field(default=True, static=True, kw_only=True)
    """Whether a member's target is its own (the default), or any member's. Paired members are
    computed for the rows they learn from alone."""

    def __check_init__(self) -> None:
        check_integer("size", self.size, at_least=1, at_most=10_000)
        check_number("mask", self.mask, above=0.0, at_most=1.0)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=0.0)

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        k_members, k_priors, k_bootstrap = (noise.fold(key, i) for i in range(3))
        members = networks.init_many(k_members, sizes, self.size)
        if self.prior is None:
            return Phi(members, k_bootstrap)
        return Phi(members, k_bootstrap, networks.init_many(k_priors, sizes, self.size))

    def law(self, phi: Phi) -> EnsembleLaw:
        return EnsembleLaw(phi.learned, phi.held)

    def sample(self, law: EnsembleLaw, key: Key) -> Int[Array, ""]:
        """The number of a member, which keeps learning while it is acted on."""
        return noise.integers(key, (), self.size)

    def apply(self, law: EnsembleLaw, draw: Int[Array, ""], x: Input) -> Float[Array, " outputs"]:
        member = jax.tree.map(lambda leaf: leaf[draw], law.members)
        y = networks.forward(member, x.features)
        return y if self.prior is None else y + self.prior * x.priors[draw]

    def mean(self, law: EnsembleLaw, x: Input) -> Float[Array, " outputs"]:
        """The mean of all members' outputs."""
        x = jax.tree.map(lambda leaf: leaf[None], x)
        return jnp.mean(all_members(law, x, self.prior), axis=(0, 1))

    def sample_rows(
        self, law: EnsembleLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[EnsembleLaw]:
        """All members, counted from one that the key draws: the same key, the same member."""
        if ids is None:
            return OneTheta(self, key)
        first, weights = noise.integers(key, (), self.size), self._learned_from(law, ids)
        weights = jnp.roll(weights, first, axis=0)
        if not self.paired or self._share(ids) == ids.shape[0]:
            return MemberRows(first, weights, self.prior, self.paired)
        return OwnMemberRows(first, weights, self.prior, self._share(ids))

    def masks(self, law: EnsembleLaw, ids: Int[Array, " n"]) -> Bool[Array, "size n"]:
        """Whether each member's bootstrap sample holds a transition. It is drawn again from the
        transition's number each time, so it is always the same."""

        def mask(number: Array) -> Array:
            return noise.uniform(noise.fold(law.bootstrap, number), (self.size,)) < self.mask

        return jax.vmap(mask)(ids).T

    def _learned_from(self, law: EnsembleLaw, ids: Int[Array, " n"]) -> Float[Array, "size n"]:
        """1 for the rows that each member learns from."""
        masks = self.masks(law, ids)
        masks &= jnp.cumsum(masks, axis=1) <= self._share(ids)
        return masks.astype(jnp.float32)

    def _share(self, ids: Int[Array, " n"]) -> int:
        """Maximum number of a minibatch's rows that a member learns from."""
        return math.ceil(self.mask * ids.shape[0])


class MemberRows(Rows[EnsembleLaw]):
    """Every member at every row."""

    first: Int[Array, ""]
    """By how many places the members are rotated."""
    learned: Float[Array, "size n"]
    prior: float | Array | None
    """β of the family."""
    paired: bool = eqx.field(default=False, static=True)

    @property
    def weights(self) -> Float[Array, "size n"]:
        return self.learned

    def __call__(self, law: EnsembleLaw, x: Input) -> Float[Array, "size n outputs"]:
        return jnp.roll(all_members(law, x, self.prior), self.first, axis=0)


class OwnMemberRows(Rows[EnsembleLaw]):
    """Every member at the rows that it learns from, and anything elsewhere.

    These serve θ⁻ as well, so that a member's target is its own: another member's would be needed
    at rows that the other does not learn from.
    """

    first: Int[Array, ""]
    """By how many places the members are rotated."""
    learned: Float[Array, "size n"]
    prior: float | Array | None
    """β of the family."""
    share: int = eqx.field(static=True)
    """Maximum number of rows that a member learns from."""

    @property
    def weights(self) -> Float[Array, "size n"]:
        return self.learned

    @property
    def paired(self) -> bool:
        return True

    def __call__(self, law: EnsembleLaw, x: Input) -> Float[Array, "size n outputs"]:
        """A member's j-th row is the first up to which it learns from j + 1."""
        n = x.features.shape[0]
        order = jnp.cumsum(self.learned, axis=1).astype(jnp.int32)
        rows = jnp.sum(order[:, None] <= jnp.arange(self.share)[:, None], axis=2)
        rows = jnp.minimum(rows, n - 1)  # it is n where a member has fewer
        rows = jnp.roll(rows, -self.first, axis=0)
        ys = jax.vmap(networks.forward)(law.members, x.features[rows])
        if self.prior is not None:
            members = jnp.arange(rows.shape[0])[:, None]
            ys += self.prior * x.priors[rows, members]
        ys = jnp.roll(ys, self.first, axis=0)
        return jnp.take_along_axis(ys, jnp.maximum(order - 1, 0)[..., None], axis=1)


def all_members(
    law: EnsembleLaw, x: Input, prior: float | Array | None
) -> Float[Array, "size n outputs"]:
    """Every member at every row."""
    ys = networks.forward_many(law.members, x.features)
    return ys if prior is None else ys + prior * jnp.moveaxis(x.priors, 1, 0)
