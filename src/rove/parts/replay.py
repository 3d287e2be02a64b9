"""The replay buffer B: a ring buffer of transitions that is part of the compiled program."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int, UInt8

from rove.parts import masks, noise, priorities
from rove.parts.integers import Integers
from rove.parts.layout import Layout
from rove.parts.masks import allowed_actions, masked, unmasked
from rove.parts.noise import Key
from rove.parts.onehot import Observation, to_columns
from rove.parts.priorities import Priorities


class Transition(NamedTuple):
    """(s, a, r, s′), and whether s′ is terminal. Time limits do not terminate an episode.

    A transition from the buffer may consist of up to n steps (see `Layout.n_step`): its reward is
    then r₀ + γ·r₁ + … + γᵏ⁻¹·rₖ₋₁, and s′ is the state after the k-th step.
    """

    observation: Observation
    action: Int[Array, "*n"] | Float[Array, "*n k"]
    """The index of a discrete action, or a continuous action. Actions from the buffer are always
    vectors; that of a discrete action has its index as the only entry."""
    reward: Float[Array, "*n"]
    next_observation: Observation
    """s′; if actions are masked, with those that are allowed there."""
    terminated: Bool[Array, "*n"]
    priors: Float[Array, "*n cached"] | None = None
    """Cached values of the prior functions at s (see `posteriors.priors.cache`); of width 0 if none
    are cached."""
    next_priors: Float[Array, "*n cached"] | None = None
    """Cached values of the prior functions at s′."""
    truncated: Bool[Array, "*n"] | None = None
    """Whether the episode was cut off after s′, by a time limit for example; None counts as False.
    Returns of several steps do not continue into the next episode."""
    discount: Float[Array, "*n"] | None = None
    """γᵏ, the weight of the value of s′; None for a transition of one step, where it is γ."""
    cell: Int[Array, "*n"] | None = None
    """Index of the cell of s′, for intrinsic rewards that count visits; None for all others."""
    number: Int[Array, "*n"] | None = None
    """Number of the transition's first step, in the order in which steps were added, from 0; None
    before it is sampled."""
    priority: Float[Array, "*n"] | None = None
    """Priority with which the transition was sampled; None: uniformly."""

    @property
    def action_index(self) -> Int[Array, "*n"]:
        """The indices of discrete actions from the buffer."""
        return self.action[..., 0].astype(jnp.int32)


class Replay(NamedTuple):
    """A replay buffer, with one row per transition.

    A step writes one row, and a minibatch is a single gather.
    """

    rows: Float[Array, "capacity width"]
    added: Int[Array, ""]
    """Number of transitions added so far, including those that have been overwritten."""
    layout: Layout
    priorities: Priorities | None = None
    """Priorities of the slots; None: minibatches are sampled uniformly."""
    bytes: UInt8[Array, "capacity bytes"] | None = None
    """s and s′ of each row, if their entries are integers (see `Layout.integers`)."""


LEAST_ERROR = 1e-6
"""Added to errors, so that every transition can be sampled."""


Reward: TypeAlias = Callable[[Transition], Float[Array, " n"]]
"""Returns the rewards of single steps from the buffer, possibly with intrinsic rewards added."""


def init(
    capacity: int,
    features: int,
    actions: int = 1,
    cached: int = 0,
    coded: bool = False,
    n_step: int = 1,
    cells: bool = False,
    stride: int = 1,
    masked: int = 0,
    prioritised: bool = False,
    integers: Integers | None = None,
) -> Replay:
    """Return an empty buffer. See `Layout` for the arguments.

    `prioritised`: whether transitions have priorities, rather than being sampled uniformly.
    """
    layout = Layout(features, actions, cached, coded, n_step, cells, stride, masked, integers)
    rows = jnp.zeros((capacity, sum(layout.widths)))
    tree = priorities.init(capacity) if prioritised else None
    stored = jnp.zeros((capacity, layout.bytes), jnp.uint8) if integers else None
    return Replay(rows, jnp.zeros((), jnp.int32), layout, tree, stored)


def add(replay: Replay, transition: Transition, where: bool | Array = True) -> Replay:
    """Add a transition, overwriting the oldest one if the buffer is full.

    If `where` is False, the rows are unchanged, and the caller has to restore the rest. (Seeds that
    run in lockstep would otherwise have to select between two copies of the whole buffer.)
    """
    s, a, r, s_next, terminated, *cached = transition[:7]
    cached = [x for x in cached if x is not None]
    if replay.layout.cells:
        cached.append(jnp.atleast_1d(jnp.asarray(transition.cell, jnp.float32)))
    truncated = transition.truncated
    end = terminated if truncated is None else jnp.where(terminated, 1.0, -1.0 * truncated)
    action, outcome = jnp.atleast_1d(a).astype(jnp.float32), jnp.stack([r, end])
    mask, integers = masks.to_columns(allowed_actions(s_next)), replay.layout.integers
    convert = to_columns if integers is None else integers.to_bytes
    states = [convert(unmasked(x)) for x in (s, s_next)]
    columns = [action, outcome, *cached, mask]
    slot = replay.added % replay.rows.shape[0]

    def written(array: Array, parts: list[Array]) -> Array:
        row = jnp.concatenate(parts)
        row = row if where is True else jnp.where(where, row, array[slot])
        return lax.dynamic_update_index_in_dim(array, row, slot, 0)

    if replay.bytes is None:
        replay = replay._replace(rows=written(replay.rows, [*states, *columns]))
    else:
        rows, stored = written(replay.rows, columns), written(replay.bytes, states)
        replay = replay._replace(rows=rows, bytes=stored)
    tree = None if replay.priorities is None else priorities.add(replay.priorities, slot)
    return replay._replace(added=replay.added + 1, priorities=tree)


def stored_reward(steps: Transition) -> Float[Array, " n"]:
    """Return the rewards that the environment gave."""
    return steps.reward


def sample(
    replay: Replay,
    key: Key,
    batch_size: int,
    gamma: float | Array,
    reward: Reward = stored_reward,
    one_step: float | Array = 0.0,
) -> Transition:
    """Sample a minibatch D of transitions of up to `n_step` steps, with replacement: uniformly or,
    if they have priorities, in proportion to these.

    **Arguments**
    - `gamma`: the discount factor γ of the rewards.
    - `reward`: returns the rewards of single steps.
    - `one_step`: the probability with which a transition has one step, whatever `n_step` is.
    """
    single = None
    if replay.layout.n_step > 1:
        k_single, key = noise.fold(key, 0), noise.fold(key, 1)
        single = noise.uniform(k_single, (batch_size,)) < one_step
    if replay.priorities is None:
        slots, values = noise.integers(key, (batch_size,), stored(replay)), None
    else:
        slots, values = priorities.sample(replay.priorities, key, batch_size)
    batch = _transitions(replay, slots, gamma, reward, single)
    return batch._replace(number=_numbers(replay, slots), priority=values)


def reprioritised(
    replay: Replay, batch: Transition, errors: Float[Array, " n"], alpha: float | Array | None
) -> Replay:
    """Return the buffer with new priorities (error + 1e-6)^α of the transitions of a minibatch.

    Where an error is not finite, the priority stays the same. A buffer without priorities is
    returned as it is.
    """
    before = batch.priority
    if replay.priorities is None or batch.number is None or before is None or alpha is None:
        return replay
    slots = batch.number % replay.rows.shape[0]
    values = jnp.where(jnp.isfinite(errors), (errors + LEAST_ERROR) ** alpha, before)
    return replay._replace(priorities=priorities.assign(replay.priorities, slots, values))


def steps_at(replay: Replay, numbers: Int[Array, " n"]) -> Transition:
    """Return the single steps with the given numbers, which must be in the buffer."""
    return _steps(replay, numbers % replay.rows.shape[0])


def last(replay: Replay) -> Transition:
    """Return the step that was added last."""
    slot = (replay.added - 1) % replay.rows.shape[0]
    return jax.tree.map(lambda column: column[0], _steps(replay, slot[None]))


def with_rows(replay: Replay, source: Replay | None = None) -> Replay:
    """Return the buffer with the rows of another, or without rows if there is none."""
    rows: Any = None if source is None else source.rows
    stored = None if source is None else source.bytes
    return replay._replace(rows=rows, bytes=stored)


def stored(replay: Replay) -> Int[Array, ""]:
    """Return the number of transitions in the buffer."""
    return jnp.minimum(replay.added, replay.rows.shape[0])


def block(
    replay: Replay,
    i: int | Array,
    size: int,
    gamma: float | Array,
    reward: Reward = stored_reward,
) -> tuple[Transition, Bool[Array, " size"]]:
    """Return the transitions that begin in the i-th block of `size` slots, and which of the slots
    contain one. `gamma` and `reward` are those of `sample`."""
    slots = i * size + jnp.arange(size)
    return _transitions(replay, slots, gamma, reward), slots < stored(replay)


def everything(
    replay: Replay, gamma: float | Array, reward: Reward = stored_reward
) -> tuple[Transition, Bool[Array, " capacity"]]:
    """Return the transitions that begin in each slot, and which of the slots contain one."""
    return block(replay, 0, replay.rows.shape[0], gamma, reward)


def _transitions(
    replay: Replay,
    slots: Int[Array, " n"],
    gamma: float | Array,
    reward: Reward,
    single: Bool[Array, " n"] | None = None,
) -> Transition:
    """Return the transitions of up to n steps that begin in the given slots.

    A transition has fewer steps if the episode ends before, or if the newest step is reached, and
    one if it is `single`.
    """
    layout, capacity = replay.layout, replay.rows.shape[0]
    first = _steps(replay, slots)
    if layout.n_step == 1:
        return first._replace(reward=reward(first))
    ahead = layout.stride * jnp.arange(layout.n_step)
    window = (slots[:, None] + ahead) % capacity
    rewards = reward(_steps(replay, window.reshape(-1))).reshape(window.shape)
    end = replay.rows[window, sum(layout.widths[:4])]
    # A step belongs to the transition if it was added, and if no step before it ended the episode.
    follows = (_numbers(replay, slots)[:, None] + ahead[1:] < replay.added) & (end[:, :-1] == 0.0)
    if single is not None:
        follows &= ~single[:, None]
    used = jnp.cumprod(follows, axis=1)
    k = 1 + jnp.sum(used, axis=1)
    last = _steps(replay, jnp.take_along_axis(window, k[:, None] - 1, axis=1)[:, 0])
    weights = jnp.asarray(gamma, jnp.float32) ** jnp.arange(layout.n_step + 1)
    return first._replace(
        reward=rewards[:, 0] + jnp.sum(used * weights[1:-1] * rewards[:, 1:], axis=1),
        next_observation=last.next_observation,
        terminated=last.terminated,
        next_priors=last.next_priors,
        truncated=last.truncated,
        discount=weights[k],
    )


def _steps(replay: Replay, slots: Int[Array, " n"]) -> Transition:
    """Return the single steps in the given slots."""
    ends = list(accumulate(replay.layout.widths[:-1]))
    columns = jnp.split(replay.rows[slots], ends, axis=1)
    s, s_next, a, r, end, priors, next_priors, cell, mask = columns
    if replay.bytes is not None:
        s, s_next = jnp.split(replay.bytes[slots], 2, axis=1)
    s, s_next = replay.layout.observation(s), replay.layout.observation(s_next)
    s_next = masked(s_next, masks.from_columns(mask, replay.layout.masked))
    terminated, truncated = end[:, 0] > 0.5, end[:, 0] < -0.5
    steps = Transition(s, a, r[:, 0], s_next, terminated, priors, next_priors, truncated)
    return steps._replace(cell=cell[:, 0].astype(jnp.int32) if replay.layout.cells else None)


def _numbers(replay: Replay, slots: Int[Array, " n"]) -> Int[Array, " n"]:
    """Return the numbers of the transitions in the given slots."""
    last = replay.added - 1
    return last - (last - slots) % replay.rows.shape[0]
