"""rove.parts.masks: masks as columns of the replay buffer, which gives back those of s′."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.parts import masks, noise, replay
from rove.parts.masks import Masked, allowed_actions, masked, unmasked
from rove.parts.onehot import OneHot
from rove.parts.replay import Transition


@pytest.mark.parametrize("actions", [1, 5, 24, 25, 60])
def test_a_mask_is_the_same_after_its_columns(actions):
    """24 bits a column: all zeros, all ones, each bit alone, and masks at random."""
    rng = np.random.default_rng(actions)
    cases = np.concatenate(
        [np.zeros((1, actions)), np.ones((1, actions)), np.eye(actions), rng.random((9, actions))]
    )
    cases = cases > 0.5
    columns = jax.vmap(masks.to_columns)(jnp.asarray(cases))
    assert columns.shape == (len(cases), masks.width(actions)) == (len(cases), -(-actions // 24))
    np.testing.assert_array_equal(columns[:, 0], cases[:, :24] @ 2 ** np.arange(24)[:actions])
    np.testing.assert_array_equal(masks.from_columns(columns, actions), cases)


def test_no_mask_is_no_column():
    assert masks.to_columns(None).shape == (0,)
    assert masks.width(0) == 0
    assert masks.from_columns(jnp.zeros((3, 0)), 0) is None
    x = jnp.ones(2)
    assert masked(x, None) is x
    assert unmasked(x) is x
    assert allowed_actions(x) is None


@pytest.mark.parametrize("coded", [False, True])
def test_the_buffer_keeps_the_mask_of_the_next_state(coded):
    """A ring of five after nine transitions: the newest five, each with its own mask."""
    rng, actions, size = np.random.default_rng(0), 30, 7
    allowed = rng.random((9, 2, actions)) > 0.5

    def state(i: int, which: int) -> Masked:
        index = jnp.asarray((i + which) % size)
        x = OneHot(index, size) if coded else jax.nn.one_hot(index, size)
        return Masked(x, jnp.asarray(allowed[i, which]))

    buffer = replay.init(5, size, coded=coded, masked=actions)
    assert buffer.rows.shape[1] == 2 * (1 if coded else size) + 3 + 2
    add = jax.jit(replay.add)
    for i in range(9):
        transition = (state(i, 0), jnp.asarray(i), jnp.asarray(0.5 * i), state(i, 1))
        buffer = add(buffer, Transition(*transition, jnp.asarray(i % 2 == 0)))
    batch = jax.jit(replay.sample, static_argnums=2)(buffer, noise.root(0), 60, 0.9)
    ids = batch.number
    assert set(ids.tolist()) == {4, 5, 6, 7, 8}
    assert isinstance(batch.next_observation, Masked)
    assert not isinstance(batch.observation, Masked)
    np.testing.assert_array_equal(batch.next_observation.allowed, allowed[ids, 1])
    np.testing.assert_array_equal(np.argmax(batch.observation, axis=-1), ids % size)
    x_next = np.asarray(unmasked(batch.next_observation))
    np.testing.assert_array_equal(np.argmax(x_next, axis=-1), (ids + 1) % size)
    np.testing.assert_array_equal(batch.reward, 0.5 * ids)
    np.testing.assert_array_equal(batch.terminated, ids % 2 == 0)
