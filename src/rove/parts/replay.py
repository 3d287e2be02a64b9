"""The replay buffer B: a ring of transitions that lives inside the compiled program."""

from itertools import accumulate
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.parts import noise
from rove.parts.noise import Key


class Transition(NamedTuple):
    """(s, a, r, s′) and whether s′ is terminal. A time limit is not: its s′ is bootstrapped."""

    observation: Float[Array, "*n features"]
    action: Int[Array, "*n"] | Float[Array, "*n k"]
    """An action's number, or its vector. What comes out of the buffer is always a vector: the
    number of a discrete action is the only entry of its own."""
    reward: Float[Array, "*n"]
    next_observation: Float[Array, "*n features"]
    terminated: Bool[Array, "*n"]
    priors: Float[Array, "*n cached"] | None = None
    """Cached values of the prior functions at s (see `posteriors.priors.cache`); of width 0 where
    none are kept."""
    next_priors: Float[Array, "*n cached"] | None = None
    """The same at s′."""

    @property
    def number(self) -> Int[Array, "*n"]:
        """The numbers of discrete actions that came out of the buffer."""
        return self.action[..., 0].astype(jnp.int32)


class Layout(eqx.Module):
    """How a row is divided: s | s′ | a | r | terminated | values of the prior functions at s | at
    s′."""

    features: int = eqx.field(static=True)
    """Size of an observation."""
    actions: int = eqx.field(default=1, static=True)
    """Size of an action's vector; 1 for discrete actions."""
    cached: int = eqx.field(default=0, static=True)
    """How many values of prior functions are kept with an observation."""

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of each part."""
        return (self.features, self.features, self.actions, 1, 1, self.cached, self.cached)


class Replay(NamedTuple):
    """The buffer. A transition is one row: one write per step, and one gather per minibatch."""

    rows: Float[Array, "capacity width"]
    added: Int[Array, ""]
    """Number of transitions that were ever added."""
    layout: Layout


def init(capacity: int, features: int, actions: int = 1, cached: int = 0) -> Replay:
    """An empty buffer."""
    layout = Layout(features, actions, cached)
    rows = jnp.zeros((capacity, sum(layout.widths)))
    return Replay(rows, jnp.zeros((), jnp.int32), layout)


def add(replay: Replay, transition: Transition, where: bool | Array = True) -> Replay:
    """Store one transition in place of the oldest.

    Where not `where`, the rows stay as they are, and the caller restores `added`. (Seeds that run
    in lockstep would otherwise have to choose between two whole buffers.)
    """
    s, a, r, s_next, terminated, *cached = transition
    action, outcome = jnp.atleast_1d(a).astype(jnp.float32), jnp.stack([r, terminated])
    kept = [x for x in cached if x is not None]
    row = jnp.concatenate([s, s_next, action, outcome, *kept])
    slot = replay.added % replay.rows.shape[0]
    if where is not True:
        row = jnp.where(where, row, replay.rows[slot])
    rows = lax.dynamic_update_index_in_dim(replay.rows, row, slot, 0)
    return replay._replace(rows=rows, added=replay.added + 1)


def sample(replay: Replay, key: Key, batch_size: int) -> tuple[Transition, Int[Array, " n"]]:
    """A minibatch D, uniform with replacement over what is stored, and each transition's
    number, which counts from 0 over all that were ever added."""
    slots = noise.integers(key, (batch_size,), stored(replay))
    return _transitions(replay, slots), _numbers(replay, slots)


def last(replay: Replay) -> Transition:
    """The transition that was added last."""
    slot = (replay.added - 1) % replay.rows.shape[0]
    return jax.tree.map(lambda column: column[0], _transitions(replay, slot[None]))


def stored(replay: Replay) -> Int[Array, ""]:
    """How many transitions it holds."""
    return jnp.minimum(replay.added, replay.rows.shape[0])


def block(replay: Replay, i: int | Array, size: int) -> tuple[Transition, Bool[Array, " size"]]:
    """The i-th `size` slots, and which of them hold a transition."""
    slots = i * size + jnp.arange(size)
    return _transitions(replay, slots), slots < stored(replay)


def everything(replay: Replay) -> tuple[Transition, Bool[Array, " capacity"]]:
    """All slots, and which of them hold a transition."""
    return block(replay, 0, replay.rows.shape[0])


def _transitions(replay: Replay, slots: Int[Array, " n"]) -> Transition:
    ends = list(accumulate(replay.layout.widths[:-1]))
    columns = jnp.split(replay.rows[slots], ends, axis=1)
    s, s_next, a, r, terminated, priors, next_priors = columns
    return Transition(s, a, r[:, 0], s_next, terminated[:, 0] > 0.5, priors, next_priors)


def _numbers(replay: Replay, slots: Int[Array, " n"]) -> Int[Array, " n"]:
    last = replay.added - 1
    return last - (last - slots) % replay.rows.shape[0]
