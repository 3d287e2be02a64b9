"""rove's Gymnasium environments pass its own checker and agree with the compiled ones."""

import warnings

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env

import rove
from rove import noise

CASES = [
    (rove.Chain, {}),
    (rove.Chain, {"n": 9, "features": "one-hot", "permuted": True}),
    (rove.DeepSea, {}),
    (rove.DeepSea, {"n": 4, "map_seed": 42, "randomised": False}),
    (rove.Bandit, {}),
    (rove.Bandit, {"n": 3, "map_seed": 1, "noise_std": 0.5}),
]


def made(kind, options):
    return gymnasium.make(f"rove/{kind.__name__}-v0", **options)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_gymnasium_checker(kind, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(kind, options).unwrapped, skip_render_check=True)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_agrees_with_the_compiled_environment(kind, options):
    """Step by step. An episode's key is from its seed, a step's from that and the time."""
    compiled = kind(**{"n": 10, **options})
    env = made(kind, options)
    step, rng = jax.jit(compiled.step), np.random.default_rng(0)
    for seed in range(20):
        key = noise.root(int(seeding.np_random(seed)[0].integers(2**31)))
        shown, _ = env.reset(seed=seed)
        state, observation = compiled.reset(noise.fold(key, 0))
        np.testing.assert_array_equal(shown, observation)
        done, time = False, 0
        while not done:
            time += 1
            action = int(max(rng.integers(compiled.num_actions, size=2)))  # leans to the right
            shown, reward, terminated, truncated, _ = env.step(action)
            after = step(state, np.int32(action), noise.fold(key, time))
            state = after.state
            np.testing.assert_array_equal(shown, after.observation)
            assert reward == after.reward
            assert terminated == after.terminated
            assert truncated == after.truncated
            done = terminated or truncated


def test_every_environment_is_registered_once():
    names = {name for name in gymnasium.registry if name.startswith("rove/")}
    assert names == {"rove/Chain-v0", "rove/DeepSea-v0", "rove/Bandit-v0"}
    rove.register()  # a second call changes nothing


def test_step_before_reset_and_bad_actions_are_refused():
    env = gymnasium.make("rove/Chain-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction):
        env.step(2)
