"""gymnax environments, step by step against gymnax's own `reset` and `step`."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove import environments
from rove.environments.gymnasium import CompiledEnv
from rove.errors import ConfigError, RunFolderError
from rove.parts.onehot import OneHot

gymnax = pytest.importorskip("gymnax")

QUICK = {
    "CartPole-v1": {},
    "Pendulum-v1": {"max_steps_in_episode": 40},
    "PointRobot-misc": {"max_steps_in_episode": 15},
    "Breakout-MinAtar": {"max_steps_in_episode": 10},
    "DeepSea-bsuite": {"size": 5},
    "Catch-bsuite": {"rows": 6, "columns": 4},
    "FrozenLake-misc": {"is_slippery": False, "max_steps_in_episode": 12},
}
"""Environments and options: discrete and box actions, vectors, images and codes; with ends of tasks
and time limits."""
OTHERS = {
    name: {"max_steps_in_episode": 25}
    for name in gymnax.registered_envs
    if name not in QUICK and name != "MNISTBandit-bsuite"  # which downloads its data
}
STEPS = 300


def package(name, options):
    """The package's environment and parameters."""
    limit = {k: v for k, v in options.items() if k == "max_steps_in_episode"}
    env, params = gymnax.make(name, **{k: v for k, v in options.items() if k not in limit})
    return env, params.replace(**limit)


def compare(name, options):
    """Take the same random actions in both for many episodes; return how often they ended."""
    env, params = package(name, options)
    task = environments.make(f"gymnax/{name}", **options)
    space = env.action_space(params)

    def one(carry, key):
        theirs, ours = carry
        k_step, k_action = jax.random.split(key)
        action = space.sample(k_action)
        _, theirs, reward, terminated, truncated, info = env.step(k_step, theirs, action, params)
        expected = (info["final_observation"], reward, terminated, truncated)
        if task.continuous:
            low, high = (jnp.broadcast_to(x, space.shape) for x in (space.low, space.high))
            action = ((action - low) / (high - low) * 2 - 1).ravel()
        # gymnax divides the key: a half for the step, and a half for a reset after the end.
        k_step, k_reset = jax.random.split(k_step)
        step = task.step(ours, action, k_step)
        done = step.terminated | step.truncated
        first, _ = task.reset(k_reset)
        ours = jax.tree.map(lambda x, y: jnp.where(done, x, y), first, step.state)
        got = (step.observation, step.reward, step.terminated, step.truncated)
        return (theirs, ours), (expected, got)

    key = jax.random.PRNGKey(0)
    observation, theirs = env.reset(key, params)
    ours, shown = task.reset(key)
    _, (expected, got) = jax.jit(lambda carry, keys: jax.lax.scan(one, carry, keys))(
        (theirs, ours), jax.random.split(jax.random.PRNGKey(1), STEPS)
    )
    if isinstance(shown, OneHot):
        assert task.coded
        assert shown.index == observation
        np.testing.assert_array_equal(got[0].index, expected[0])
    else:
        np.testing.assert_array_equal(shown, np.ravel(observation))
        np.testing.assert_allclose(got[0], expected[0].reshape(STEPS, -1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(got[2], expected[2])
    np.testing.assert_array_equal(got[3], expected[3])
    assert shown.shape == (task.observation_size,)
    return int(expected[2].sum()), int(expected[3].sum())


@pytest.mark.fast_cases("FrozenLake-misc", "Pendulum-v1", "CartPole-v1")
@pytest.mark.parametrize("name", QUICK)
def test_every_step_is_gymnaxs(name):
    terminated, truncated = compare(name, QUICK[name])
    assert (terminated > 0) == (name not in ("Pendulum-v1", "PointRobot-misc"))
    assert (truncated > 0) == (name not in ("CartPole-v1", "Catch-bsuite"))


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_step_of_the_others_is_gymnaxs(name):
    assert sum(compare(name, OTHERS[name])) > 0


def test_spaces():
    breakout = environments.make("gymnax/Breakout-MinAtar")
    assert breakout.image == (10, 10, 4)
    assert (breakout.observation_size, breakout.num_actions) == (400, 3)
    assert not breakout.continuous
    lake = environments.make("gymnax/FrozenLake-misc", map_name="8x8")
    assert lake.coded
    assert (lake.observation_size, lake.num_actions) == (64, 4)
    pendulum = environments.make("gymnax/Pendulum-v1")
    assert pendulum.continuous
    assert pendulum.num_actions == 1
    assert pendulum.observation_bounds == ((-1.0, -1.0, -8.0), (1.0, 1.0, 8.0))
    assert pendulum.image is None
    assert pendulum.action(jnp.array([0.5])) == 1.0  # of the torques between −2 and 2
    seen = np.random.default_rng(0).random((10, 10, 4))
    np.testing.assert_allclose(breakout.observation(seen), seen.ravel(), rtol=1e-6)
    np.testing.assert_array_equal(lake.observation(5), np.eye(64)[5])
    low, high = environments.make("gymnax/CartPole-v1").observation_bounds
    assert (low[1], high[1]) == (-np.inf, np.inf)


def test_an_image_is_drawn_where_there_are_no_cells():
    """Each channel of Breakout in a colour of its own."""
    env = CompiledEnv(environments.make("gymnax/Breakout-MinAtar"), render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (480, 480, 3)
    image = observation.reshape(10, 10, 4)
    pixels = frame[20::48, 20::48].astype(int)
    assert np.array_equal(pixels.any(-1), image.any(-1))
    last = image.shape[-1] - 1 - np.flip(image, -1).argmax(-1)  # the last channel that is set
    for channel in range(4):
        shown = pixels[image.any(-1) & (last == channel)]
        assert len(np.unique(shown, axis=0)) <= 1
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) == 1 + len(np.unique(last[image.any(-1)]))


SMALL = {"hidden": (16,), "batch_size": 16, "buffer_size": 2000, "learning_starts": 50}


@pytest.mark.slow
def test_a_run_is_recorded_and_restored_by_name(tmp_path):
    task = environments.make("gymnax/Catch-bsuite", rows=5, columns=3, optimum=1.0)
    assert environments.options(task) == {
        "optimum": 1.0, "score_range": None, "rows": 5, "columns": 3
    }  # fmt: skip
    settings = {"lr": 3e-3, "epsilon": 0.1, "epsilon_steps": 0, **SMALL}
    run = rove.train("dqn", task, episodes=120, out=tmp_path, **settings)
    assert run.config.portable
    back = rove.load(tmp_path)
    assert back.config.environment == task
    np.testing.assert_array_equal(back.returns, run.returns)
    assert run.returns[0, -30:].mean() > 0.5  # a paddle that does not move scores −1/3
    assert set(np.unique(run.returns)) <= {-1.0, 1.0}
    assert np.all(run.lengths == 4)
    assert run.policy()(np.zeros((5, 3))) in range(3)


@pytest.mark.slow
def test_an_object_is_trained_and_loaded_when_it_is_passed_in(tmp_path):
    env, params = gymnax.make("Catch-bsuite", rows=4, columns=3)
    run = rove.train("dqn", env, episodes=3, out=tmp_path, **SMALL)
    assert run.config.environment.name == "Catch"
    assert not run.config.portable
    with pytest.raises(RunFolderError, match=r"'Catch'.*rove.load\(folder, environment="):
        rove.load(tmp_path).evaluate()
    back = rove.load(tmp_path, environment=env)
    np.testing.assert_array_equal(back.returns, run.returns)
    short = rove.adopt_gymnax(env, params.replace(max_steps_in_episode=2), optimum=1.0)
    assert short != rove.adopt_gymnax(env)
    assert short == rove.adopt_gymnax(env, params.replace(max_steps_in_episode=2), optimum=1.0)
    assert np.all(rove.train("dqn", short, episodes=3, **SMALL).lengths == 2)


def test_options_of_the_command_line():
    """A default that depends on another option follows it."""
    task = environments.make("gymnax/DeepSea-bsuite")
    values = dataclasses.asdict(environments.settings(task))
    assert values["size"] == values["max_steps_in_episode"] == 8
    larger = environments.configured(task, values | {"size": 11})
    assert larger.source.params.max_steps_in_episode == 11
    assert larger == environments.make("gymnax/DeepSea-bsuite", size=11)
    shorter = environments.configured(larger, values | {"size": 11, "max_steps_in_episode": 5})
    assert shorter == environments.make("gymnax/DeepSea-bsuite", size=11, max_steps_in_episode=5)


@pytest.mark.parametrize(
    ("name", "options", "field", "words"),
    [
        ("gymnax/Breakout", {}, "environment", "Did you mean 'gymnax/Breakout-MinAtar'"),
        ("gymnax/Catch-bsuite", {"row": 3}, "row", "Did you mean 'rows'"),
        ("gymnax/Catch-bsuite", {"rows": "many"}, "rows", "integer"),
        ("gymnax/Catch-bsuite", {"rows": -3}, "environment", "gymnax/Catch-bsuite"),
        ("gymnax/Pendulum-v1", {"dt": "fast"}, "dt", "number"),
        ("gymnax/Pendulum-v1", {"score_range": 3}, "score_range", "two numbers"),
        ("gymnax/DeepSea-bsuite", {"deterministic": 1}, "deterministic", "True"),
        ("gymnax/FrozenLake-misc", {"map_name": 8}, "map_name", "a word"),
    ],
)
def test_wrong_names_and_options_are_refused(name, options, field, words):
    with pytest.raises(ConfigError, match=words) as caught:
        rove.train("dqn", environments.make(name, **options), episodes=1)
    assert caught.value.field == field


def incomplete(**members):
    """An object with gymnax's interface, but for some members."""
    box = types.SimpleNamespace(low=0.0, high=1.0, shape=(2,))
    made = {
        "default_params": None,
        "reset_env": lambda key, params: (jnp.zeros(2), ()),
        "step_env": lambda key, state, action, params: (jnp.zeros(2), state, 0.0, False, {}),
        "is_truncated": lambda state, params: False,
        "observation_space": lambda params: box,
        "action_space": lambda params: types.SimpleNamespace(n=2),
    }  # fmt: skip
    made |= members
    return types.SimpleNamespace(**{k: v for k, v in made.items() if v != "missing"})


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"is_truncated": "missing"}, "gymnax 1.0 or later"),
        ({"step_env": "missing"}, "an object with gymnax's interface"),
        ({"observation_space": lambda params: "parts"}, "Discrete or Box"),
        ({"action_space": lambda params: "parts"}, "convert them with a wrapper"),
        (
            {"action_space": lambda p: types.SimpleNamespace(low=-np.inf, high=1.0, shape=(2,))},
            "bounds must be finite",
        ),
        ({"reset_env": lambda key, params: (jnp.zeros(3), ())}, r"shape \(2,\), got \(3,\)"),
    ],
)
def test_objects_that_cannot_be_used_are_refused(members, words):
    with pytest.raises(ConfigError, match=words):
        rove.train("dqn", rove.adopt_gymnax(incomplete(**members)), episodes=1)


def test_an_option_that_is_given_to_the_agent_is_explained():
    env, _ = gymnax.make("Catch-bsuite")
    with pytest.raises(ConfigError, match=r"rove.adopt_gymnax\(env, optimum=1"):
        rove.train("dqn", env, optimum=1)
    with pytest.raises(ConfigError, match=r"rove.make\('gymnax/Catch-bsuite', rows=5\)"):
        rove.train("dqn", "gymnax/Catch-bsuite", rows=5)
    with pytest.raises(ConfigError, match=r"rove.adopt_gymnax\(…, optimum"):
        rove.train("dqn", env, until_solved=True)
