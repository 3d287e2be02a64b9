"""Continuous actions on the host: scaled to a box at the environment's edge."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces

import rove
from helpers import SMALL, lane_at
from rove.environments.actions import decoder
from rove.environments.faults import BadEnvironment
from rove.environments.guard import Guard
from rove.errors import ConfigError
from rove.parts import replay
from rove.runs.configure import configure
from rove.training import progress


class Recorder(gymnasium.Env):
    """Pays nothing, ends after five steps, and writes down the actions it was given."""

    observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)

    def __init__(self, space: spaces.Space):
        self.action_space, self.taken, self._time = space, [], 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._time = 0
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action):
        self.taken.append(action)
        self._time += 1
        return np.zeros(3, np.float32), 0.0, self._time == 5, False, {}


def test_minus_one_and_one_are_the_bounds_of_the_box():
    low, high = np.array([[-2.0, 0.0]], np.float32), np.array([[2.0, 10.0]], np.float32)
    decode = decoder(spaces.Box(low, high, dtype=np.float32))
    np.testing.assert_array_equal(decode([-1.0, -1.0]), low)
    np.testing.assert_array_equal(decode([1.0, 1.0]), high)
    np.testing.assert_allclose(decode([0.5, 0.0]), [[1.0, 5.0]])
    np.testing.assert_array_equal(decode([-3.0, 3.0]), [[-2.0, 10.0]])


@pytest.mark.slow
def test_every_action_is_in_the_box_and_as_the_replay_has_it(tmp_path, monkeypatch):
    """Two numbers, of bounds that differ; what the environment got is what was stored, scaled."""
    space = spaces.Box(np.array([-2.0, 0.0]), np.array([2.0, 10.0]), dtype=np.float64)
    environments = []

    def make():
        environments.append(Recorder(space))
        return environments[-1]

    run = rove.train("ddpg", make, steps=60, **SMALL)
    taken = np.array(next(env.taken for env in environments if env.taken))
    assert taken.shape == (60, 2)
    assert all(space.contains(action) for action in taken)
    assert taken.std(axis=0).min() > 0.1
    lane = lane_at(configure("ddpg", make, steps=60, **SMALL), 40, tmp_path, monkeypatch)
    transitions, held = replay.everything(lane.agent.replay, 0.99)
    stored = np.asarray(transitions.action)[np.asarray(held)]
    np.testing.assert_allclose(taken[:40], stored * [2.0, 5.0] + [0.0, 5.0], atol=1e-5)
    action = run.policy()(np.zeros(3, np.float32))
    assert space.contains(action)


@pytest.mark.parametrize(
    ("space", "needs"),
    [
        (spaces.Box(-np.inf, np.inf, (2,)), "finite"),
        (spaces.Box(0, 9, (2,), np.int32), "Box of floats"),
    ],
)
def test_actions_that_no_agent_takes_are_refused(space, needs):
    with pytest.raises(BadEnvironment, match=needs):
        Guard(Recorder(space), 100)
    with pytest.raises(ConfigError, match=needs):
        rove.train("ddpg", lambda: Recorder(space), steps=10)


def test_agents_that_do_not_fit_are_refused():
    with pytest.raises(
        ConfigError,
        match="but gym/Pendulum-v1 has continuous ones; use one of ddpg",
    ):
        rove.train("dqn", "gym/Pendulum-v1", steps=10)
    with pytest.raises(
        ConfigError,
        match="td3 needs continuous actions, but gym/CartPole-v1 has discrete ones; use one of",
    ):
        rove.train("td3", "gym/CartPole-v1", steps=10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["td3", pytest.param("ddpg_ge", marks=pytest.mark.slow)])
def test_a_lane_goes_on_where_it_was(name, tmp_path, monkeypatch):
    """The policy, its moments and the noise are in the checkpoint: cut in two, the same bits."""
    monkeypatch.setattr(progress, "CHECKPOINT_SECONDS", 0.0)
    arguments = (name, "gym/Pendulum-v1")
    settings = {**SMALL, "noise_std": 0.1, "steps": 900}

    def stop(told):
        if told.step > 350:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rove.train(*arguments, **settings, out=tmp_path, report=stop)
    assert 0 < rove.load(tmp_path).returns.shape[1] < 4
    again = rove.train(*arguments, **settings, out=tmp_path)
    whole = rove.train(*arguments, **settings)
    np.testing.assert_array_equal(again.returns, whole.returns)
    states = [run.outcomes[0].lane.agent for run in (again, whole)]
    for a, b in zip(*map(jax.tree.leaves, states), strict=True):
        np.testing.assert_array_equal(a, b)
