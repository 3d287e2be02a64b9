"""rove.parts.priorities: sums, draws and writes of the tree, against plain arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from rove.parts import noise, priorities
from rove.parts.priorities import BRANCHES, Priorities

assign = jax.jit(priorities.assign)
add = jax.jit(priorities.add)
sample = jax.jit(priorities.sample, static_argnums=2)


def tree(values) -> Priorities:
    values = np.asarray(values, np.float32)
    return assign(priorities.init(len(values)), np.arange(len(values)), values)


def leaves(of: Priorities, capacity: int) -> np.ndarray:
    return np.asarray(of.levels[0]).reshape(-1)[:capacity]


@pytest.mark.parametrize("capacity", [1, 7, 8, 9, 64, 65, 513, 50_000])
def test_every_node_is_the_sum_of_the_leaves_below_it(capacity):
    """Exactly: sums of integers below 2²⁴. There is one row at the top, and none too many."""
    values = np.random.default_rng(0).integers(0, 100, capacity)
    levels = [np.asarray(level) for level in tree(values).levels]
    assert len(levels[-1]) == 1
    assert len(levels) == max(1, int(np.ceil(np.log(capacity) / np.log(BRANCHES) - 1e-9)))
    for depth, level in enumerate(levels):
        below = BRANCHES**depth
        padded = np.zeros(level.size * below)
        padded[:capacity] = values
        np.testing.assert_array_equal(level.reshape(-1), padded.reshape(-1, below).sum(axis=1))


def test_a_thousand_writes_against_an_array():
    """With repeated slots, whose largest value counts, and new transitions, which have the largest
    priority so far. Sums are as good as those of a tree that is built at once: no drift."""
    rng, capacity = np.random.default_rng(1), 100
    current, expected, largest = priorities.init(capacity), np.zeros(capacity, np.float32), 1.0
    for i in range(1000):
        if i % 3 == 0:
            slot = i // 3 % capacity
            current, expected[slot] = add(current, jnp.int32(slot)), largest
        else:
            slots = rng.integers(0, capacity, 16)
            values = np.float32(10.0 ** rng.uniform(-6, 3, 16))
            current = assign(current, slots, values)
            expected[slots] = 0.0
            np.maximum.at(expected, slots, values)
            largest = max(largest, values.max())
    assert float(current.largest) == largest
    np.testing.assert_array_equal(leaves(current, capacity), expected)
    for level, anew in zip(current.levels, tree(expected).levels, strict=True):
        np.testing.assert_allclose(level, anew, rtol=1e-6)


@pytest.mark.parametrize("capacity", [1, 5, 8, 60, 600])
def test_slots_are_drawn_in_proportion_to_their_priorities(capacity):
    """χ² with 200,000 draws; a two-sided chance of 1e-4. What has no priority is never drawn."""
    values = np.random.default_rng(2).uniform(0.5, 5.0, capacity)
    values[1::3] = 0.0
    slots, drawn = sample(tree(values), noise.root(capacity), 200_000)
    counts = np.bincount(slots, minlength=capacity)
    np.testing.assert_array_equal(drawn, np.float32(values)[np.asarray(slots)])
    assert len(counts) == capacity
    assert not counts[values == 0].any()
    expected = 200_000 * values / values.sum()
    held = values > 0
    if held.sum() > 1:
        assert 0.5e-4 < stats.chisquare(counts[held], expected[held]).pvalue < 1 - 0.5e-4


def test_small_priorities_beside_large_ones():
    """A thousand slots of 1e-6 beside one of 1: each is drawn with probability 1e-6, 1,000 times in
    a million draws in all, by a Poisson law; and all over the slots, not the first ones."""
    values = np.full(1001, 1e-6)
    values[500] = 1.0
    slots = np.asarray(sample(tree(values), noise.root(3), 1_000_000)[0])
    rare = slots[slots != 500]
    assert abs(len(rare) - 1000) < 5 * np.sqrt(1000)
    assert stats.kstest(rare / 1000, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("values", [[1e-30, 1.0, 1e30], [3e-38, 1e-38], [0.0, 0.0, 1e-20]])
def test_extreme_priorities_draw_stored_slots(values):
    slots, drawn = sample(tree(values), noise.root(4), 10_000)
    assert np.all(np.asarray(slots) < len(values))
    assert np.all(np.asarray(drawn) > 0)
