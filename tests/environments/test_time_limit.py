"""A time limit for Gymnasium environments, against Gymnasium's own wrapper."""

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import rove
from rove import environments
from rove.cli.main import main
from rove.errors import ConfigError

SMALL = {"hidden": (8,), "batch_size": 4, "buffer_size": 500, "learning_starts": 20}


@pytest.mark.parametrize("name", ["CliffWalking-v1", "FrozenLake-v1", "CartPole-v1"])
def test_every_step_is_that_of_gymnasiums_wrapper(name):
    task = rove.make(f"gym/{name}", time_limit=12)
    ours, theirs = task.make(), TimeLimit(gymnasium.make(name), 12)
    rng, ends = np.random.default_rng(0), set()
    for seed in range(30):
        shown, over = ours.reset(seed), False
        observation, _ = theirs.reset(seed=seed)
        while not over:
            np.testing.assert_array_equal(shown, np.ravel(observation))
            action = int(rng.integers(task.num_actions))
            shown, *got = ours.step(action)
            observation, *expected, _ = theirs.step(action)
            assert got == expected
            over = got[1] or got[2]
        ends.add((got[1], got[2]))
    assert (False, True) in ends
    assert ((True, False) in ends) == (name != "CliffWalking-v1")


@pytest.mark.slow
def test_cliff_walking_is_trained_recorded_and_restored(tmp_path):
    """It has no time limit of its own, and an agent that has not learned does not end it."""
    task = rove.make("gym/CliffWalking-v1", time_limit=40)
    run = rove.train("dqn", task, steps=400, out=tmp_path, **SMALL)
    assert np.all(run.lengths <= 40)
    assert np.any(run.lengths == 40)
    back = rove.load(tmp_path)
    assert back.config.environment == task
    assert back.config.environment.time_limit == 40
    assert back.evaluate().size
    np.testing.assert_array_equal(back.returns, run.returns)


def test_from_the_command_line(tmp_path, capsys):
    command = ["train", "dqn", "FrozenLake-v1", "--steps", "120", "--env.time-limit", "9"]
    main([*command, "--agent.learning-starts", "1000", "--out", str(tmp_path)])
    assert rove.load(tmp_path).lengths.max() <= 9


def test_an_object_keeps_its_name():
    task = rove.adopt(gymnasium.make("CliffWalking-v1"), time_limit=7)
    named = rove.make("gym/CliffWalking-v1", time_limit=7)
    assert task.name == named.name
    assert environments.options(task) == environments.options(named)


@pytest.mark.parametrize(
    ("name", "limit", "words"),
    [
        ("gym/FrozenLake-v1", 101, "at most 100, the time limit of gym/FrozenLake-v1"),
        ("gym/CliffWalking-v1", 0, "at least 1"),
        ("gym/CliffWalking-v1", 2.5, "integer"),
    ],
)
def test_limits_without_meaning_are_refused(name, limit, words):
    with pytest.raises(ConfigError, match=words) as caught:
        rove.make(name, time_limit=limit)
    assert caught.value.field == "time_limit"
