"""Priorities of the transitions in a replay buffer, in a sum tree (Schaul et al. 2016).

A node is the sum of its children, and the leaves are the priorities of the slots, so that drawing a
slot in proportion to its priority takes one step per level. The tree has eight children per node
rather than two: inside a compiled loop, the cost depends on the number of levels, which is 6
instead of 16 for 50,000 transitions.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.parts import noise
from rove.parts.noise import Key

BRANCHES = 8
"""Number of children of a node."""


class Priorities(NamedTuple):
    """A sum tree over the slots of a replay buffer."""

    levels: tuple[Float[Array, "_ branches"], ...]
    """The nodes of each level, from the leaves to the root's children. Entry (i, j) of a level is
    node 8i + j, which is the sum of row 8i + j of the level before."""
    largest: Float[Array, ""]
    """The largest priority so far, which new transitions have."""


def init(capacity: int) -> Priorities:
    """Return a tree in which no slot has a priority."""
    levels, nodes = [], capacity
    while not levels or nodes > 1:
        nodes = -(-nodes // BRANCHES)
        levels.append(jnp.zeros((nodes, BRANCHES)))
    return Priorities(tuple(levels), jnp.ones(()))


def add(priorities: Priorities, slot: Int[Array, ""]) -> Priorities:
    """Give a slot the largest priority so far, so that its new transition is drawn soon."""
    return assign(priorities, slot[None], priorities.largest[None])


def assign(
    priorities: Priorities, slots: Int[Array, " n"], values: Float[Array, " n"]
) -> Priorities:
    """Give slots new priorities. A slot that occurs more than once has the largest of its values.

    Sums are recomputed from the children, so that rounding errors do not accumulate.
    """
    at = slots // BRANCHES, slots % BRANCHES
    levels = [priorities.levels[0].at[at].set(0.0).at[at].max(values)]
    for level in priorities.levels[1:]:
        node = at[0]
        at = node // BRANCHES, node % BRANCHES
        levels.append(level.at[at].set(jnp.sum(levels[-1][node], axis=1)))
    return Priorities(tuple(levels), jnp.maximum(priorities.largest, jnp.max(values)))


def sample(
    priorities: Priorities, key: Key, count: int
) -> tuple[Int[Array, " count"], Float[Array, " count"]]:
    """Draw slots in proportion to their priorities, with replacement; also return the latter.

    The draws are independent of each other, not stratified: a posterior may use the first rows of a
    minibatch only. Every level uses its own random numbers, so that their resolution is the same
    for all slots.
    """
    node, value = jnp.zeros(count, jnp.int32), jnp.zeros(count)
    for depth, level in enumerate(reversed(priorities.levels)):
        children = level[node]
        child = _child(children, noise.uniform(noise.fold(key, depth), (count,)))
        # Taken from the rows above: reading the leaves again would make XLA copy them.
        value = jnp.take_along_axis(children, child[:, None], axis=1)[:, 0]
        node = BRANCHES * node + child
    return node, value


def _child(children: Float[Array, "n branches"], u: Float[Array, " n"]) -> Int[Array, " n"]:
    """Return the child in which the fraction u of the sum of all children lies.

    Sums are taken in order, so that they never decrease, and stay the same at a child of priority
    0, which is therefore never chosen.
    """
    sums = [children[:, 0]]
    for j in range(1, BRANCHES):
        sums.append(sums[-1] + children[:, j])
    whole = sums[-1]
    position = jnp.minimum(u * whole, jnp.nextafter(whole, jnp.zeros_like(whole)))
    return jnp.sum(jnp.stack(sums, axis=1) <= position[:, None], axis=1)
