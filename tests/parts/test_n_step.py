"""rove.parts.replay: transitions of several steps, against values by hand and a slow reference."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.parts import noise, replay
from rove.parts.onehot import OneHot
from rove.parts.replay import Transition

GAMMA = 0.5
REWARDS = 2.0 ** np.arange(8)
TERMINATED, TRUNCATED = np.arange(8) == 2, np.arange(8) == 4
RETURNS = [3.0, 4.0, 4.0, 16.0, 16.0, 96.0, 128.0, 128.0]
"""With n = 3 and γ = ½: 1 + 2/2 + 4/4, 2 + 4/2, 4 | 8 + 16/2, 16 | 32 + 64/2 + 128/4, 64 + 128/2,
128. The first episode terminates, the second is truncated, and the third goes on."""
STEPS = np.array([3, 2, 1, 2, 1, 3, 2, 1])
LAST = np.array([2, 2, 2, 4, 4, 7, 7, 7])
"""The last of the steps that each transition consists of."""

add = jax.jit(replay.add)


@jax.jit
def everything(buffer):
    return replay.everything(buffer, GAMMA)


@partial(jax.jit, static_argnums=2)
def sample(buffer, key, size):
    return replay.sample(buffer, key, size, GAMMA)


def step(i: int, reward, terminated, truncated, cached: int = 2) -> Transition:
    """The i-th step: its observations and cached values tell i."""
    return Transition(
        observation=jnp.array([i, 0.5], jnp.float32),
        action=jnp.array(i % 5, jnp.int32),
        reward=jnp.asarray(reward, jnp.float32),
        next_observation=jnp.array([i + 0.25, 1.5], jnp.float32),
        terminated=jnp.asarray(terminated),
        priors=jnp.full(cached, 10.0 * i),
        next_priors=jnp.full(cached, 10.0 * i + 5.0),
        truncated=jnp.asarray(truncated),
    )


def filled(capacity: int, n_step: int = 3, steps: int = 8) -> replay.Replay:
    buffer = replay.init(capacity, 2, cached=2, n_step=n_step)
    for i in range(steps):
        buffer = add(buffer, step(i, REWARDS[i], TERMINATED[i], TRUNCATED[i]))
    return buffer


@pytest.mark.parametrize("capacity", [5, 7, 8, 20])
def test_values_by_hand(capacity):
    """Also in a ring that has wrapped, in which the newest step lies before the oldest."""
    batch = sample(filled(capacity), noise.root(0), 200)
    ids = np.asarray(batch.number)
    assert set(ids.tolist()) == set(range(max(0, 8 - capacity), 8))
    np.testing.assert_array_equal(batch.reward, np.array(RETURNS)[ids])
    np.testing.assert_array_equal(batch.discount, GAMMA ** STEPS[ids])
    np.testing.assert_array_equal(batch.terminated, TERMINATED[LAST][ids])
    np.testing.assert_array_equal(batch.truncated, TRUNCATED[LAST][ids])
    np.testing.assert_array_equal(batch.observation[:, 0], ids)
    np.testing.assert_array_equal(batch.action_index, ids % 5)
    np.testing.assert_array_equal(batch.priors[:, 0], 10.0 * ids)
    np.testing.assert_array_equal(batch.next_observation[:, 0], LAST[ids] + 0.25)
    np.testing.assert_array_equal(batch.next_priors[:, 1], 10.0 * LAST[ids] + 5.0)


def test_a_fraction_of_the_transitions_has_one_step():
    """By hand: those have the reward of their step, γ, and the state after it."""
    draw = jax.jit(lambda key: replay.sample(filled(20), key, 4000, GAMMA, one_step=0.25))
    batch = draw(noise.root(3))
    ids, single = np.asarray(batch.number), np.asarray(batch.discount == GAMMA)
    long = STEPS[ids] > 1  # of the others, all transitions have one step
    assert np.mean(single[long]) == pytest.approx(0.25, abs=0.03)
    np.testing.assert_array_equal(
        batch.reward, np.where(single, REWARDS[ids], np.array(RETURNS)[ids])
    )
    np.testing.assert_array_equal(
        batch.next_observation[:, 0], np.where(single, ids, LAST[ids]) + 0.25
    )
    np.testing.assert_array_equal(batch.terminated, TERMINATED[np.where(single, ids, LAST[ids])])
    slots = [np.mean(ids[single & long] == i) for i in np.flatnonzero(STEPS > 1)]
    assert min(slots) > 0.15  # the coin does not depend on which transition was sampled


def test_before_the_buffer_is_full_only_steps_that_were_added_are_used():
    """Two steps in a buffer of eight: the slots after the second are empty."""
    batch, held = everything(filled(8, steps=2))
    np.testing.assert_array_equal(held, np.arange(8) < 2)
    np.testing.assert_array_equal(batch.reward[:2], [1.0 + 2.0 / 2, 2.0])
    np.testing.assert_array_equal(batch.discount[:2], [0.25, 0.5])
    np.testing.assert_array_equal(batch.next_observation[:2, 0], [1.25, 1.25])


def test_a_step_that_terminates_at_the_time_limit_terminates():
    buffer = add(replay.init(4, 2, cached=2, n_step=2), step(0, 1.0, True, True))
    batch, _ = everything(buffer)
    assert (bool(batch.terminated[0]), bool(batch.truncated[0])) == (True, False)


def test_one_step_leaves_out_the_discount_and_keeps_the_rows():
    """`n_step` = 1 is the buffer of single steps, and both have the same rows."""
    one, three = filled(7, n_step=1), filled(7, n_step=3)
    np.testing.assert_array_equal(one.rows, three.rows)
    batch, _ = everything(one)
    assert batch.discount is None
    ids = np.asarray(batch.observation[:, 0]).astype(int)
    np.testing.assert_array_equal(batch.reward, REWARDS[ids])
    np.testing.assert_array_equal(batch.terminated, TERMINATED[ids])
    np.testing.assert_array_equal(batch.truncated, TRUNCATED[ids])
    for field in ("reward", "next_observation", "terminated", "truncated"):
        np.testing.assert_array_equal(
            getattr(replay.last(three), field), getattr(batch, field)[list(ids).index(7)]
        )


def reference(steps: list[Transition], start: int, n: int, stride: int, gamma: float) -> tuple:
    """The transition of up to n steps from a number on, from the list of all steps so far."""
    total, k = 0.0, 0
    while True:
        current = steps[start + k * stride]
        total += gamma**k * float(current.reward)
        k += 1
        ended = bool(current.terminated) or bool(current.truncated)
        if ended or k == n or start + k * stride >= len(steps):
            return total, gamma**k, current


@pytest.mark.parametrize(("n", "stride"), [(2, 1), (3, 1), (5, 1), (4, 3), (3, 4), (9, 2)])
def test_random_episodes_against_a_slow_reference(n, stride):
    """After every step, every transition in the buffer; several environments take turns, and their
    episodes end at different times. Capacities are not multiples of the stride."""
    rng, capacity = np.random.default_rng(n), 11
    buffer, steps = replay.init(capacity, 2, cached=2, n_step=n, stride=stride), []
    for i in range(40):
        end = rng.choice(["none", "terminated", "truncated", "both"], p=[0.75, 0.1, 0.1, 0.05])
        flags = end in ("terminated", "both"), end in ("truncated", "both")
        steps.append(step(i, np.float32(rng.normal()), *flags))
        buffer = add(buffer, steps[-1])
        batch, held = everything(buffer)
        batch, held = jax.tree.map(np.asarray, (batch, held))
        assert held.sum() == min(i + 1, capacity)
        for slot in np.flatnonzero(held):
            start = int(batch.observation[slot, 0])
            total, discount, last = reference(steps, start, n, stride, GAMMA)
            assert batch.reward[slot] == pytest.approx(total, abs=1e-6)
            assert batch.discount[slot] == pytest.approx(discount)
            assert batch.terminated[slot] == bool(last.terminated)
            np.testing.assert_array_equal(batch.next_observation[slot], last.next_observation)
            np.testing.assert_array_equal(batch.next_priors[slot], last.next_priors)
            np.testing.assert_array_equal(batch.priors[slot], steps[start].priors)


def test_codes_of_several_steps():
    size = 100
    buffer = replay.init(8, size, coded=True, n_step=3)
    for i in range(8):
        s, s_next = (OneHot(jnp.int32(10 * i + j), size) for j in (0, 5))
        plain = step(i, REWARDS[i], TERMINATED[i], TRUNCATED[i], cached=0)
        buffer = add(buffer, plain._replace(observation=s, next_observation=s_next))
    batch, _ = everything(buffer)
    np.testing.assert_array_equal(batch.reward, RETURNS)
    np.testing.assert_array_equal(batch.observation.index, 10 * np.arange(8))
    np.testing.assert_array_equal(batch.next_observation.index, 10 * LAST + 5)


@pytest.mark.parametrize("gamma", [0.0, 0.99, 1.0])
def test_discounts_at_the_ends_of_their_range(gamma):
    batch, _ = replay.everything(filled(8), gamma)
    powers = np.float32(gamma) ** np.arange(4)
    np.testing.assert_allclose(batch.discount, powers[STEPS], rtol=1e-6)
    expected = [sum(powers[j] * REWARDS[i + j] for j in range(STEPS[i])) for i in range(8)]
    np.testing.assert_allclose(batch.reward, expected, rtol=1e-6)
