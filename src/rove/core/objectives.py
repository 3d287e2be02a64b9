"""Variants of objective (4): how the loss is averaged over θ, and how its gradient is
estimated."""

from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Int

from rove.parts.replay import Transition
from rove.posteriors.base import Phi
from rove.posteriors.several import Thetas
from rove.returns.base import Return

Gradient: TypeAlias = Literal["reparameterised", "score"]
"""Estimators of the gradient: through the samples of θ, or by their scores ∇ log q_φ(θ)."""


def alpha_loss(
    losses: Float[Array, "draws n"],
    weights: Float[Array, "#draws #n"],
    alpha: float | Array,
    unit: float | Array,
) -> Float[Array, " n"]:
    """Return −(c/α)·log of the mean over θ of exp(−(α/c)·loss), for each row.

    c is `unit`, so that loss/c is −log Z_θ(x). At α = 1 this is −c times the logarithm of the
    marginal likelihood of x; as α → 0 it tends to the mean of the loss, as in (4). A row is
    weighted by the mean of its weights.
    """
    weights = jnp.broadcast_to(weights, losses.shape)
    total = jnp.sum(weights, axis=0)
    safe = jnp.where(total > 0.0, weights, 1.0)
    exponent = jax.nn.logsumexp(-alpha / unit * losses, axis=0, b=safe)
    rows = -unit / alpha * (exponent - jnp.log(jnp.sum(safe, axis=0)))
    return total / losses.shape[0] * rows


def importance_weights(batch: Transition, exponent: float | Array) -> float | Float[Array, " n"]:
    """Return 1/P(j)^β of every row, divided by their mean, where P(j) is the probability with which
    it was sampled; 1 if all were sampled uniformly.

    Since their mean is 1, they do not change the balance between the loss and the entropy.
    """
    if batch.priority is None:
        return 1.0
    weights = (batch.priority / jnp.min(batch.priority)) ** -exponent
    return weights / jnp.mean(weights)


class Scores(NamedTuple):
    """Per sample of θ: the terms of the score estimator, and its control variate."""

    terms: Any
    """f = ∇ log q_φ(θ)·loss, in the structure of `Phi.learned`."""
    controls: Any
    """h = ∇ log q_φ(θ), whose mean is 0."""


def scores(
    theta: Thetas,
    phi: Phi,
    losses: Float[Array, "draws n"],
    action: Int[Array, " n"] | None,
    per_action: int,
) -> Scores:
    """Return the terms of the score-function estimator (Ranganath et al. 2014).

    Rao–Blackwellisation: the score of parameters that only one output depends on is multiplied by
    the losses of the rows whose action has this output. The losses of the other rows do not depend
    on these parameters and would only add noise. (The entropy is not part of the terms: it is known
    in closed form.)

    **Arguments**
    - `theta`: samples of θ, each for all rows.
    - `losses`: the loss of each row, divided by the number of rows.
    - `action`: the action of each row; None: no Rao–Blackwellisation.
    - `per_action`: the number of outputs of an action.
    """
    phi, losses = lax.stop_gradient((phi, losses))
    posterior = theta.posterior

    def of_sample(draw: Any, losses: Float[Array, " n"]) -> tuple[Any, Any]:
        def logs(learned: Any) -> tuple[Array, Array]:
            return posterior.log_density(posterior.law(phi._replace(learned=learned)), draw)

        (shared_log, output_logs), pull_back = jax.vjp(logs, phi.learned)
        total = jnp.sum(losses)
        by_output = jnp.broadcast_to(total, output_logs.shape)
        if action is not None:
            action_of_output = jnp.arange(output_logs.size) // per_action
            by_output = losses @ (action.reshape(-1)[:, None] == action_of_output)
        ones = jnp.ones_like(shared_log), jnp.ones_like(output_logs)
        return pull_back((total, by_output))[0], pull_back(ones)[0]

    return Scores(*jax.vmap(of_sample)(theta.samples(posterior.law(phi)), losses))


def controlled(estimates: Scores, control: bool = True) -> Any:
    """Return the mean of f − a·h over the samples, for each parameter.

    The factor a = Cov(f, h)/Var(h) minimises the variance. For each sample it is estimated from the
    others, which keeps the estimate of the gradient unbiased. With one sample, a is 0.
    """

    def mean(f: Float[Array, "draws ..."], h: Float[Array, "draws ..."]) -> Array:
        if control:
            products, squares = f * h, h**2
            others = jnp.sum(squares, axis=0) - squares
            a = (jnp.sum(products, axis=0) - products) / jnp.where(others > 0.0, others, 1.0)
            f = f - jnp.where(others > 0.0, a, 0.0) * h
        return jnp.mean(f, axis=0)

    return jax.tree.map(mean, *estimates)


def with_scores(
    value: Float[Array, ""],
    theta: Thetas,
    phi: Phi,
    losses: Float[Array, "draws n"],
    action: Int[Array, " n"],
    per_action: int,
) -> Float[Array, ""]:
    """Return the value, with the score estimate added to its gradient with respect to φ.

    The other arguments are those of `scores`.
    """
    gradient = controlled(scores(theta, phi, losses, action, per_action))
    for x, g in zip(jax.tree.leaves(phi.learned), jax.tree.leaves(gradient), strict=True):
        value += jnp.sum(lax.stop_gradient(g) * (x - lax.stop_gradient(x)))
    return value


def mean_errors(
    returns: Return,
    weights: Float[Array, "#draws #n"],
    z: Float[Array, "draws n outputs"],
    x: Array,
) -> Float[Array, " n"]:
    """Return the weighted mean of `Return.error` over the samples of θ, for each row; NaN if all of
    its weights are 0."""
    error = jax.vmap(jax.vmap(returns.error))(z, x)
    weights = jnp.broadcast_to(weights, error.shape)
    return jnp.sum(weights * error, axis=0) / jnp.sum(weights, axis=0)
