"""rove/Chain-v0 passes Gymnasium's own checker and agrees with the compiled chain."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rove
from rove import noise


@pytest.mark.parametrize("options", [{}, {"n": 7, "features": "one-hot", "permuted": True}])
def test_gymnasium_checker(options):
    check_env(gymnasium.make("rove/Chain-v0", **options).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("options", [{"n": 5}, {"n": 9, "features": "one-hot", "permuted": True}])
def test_agrees_with_the_compiled_chain(options):
    chain = rove.Chain(**options)
    env = gymnasium.make("rove/Chain-v0", **options)
    step, key, rng = jax.jit(chain.step), noise.root(0), np.random.default_rng(0)
    for _ in range(20):
        shown, _ = env.reset(seed=3)
        state, observation = chain.reset(key)
        np.testing.assert_array_equal(shown, observation)
        done = False
        while not done:
            action = int(rng.random() < 0.7)
            shown, reward, terminated, truncated, _ = env.step(action)
            after = step(state, np.int32(action), key)
            state = after.state
            np.testing.assert_array_equal(shown, after.observation)
            assert reward == after.reward
            assert terminated == after.terminated
            assert truncated == after.truncated
            done = truncated


def test_step_before_reset_and_bad_actions_are_refused():
    env = gymnasium.make("rove/Chain-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction):
        env.step(2)
