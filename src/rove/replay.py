"""The replay buffer B: a ring of transitions that lives inside the compiled program."""

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
    """A number, or a vector where actions are continuous; the buffer stores numbers."""
    reward: Float[Array, "*n"]
    next_observation: Float[Array, "*n features"]
    terminated: Bool[Array, "*n"]


class Replay(NamedTuple):
    """A transition is one row, s | s′ | a | r | terminated: one write, and one gather a batch."""

    rows: Float[Array, "capacity width"]
    added: Int[Array, ""]


def init(capacity: int, features: int) -> Replay:
    return Replay(jnp.zeros((capacity, 2 * features + 3)), jnp.zeros((), jnp.int32))


def add(replay: Replay, transition: Transition, where: bool | Array = True) -> Replay:
    """Store one transition over the oldest; where not `where`, leave the rows as they are (a
    batch of lanes in lockstep would otherwise have to choose between two whole buffers; the
    caller restores `added`)."""
    s, a, r, s_next, terminated = transition
    row = jnp.concatenate([s, s_next, jnp.stack([a.astype(jnp.float32), r, terminated])])
    slot = replay.added % replay.rows.shape[0]
    if where is not True:
        row = jnp.where(where, row, replay.rows[slot])
    rows = lax.dynamic_update_index_in_dim(replay.rows, row, slot, 0)
    return Replay(rows, replay.added + 1)


def sample(replay: Replay, key: Key, batch_size: int) -> tuple[Transition, Int[Array, " n"]]:
    """A minibatch D, uniform with replacement over what is stored, and each transition's
    number, which counts from 0 over all that were ever added."""
    slots = noise.integers(key, (batch_size,), stored(replay))
    return _transitions(replay.rows[slots]), _numbers(replay, slots)


def last(replay: Replay) -> Transition:
    """The transition that was added last."""
    row = replay.rows[(replay.added - 1) % replay.rows.shape[0]]
    return Transition(*(column[0] for column in _transitions(row[None])))


def stored(replay: Replay) -> Int[Array, ""]:
    """How many transitions it holds."""
    return jnp.minimum(replay.added, replay.rows.shape[0])


def block(replay: Replay, i: int | Array, size: int) -> tuple[Transition, Bool[Array, " size"]]:
    """The i-th `size` slots, and which of them hold a transition."""
    slots = i * size + jnp.arange(size)
    return _transitions(replay.rows[slots]), slots < stored(replay)


def everything(replay: Replay) -> tuple[Transition, Bool[Array, " capacity"]]:
    """All slots, and which of them hold a transition."""
    return block(replay, 0, replay.rows.shape[0])


def _transitions(rows: Float[Array, "n width"]) -> Transition:
    features = (rows.shape[1] - 3) // 2
    s, s_next, a, r, terminated = jnp.split(
        rows, (features, 2 * features, 2 * features + 1, 2 * features + 2), axis=1
    )
    return Transition(s, a[:, 0].astype(jnp.int32), r[:, 0], s_next, terminated[:, 0] > 0.5)


def _numbers(replay: Replay, slots: Int[Array, " n"]) -> Int[Array, " n"]:
    last = replay.added - 1
    return last - (last - slots) % replay.rows.shape[0]
