"""Stacks of frames, against Gymnasium's wrapper and by hand."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation

import rove
from rove import environments
from rove.environments.gymnasium import CompiledEnv
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.integers import Integers

SETTINGS = {"hidden": (8,), "buffer_size": 40, "learning_starts": 10, "batch_size": 4}


class Pictures(gymnasium.Env):
    """Random images of bytes; the task ends after five steps."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape=(9, 8, 3)):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self._time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._time = 0
        return self._picture(), {}

    def step(self, action):
        self._time += 1
        return self._picture(), float(action), self._time == 5, False, {}

    def _picture(self):
        shape = self.observation_space.shape
        return self.np_random.integers(0, 256, shape, dtype=np.uint8)


def by_hand(stack):
    """Images [K, H, W, C] joined along their channels, or vectors one after another."""
    return np.concatenate(stack, axis=-1).ravel()


@pytest.mark.parametrize("shape", [(9, 8, 3), (9, 8), (3, 9, 8), (4,)])
def test_gymnasium_stacks_are_those_of_its_wrapper(shape):
    task = rove.adopt(lambda: Pictures(shape), frame_stack=3)
    theirs = FrameStackObservation(Pictures(shape), 3)
    guard = task.make()
    scale = np.float32(1.0 if shape == (4,) else 1 / 255)

    def expected(stack):
        if len(shape) == 2:
            stack = stack[..., None]
        elif shape == (3, 9, 8):  # channels first
            stack = np.moveaxis(stack, 1, -1)
        return by_hand(stack).astype(np.float32) * scale

    for episode in range(2):
        stack, _ = theirs.reset(seed=episode)
        np.testing.assert_array_equal(guard.reset(episode), expected(stack))
        np.testing.assert_array_equal(stack[0], stack[2])  # the first frame is repeated
        for _ in range(5):
            stack, *_ = theirs.step(1)
            columns = guard.step(1)[0]
            np.testing.assert_array_equal(columns, expected(stack))
        np.testing.assert_array_equal(task.observation(stack), columns)
    assert task.observation_size == 3 * int(np.prod(shape))
    assert task.integers == Integers(float(1 / 255) if len(shape) > 1 else 1.0)
    if len(shape) > 1:
        assert task.image == (9, 8, 3 if len(shape) == 2 else 9)


def test_the_cells_of_a_stack_are_those_of_the_newest_frame():
    task = rove.adopt(lambda: gymnasium.make("MountainCar-v0"), frame_stack=2)
    assert task.size == 4
    old, new = np.array([-1.0, 0.0], np.float32), np.array([0.4, 0.01], np.float32)
    state, _ = task.reset(noise.root(0))
    single = rove.adopt(lambda: gymnasium.make("MountainCar-v0"))
    expected = single.bin(single.updated(single.reset(noise.root(0))[0], jnp.asarray(new)))
    stack = jnp.asarray(np.concatenate([old, new]))
    assert task.bin(task.updated(state, stack)) == expected


@pytest.mark.parametrize("name", ["cartpole", "minigrid-empty-5"])
def test_compiled_stacks_are_the_last_observations(name):
    inner, task = environments.make(name), environments.make(name, frame_stack=3)
    reset, step = jax.jit(inner.reset), jax.jit(inner.step)
    stacked_reset, stacked_step = jax.jit(task.reset), jax.jit(task.step)
    state, x = reset(noise.root(4))
    stack, seen = stacked_reset(noise.root(4))
    frames = [np.asarray(x)] * 3
    for i in range(6):
        np.testing.assert_array_equal(seen, np.concatenate(frames[-3:]))
        key, action = noise.fold(noise.root(5), i), jnp.int32(i % 2)
        after, ours = step(state, action, key), stacked_step(stack, action, key)
        frames.append(np.asarray(after.observation))
        state, stack, seen = after.state, ours.state, ours.observation
        assert (ours.reward, ours.terminated) == (after.reward, after.terminated)
        if task.bins:
            assert task.bin(stack) == inner.bin(state)
    assert task.integers == inner.integers
    assert task.name == inner.name
    assert environments.options(task) == environments.options(inner) | {"frame_stack": 3}
    space = CompiledEnv(task).observation_space
    assert space.shape == (3 * inner.observation_size,)
    np.testing.assert_array_equal(task.observation(frames[-3:]), seen)


def test_stacks_of_compiled_images_are_joined_along_their_channels():
    pytest.importorskip("gymnax")
    task = environments.make("gymnax/Breakout-MinAtar", frame_stack=2)
    assert task.image == (10, 10, 8)
    state, _ = task.reset(noise.root(0))
    after = task.step(state, jnp.int32(1), noise.root(1))
    frames = np.asarray(after.state.frames).reshape(2, 10, 10, 4)
    assert np.any(frames[0] != frames[1])
    np.testing.assert_array_equal(after.observation, by_hand(frames))
    again = environments.configured(task, {"frame_stack": 3})
    assert again.image.channels == 12
    assert environments.configured(task, {"frame_stack": 1}).image.channels == 4


def test_codes_are_refused():
    for name in ("deep-sea-4", "gym/FrozenLake-v1"):
        with pytest.raises(ConfigError, match="whose observations are codes of states"):
            environments.make(name, frame_stack=2)
    for count in (0, 65, 1.5):
        with pytest.raises(ConfigError, match="frame_stack"):
            environments.make("cartpole", frame_stack=count)


@pytest.mark.slow
def test_a_run_with_stacks_resumes_and_acts(tmp_path):
    """Interrupted within an episode, on bytes and stacks, with priorities and several steps."""
    agent = rove.DQN(**SETTINGS, prioritised=0.6, n_step=2)

    def task():
        return rove.adopt(Pictures, frame_stack=2)

    whole = rove.train(agent, task(), steps=33)
    rove.train(agent, task(), steps=17, out=tmp_path / "run")
    resumed = rove.train(agent, task(), steps=33, out=tmp_path / "run")
    np.testing.assert_array_equal(whole.returns, resumed.returns)
    ours, theirs = (run.outcomes[0].lane.agent.phi for run in (whole, resumed))
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert resumed.policy()(np.zeros((2, 9, 8, 3), np.uint8)) in (0, 1)
    with pytest.raises(ConfigError, match="last 2 observations"):
        resumed.policy()(np.zeros((9, 8, 3), np.uint8))


class WithMask(Pictures):
    """Observations are dictionaries, with an action mask that only the newest frame decides."""

    def __init__(self):
        vector, mask = gymnasium.spaces.Box(-1, 1, (4,)), gymnasium.spaces.MultiBinary(2)
        self.observation_space = gymnasium.spaces.Dict({"x": vector, "action_mask": mask})

    def _picture(self):
        mask = np.array([self._time % 2, 1], np.int8)
        return {"x": np.full(4, self._time / 10, np.float32), "action_mask": mask}


def test_stacks_of_dictionaries_are_sequences_of_them_or_what_gymnasium_returns():
    task, theirs = rove.adopt(WithMask, frame_stack=2), FrameStackObservation(WithMask(), 2)
    theirs.reset()
    stack = theirs.step(0)[0]  # a dictionary of stacks
    frames = [{key: part[i] for key, part in stack.items()} for i in range(2)]
    for given in (stack, frames, tuple(frames)):
        seen = task.observation(given)
        np.testing.assert_allclose(seen.observation, [0.0] * 4 + [0.1] * 4)
        np.testing.assert_array_equal(seen.allowed, [True, True])
    assert not task.observation(theirs.reset()[0]).allowed[0]
    with pytest.raises(ConfigError, match="action_mask is missing"):
        task.observation([{"x": frame["x"]} for frame in frames])


@pytest.mark.parametrize(
    "given", [None, 1.0, "xy", {}, [np.zeros(4)] * 3, np.zeros(()), np.zeros(8)]
)
def test_what_is_no_stack_is_refused(given):
    with pytest.raises(ConfigError, match="must be a sequence of the last 2 observations"):
        environments.make("CartPole-v1", frame_stack=2).observation(given)
    with pytest.raises(ConfigError, match=r"has shape \(3,\)"):
        environments.make("CartPole-v1", frame_stack=2).observation([np.zeros(4), np.zeros(3)])
    with pytest.raises(ConfigError, match=r"must be an array of shape \(4,\)"):
        environments.make("cartpole", frame_stack=2).observation([np.zeros(4), np.zeros(3)])
