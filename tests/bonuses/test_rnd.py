"""Random network distillation: its gradient and its normalisation against NumPy."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import rove
from rove.parts import noise, replay
from rove.parts.onehot import OneHot
from rove.parts.replay import Transition

BONUS = rove.RND(0.7, lr=0.01, gamma=0.8, clip=1.5, hidden=(5,), outputs=3)
FEATURES, N = 2, 6

observe, update, add = map(jax.jit, (rove.RND.observe, rove.RND.update, replay.add))
RNG = np.random.default_rng(0)
SEEN = RNG.normal([3.0, -1.0], [2.0, 0.1], size=(40, FEATURES)).astype(np.float32)
"""Observations with a mean and a scale of their own."""


def step_to(x, reward=0.0) -> Transition:
    x, zero = jnp.asarray(x), jnp.zeros(x.shape[:-1])
    return Transition(x, zero[..., None], zero + reward, x, zero > 0)


def observed(bonus=BONUS, seen=SEEN):
    state = bonus.init(FEATURES, False, noise.root(2))
    for x in seen:
        state, _ = observe(bonus, state, step_to(x))
    return state


STATE = observed()


def np_layers(theta):
    return [[np.asarray(part, np.float64) for part in layer] for layer in theta]


def np_forward(theta, x):
    """The outputs of all layers, the input first."""
    outputs = [np.asarray(x, np.float64)]
    for i, (weight, bias) in enumerate(np_layers(theta)):
        h = outputs[-1] @ weight + bias
        outputs.append(np.maximum(h, 0.0) if i < len(theta) - 1 else h)
    return outputs


def np_normalised(seen, x, clip=1.5):
    return np.clip((x - seen.mean(axis=0)) / seen.std(axis=0), -clip, clip)


def np_error(state, seen, x):
    x = np_normalised(seen.astype(np.float64), x)
    return np.mean((np_forward(state.predictor, x)[-1] - np_forward(state.target, x)[-1]) ** 2, -1)


def test_errors_are_of_normalised_and_clipped_observations():
    x = np.concatenate([SEEN[:3], [[30.0, -1.0]]]).astype(np.float32)
    got = BONUS.error(STATE, STATE.predictor, jnp.asarray(x))
    np.testing.assert_allclose(got, np_error(STATE, SEEN, x), rtol=1e-4)
    further = jnp.asarray(x[3:] + np.float32([1e4, 0.0]))  # clipped before as well
    np.testing.assert_allclose(BONUS.error(STATE, STATE.predictor, further), got[3:], rtol=1e-5)


def test_rewards_are_divided_by_the_spread_of_discounted_sums():
    """Sums e₁, 0.8·e₁ + e₂, …, in which e_t is the error with the statistics at step t, the
    observation itself included. r + 0.7·e/std."""
    sums, total = [], 0.0
    for t in range(len(SEEN)):
        with np.errstate(invalid="ignore"):
            error = np_error(STATE, SEEN[: t + 1], SEEN[t]) if t else 0.0
        if t == 0:  # without spread, an observation is at its mean, 0
            zero = np.zeros(FEATURES)
            nets = STATE.predictor, STATE.target
            outputs = [np_forward(theta, zero)[-1] for theta in nets]
            error = np.mean((outputs[0] - outputs[1]) ** 2)
        total = 0.8 * total + error
        sums.append(total)
    assert float(STATE.discounted) == pytest.approx(total, rel=1e-4)
    assert float(STATE.sums.std) == pytest.approx(np.std(sums), rel=1e-3)
    x = SEEN[:4]
    got = BONUS.reward(STATE, step_to(x, reward=2.0), lambda: pytest.fail("not needed"))
    np.testing.assert_allclose(got, 2.0 + 0.7 * np_error(STATE, SEEN, x) / np.std(sums), rtol=1e-3)


@pytest.mark.slow
def test_a_return_of_several_steps_has_the_reward_of_each_state():
    """r + i of each state that a step reached, discounted; not that of the last one alone."""
    memory = replay.init(4, FEATURES, n_step=3)
    for x, reward in zip(SEEN[:3], (1.0, 0.0, 4.0), strict=True):
        memory = add(memory, step_to(x, reward))
    reward = partial(BONUS.reward, STATE, spread=lambda: pytest.fail("not needed"))
    batch, _ = replay.everything(memory, 0.5, reward)
    i = np.asarray(reward(step_to(SEEN[:3])))
    expected = [1.0 + 0.0 + 1.0 + i[0] + i[1] / 2 + i[2] / 4, 2.0 + i[1] + i[2] / 2, 4.0 + i[2]]
    np.testing.assert_allclose(batch.reward[:3], expected, rtol=1e-5)


def test_one_sum_has_no_spread_and_does_not_scale():
    state = observed(seen=SEEN[:1])
    got = BONUS.reward(state, step_to(SEEN[1:3]), lambda: pytest.fail("not needed"))
    error = BONUS.error(state, state.predictor, jnp.asarray(SEEN[1:3]))
    np.testing.assert_allclose(got, 0.7 * error, rtol=1e-5)


def test_an_update_is_a_step_of_adam_on_the_mean_error():
    """The gradient by hand, layer by layer. The first step of Adam is −lr·g/(|g| + 1e-8)."""
    x = np_normalised(SEEN.astype(np.float64), SEEN[:N])
    after = update(BONUS, STATE, step_to(SEEN[:N]))
    hidden = np_forward(STATE.predictor, x)
    slope = 2.0 * (hidden[-1] - np_forward(STATE.target, x)[-1]) / (N * BONUS.outputs)
    layers = np_layers(STATE.predictor)
    assert len(layers) == 3  # one more than the target
    assert len(STATE.target) == 2
    for i in reversed(range(3)):
        weight, bias = hidden[i].T @ slope, slope.sum(axis=0)
        for part, gradient in (("weight", weight), ("bias", bias)):
            first_moment = getattr(after.moments.mu[i], part)  # 0.1·g
            np.testing.assert_allclose(10 * first_moment, gradient, rtol=1e-3, atol=1e-6)
            moved = getattr(after.predictor[i], part) - getattr(STATE.predictor[i], part)
            expected = -0.01 * gradient / (np.abs(gradient) + 1e-8)
            np.testing.assert_allclose(moved, expected, rtol=1e-2, atol=1e-5)
        slope = (slope @ layers[i][0].T) * (hidden[i] > 0)
    for before, now in zip(
        jax.tree.leaves(STATE.target), jax.tree.leaves(after.target), strict=True
    ):
        np.testing.assert_array_equal(before, now)


@pytest.mark.slow
def test_the_reward_of_what_is_seen_fades_and_that_of_the_unseen_stays():
    bonus = rove.RND(lr=1e-3, hidden=(16,))
    state = bonus.init(20, True, noise.root(3))
    codes = OneHot(jnp.arange(20), 20)
    assert state.observations is None
    error = jax.jit(rove.RND.error)
    before = error(bonus, state, state.predictor, codes)
    trained = Transition(codes[:5], jnp.zeros((5, 1)), jnp.zeros(5), codes[:5], jnp.zeros(5) > 0)
    state = jax.jit(
        lambda state: lax.fori_loop(0, 300, lambda _, s: bonus.update(s, trained), state)
    )(state)
    ratio = np.asarray(error(bonus, state, state.predictor, codes) / before)
    assert ratio[:5].max() < 0.05
    assert np.median(ratio[5:]) > 0.2
