"""q_φ(θ): K equally likely networks, as in Bootstrapped DQN (Osband et al. 2016)."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.errors import check_integer, check_number
from rove.parts import networks, noise
from rove.parts.networks import Network, Theta
from rove.parts.noise import Key
from rove.posteriors.base import Foldable, OneTheta, Paired, Phi, Rows, Stack
from rove.posteriors.priors import Input


class EnsembleLaw(NamedTuple):
    """The members of the ensemble, and the key of their bootstrap masks."""

    members: Theta
    """K networks, stacked along the first axis."""
    bootstrap: Key
    """The key that determines the bootstrap masks."""


class Ensemble(Foldable[EnsembleLaw, Array]):
    """A uniform distribution over the K members of an ensemble.

    The expectation over θ in the objective is computed exactly, as a sum over members: each learns
    from all transitions of a minibatch that belong to its bootstrap sample. q_φ has no density; its
    entropy is defined as 0.
    """

    size: int = eqx.field(default=10, static=True)
    """K, the number of members."""
    mask: float = eqx.field(default=1.0, static=True)
    """Probability that a transition belongs to a member's bootstrap sample. In a minibatch of N
    transitions, a member learns from the first ⌈mask·N⌉ that do."""
    prior: float | Array | None = None
    """Scale β of the prior functions g_k: member k is f_k + β·g_k. None: no prior functions."""
    paired: bool = eqx.field(default=True, static=True, kw_only=True)
    """Whether each member computes its own targets (the default), or those of a random member. If
    so, members are evaluated only for the rows that they learn from."""

    def __check_init__(self) -> None:
        check_integer("size", self.size, at_least=1, at_most=10_000)
        check_number("mask", self.mask, above=0.0, at_most=1.0)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=0.0)

    def init(self, network: Network, key: Key) -> Phi:
        k_members, k_priors, k_bootstrap = (noise.fold(key, i) for i in range(3))
        members = network.init_many(k_members, self.size)
        if self.prior is None:
            return Phi(members, k_bootstrap)
        return Phi(members, k_bootstrap, network.init_many(k_priors, self.size))

    def law(self, phi: Phi) -> EnsembleLaw:
        return EnsembleLaw(phi.learned, phi.fitted)

    def sample(self, law: EnsembleLaw, key: Key) -> Int[Array, ""]:
        """Sample the index of a member, which continues to learn while it chooses actions."""
        return noise.integers(key, (), self.size)

    def apply(self, law: EnsembleLaw, draw: Int[Array, ""], x: Input) -> Float[Array, " outputs"]:
        member = jax.tree.map(lambda leaf: leaf[draw], law.members)
        y = networks.forward(member, x.features)
        return y if self.prior is None else y + self.prior * x.priors[draw]

    def mean(self, law: EnsembleLaw, x: Input) -> Float[Array, " outputs"]:
        """Return the mean of all members' outputs."""
        x = jax.tree.map(lambda leaf: leaf[None], x)
        return jnp.mean(all_members(law, x, self.prior), axis=(0, 1))

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        share = jnp.full(self.size, 1.0 / self.size)
        members, priors = Stack(share, phi.learned), ()
        if self.prior is not None:
            priors = (Stack(self.prior * share, phi.priors),)
        return (members, *priors)

    def sample_rows(
        self, law: EnsembleLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[EnsembleLaw]:
        """Return all members, starting from a random one that the key determines.

        The random rotation pairs each member with a random one in the target, unless `paired`.
        """
        if ids is None:
            return OneTheta(self, key)
        first, weights = noise.integers(key, (), self.size), self._learned_from(law, ids)
        weights = jnp.roll(weights, first, axis=0)
        if not self.paired:
            return MemberRows(first, weights, self.prior)
        if self._share(ids) == ids.shape[0]:
            return Paired(MemberRows(first, weights, self.prior))
        return Paired(OwnMemberRows(first, weights, self.prior, self._share(ids)))

    def masks(self, law: EnsembleLaw, ids: Int[Array, " n"]) -> Bool[Array, "size n"]:
        """Return whether each transition belongs to each member's bootstrap sample.

        A mask is a function of the transition's number, so that it need not be stored.
        """

        def mask(number: Array) -> Array:
            return noise.uniform(noise.fold(law.bootstrap, number), (self.size,)) < self.mask

        return jax.vmap(mask)(ids).T

    def _learned_from(self, law: EnsembleLaw, ids: Int[Array, " n"]) -> Float[Array, "size n"]:
        """Return 1 for the rows that each member learns from, and 0 for all others."""
        masks = self.masks(law, ids)
        masks &= jnp.cumsum(masks, axis=1) <= self._share(ids)
        return masks.astype(jnp.float32)

    def _share(self, ids: Int[Array, " n"]) -> int:
        """Return the maximum number of rows of a minibatch that a member learns from."""
        return math.ceil(self.mask * ids.shape[0])


class MemberRows(Rows[EnsembleLaw]):
    """All members, evaluated for every row."""

    first: Int[Array, ""]
    """Number of positions by which the members are rotated."""
    learned: Float[Array, "size n"]
    """1 for the rows that each member learns from, and 0 for all others."""
    prior: float | Array | None
    """`Ensemble.prior`, the scale β."""

    @property
    def weights(self) -> Float[Array, "size n"]:
        return self.learned

    def __call__(self, law: EnsembleLaw, x: Input) -> Float[Array, "size n outputs"]:
        return jnp.roll(all_members(law, x, self.prior), self.first, axis=0)


class OwnMemberRows(Rows[EnsembleLaw]):
    """All members, each evaluated only for the rows that it learns from.

    The outputs for all other rows are arbitrary. This requires paired members: the target of
    another member would be needed for rows that it does not learn from.
    """

    first: Int[Array, ""]
    """Number of positions by which the members are rotated."""
    learned: Float[Array, "size n"]
    """1 for the rows that each member learns from, and 0 for all others."""
    prior: float | Array | None
    """`Ensemble.prior`, the scale β."""
    share: int = eqx.field(static=True)
    """Maximum number of rows that a member learns from."""

    @property
    def weights(self) -> Float[Array, "size n"]:
        return self.learned

    def __call__(self, law: EnsembleLaw, x: Input) -> Float[Array, "size n outputs"]:
        """Gather each member's rows, evaluate it for them, and scatter the outputs."""
        n = x.features.shape[0]
        order = jnp.cumsum(self.learned, axis=1).astype(jnp.int32)
        # A member's j-th row (from 0) is the number of rows with at most j of its own up to there.
        rows = jnp.sum(order[:, None] <= jnp.arange(self.share)[:, None], axis=2)
        rows = jnp.minimum(rows, n - 1)  # n if the member has fewer rows
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
    """Return the outputs of every member for every row."""
    ys = networks.forward_many(law.members, x.features)
    return ys if prior is None else ys + prior * jnp.moveaxis(x.priors, 1, 0)
