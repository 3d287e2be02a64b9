"""The family of parameter distributions q_φ(θ)."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from rove import noise
from rove.noise import Key
from rove.replay import Replay, Transition

Law: TypeAlias = Any
"""q_φ written out (for a Gaussian: means and variances), a pytree of arrays."""
Draw: TypeAlias = Any
"""One θ ~ q_φ, in the family's own form: weights, a member's number, an index z, masks."""


Target: TypeAlias = Callable[[Transition, Key, int | Array], Array]
"""Draws x for transitions, all with one θ⁻, which is the key's; where they come in parts, the
number of the part gives each its own draws of what else is random."""


class Phi(NamedTuple):
    """φ, all that q_φ depends on."""

    learned: Any
    """What the gradient of the objective moves."""
    held: Any = ()
    """What is fixed at the start (prior functions), or found in closed form by `refit`."""


class Posterior(eqx.Module):
    """A family q_φ(θ). `law` turns φ into the form every draw uses, so that an update pays for
    it once, and the target network's is kept as long as φ⁻ stands."""

    @property
    def paired(self) -> bool:
        """Whether θ⁻ takes the random numbers of θ (the same member, index or noise) in the target
        of a transition, or numbers of its own (the paper). A field of those families whose law
        learns by the gradient through such draws."""
        return False

    def needs(self, observation: np.ndarray) -> str | None:
        """What observations it needs, if this one will not do."""
        return None

    @abc.abstractmethod
    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        """φ at the start, for networks of these layer sizes."""

    @abc.abstractmethod
    def law(self, phi: Phi) -> Law:
        """q_φ, written out."""

    def inputs(self, held: Any, x: Float[Array, "*n features"]) -> Float[Array, "*n inputs"]:
        """What every f_θ below takes for x: x itself, and after it what f_θ(x) has of `held` that
        never changes, and the buffer can keep with a transition. What has it already stays."""
        return x

    @abc.abstractmethod
    def sample(self, law: Law, key: Key) -> Draw:
        """One θ ~ q_φ, for use on many states."""

    @abc.abstractmethod
    def apply(self, law: Law, draw: Draw, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """f_θ(x) for a θ that was drawn."""

    def forward(self, law: Law, x: Float[Array, " inputs"], key: Key) -> Float[Array, " outputs"]:
        """f_θ(x) with θ ~ q_φ drawn for this x alone."""
        return self.apply(law, self.sample(law, key), x)

    def forward_all(
        self, law: Law, xs: Float[Array, "n inputs"], key: Key
    ) -> Float[Array, "draws n outputs"]:
        """f_θ of every row of a minibatch, with one or more θ ~ q_φ of its own for each row."""
        keys = noise.folds(key, xs.shape[0])
        return jax.vmap(self.forward, (None, 0, 0))(law, xs, keys)[None]

    def weights(self, law: Law, ids: Int[Array, " n"], key: Key) -> Float[Array, "draws_ n_"]:
        """How much each draw of `forward_all` with this key learns from each transition,
        in a shape that broadcasts."""
        return jnp.ones((1, 1))

    def forward_learned(
        self,
        law: Law,
        xs: Float[Array, "n inputs"],
        weights: Float[Array, "draws_ n_"],
        key: Key,
    ) -> Float[Array, "draws n outputs"]:
        """`forward_all`, for learning with these weights: where one is 0, it may give anything."""
        return self.forward_all(law, xs, key)

    @abc.abstractmethod
    def mean(self, law: Law, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        """f(x) without noise, for greedy evaluation: of the mean of θ, or the mean of f_θ(x)."""

    def entropy(self, law: Law) -> Float[Array, ""]:
        """H(q_φ), up to a constant, or −KL to a prior; 0 where q_φ has no density."""
        return jnp.zeros(())

    def refit(
        self,
        phi: Phi,
        scale: float | Array,
        counter: Int[Array, ""],
        replay: Replay,
        target: Target,
        key: Key,
    ) -> Any:
        """φ's `held` part after an update: exact minimisation, where conjugacy gives it, over
        what `replay` holds. `scale` is the return's."""
        return phi.held

    def check(self, exact: bool, scale: float | Array, hidden: tuple[int, ...]) -> None:
        """Refuse what this family cannot go with: a return with (or without) an `exact` squared
        error and such a `scale`, or such hidden layers."""
