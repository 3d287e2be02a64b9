"""q_φ(θ): exact Bayesian linear regression on the last hidden layer, as in Bayesian DQN."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int

from rove.errors import ConfigError, check_integer, check_number
from rove.parts import networks, noise, replay
from rove.parts.layers import product
from rove.parts.networks import Linear, Network, Theta
from rove.parts.noise import Key
from rove.parts.onehot import Features
from rove.posteriors.base import (
    Data,
    Foldable,
    OneTheta,
    Phi,
    Posterior,
    Rows,
    Spec,
    Stack,
    check_layers,
    single,
)
from rove.posteriors.priors import Input
from rove.posteriors.refitting import refitted


class Head(NamedTuple):
    """A Gaussian for each action's weights, the last of which is its bias."""

    mean: Float[Array, "actions weights"]
    root: Float[Array, "actions weights weights"]
    """A square root R of the covariance, which is R·Rᵀ."""


class LastLayerLaw(NamedTuple):
    """The hidden layers, and the distribution of the last layer."""

    body: Theta
    head: Head


class LastLayerRows(Rows[LastLayerLaw]):
    """Samples that consist of standard normal noise for the value of every action.

    Given the last hidden layer h, the value of an action is Gaussian with mean h·m and variance
    |Rᵀh|², independently of the other actions.
    """

    epsilon: Float[Array, "n actions"]

    def __call__(self, law: LastLayerLaw, x: Input) -> Float[Array, "1 n actions"]:
        h = hidden(law.body, x.features)
        # A product for each action: a single one would have to transpose all roots first. The sum
        # over weights is over columns, which takes less time than one over rows.
        roots = jnp.swapaxes(law.head.root, 1, 2)
        products = roots @ jnp.broadcast_to(h.T, (len(roots), *h.T.shape))
        spread = jnp.sqrt(jnp.sum(products**2, axis=1))
        return (product(h, law.head.mean.T) + spread.T * self.epsilon)[None]


class GaussianHead(Foldable[LastLayerLaw, Array]):
    """A point estimate of the hidden layers, and a Gaussian for each output's weights."""

    def sample(self, law: LastLayerLaw, key: Key) -> Float[Array, "actions weights"]:
        """Sample the last layer's weights. The hidden layers continue to learn."""
        epsilon = noise.normal(key, law.head.mean.shape)
        return law.head.mean + jnp.einsum("avw,aw->av", law.head.root, epsilon)

    def apply(
        self, law: LastLayerLaw, draw: Float[Array, "actions weights"], x: Input
    ) -> Float[Array, " actions"]:
        return draw @ hidden(law.body, x.features)

    def mean(self, law: LastLayerLaw, x: Input) -> Float[Array, " actions"]:
        return law.head.mean @ hidden(law.body, x.features)


class LastLayer(GaussianHead):
    """A point estimate of the hidden layers, and the exact posterior of the last layer.

    The hidden layers are trained by gradient descent. Every `period` steps, the posterior of the
    last layer is computed from the whole replay buffer, with a prior N(0, `prior`²) for each weight
    and the variance σ² of the Gaussian return as that of a target. Without hidden layers, this is
    Bayesian linear regression on the observations.
    """

    prior: float | Array = 1.0
    """Prior standard deviation of each weight of the last layer."""
    period: int | Array = 1000
    """Number of steps between refits of the last layer."""

    def __check_init__(self) -> None:
        check_number("prior", self.prior, at_least=1e-6, at_most=1e6)
        check_integer("period", self.period, at_least=1)

    def init(self, network: Network, key: Key) -> Phi:
        weights, actions = network.head.inputs + 1, network.outputs
        body = network.init(key)[:-1]
        root = jnp.broadcast_to(self.prior * jnp.eye(weights), (actions, weights, weights))
        return Phi(body, Head(jnp.zeros((actions, weights)), root))

    def law(self, phi: Phi) -> LastLayerLaw:
        return LastLayerLaw(phi.learned, phi.fitted)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        head = phi.fitted.mean
        return single((*phi.learned, Linear(head[:, :-1].T, head[:, -1])))

    def sample_rows(
        self, law: LastLayerLaw, ids: Int[Array, " n"] | None, key: Key
    ) -> Rows[LastLayerLaw]:
        if ids is None:
            return OneTheta(self, key)
        return LastLayerRows(noise.normal(key, (ids.shape[0], law.head.mean.shape[0])))

    def refit(self, phi: Phi, data: Data) -> Phi:
        """Compute the posterior of the last layer from the replay buffer, every `period` steps."""
        return refitted(phi, data, self.period, self._regression)

    def validate(self, spec: Spec) -> None:
        check_conjugate(self, spec)
        check_layers(self, spec, "of which the last one is linear")

    def _regression(self, phi: Phi, data: Data) -> Head:
        """Return the posterior of the last layer given the whole replay buffer."""
        deviation = jnp.sqrt(data.scale)
        actions = jnp.arange(phi.fitted.mean.shape[0])

        def block(i: Array) -> tuple[Array, Array]:
            transitions, stored = replay.block(data.replay, i, BLOCK, data.gamma, data.reward)
            inputs, action = data.pairs(phi.priors, transitions)
            of_action = (action[None, :] == actions[:, None]) & stored[None, :]
            a = jnp.where(of_action[:, :, None], hidden(phi.learned, inputs.features), 0.0)
            b = jnp.where(of_action, data.target(transitions, data.key, i), 0.0)
            return a / deviation, b / deviation

        blocks = (replay.stored(data.replay) + BLOCK - 1) // BLOCK
        return regression(block, blocks, self.prior**2, phi.fitted)


BLOCK = 1024
"""Number of transitions that the regression processes at a time."""
PASSES = 2
"""Maximum number of refinement passes."""


def regression(
    block: Callable[[Array], tuple[Array, Array]],
    blocks: int | Array,
    prior: float | Array,
    like: Head,
) -> Head:
    """Return the posterior of w given b ~ N(a·w, 1), with prior w ~ N(0, prior·I), per action.

    The precision is P = aᵀa + I/prior, the mean P⁻¹·aᵀb, and the root satisfies R·Rᵀ = P⁻¹.
    QR decompositions give an upper triangular U with UᵀU = P without forming aᵀa: in float32, its
    rounding error could exceed I/prior by far. If U itself is ill-conditioned, a second pass
    decomposes a·R, whose columns are nearly orthonormal, and fits the residuals of b.

    **Arguments**
    - `block`: returns the i-th block of rows, a [actions, n, weights] and b [actions, n], in which
      the rows of all other actions are 0.
    - `blocks`: the number of blocks.
    - `prior`: the prior variance of a weight.
    - `like`: an example of the result, for its shape.
    """
    deviation = jnp.sqrt(prior)
    identity = jnp.broadcast_to(jnp.eye(like.root.shape[1]), like.root.shape)

    def improved(carry: tuple) -> tuple:
        passes, (mean, root), _ = carry

        def add(i: Array, triangle: Array) -> Array:
            a, b = block(i)
            residual = b - jnp.einsum("anw,aw->an", a, mean)
            rows = jnp.concatenate([a @ root, residual[:, :, None]], axis=2)
            return _triangle(triangle, rows)

        before = jnp.concatenate([root, -mean[:, :, None]], axis=2) / deviation
        triangle = _triangle(jnp.zeros_like(before[:, :1]), before)
        triangle = lax.fori_loop(0, blocks, add, triangle)
        upper, moment = triangle[:, :-1, :-1], triangle[:, :-1, -1:]
        root = root @ jax.scipy.linalg.solve_triangular(upper, identity)
        mean += (root @ moment)[:, :, 0]
        sizes = jnp.abs(jnp.diagonal(upper, axis1=1, axis2=2))
        inaccurate = jnp.any(sizes < SAFE * jnp.max(sizes, axis=1, keepdims=True))
        return passes + 1, Head(mean, root), inaccurate

    start = 0, Head(jnp.zeros_like(like.mean), identity), jnp.ones((), bool)
    _, (mean, root), _ = lax.while_loop(lambda c: c[2] & (c[0] < PASSES), improved, start)
    # Of all roots, choose the one with a positive diagonal. It is unique, so that roots can be
    # averaged (for target networks that move gradually) and samples compared.
    signs = jnp.where(jnp.diagonal(root, axis1=1, axis2=2) < 0, -1.0, 1.0)
    return Head(mean, root * signs[:, None, :])


SAFE = 1e-4
"""Minimum ratio of the smallest to the largest entry on the diagonal of an accurate triangle."""


def _triangle(*rows: Float[Array, "actions _ columns"]) -> Float[Array, "actions columns columns"]:
    """Return the R factors of the QR decompositions of the concatenated rows.

    Actions are processed one at a time: a batch of decompositions waits for threads of XLA's pool,
    and seeds that run in parallel would wait for each other forever.
    """
    return lax.map(partial(jnp.linalg.qr, mode="r"), jnp.concatenate(rows, axis=1))


def hidden(body: Theta, x: Features) -> Float[Array, "*n weights"]:
    """Return the last hidden layer, with a 1 appended for the bias."""
    h = jnp.asarray(networks.trunk(body, x))
    return jnp.concatenate([h, jnp.ones((*h.shape[:-1], 1))], axis=-1)


def check_conjugate(posterior: Posterior[Any, Any], spec: Spec) -> None:
    """Raise `ConfigError` unless the return is Gaussian with a known variance above 0.

    Otherwise, the posterior has no closed form.
    """
    name = type(posterior).__name__
    if not spec.exact:
        reason = f"{name} requires a Gaussian return with fixed σ: Gaussian × {name} works"
        raise ConfigError("posterior", name, reason, reason)
    if float(spec.scale) <= 0.0:
        raise ConfigError.must_be("sigma", 0.0, f"above 0 for {name}")
