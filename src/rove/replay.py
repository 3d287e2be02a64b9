"""The replay buffer B: a ring of transitions that lives inside the compiled program."""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise
from rove.noise import Key


class Transition(NamedTuple):
    """(s, a, r, s′) and whether s′ is terminal. A time limit is not: its s′ is bootstrapped."""

    observation: Float[Array, "*n features"]
    action: Int[Array, "*n"] | Float[Array, "*n k"]
    """A number, or a vector where actions are continuous."""
    reward: Float[Array, "*n"]
    next_observation: Float[Array, "*n features"]
    terminated: Bool[Array, "*n"]


class Replay(NamedTuple):
    """A transition is one row, s | s′ | a | r | terminated: one write, and one gather a batch."""

    rows: Float[Array, "capacity width"]
    added: Int[Array, ""]


def nbytes(capacity: int, features: int, action: tuple[int, ...] = ()) -> int:
    """Memory of a buffer, known before it is allocated; `action` is the shape of one."""
    return 4 * capacity * _width(features, action)


def init(capacity: int, features: int, action: tuple[int, ...] = ()) -> Replay:
    rows = jnp.zeros((capacity, _width(features, action)))
    return Replay(rows, jnp.zeros((), jnp.int32))


def _width(features: int, action: tuple[int, ...]) -> int:
    return 2 * features + math.prod(action) + 2


def add(replay: Replay, transition: Transition, where: bool | Array = True) -> Replay:
    """Store one transition over the oldest; where not `where`, leave the rows as they are (a
    batch of lanes in lockstep would otherwise have to choose between two whole buffers; the
    caller restores `added`)."""
    s, a, r, s_next, terminated = transition
    row = jnp.concatenate([s, s_next, jnp.ravel(a), jnp.stack([r, terminated])])
    slot = replay.added % replay.rows.shape[0]
    if where is not True:
        row = jnp.where(where, row, replay.rows[slot])
    rows = lax.dynamic_update_index_in_dim(replay.rows, row, slot, 0)
    return Replay(rows, replay.added + 1)


def sample(
    replay: Replay, key: Key, batch_size: int, action: tuple[int, ...] = ()
) -> tuple[Transition, Int[Array, " n"]]:
    """A minibatch D, uniform with replacement over what is stored, and each transition's
    number, which counts from 0 over all that were ever added."""
    stored = jnp.minimum(replay.added, replay.rows.shape[0])
    slots = noise.integers(key, (batch_size,), stored)
    return _transitions(replay.rows[slots], action), _numbers(replay, slots)


def last(replay: Replay, action: tuple[int, ...] = ()) -> Transition:
    """The transition that was added last."""
    row = replay.rows[(replay.added - 1) % replay.rows.shape[0]]
    return Transition(*(column[0] for column in _transitions(row[None], action)))


def everything(
    replay: Replay, action: tuple[int, ...] = ()
) -> tuple[Transition, Bool[Array, " capacity"]]:
    """All slots, and which of them hold a transition."""
    held = jnp.arange(replay.rows.shape[0]) < replay.added
    return _transitions(replay.rows, action), held


def _transitions(rows: Float[Array, "n width"], action: tuple[int, ...]) -> Transition:
    """Rows taken apart. An action without a shape is a whole number."""
    features = (rows.shape[1] - math.prod(action) - 2) // 2
    s, s_next, a, rest = jnp.split(rows, (features, 2 * features, rows.shape[1] - 2), axis=1)
    a = a.reshape(-1, *action) if action else a[:, 0].astype(jnp.int32)
    return Transition(s, a, rest[:, 0], s_next, rest[:, 1] > 0.5)


def _numbers(replay: Replay, slots: Int[Array, " n"]) -> Int[Array, " n"]:
    last = replay.added - 1
    return last - (last - slots) % replay.rows.shape[0]
