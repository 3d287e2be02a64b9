"""q_φ(θ): K networks, each as likely as another (Bootstrapped DQN)."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove import networks, noise
from rove.errors import check_integer, check_number
from rove.networks import Theta
from rove.noise import Key
from rove.posteriors import priors
from rove.posteriors.base import Phi, Posterior


class Held(NamedTuple):
    priors: Any
    """K networks that never learn, or nothing."""
    bootstrap: Key
    """What the masks are drawn with."""


class Law(NamedTuple):
    members: Theta
    bootstrap: Key


class Ensemble(Posterior):
    """A finite q_φ, so its expectation is taken whole: every member learns from every transition
    that its bootstrap sample holds. It has no density: its entropy is taken as 0."""

    size: int = eqx.field(default=10, static=True)
    """K, the number of members."""
    mask: float = eqx.field(default=1.0, static=True)
    """Probability that a member's bootstrap sample holds a transition. Of a minibatch of N, a
    member learns from the first ⌈mask·N⌉ that it holds, and is computed for these alone."""
    prior: float | Array | None = None
    """β: member k is f_k + β·g_k, with g_k a random network that stays as it is; none: f_k."""
    paired: bool = eqx.field(default=True, static=True, kw_only=True)
    """Whether a member's target is its own (the default), or any member's."""

    def __check_init__(self) -> None:
        check_integer("size", self.size, at_least=1, at_most=10_000)
        check_number("mask", self.mask, above=0.0, at_most=1.0)
        if self.prior is not None:
            check_number("prior", self.prior, at_least=0.0)

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        k_members, k_priors, k_bootstrap = (noise.fold(key, i) for i in range(3))
        held: Any = ()
        if self.prior is not None:
            held = networks.init_many(k_priors, sizes, self.size)
        members = networks.init_many(k_members, sizes, self.size)
        return Phi(members, Held(held, k_bootstrap))

    def law(self, phi: Phi) -> Law:
        return Law(phi.learned, phi.held.bootstrap)

    def inputs(self, held: Held, x: Float[Array, "*n features"]) -> Float[Array, "*n inputs"]:
        return x if self.prior is None else priors.carried(held.priors, x)

    def sample(self, law: Law, key: Key) -> Int[Array, ""]:
        """The number of a member, which learns on while it is acted on."""
        return noise.integers(key, (), self.size)

    def apply(
        self, law: Law, draw: Int[Array, ""], x: Float[Array, " inputs"]
    ) -> Float[Array, " outputs"]:
        member = jax.tree.map(lambda leaf: leaf[draw], law.members)
        y = networks.forward(member, priors.plain(x, member))
        if self.prior is None:
            return y
        return y + self.prior * priors.values(x, member, self.size)[draw]

    def forward_all(
        self, law: Law, xs: Float[Array, "n inputs"], key: Key
    ) -> Float[Array, "size n outputs"]:
        """All members, counted from one that the key draws: the same key, the same member."""
        return jnp.roll(self._members(law, xs), self._first(key), axis=0)

    def weights(self, law: Law, ids: Int[Array, " n"], key: Key) -> Float[Array, "size n"]:
        """1 for the rows that a draw's member learns from."""
        masks = self.masks(law, ids)
        masks &= jnp.cumsum(masks, axis=1) <= self._share(ids.shape[0])
        return jnp.roll(masks.astype(jnp.float32), self._first(key), axis=0)

    def masks(self, law: Law, ids: Int[Array, " n"]) -> Bool[Array, "size n"]:
        """Whether each member's bootstrap sample holds a transition: drawn anew from the
        transition's number each time, so always alike."""

        def mask(number: Array) -> Array:
            return noise.uniform(noise.fold(law.bootstrap, number), (self.size,)) < self.mask

        return jax.vmap(mask)(ids).T

    def forward_learned(
        self,
        law: Law,
        xs: Float[Array, "n inputs"],
        weights: Float[Array, "size n"],
        key: Key,
    ) -> Float[Array, "size n outputs"]:
        """Each member at its own rows alone, at most its share: its j-th is the first with j + 1
        held up to it."""
        share, first = self._share(xs.shape[0]), self._first(key)
        if share == xs.shape[0]:
            return self.forward_all(law, xs, key)
        held = jnp.cumsum(weights, axis=1).astype(jnp.int32)
        rows = jnp.sum(held[:, None] <= jnp.arange(share)[:, None], axis=2)  # n where it has fewer
        rows = jnp.roll(jnp.minimum(rows, xs.shape[0] - 1), -first, axis=0)
        ys = jnp.roll(self._members(law, xs[rows], 0), first, axis=0)
        return jnp.take_along_axis(ys, jnp.maximum(held - 1, 0)[..., None], axis=1)

    def _share(self, n: int) -> int:
        """The most rows of a minibatch of n that a member learns from."""
        return math.ceil(self.mask * n)

    def _first(self, key: Key) -> Int[Array, ""]:
        """Where the draws of a key begin to count the members."""
        return noise.integers(key, (), self.size)

    def mean(self, law: Law, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """The mean of all members' outputs."""
        return jnp.mean(self._members(law, x[None]), axis=(0, 1))

    def _members(
        self, law: Law, xs: Float[Array, "*size n inputs"], axis: int | None = None
    ) -> Float[Array, "size n outputs"]:
        """Every member at every row; or, along an axis, at its own."""
        plain = priors.plain(xs, law.members)
        ys = jax.vmap(networks.forward, (0, axis))(law.members, plain)
        if self.prior is None:
            return ys
        own = jax.vmap(lambda k, values: values[:, k], (0, axis))
        values = priors.values(xs, law.members, self.size)
        return ys + self.prior * own(jnp.arange(self.size), values)
