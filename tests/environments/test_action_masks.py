"""Action masks of Gymnasium environments: Taxi step by step, masks in observations and of
combinations, and what is said about masks that are wrong."""

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

import rove
from helpers import lane_at
from rove.environments.faults import BadEnvironment
from rove.environments.guard import Guard
from rove.errors import ConfigError, LaneError
from rove.parts import replay
from rove.runs.configure import configure

TAXI = max(name for name in gymnasium.registry if name.startswith("Taxi-v"))
SMALL = {"hidden": (8,), "batch_size": 8, "buffer_size": 400, "learning_starts": 8}


class Watched(gymnasium.Wrapper):
    """Notes the mask at each action, the action, and the mask after it."""

    def __init__(self, env, notes):
        super().__init__(env)
        self.notes = notes

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        self.mask = info["action_mask"].copy()
        return observation, info

    def step(self, action):
        *result, info = self.env.step(action)
        self.notes.append((self.mask, int(action), info["action_mask"].copy()))
        self.mask = self.notes[-1][2]
        return *result, info


def taxi(notes):
    return lambda: Watched(gymnasium.make(TAXI, max_episode_steps=25), notes)


def legal(notes) -> list[bool]:
    return [bool(mask[action]) for mask, action, _ in notes]


def test_the_mask_of_taxi_is_that_of_its_state_at_every_step():
    """Columns of the guard are the state and Gymnasium's own mask of it; the task has both."""
    guard, env = Guard(gymnasium.make(TAXI), 300), gymnasium.make(TAXI).unwrapped
    task = rove.make(TAXI)
    assert task.masked
    assert (task.observation_size, task.num_actions, task.coded) == (500, 6, True)
    rng, distinct = np.random.default_rng(0), set()
    columns = guard.reset(seed=3)
    for _ in range(150):
        mask = env.action_mask(int(columns[0]))
        np.testing.assert_array_equal(columns[1:], mask)
        observation = task.received(jax.numpy.asarray(columns))
        assert int(observation.observation.index) == columns[0]
        np.testing.assert_array_equal(observation.allowed, mask == 1)
        distinct.add(tuple(mask.tolist()))
        columns, *_ = guard.step(int(rng.choice(np.flatnonzero(mask))))
    assert len(distinct) > 5


@pytest.mark.slow
def test_taxi_is_trained_and_played_with_allowed_actions_only(tmp_path, monkeypatch):
    """In training, half of it at random, in evaluation and by the policy; without the mask, many
    actions are not allowed. The buffer has the masks of the states that followed."""
    notes = []
    agent = rove.DQN(**SMALL, epsilon=0.5)
    task = rove.adopt(taxi(notes))
    config = configure(agent, task, steps=150)
    lane = lane_at(config, 100, tmp_path / "stopped", monkeypatch)
    notes.clear()
    run = rove.train(agent, task, steps=150)
    assert len(notes) == 150
    assert all(legal(notes))
    assert {tuple(mask.tolist()) for mask, *_ in notes} != {(1,) * 6}
    stored, held = jax.jit(replay.everything)(lane.agent.replay, 0.99)
    assert int(held.sum()) == 100
    after = [mask for *_, mask in notes[:100]]
    np.testing.assert_array_equal(stored.next_observation.allowed[:100], after)
    np.testing.assert_array_equal(stored.action_index[:100], [action for _, action, _ in notes[:100]])  # fmt: skip  # noqa: E501

    notes.clear()
    run.evaluate(2, policy="mean")
    assert len(notes) == 50
    assert all(legal(notes))

    env = gymnasium.make(TAXI)
    observation, info = env.reset(seed=0)
    act = run.policy()
    for _ in range(20):
        action = act(observation, info["action_mask"])
        assert isinstance(action, int)
        assert info["action_mask"][action] == 1
        observation, *_, info = env.step(action)
    with pytest.raises(ConfigError, match=r"act\(observation, info\[\"action_mask\"\]\)"):
        act(observation)
    with pytest.raises(ConfigError, match=r"action_mask has shape \(5,\).*\(6,\)"):
        act(observation, np.ones(5, np.int8))
    with pytest.raises(ConfigError, match="action_mask allows no action"):
        act(observation, np.zeros(6, np.int8))

    notes.clear()
    free = rove.adopt(taxi(notes), ignore_mask=True)
    assert not free.masked
    ignoring = rove.train(agent, free, steps=150)
    assert 0.1 < np.mean(legal(notes)) < 0.9
    assert isinstance(ignoring.policy()(observation), int)
    assert ignoring.policy()(observation, np.eye(6, dtype=np.int8)[4]) == 4  # given all the same


@pytest.mark.slow
def test_a_masked_run_goes_on_within_an_episode_and_loads_without_its_environment(tmp_path):
    """The same bits as at once; ends within an episode, which is repeated."""
    agent, notes = rove.DQN(**SMALL, epsilon=0.5), []
    task = rove.adopt(taxi(notes))
    whole = rove.train(agent, task, steps=190)
    rove.train(agent, task, steps=110, out=tmp_path)
    run = rove.train(agent, task, steps=190, out=tmp_path)
    np.testing.assert_array_equal(run.returns, whole.returns)
    for ours, theirs in zip(
        *(jax.tree.leaves(r.outcomes[0].lane.agent.phi) for r in (run, whole)), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
    assert all(legal(notes))
    back = rove.load(tmp_path)
    np.testing.assert_array_equal(back.returns, whole.returns)
    assert back.config.environment.masked


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["psrl", "bayesian_q_learning", "particles", "thompson"])
def test_agents_with_tables_learn_with_masks(agent):
    """They look at an observation before training, to refuse what is not one-hot."""
    run = rove.train(agent, rove.make(TAXI, time_limit=20), steps=60)
    assert run.returns.shape[1] >= 3
    act = run.policy(kind="mean")
    only = np.arange(6) == 4
    assert act(0, only) == 4
    with pytest.raises(ConfigError, match="one-hot"):
        configure(agent, "gym/CartPole-v1")


def test_ignoring_the_mask_is_recorded_and_restored(tmp_path):
    task = rove.make(TAXI, ignore_mask=True)
    rove.train(rove.DQN(**SMALL), task, episodes=1, out=tmp_path)
    back = rove.load(tmp_path).config.environment
    assert back.ignore_mask
    assert not back.masked


class Doors(gymnasium.Env):
    """Four doors, of which those that are open change. A shut one pays 1 and an open one its
    number / 10. Masks are in `info`, or in observations."""

    observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
    action_space = spaces.Discrete(4, start=1)

    def __init__(self, where="info"):
        self.where, self.time = where, 0
        if where == "observation":
            parts = {"action_mask": spaces.MultiBinary(4), "observation": Doors.observation_space}
            self.observation_space = spaces.Dict(parts)

    def _shown(self):
        self.open = np.zeros(4, np.int8)
        self.open[self.np_random.choice(4, 2, replace=False)] = 1
        noisy = self.np_random.random(4).astype(np.float32)
        if self.where == "observation":
            return {"observation": noisy, "action_mask": self.open}, {}
        return noisy, {"action_mask": self.open}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._shown()

    def step(self, action):
        reward = action / 10 if self.open[action - 1] else 1.0
        self.time += 1
        observation, info = self._shown()
        return observation, float(reward), False, self.time >= 5, info


@pytest.mark.slow
def test_masks_in_observations_are_those_in_info():
    """As PettingZoo has them: the same bits, and the mask is not an input of the network."""
    agent = rove.DQN(**SMALL, epsilon=0.3)
    runs = [
        rove.train(agent, rove.adopt(lambda where=where: Doors(where)), episodes=12)
        for where in ("info", "observation")
    ]
    np.testing.assert_array_equal(runs[0].returns, runs[1].returns)
    assert runs[0].returns.max() <= 5 * 0.4 + 1e-6
    for run in runs:
        assert run.config.environment.masked
        assert run.config.environment.observation_size == 4
    x, mask = np.full(4, 0.5, np.float32), np.array([1, 0, 0, 0])
    assert runs[0].policy()(x, mask) == 1  # the first action is 1
    assert runs[1].policy()({"observation": x, "action_mask": mask.astype(np.int8)}) == 1
    normalised = rove.adopt(lambda: Doors("observation"), normalise=True, ignore_mask=True)
    assert normalised.observation_size == 8


class TwoPart(Doors):
    """Doors in two parts, with a mask for each, as `space.sample(mask)` takes them."""

    action_space = spaces.MultiDiscrete([2, 3])

    def __init__(self, masks=([1, 0], [0, 1, 1])):
        super().__init__()
        self.masks = masks

    def _shown(self):
        masks = self.masks
        if isinstance(masks, tuple):
            masks = tuple(np.array(mask, np.int8) for mask in masks)
        return self.np_random.random(4).astype(np.float32), {"action_mask": masks}

    def step(self, action):
        self.time += 1
        observation, info = self._shown()
        return observation, 0.0, False, self.time >= 5, info


def test_masks_of_the_parts_of_an_action():
    """A combination is allowed if both of its parts are."""
    guard = Guard(TwoPart(), 50)
    columns = guard.reset(0)
    np.testing.assert_array_equal(columns[4:], [0, 1, 1, 0, 0, 0])
    space, masks = TwoPart.action_space, guard.env.reset()[1]["action_mask"]
    space.seed(0)
    drawn = {tuple(space.sample(mask=masks).tolist()) for _ in range(60)}
    assert drawn == {tuple(guard.decode(i).tolist()) for i in np.flatnonzero(columns[4:])}
    task = rove.adopt(TwoPart)
    assert (task.observation_size, task.num_actions, task.masked) == (4, 6, True)


@pytest.mark.parametrize(
    ("masks", "words"),
    [
        (([1, 0],), "must be a tuple of 2 masks, one for each part of MultiDiscrete"),
        (np.ones(6, np.int8), "must be a tuple of 2 masks"),
        (([1, 0], [1, 0]), r"has shape \(2,\), but must have shape \(3,\)"),
        (([1, 0], [0, 0, 0]), "allows no action"),
    ],
)
def test_wrong_masks_of_parts(masks, words):
    with pytest.raises(ConfigError, match=f"action_mask {words}"):
        rove.adopt(lambda: TwoPart(masks))


@pytest.mark.parametrize("space", [spaces.Box(-1.0, 1.0, (4,)), spaces.MultiBinary(4)])
def test_actions_that_have_no_masks(space):
    class Other(Doors):
        action_space = space

    with pytest.raises(ConfigError, match="action_mask needs a Discrete or MultiDiscrete action"):
        rove.adopt(Other)
    assert not rove.adopt(Other, ignore_mask=True).masked


def test_a_mask_may_be_missing_or_empty_at_the_end_of_the_task_only():
    class Ends(Doors):
        last: dict = {}

        def step(self, action):
            observation, reward, _, _, info = super().step(action)
            ended = self.time >= 5
            return (
                observation,
                reward,
                ended and self.how == "terminated",
                ended,
                (self.last if ended else info),
            )

    for last in ({}, {"action_mask": np.zeros(4, np.int8)}):
        for how in ("terminated", "truncated"):
            env = Ends()
            env.last, env.how = last, how
            guard = Guard(env, 50)
            guard.reset(0)
            for _ in range(4):
                guard.step(0)
            if how == "terminated":
                assert guard.step(0)[0].shape == (8,)
            else:
                with pytest.raises(BadEnvironment, match=r"(has no|allows no action)"):
                    guard.step(0)


def test_an_agent_on_another_environment_is_told_of_a_wrong_mask_in_training():
    """With the seed, the step and the field."""

    class Late(Doors):
        def step(self, action):
            *result, info = super().step(action)
            return *result, {"action_mask": info["action_mask"] * (self.time < 3)}

    with pytest.raises(
        LaneError, match=r"dqn on Late, seed 0, step 3 \(episode 1\): action_mask allows no action"
    ):
        rove.train(rove.DQN(**SMALL), lambda: TimeLimit(Late(), 9), episodes=2)
