"""rove.environments.actions: combinations of MultiDiscrete and MultiBinary actions, against
Gymnasium's own spaces."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit, TransformAction

import rove
from rove.environments.actions import MOST_COMBINATIONS, action_count, decoder
from rove.errors import ConfigError

SPACES = [
    spaces.MultiDiscrete([3]),
    spaces.MultiDiscrete([3, 4, 2]),
    spaces.MultiDiscrete([5, 1, 3], start=[-2, 7, 1]),
    spaces.MultiDiscrete([[2, 3], [4, 1]], start=[[0, 1], [2, 3]]),
    spaces.MultiDiscrete([3, 100], dtype=np.int8, start=np.array([-1, 20], np.int8)),
    spaces.MultiDiscrete([1] * 70),
    spaces.MultiBinary(1),
    spaces.MultiBinary(10),
    spaces.MultiBinary((2, 3)),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_combination_is_an_action_once(space):
    decode, count = decoder(space), action_count(space)
    parts = space.nvec if isinstance(space, spaces.MultiDiscrete) else np.full(space.shape, 2)
    assert count == math.prod(parts.ravel().tolist()) <= MOST_COMBINATIONS
    actions = [decode(np.int32(i)) for i in range(count)]
    assert all(space.contains(action) for action in actions)
    assert {action.dtype for action in actions} == {space.dtype}
    assert len({action.tobytes() for action in actions}) == count
    start = space.start if isinstance(space, spaces.MultiDiscrete) else 0
    for i in (0, count // 2, count - 1):  # the last part changes fastest
        flat = (actions[i] - start).ravel()
        weights = np.cumprod([1, *parts.ravel()[:0:-1].tolist()])[::-1]
        assert int(flat.astype(int) @ weights) == i
    space.seed(0)
    drawn = {space.sample().tobytes() for _ in range(50)}
    assert drawn <= {action.tobytes() for action in actions}


def test_an_action_may_be_changed_by_the_environment():
    decode = decoder(spaces.MultiBinary(3))
    decode(5)[:] = 9
    assert decode(5).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("space", "count"),
    [
        (spaces.MultiBinary(11), "2,048"),
        (spaces.MultiDiscrete([33, 32]), "1,056"),
        (spaces.MultiDiscrete([1000] * 30), f"{1000**30:,}"),
    ],
)
def test_too_many_combinations_are_refused_with_their_number(space, count):
    with pytest.raises(ConfigError, match=rf"with {count} combinations.* at most 1,024") as caught:
        rove.adopt(lambda: Switches(space))
    assert caught.value.field == "environment"


class Switches(gymnasium.Env):
    """One action a step, and a reward of 1 for the right one of each of three states."""

    observation_space = spaces.Discrete(3)

    def __init__(self, space):
        self.action_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = int(self.np_random.integers(3))
        return self.state, {}

    def step(self, action):
        assert self.action_space.contains(action), action
        right = np.array_equal(action, [2 - self.state, 1 + self.state])
        self.state = int(self.np_random.integers(3))
        return self.state, float(right), False, False, {}


def of_combinations():
    return TimeLimit(Switches(spaces.MultiDiscrete([3, 4])), 12)


def of_numbers():
    """The same task with the number of a combination as its action, by NumPy."""
    env = Switches(spaces.MultiDiscrete([3, 4]))
    combination = lambda action: np.stack(np.unravel_index(action, (3, 4)))  # noqa: E731
    return TimeLimit(TransformAction(env, combination, spaces.Discrete(12)), 12)


@pytest.mark.slow
def test_combinations_are_learned_as_their_numbers(tmp_path):
    """The same bits as on a Discrete space that NumPy unravels; 12 of 12 steps are right at the
    end. The policy returns what the environment takes, also after loading."""
    agent = rove.DQN(
        hidden=(32,), lr=0.01, gamma=0.0, epsilon_steps=400, epsilon=0.05, learning_starts=50
    )
    runs = [rove.train(agent, make, episodes=60) for make in (of_combinations, of_numbers)]
    np.testing.assert_array_equal(runs[0].returns, runs[1].returns)
    np.testing.assert_array_equal(runs[0].evaluate(3), 12.0)
    task = runs[0].config.environment
    assert (task.num_actions, task.continuous) == (12, False)
    assert task.action_names[:5] == tuple(f"action {a}" for a in ([0, 0], [0, 1], [0, 2], [0, 3], [1, 0]))  # fmt: skip  # noqa: E501
    runs[0].save(tmp_path)
    for run in (runs[0], rove.load(tmp_path, environment=rove.adopt(of_combinations))):
        act = run.policy()
        assert [act(state).tolist() for state in range(3)] == [[2, 1], [1, 2], [0, 3]]
        assert task.source.spaces[1].contains(act(0))
