"""The family of parameter distributions q_φ(θ)."""

import abc
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, UInt32

from rove.parts import noise
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.parts.replay import Replay, Transition
from rove.posteriors.priors import Input

Law = TypeVar("Law")
"""q_φ written out (for a Gaussian: means and variances), a pytree of arrays."""
Draw = TypeVar("Draw")
"""One θ ~ q_φ, in the family's own form: weights, a member's number, an index z, masks."""


class Phi(NamedTuple):
    """φ, all that q_φ depends on."""

    learned: Any
    """What the gradient of the objective moves."""
    held: Any = ()
    """What the gradient leaves alone: what `refit` computes, or a bootstrap's key."""
    priors: Theta | tuple[()] = ()
    """The prior functions, networks stacked along a first axis, which never change."""


class Rows(eqx.Module, Generic[Law]):
    """A θ ~ q_φ, or several, for each row of a minibatch.

    It holds the random numbers that a θ is made of, and nothing of φ, so it can be used again:
    with φ⁻ in place of φ (which is what pairing θ and θ⁻ means), or under a gradient.
    """

    @abc.abstractmethod
    def __call__(self, law: Law, x: Input) -> Float[Array, "draws n outputs"]:
        """f_θ of each row, for each of its draws."""

    @property
    def weights(self) -> Float[Array, "draws_ n_"]:
        """How much each draw learns from each row (bootstrap masks), in a shape that broadcasts.
        Where a weight is 0, `__call__` may give anything."""
        return jnp.ones((1, 1))

    @property
    def paired(self) -> bool:
        """Whether θ⁻ uses these random numbers too in the target of a transition, rather than its
        own as in the paper. Families for which that matters have a setting."""
        return False


class Pairs(NamedTuple):
    """(s, a) of some transitions, in the form that a critic takes them."""

    inputs: Input
    action: Int[Array, " n"]
    """Which of the network's actions it is; 0 for a critic that takes a as an input."""


class Data(NamedTuple):
    """What `Posterior.refit` fits to."""

    scale: float | Array
    """The `scale` of the return."""
    counter: Int[Array, ""]
    """Number of environment steps so far."""
    replay: Replay
    pairs: Callable[[Any, Transition], Pairs]
    """Given `Phi.priors` and transitions from the replay: what f_θ takes for them."""
    target: Callable[[Transition, Key, int | Array], Float[Array, " n"]]
    """Draws x for transitions, all with one θ⁻, which the key decides. Where the transitions come
    in parts, the number of the part gives each part its own draws of what else is random."""
    key: Key


class Spec(NamedTuple):
    """What a posterior is asked to work with."""

    exact: bool
    """`Return.exact`: whether the loss is ½(z − x)² of one output."""
    scale: float | Array
    """`Return.scale`."""
    hidden: tuple[int, ...]
    """Widths of the hidden layers."""
    observation: np.ndarray | None = None
    """An observation of the environment; None before the environment is known."""


class Posterior(eqx.Module, Generic[Law, Draw]):
    """A family q_φ(θ). Five methods make one; the others have defaults.

    `law` turns φ into the form that every draw uses, so that an update computes it once, and the
    target network keeps it for as long as φ⁻ stays the same.
    """

    @abc.abstractmethod
    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        """φ at the start, for networks of these layer sizes."""

    @abc.abstractmethod
    def law(self, phi: Phi) -> Law:
        """q_φ, written out."""

    @abc.abstractmethod
    def sample(self, law: Law, key: Key) -> Draw:
        """One θ ~ q_φ, for use on many states."""

    @abc.abstractmethod
    def apply(self, law: Law, draw: Draw, x: Input) -> Float[Array, " outputs"]:
        """f_θ(x) for a θ that was drawn."""

    @abc.abstractmethod
    def mean(self, law: Law, x: Input) -> Float[Array, " outputs"]:
        """f(x) without noise, for greedy evaluation: of the mean of θ, or the mean of f_θ(x)."""

    def sample_rows(self, law: Law, ids: Int[Array, " n"] | None, key: Key) -> Rows[Law]:
        """A θ for each row of a minibatch, by default one `sample` per row.

        `ids` are the transitions' numbers in the replay; None is for control, which has one row.
        Replace it where there is a cheaper way to values with the same law.
        """
        if ids is None:
            return OneTheta(self, key)
        return ThetaPerRow(self, noise.folds(key, ids.shape[0]))

    def entropy(self, law: Law) -> Float[Array, ""]:
        """H(q_φ), up to a constant, or −KL to a prior; 0 where q_φ has no density."""
        return jnp.zeros(())

    def refit(self, phi: Phi, data: Data) -> Phi:
        """φ after an update: exact minimisation, where conjugacy gives it, over the replay."""
        return phi

    def validate(self, spec: Spec) -> None:
        """Raise a `ConfigError` if this family cannot work with that, naming what works."""


class OneTheta(Rows[Law]):
    """One θ for all rows."""

    posterior: Posterior[Law, Any]
    key: Key

    def __call__(self, law: Law, x: Input) -> Float[Array, "1 n outputs"]:
        theta = self.posterior.sample(law, self.key)
        return apply_all(self.posterior, law, theta, x)[None]


class ThetaPerRow(Rows[Law]):
    """One θ for each row, drawn in full."""

    posterior: Posterior[Law, Any]
    keys: UInt32[Array, "n 2"]

    def __call__(self, law: Law, x: Input) -> Float[Array, "1 n outputs"]:
        def at(key: Key, x: Input) -> Array:
            return self.posterior.apply(law, self.posterior.sample(law, key), x)

        return jax.vmap(at)(self.keys, x)[None]


def apply_all(
    posterior: Posterior[Law, Draw], law: Law, draw: Draw, x: Input
) -> Float[Array, "n outputs"]:
    """f_θ of every row of x, for one θ that was drawn."""
    return jax.vmap(posterior.apply, (None, None, 0))(law, draw, x)


def row_count(ids: Int[Array, " n"] | None) -> int:
    """Number of rows that `Posterior.sample_rows` is asked for."""
    return 1 if ids is None else ids.shape[0]
