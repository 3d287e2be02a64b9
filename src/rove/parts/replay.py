"""The replay buffer B: a ring buffer of transitions that is part of the compiled program."""

from itertools import accumulate
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import VECTORS, Form, Observation, from_columns, to_columns, width


class Transition(NamedTuple):
    """(s, a, r, s′), and whether s′ is terminal. Time limits do not terminate an episode."""

    observation: Observation
    action: Int[Array, "*n"] | Float[Array, "*n k"]
    """The index of a discrete action, or a continuous action. Actions from the buffer are always
    vectors; that of a discrete action has its index as the only entry."""
    reward: Float[Array, "*n"]
    next_observation: Observation
    terminated: Bool[Array, "*n"]
    priors: Float[Array, "*n cached"] | None = None
    """Cached values of the prior functions at s (see `posteriors.priors.cache`); of width 0 if none
    are cached."""
    next_priors: Float[Array, "*n cached"] | None = None
    """Cached values of the prior functions at s′."""

    @property
    def action_index(self) -> Int[Array, "*n"]:
        """The indices of discrete actions from the buffer."""
        return self.action[..., 0].astype(jnp.int32)


class Layout(eqx.Module):
    """The layout of a row: s, s′, a, r, terminated, and the cached prior values at s and s′."""

    features: int = eqx.field(static=True)
    """Size of an observation."""
    actions: int = eqx.field(default=1, static=True)
    """Size of an action's vector; 1 for discrete actions."""
    cached: int = eqx.field(default=0, static=True)
    """Number of cached values of the prior functions per observation."""
    form: Form = eqx.field(default=VECTORS, static=True)
    """The form of observations. Of a code, only the index is stored."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Number of columns of each part."""
        observation = width(self.features, self.form)
        return (observation, observation, self.actions, 1, 1, self.cached, self.cached)

    def observation(self, columns: Float[Array, "n width"]) -> Observation:
        """Return observations from their columns."""
        return from_columns(columns, self.features, self.form)


class Replay(NamedTuple):
    """A replay buffer, with one row per transition.

    A step writes one row, and a minibatch is a single gather.
    """

    rows: Float[Array, "capacity width"]
    added: Int[Array, ""]
    """Number of transitions added so far, including those that have been overwritten."""
    layout: Layout


def init(
    capacity: int, features: int, actions: int = 1, cached: int = 0, form: Form = VECTORS
) -> Replay:
    """Return an empty buffer. See `Layout` for the arguments."""
    layout = Layout(features, actions, cached, form)
    rows = jnp.zeros((capacity, sum(layout.widths)))
    return Replay(rows, jnp.zeros((), jnp.int32), layout)


def add(replay: Replay, transition: Transition, where: bool | Array = True) -> Replay:
    """Add a transition, overwriting the oldest one if the buffer is full.

    If `where` is False, the rows are unchanged, and the caller has to restore `added`. (Seeds that
    run in lockstep would otherwise have to select between two copies of the whole buffer.)
    """
    s, a, r, s_next, terminated, *cached = transition
    action, outcome = jnp.atleast_1d(a).astype(jnp.float32), jnp.stack([r, terminated])
    states = to_columns(s), to_columns(s_next)
    row = jnp.concatenate([*states, action, outcome, *(x for x in cached if x is not None)])
    slot = replay.added % replay.rows.shape[0]
    if where is not True:
        row = jnp.where(where, row, replay.rows[slot])
    rows = lax.dynamic_update_index_in_dim(replay.rows, row, slot, 0)
    return replay._replace(rows=rows, added=replay.added + 1)


def sample(replay: Replay, key: Key, batch_size: int) -> tuple[Transition, Int[Array, " n"]]:
    """Sample a minibatch D uniformly, with replacement.

    Also returns each transition's number, in the order in which transitions were added, from 0.
    """
    slots = noise.integers(key, (batch_size,), stored(replay))
    return _transitions(replay, slots), _numbers(replay, slots)


def last(replay: Replay) -> Transition:
    """Return the transition that was added last."""
    slot = (replay.added - 1) % replay.rows.shape[0]
    return jax.tree.map(lambda column: column[0], _transitions(replay, slot[None]))


def stored(replay: Replay) -> Int[Array, ""]:
    """Return the number of transitions in the buffer."""
    return jnp.minimum(replay.added, replay.rows.shape[0])


def block(replay: Replay, i: int | Array, size: int) -> tuple[Transition, Bool[Array, " size"]]:
    """Return the i-th block of `size` slots, and which of them contain a transition."""
    slots = i * size + jnp.arange(size)
    return _transitions(replay, slots), slots < stored(replay)


def everything(replay: Replay) -> tuple[Transition, Bool[Array, " capacity"]]:
    """Return all slots, and which of them contain a transition."""
    return block(replay, 0, replay.rows.shape[0])


def _transitions(replay: Replay, slots: Int[Array, " n"]) -> Transition:
    """Return the transitions in the given slots."""
    ends = list(accumulate(replay.layout.widths[:-1]))
    columns = jnp.split(replay.rows[slots], ends, axis=1)
    s, s_next, a, r, terminated, priors, next_priors = columns
    s, s_next = replay.layout.observation(s), replay.layout.observation(s_next)
    return Transition(s, a, r[:, 0], s_next, terminated[:, 0] > 0.5, priors, next_priors)


def _numbers(replay: Replay, slots: Int[Array, " n"]) -> Int[Array, " n"]:
    """Return the numbers of the transitions in the given slots."""
    last = replay.added - 1
    return last - (last - slots) % replay.rows.shape[0]
