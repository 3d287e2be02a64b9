"""q_φ(θ): Bayesian linear regression on the last hidden layer (Bayesian DQN), exact."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import solve_triangular
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_integer, check_number
from rove.parts import networks, noise, replay
from rove.parts.networks import Theta
from rove.parts.noise import Key
from rove.posteriors.base import Data, OneTheta, Phi, Posterior, Rows, Spec
from rove.posteriors.priors import Input


class Head(NamedTuple):
    """A Gaussian over each action's weights, the last of which is its bias."""

    mean: Float[Array, "actions weights"]
    root: Float[Array, "actions weights weights"]
    """R with covariance R·Rᵀ."""


class LastLayerLaw(NamedTuple):
    body: Theta
    head: Head


class LastLayerRows(Rows[LastLayerLaw]):
    """Standard normal noise for the value of every action, one row per transition.

    Given the last hidden layer h, the values are independent Gaussians of mean h·m and variance
    |Rᵀh|².
    """

    epsilon: Float[Array, "n actions"]

    def __call__(self, law: LastLayerLaw, x: Input) -> Float[Array, "1 n actions"]:
        h = hidden(law.body, x.features)
        spread = jnp.linalg.norm(jnp.einsum("nw,awv->nav", h, law.head.root), axis=2)
        return (h @ law.head.mean.T + spread * self.epsilon)[None]


class LastLayer(Posterior[LastLayerLaw, Array]):
    """The gradient moves the hidden layers; every `period` steps the last layer gets its exact
    posterior given all that the replay buffer holds, with a prior N(0, `prior`²) on each weight
    and the return's σ² as the variance of a target. Without hidden layers it is the regression on
    the observation itself."""

    prior: float | Array = 1.0
    """Standard deviation of a weight before there are data."""
    period: int | Array = 1000
    """Steps between refits."""

    def __check_init__(self) -> None:
        check_number("prior", self.prior, above=0.0)
        check_integer("period", self.period, at_least=1)

    def init(self, sizes: Sequence[int], key: Key) -> Phi:
        weights, actions = sizes[-2] + 1, sizes[-1]
        body = networks.init(key, sizes)[:-1]
        root = jnp.broadcast_to(self.prior * jnp.eye(weights), (actions, weights, weights))
        return Phi(body, Head(jnp.zeros((actions, weights)), root))

    def law(self, phi: Phi) -> LastLayerLaw:
        return LastLayerLaw(phi.learned, phi.held)

    def sample(self, law: LastLayerLaw, key: Key) -> Float[Array, "actions weights"]:
        """Weights of every action; the hidden layers keep learning while they are acted on."""
        epsilon = noise.normal(key, law.head.mean.shape)
        return law.head.mean + jnp.einsum("avw,aw->av", law.head.root, epsilon)

    def apply(
        self, law: LastLayerLaw, draw: Float[Array, "actions weights"], x: Input
    ) -> Float[Array, " actions"]:
        return draw @ hidden(law.body, x.features)

    def mean(self, law: LastLayerLaw, x: Input) -> Float[Array, " actions"]:
        return law.head.mean @ hidden(law.body, x.features)

    def sample_rows(
        self, law: LastLayerLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[LastLayerLaw]:
        if ids is None:
            return OneTheta(self, key)
        return LastLayerRows(noise.normal(key, (ids.shape[0], law.head.mean.shape[0])))

    def refit(self, phi: Phi, data: Data) -> Phi:
        """The exact posterior of the last layer, given the whole replay."""
        head = lax.cond(
            data.counter % self.period == 0,
            lambda: self._regression(phi, data),
            lambda: phi.held,
        )
        return phi._replace(held=head)

    def validate(self, spec: Spec) -> None:
        check_conjugate(self, spec)

    def _regression(self, phi: Phi, data: Data) -> Head:
        deviation = jnp.sqrt(data.scale)
        actions = jnp.arange(phi.held.mean.shape[0])

        def block(i: Array) -> tuple[Array, Array]:
            transitions, stored = replay.block(data.replay, i, BLOCK)
            inputs, action = data.pairs(phi.priors, transitions)
            own = (action[None, :] == actions[:, None]) & stored[None, :]
            a = jnp.where(own[:, :, None], hidden(phi.learned, inputs.features), 0.0)
            b = jnp.where(own, data.target(transitions, data.key, i), 0.0)
            return a / deviation, b / deviation

        blocks = (replay.stored(data.replay) + BLOCK - 1) // BLOCK
        return regression(block, blocks, self.prior**2, phi.held)


BLOCK = 1024
"""Rows of the buffer that are regressed on at a time."""
PASSES = 2
"""Maximum number of refinement passes."""


def regression(
    block: Callable[[Array], tuple[Array, Array]],
    blocks: int | Array,
    prior: float | Array,
    like: Head,
) -> Head:
    """Mean and root of the posterior of w in b ~ N(a·w, 1), w ~ N(0, prior·I), for each action:
    precision P = aᵀa + I/prior, root R with R·Rᵀ = P⁻¹, mean P⁻¹·aᵀb. `block(i)` gives the i-th
    rows, a [actions, n, weights] and b [actions, n], which are 0 where they are not the action's.

    By rotations, which give a triangle U with UᵀU = P and never square the rows: float32 rounds
    off far more of aᵀa than I/prior is. Where it may do so of the rows too, a further pass goes
    over the columns of a·R, which are nearly orthonormal, and what the mean leaves of b."""
    deviation = jnp.sqrt(prior)
    identity = jnp.broadcast_to(jnp.eye(like.root.shape[1]), like.root.shape)

    def improved(carry: tuple) -> tuple:
        passes, (mean, root), _ = carry

        def add(i: Array, triangle: Array) -> Array:
            a, b = block(i)
            left = b - jnp.einsum("anw,aw->an", a, mean)
            return _triangle(triangle, jnp.concatenate([a @ root, left[:, :, None]], axis=2))

        before = jnp.concatenate([root, -mean[:, :, None]], axis=2) / deviation
        triangle = _triangle(jnp.zeros_like(before[:, :1]), before)
        triangle = lax.fori_loop(0, blocks, add, triangle)
        upper, moment = triangle[:, :-1, :-1], triangle[:, :-1, -1:]
        root = root @ solve_triangular(upper, identity)
        mean += (root @ moment)[:, :, 0]
        sizes = jnp.abs(jnp.diagonal(upper, axis1=1, axis2=2))
        rough = jnp.any(sizes < SAFE * jnp.max(sizes, axis=1, keepdims=True))
        return passes + 1, Head(mean, root), rough

    start = 0, Head(jnp.zeros_like(like.mean), identity), jnp.ones((), bool)
    _, (mean, root), _ = lax.while_loop(lambda c: c[2] & (c[0] < PASSES), improved, start)
    # Of all triangles the one with a positive diagonal: targets that follow a head, and draws,
    # mix or compare roots.
    signs = jnp.where(jnp.diagonal(root, axis1=1, axis2=2) < 0, -1.0, 1.0)
    return Head(mean, root * signs[:, None, :])


SAFE = 1e-4
"""Of a triangle's diagonal: a smallest entry that is this part of the largest is not rounding."""


def _triangle(*rows: Float[Array, "actions _ columns"]) -> Float[Array, "actions columns columns"]:
    """The triangle that rows are a rotation of, of one action at a time: a batch of decompositions
    waits for threads of XLA's pool, and waits forever if lanes that do the same have them all."""
    return lax.map(partial(jnp.linalg.qr, mode="r"), jnp.concatenate(rows, axis=1))


def hidden(body: Theta, x: Float[Array, "*n features"]) -> Float[Array, "*n weights"]:
    """The last hidden layer, and a 1 for the bias."""
    for layer in body:
        x = jax.nn.relu(networks.affine(layer, x))
    return jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1))], axis=-1)


def check_conjugate(posterior: Posterior[Any, Any], spec: Spec) -> None:
    """Refuse anything but a Gaussian return of known variance, which has a closed form."""
    name = type(posterior).__name__
    if not spec.exact:
        raise ConfigError(
            "posterior", name, f"with a Gaussian return alone: Gaussian × {name} works"
        )
    check_number("sigma", spec.scale, above=0.0)
