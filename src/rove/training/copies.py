"""Several copies of an environment in one lane, which take turns.

A round is one step of every copy. Copy i takes step K·t + i of the lane, where t is the number of
the round and K the number of copies, so that all numbers of steps and all random keys are those of
one sequence. Its transitions are every K-th of the replay buffer (`Layout.stride`). With one copy,
rounds are steps, and nothing is stacked.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Int, Shaped

from rove.core.learner import Learner
from rove.training.lane import Copy, Lane, act, copy_of, with_copy


def stacked(lane: Lane) -> Copy:
    """Return what a lane has for each copy of its environment, stacked along a first axis."""
    first = jax.tree.map(lambda x: jnp.asarray(x)[None], copy_of(lane))
    if not lane.others:
        return first
    return jax.tree.map(lambda x, xs: jnp.concatenate([x, xs]), first, lane.others)


def in_turn(step: Callable[[Lane, Any], Lane], lane: Lane, inputs: Any) -> Lane:
    """Take a step of every copy, one after the other; `inputs` are those of each, stacked."""
    if not lane.others:
        return step(lane, inputs)

    def turn(lane: Lane, of_copy: tuple[Copy, Any]) -> tuple[Lane, Copy]:
        copy, inputs = of_copy
        lane = step(with_copy(lane, copy), inputs)
        return lane, copy_of(lane)

    return _unstacked(*lax.scan(turn, lane._replace(others=()), (stacked(lane), inputs)))


def at_copy(change: Callable[[Lane], Lane], lane: Lane, i: Int[Array, ""]) -> Lane:
    """Apply a change to copy i alone, at the step that it took in the last round."""
    if not lane.others:
        return change(lane)
    copies = stacked(lane)
    since = copies.length.shape[0] - 1 - i
    chosen = with_copy(lane, jax.tree.map(lambda xs: xs[i], copies))
    lane = _later(change(_later(chosen._replace(others=()), -since)), since)
    copies = jax.tree.map(lambda xs, x: xs.at[i].set(x), copies, copy_of(lane))
    return _unstacked(lane, copies)


def act_all(agent: Learner, lane: Lane) -> Shaped[Array, "*copies_and_action"]:
    """Return the actions of the next round."""
    if not lane.others:
        return act(agent, lane)

    def act_at(i: Int[Array, ""], copy: Copy) -> Array:
        return act(agent, _later(with_copy(lane, copy), i))

    copies = stacked(lane)
    return jax.vmap(act_at)(jnp.arange(copies.length.shape[0]), copies)


def _unstacked(lane: Lane, copies: Copy) -> Lane:
    """Return a lane with the given copies; the inverse of `stacked`."""
    first, others = (jax.tree.map(lambda xs, at=at: xs[at], copies) for at in (0, slice(1, None)))
    return with_copy(lane, first)._replace(others=others)


def _later(lane: Lane, steps: Int[Array, ""]) -> Lane:
    """Return a lane at a later step."""
    agent = lane.agent._replace(counter=lane.agent.counter + steps)
    return lane._replace(step=lane.step + steps, agent=agent)
