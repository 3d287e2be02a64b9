"""Control: resampling θ, and choosing ε-greedy actions."""

from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.core.learner import AgentState
from rove.parts import noise
from rove.parts.masks import allowed_actions
from rove.parts.noise import Key
from rove.parts.onehot import Observation
from rove.posteriors.base import Posterior
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
    state: AgentState,
    begins: Bool[Array, ""],
    key: Key,
) -> Any:
    """Return θ for the next step. It is resampled at the start of an episode or, if `resample` is a
    number N, every N steps of the environment."""
    if resample == "step":
        return state.theta
    due = begins if resample == "episode" else state.own_steps % resample == 0
    return lax.cond(
        due, lambda: posterior.sample(posterior.law(state.phi), key), lambda: state.theta
    )


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


def action_of(number: Float[Array, ""], s: Observation, actions: int) -> Int[Array, ""]:
    """Map a number between 0 and 1 to one of the actions that are allowed in s."""
    allowed = allowed_actions(s)
    if allowed is None:
        return (number * actions).astype(jnp.int32)
    return jnp.argmax(jnp.cumsum(allowed) > jnp.floor(number * jnp.sum(allowed)))


class RandomAction(NamedTuple):
    """A random action that is repeated for several steps."""

    number: Float[Array, ""]
    """A number between 0 and 1 that determines the action."""
    left: Int[Array, ""]
    """Number of steps for which the action is still to be taken; 0 if the best action is taken."""
    repeats: Bool[Array, ""]
    """Whether random actions are repeated in this episode."""


class EpsilonGreedy(eqx.Module):
    """Random actions: with a probability ε that can decrease, for one step or for several."""

    random_actions: ClassVar[tuple[str, ...]] = ("epsilon", "epsilon_steps")
    epsilon: float | Array = 0.0
    """Probability ε of a uniformly random action, after the schedule has ended."""
    epsilon_start: float | Array = 1.0
    """Probability ε at step 0 if `epsilon_steps` is above 0; it decreases linearly to `epsilon`."""
    epsilon_steps: int | Array = 0
    """Number of steps over which ε decreases; 0: it is `epsilon` from the start."""
    repeat: int = eqx.field(default=1, static=True)
    """Maximum duration of a random action, in steps. In half of the episodes, chosen at random, a
    random action lasts N steps, with P(N ≥ n) = 1/n up to this maximum (Dabney et al. 2021); in the
    others it lasts one. 1: always one step."""

    def first_random(self) -> RandomAction | tuple[()]:
        """Return a state without a random action under way; () if random actions last one step."""
        if self.repeat == 1:
            return ()
        return RandomAction(jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.ones((), bool))

    def next_random(
        self, state: AgentState, begins: Bool[Array, ""], key: Key
    ) -> RandomAction | tuple[()]:
        """Return the random action of the next step, if there is one.

        A random action that is under way continues until its last step or the end of the episode.
        Otherwise, a new one begins with probability ε.
        """
        before = state.random
        if not before:
            return ()
        chance, number, u, coin = noise.uniform(key, (4,))
        repeats = jnp.where(begins, coin < 0.5, before.repeats)
        steps = jnp.where(repeats, jnp.minimum(1.0 / u, self.repeat), 1.0).astype(jnp.int32)
        under_way = (before.left > 1) & ~begins
        starts = chance < self.epsilon_at(state.counter)
        left = jnp.where(under_way, before.left - 1, jnp.where(starts, steps, 0))
        return RandomAction(jnp.where(under_way, before.number, number), left, repeats)

    def epsilon_greedy(
        self, q: Float[Array, " actions"], s: Observation, state: AgentState, key: Key
    ) -> Int[Array, ""]:
        """Return the best action in s, or a random one."""
        if not state.random:
            return epsilon_greedy(q, s, self.epsilon_at(state.counter), key)
        random = action_of(state.random.number, s, q.shape[0])
        return jnp.where(state.random.left > 0, random, best_action(q, s))

    def epsilon_at(self, step: Int[Array, ""]) -> Float[Array, ""]:
        """Return the probability ε at a step."""
        return epsilon_at(step, self.epsilon_start, self.epsilon, self.epsilon_steps)
