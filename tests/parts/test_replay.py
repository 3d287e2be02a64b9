"""rove.parts.replay: a ring that gives back what it was given, evenly."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import in_buffer
from rove.parts import noise, replay
from rove.parts.onehot import OneHot
from rove.parts.replay import Transition

CAPACITY, FEATURES = 7, 3

add = jax.jit(replay.add)
GAMMA = 0.9
"""Discount factor; single steps do not depend on it."""


@partial(jax.jit, static_argnums=2)
def sample(buffer, key, size):
    batch = replay.sample(buffer, key, size, GAMMA)
    return batch, batch.number


@jax.jit
def everything(buffer):
    return replay.everything(buffer, GAMMA)


FIELDS = 5
"""Fields that every transition has."""


def transition(i: int) -> Transition:
    """The i-th of a sequence in which every field tells i, exactly in float32."""
    return Transition(
        observation=np.array([i, i + 0.25, -i], np.float32),
        action=np.array(i % 5, np.int32),
        reward=np.array(i / 8 - 1, np.float32),
        next_observation=np.array([i + 1, 2 * i, 0.5 * i], np.float32),
        terminated=np.array(i % 3 == 0),
    )


def filled(n: int, capacity: int = CAPACITY) -> replay.Replay:
    buffer = replay.init(capacity, FEATURES)
    for i in range(n):
        buffer = add(buffer, transition(i))
    return buffer


@pytest.mark.parametrize("n", [1, 4, 7, 8, 20])
def test_what_comes_out_went_in_and_is_among_the_newest(n):
    """The ring holds the newest 7, all of them, every field as it was given; no empty row."""
    batch, _ = sample(filled(n), noise.root(n), 500)
    numbers = np.asarray(batch.action_index)
    assert numbers.dtype == np.int32
    batch = Transition(*map(np.asarray, batch[:FIELDS]))
    # A row is missed by 500 draws with chance (6/7)^500 < 1e-33.
    seen = sorted({int(i) for i in batch.observation[:, 0]})
    assert seen == list(range(max(0, n - CAPACITY), n))
    for row in range(500):
        expected = in_buffer(transition(int(batch.observation[row, 0])))
        assert numbers[row] == expected.action_index
        for field, got, put in list(zip(Transition._fields, batch, expected, strict=True))[:FIELDS]:
            assert got.dtype == put.dtype, field
            assert np.array_equal(got[row], put), field


def test_shapes_of_a_minibatch():
    batch, ids = sample(filled(3), noise.root(0), 5)
    shapes = [(5, 3), (5, 1), (5,), (5, 3), (5,), (5, 0), (5, 0), (5,)]
    assert [x.shape for x in batch[:8]] == shapes
    assert (batch.discount, batch.cell, batch.priority) == (None, None, None)
    assert (ids.shape, ids.dtype) == ((5,), np.int32)


@pytest.mark.parametrize("n", [1, 4, 7, 8, 13, 14, 15, 40])
def test_ids_name_the_transitions_before_and_after_the_ring_has_wrapped(n):
    """The i-th that was ever added has number i, which its observation tells."""
    batch, ids = sample(filled(n), noise.root(n), 500)
    assert np.array_equal(ids, np.asarray(batch.observation)[:, 0])
    assert set(np.asarray(ids).tolist()) == set(range(max(0, n - CAPACITY), n))


@pytest.mark.parametrize("n", [0, 1, 4, 7, 8, 20])
def test_everything_is_all_that_is_stored_each_once(n):
    """Of an empty buffer nothing is held; the other slots tell the newest 7, field by field."""
    transitions, held = everything(filled(n))
    assert [x.shape[0] for x in transitions[:8]] == [CAPACITY] * 8
    assert held.shape == (CAPACITY,)
    transitions = Transition(*map(np.asarray, transitions[:FIELDS]))
    held = np.asarray(held)
    numbers = transitions.observation[held, 0].astype(int)
    assert sorted(numbers.tolist()) == list(range(max(0, n - CAPACITY), n))
    for slot, i in zip(np.flatnonzero(held), numbers, strict=True):
        put_in = in_buffer(transition(i))
        fields = list(zip(Transition._fields, transitions, put_in, strict=True))[:FIELDS]
        for field, got, put in fields:
            assert got.dtype == put.dtype, field
            assert np.array_equal(got[slot], put), field


def test_a_write_goes_over_the_oldest_and_leaves_the_rest():
    for n in (3, 7, 12):
        before = filled(n)
        after = add(before, transition(n))
        changed = np.flatnonzero(np.any(np.asarray(before.rows) != np.asarray(after.rows), axis=1))
        assert changed.tolist() == [n % CAPACITY]
        assert (int(before.added), int(after.added)) == (n, n + 1)


def test_a_write_that_is_switched_off_leaves_every_row():
    for n in (3, 7, 12):
        before = filled(n)
        off = np.asarray(add(before, transition(n), jnp.array(False)).rows)
        on = np.asarray(add(before, transition(n), jnp.array(True)).rows)
        assert np.array_equal(off, before.rows)
        assert np.array_equal(on, add(before, transition(n)).rows)
        assert not np.array_equal(on, off)


@pytest.mark.parametrize("n", [6, 40, 64, 100])
def test_sampling_is_uniform_over_what_is_stored(n):
    """χ² over the stored rows with 200,000 draws; a two-sided chance of 1e-4."""
    capacity, draws = 64, 200_000
    batch, _ = sample(filled(n, capacity), noise.root(n), draws)
    oldest, stored = max(0, n - capacity), min(n, capacity)
    counts = np.bincount(np.asarray(batch.observation[:, 0]).astype(int) - oldest, minlength=stored)
    assert len(counts) == stored
    assert 0.5e-4 < stats.chisquare(counts).pvalue < 1 - 0.5e-4


def test_successive_minibatches_are_independent():
    """χ² over the pairs (row at step t, row at step t + 1); a two-sided chance of 1e-4."""
    buffer, key = filled(8, 8), noise.root(1)
    batches = jax.jit(
        jax.vmap(lambda t: sample(buffer, noise.fold(key, t), 64)[0].observation[:, 0])
    )(jnp.arange(3000))
    rows = np.asarray(batches).astype(int)
    counts = np.bincount((8 * rows[:-1] + rows[1:]).ravel(), minlength=64)
    assert 0.5e-4 < stats.chisquare(counts).pvalue < 1 - 0.5e-4


@pytest.mark.parametrize(("n", "capacity"), [(1, 7), (7, 7), (8, 7), (1, 1), (5, 1)])
def test_the_last_is_the_one_added_last(n, capacity):
    found = replay.last(filled(n, capacity))
    for mine, given in list(zip(found, in_buffer(transition(n - 1)), strict=True))[:FIELDS]:
        np.testing.assert_array_equal(mine, given)
        assert mine.dtype == given.dtype


@pytest.mark.parametrize(("actions", "cached"), [(3, 0), (1, 4), (2, 6)])
def test_vector_actions_and_cached_values_come_back(actions, cached):
    rng = np.random.default_rng(actions)
    buffer, put = replay.init(4, FEATURES, actions, cached), []
    for i in range(6):
        sizes = (FEATURES, actions, None, FEATURES, None, cached, cached)
        parts = [np.float32(rng.normal(size=size)) for size in sizes]
        parts[4] = np.array(i % 2 == 0)
        put.append(Transition(*parts))
        buffer = add(buffer, put[-1])
    assert buffer.rows.shape == (4, 2 * FEATURES + actions + 2 + 2 * cached)
    batch, ids = sample(buffer, noise.root(0), 50)
    assert set(np.asarray(ids).tolist()) == {2, 3, 4, 5}
    for row, i in enumerate(np.asarray(ids)):
        for got, given in zip(batch[:7], put[i][:7], strict=True):
            np.testing.assert_array_equal(got[row], given)


def test_codes_come_back_and_take_one_column():
    size = 10**4
    buffer = replay.init(3, size, coded=True)
    assert buffer.rows.shape == (3, 5)
    indices = [(7, 9_999), (size, 0), (123, 456), (5, size)]
    for i, codes in enumerate(indices):
        s, s_next = (OneHot(jnp.int32(code), size) for code in codes)
        buffer = add(buffer, transition(i)._replace(observation=s, next_observation=s_next))
    batch, ids = sample(buffer, noise.root(0), 50)
    assert batch.observation.shape == (50, size)
    assert set(np.asarray(ids).tolist()) == {1, 2, 3}
    expected = np.array(indices)[np.asarray(ids)]
    np.testing.assert_array_equal(batch.observation.index, expected[:, 0])
    np.testing.assert_array_equal(batch.next_observation.index, expected[:, 1])
    for row, i in enumerate(np.asarray(ids)):
        np.testing.assert_array_equal(batch.action_index[row], transition(i).action)
        np.testing.assert_array_equal(batch.reward[row], transition(i).reward)
        np.testing.assert_array_equal(batch.terminated[row], transition(i).terminated)
