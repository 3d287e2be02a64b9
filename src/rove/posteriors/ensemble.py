"""q_φ(θ): K networks, each as likely as another (Bootstrapped DQN)."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove import networks, noise
from rove.errors import check_integer, check_number
from rove.networks import Theta
from rove.noise import Key
from rove.posteriors.base import Phi, Posterior


class Held(NamedTuple):
    priors: Any
    """K networks that never learn, or nothing."""
    bootstrap: Key
    """What the masks are drawn with."""


class Law(NamedTuple):
    members: Theta
    held: Held


class Ensemble(Posterior):
    """A finite q_φ, so its expectation is taken whole: every member learns from every transition
    that its bootstrap sample holds. It has no density: its entropy is taken as 0."""

    size: int = eqx.field(default=10, static=True)
    """K, the number of members."""
    mask: float | Array = 1.0
    """Probability that a member's bootstrap sample holds a transition."""
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
        priors = () if self.prior is None else networks.init_many(k_priors, sizes, self.size)
        members = networks.init_many(k_members, sizes, self.size)
        return Phi(members, Held(priors, k_bootstrap))

    def law(self, phi: Phi) -> Law:
        return Law(phi.learned, phi.held)

    def sample(self, law: Law, key: Key) -> Int[Array, ""]:
        """The number of a member, which learns on while it is acted on."""
        return noise.integers(key, (), self.size)

    def apply(
        self, law: Law, draw: Int[Array, ""], x: Float[Array, " features"]
    ) -> Float[Array, " outputs"]:
        member, prior = jax.tree.map(lambda leaf: leaf[draw], (law.members, law.held.priors))
        y = networks.forward(member, x)
        return y if self.prior is None else y + self.prior * networks.forward(prior, x)

    def forward_all(
        self, law: Law, xs: Float[Array, "n features"], key: Key
    ) -> Float[Array, "size n outputs"]:
        """All members, counted from one that the key draws: the same key, the same member."""
        return jnp.roll(self._members(law, xs), noise.integers(key, (), self.size), axis=0)

    def weights(self, law: Law, ids: Int[Array, " n"], key: Key) -> Float[Array, "size n"]:
        """The bootstrap masks: drawn anew from a transition's number each time, so always alike."""

        def mask(number: Array) -> Array:
            return noise.uniform(noise.fold(law.held.bootstrap, number), (self.size,)) < self.mask

        masks = jax.vmap(mask)(ids).T.astype(jnp.float32)
        return jnp.roll(masks, noise.integers(key, (), self.size), axis=0)

    def mean(self, law: Law, x: Float[Array, " features"]) -> Float[Array, " outputs"]:
        """The mean of all members' outputs."""
        return jnp.mean(self._members(law, x[None]), axis=(0, 1))

    def _members(self, law: Law, xs: Float[Array, "n features"]) -> Float[Array, "size n outputs"]:
        ys = networks.forward_many(law.members, xs)
        if self.prior is None:
            return ys
        return ys + self.prior * networks.forward_many(law.held.priors, xs)
