"""Control: resampling θ, and choosing ε-greedy actions."""

from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.parts import noise
from rove.parts.masks import allowed_actions
from rove.parts.noise import Key
from rove.parts.onehot import Observation
from rove.posteriors.base import Phi, Posterior
from rove.posteriors.priors import Input

Resample: TypeAlias = Literal["step", "episode"] | int
"""When θ ~ q_φ is resampled: every step, every episode, or every N steps."""


def first_theta(posterior: Posterior[Any, Any], resample: Resample, law: Any, key: Key) -> Any:
    """Return the first θ; () if it is resampled every step.

    `law` is q_φ as returned by `Posterior.law`.
    """
    return () if resample == "step" else posterior.sample(law, key)


def next_theta(
    posterior: Posterior[Any, Any],
    resample: Resample,
    phi: Phi,
    theta: Any,
    counter: Int[Array, ""],
    begins: Bool[Array, ""],
    key: Key,
) -> Any:
    """Return θ for the next step, resampled if an episode begins or N steps have passed."""
    if resample == "step":
        return theta
    due = begins if isinstance(resample, str) else counter % resample == 0
    return lax.cond(due, lambda: posterior.sample(posterior.law(phi), key), lambda: theta)


def outputs(
    posterior: Posterior[Any, Any], resample: Resample, law: Any, theta: Any, x: Input, key: Key
) -> Float[Array, " outputs"]:
    """Return f_θ(x), with the given θ or, if θ is resampled every step, with a new one."""
    if resample == "step":
        row = jax.tree.map(lambda leaf: leaf[None], x)
        return posterior.sample_rows(law, None, key)(law, row)[0, 0]
    return posterior.apply(law, theta, x)


def epsilon_at(
    counter: Int[Array, ""], start: float | Array, end: float | Array, steps: int | Array
) -> Float[Array, ""]:
    """Return ε at a step: linear from `start` to `end` over `steps` steps, then `end`."""
    remaining = jnp.clip(1.0 - counter / jnp.maximum(steps, 1), 0.0, 1.0)
    remaining = jnp.where(steps > 0, remaining, 0.0)
    return end + remaining * (start - end)


def best_action(q: Float[Array, "*rows actions"], s: Observation) -> Int[Array, "*rows"]:
    """Return argmax_a Q(s, a) over the actions that are allowed in s."""
    allowed = allowed_actions(s)
    return jnp.argmax(q if allowed is None else jnp.where(allowed, q, -jnp.inf), axis=-1)


def random_action(s: Observation, actions: int, key: Key) -> Int[Array, ""]:
    """Return a uniformly random action of those that are allowed in s."""
    allowed = allowed_actions(s)
    if allowed is None:
        return noise.integers(key, (), actions)
    number = noise.integers(key, (), jnp.maximum(jnp.sum(allowed), 1))
    return jnp.argmax(jnp.cumsum(allowed) > number)


def epsilon_greedy(
    q: Float[Array, " actions"], s: Observation, epsilon: Float[Array, ""], key: Key
) -> Int[Array, ""]:
    """Return the best action in s or, with probability ε, a uniformly random one."""
    k_random, k_action = noise.fold(key, 0), noise.fold(key, 1)
    explores = noise.uniform(k_random) < epsilon
    return jnp.where(explores, random_action(s, q.shape[0], k_action), best_action(q, s))
