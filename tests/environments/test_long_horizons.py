"""Point Rooms and Swing-up: NumPy steppers written from their descriptions, and Gymnasium's
pendulum."""

import math
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.environments import make
from rove.parts import noise


@jax.jit
def play(task, values, actions):
    """The values after each action, and the rewards and ends."""
    start, _ = task.reset(noise.root(0))

    def one(state, action):
        step = task.step(state, action, noise.root(0))
        return step.state, (step.state.values, step.observation, step.reward, step.terminated)

    return jax.lax.scan(one, start._replace(values=values), actions)[1]


def step_point(x, y, vx, vy, action):
    """The rules of Point Rooms in plain Python."""
    push = {0: (1, 0), 1: (0, 1), 2: (-1, 0), 3: (0, -1), 4: (0, 0)}[action]
    vx = min(max(0.9 * vx + 0.01 * push[0], -0.05), 0.05)
    vy = min(max(0.9 * vy + 0.01 * push[1], -0.05), 0.05)
    left, now_left = x < 0, x + vx < 0
    new_x, new_y = x + vx, y + vy
    if left != now_left:
        height = y + vy * abs(x) / abs(vx)
        if not 0.6 < height < 0.9:
            new_x, vx = (-0.001 if left else 0.001), 0.0
    if abs(new_x) > 1:
        new_x, vx = math.copysign(1, new_x), 0.0
    if abs(new_y) > 1:
        new_y, vy = math.copysign(1, new_y), 0.0
    return new_x, new_y, vx, vy


def test_point_rooms_against_a_plain_stepper():
    """Walks that keep to an action for a while, from everywhere, so that they meet all walls."""
    task, rng = make("point-rooms"), np.random.default_rng(0)
    through, blocked = 0, 0
    for _ in range(40):
        values = np.array([*rng.uniform(-1, 1, 2), 0, 0], np.float32)
        actions = np.repeat(rng.integers(5, size=20), 15).astype(np.int32)
        after, shown, reward, terminated = map(np.asarray, play(task, values, actions))
        np.testing.assert_array_equal(after, shown)
        state = values
        for t, action in enumerate(actions):
            expected = step_point(*(float(x) for x in state), int(action))
            np.testing.assert_allclose(after[t], expected, atol=1e-6)
            at_goal = math.dist(expected[:2], (0.8, -0.8)) < 0.2
            if abs(math.dist(expected[:2], (0.8, -0.8)) - 0.2) > 1e-6:
                assert terminated[t] == at_goal
                assert reward[t] == float(at_goal)
            through += (state[0] < 0) != (after[t][0] < 0)
            blocked += abs(after[t][0]) == np.float32(0.001)
            state = after[t]
    assert through > 5
    assert blocked > 20


@partial(jax.jit, static_argnums=1)
def steered(task, policy):
    """Whether each step of an episode ends it when a policy of the values acts: by reaching the
    goal, and by the time limit."""

    def one(state, _):
        step = task.step(state, policy(state.values), noise.root(0))
        return step.state, (step.terminated, step.truncated)

    return jax.lax.scan(one, task.reset(noise.root(3))[0], None, task.horizon)[1]


def towards(x, target):
    """Push along the axis on which the velocity differs most from one towards a target."""
    miss = jnp.clip((jnp.array(target) - x[:2]) / 5, -0.05, 0.05) - x[2:]
    along_x = jnp.abs(miss[0]) > jnp.abs(miss[1])
    return jnp.where(along_x, jnp.where(miss[0] > 0, 0, 2), jnp.where(miss[1] > 0, 1, 3))


def by_the_door(x):
    """Up on the left, through the door, and down to the goal."""
    up, through = towards(x, (-0.1, 0.75)), towards(x, (0.2, 0.75))
    on_the_left = jnp.where((x[0] < -0.2) | (x[1] < 0.65), up, through)
    return jnp.where(x[0] < 0.05, on_the_left, towards(x, (0.8, -0.8)))


def test_point_rooms_is_solved_through_the_door_only():
    task = make("point-rooms")
    terminated, truncated = steered(task, by_the_door)
    assert 60 < int(jnp.argmax(terminated)) < 110
    assert truncated.tolist() == [False] * 299 + [True]
    terminated, _ = steered(task, lambda x: towards(x, (0.8, -0.8)))
    assert not terminated.any()


def test_swing_up_against_gymnasiums_pendulum():
    task, rng = make("swing-up"), np.random.default_rng(0)
    env = gymnasium.make("Pendulum-v1").unwrapped
    env.reset(seed=0)
    ends = 0
    for _ in range(30):
        values = np.array([rng.uniform(-math.pi, math.pi), rng.uniform(-6, 6)], np.float32)
        actions = rng.integers(3, size=100).astype(np.int32)
        after, shown, reward, terminated = map(np.asarray, play(task, values, actions))
        state = values
        for t, action in enumerate(actions):
            env.state = state.astype(float)
            observation, *_ = env.step(np.array([action - 1.0]))
            np.testing.assert_allclose(shown[t], observation, atol=2e-5)
            cosine, _, velocity = observation
            upright = cosine > math.cos(0.2) and abs(velocity) < 1
            assert terminated[t] == upright
            assert reward[t] == float(upright)
            ends += upright
            state = after[t]
    assert ends > 10


def pump(x):
    """Torque along the velocity until the energy suffices, and against it from then on."""
    enough = x[1] ** 2 / 2 + 15 * jnp.cos(x[0]) > 15
    return jnp.where((x[1] > 0) != enough, 2, 0)


def test_swing_up_is_solved_by_pumping_energy():
    """But not by a constant torque."""
    task = make("swing-up")
    terminated, truncated = steered(task, pump)
    assert 80 < int(jnp.argmax(terminated)) < 160
    assert truncated.tolist() == [False] * 399 + [True]
    for action in range(3):
        assert not steered(task, lambda x, action=action: jnp.int32(action))[0].any()


@pytest.mark.parametrize(("name", "at_most"), [("point-rooms", 0.01), ("swing-up", 0.01)])
def test_random_actions_do_not_reach_the_goal(name, at_most):
    task = make(name)

    def episode(key):
        def one(carry, t):
            state, reached = carry
            action = noise.integers(noise.fold(key, 0, t), (), task.num_actions)
            step = task.step(state, action, key)
            return (step.state, reached | step.terminated), None

        start, _ = task.reset(noise.fold(key, 1))
        carry, _ = jax.lax.scan(one, (start, jnp.zeros((), bool)), jnp.arange(task.horizon))
        return carry[1]

    reached = jax.jit(jax.vmap(episode))(noise.folds(noise.root(0), 400))
    assert reached.mean() <= at_most
