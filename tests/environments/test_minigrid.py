"""MiniGrid's tasks, step by step against the minigrid package where it is installed."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rove
from rove.environments import make
from rove.environments.minigrid import cells
from rove.environments.minigrid.base import MiniGrid
from rove.parts import noise

TASKS = {
    "minigrid-empty-5": ("Empty-5x5", {}),
    "minigrid-empty-8": ("Empty-8x8", {}),
    "minigrid-empty-6": ("Empty-Random-6x6", {"random_start": True}),
    "minigrid-doorkey-5": ("DoorKey-5x5", {}),
    "minigrid-doorkey-8": ("DoorKey-8x8", {}),
}
EPISODES, LENGTH = 12, 400


def package(name):
    pytest.importorskip("minigrid")
    import gymnasium

    return gymnasium.make(f"MiniGrid-{TASKS[name][0]}-v0", disable_env_checker=True).unwrapped


def encoded(image):
    """The package's three numbers of each cell as our integers."""
    return image.astype(np.int32) @ np.array([1, 16, 128])


def colourless(cell):
    return cell % 16, cell // 128


def state_of(world):
    """The package's state as ours."""
    carried = cells.EMPTY if world.carrying is None else encoded(np.array(world.carrying.encode()))
    numbers = world.grid.encode(), world.agent_pos, world.agent_dir, carried, world.step_count
    grid, *rest = (jnp.asarray(x, jnp.int32) for x in numbers)
    return cells.GridState(jnp.asarray(encoded(np.asarray(grid))), *rest)


def images_of(task: MiniGrid, observations):
    """The numbers of MiniGrid's image that observations stand for, and the directions."""
    views, directions = np.split(observations, [task.observation_size - 4], axis=1)
    views = views.reshape(len(views), 7, 7, -1)
    assert np.all(directions.sum(-1) == 1)
    if task.coding == "scaled":
        return np.rint(views * [10, 5, 2]), directions.argmax(-1)
    things, colours = np.split(views, [len(task.things)], axis=-1)
    assert np.all(things.sum(-1) == 1)
    shown = np.array([(cell % 16, 0, cell // 128) for cell in task.things])[things.argmax(-1)]
    if task.colours:
        assert np.all(colours.sum(-1) == 1)
        shown[..., 1] = colours.argmax(-1)
    else:  # the kind determines it
        shown[..., 1] = np.array([0, 0, 5, 0, 4, 4, 0, 0, 1, 0, 0])[shown[..., 0]]
    return shown, directions.argmax(-1)


@jax.jit
def play(task: MiniGrid, state, actions):
    def one(state, action):
        step = task.step(state, action, noise.root(0))
        return step.state, step

    return task.observe(state), jax.lax.scan(one, state, actions)[1]


def action_sequences(rng):
    """Random actions, most of which are useful ones, so that doors are opened."""
    likely = [0.2, 0.2, 0.35, 0.1, 0.03, 0.1, 0.02]
    return rng.choice(7, (EPISODES, LENGTH), p=likely).astype(np.int32)


def walk(world, actions):
    """Yield the package's results; at a step that would end the task, or leave it, stop."""
    for action in actions:
        observation, reward, terminated, truncated, _ = world.step(int(action))
        yield observation, reward, terminated, truncated
        if terminated or truncated:
            return


@pytest.mark.parametrize("coding", ["one-hot", "scaled"])
@pytest.mark.parametrize("name", TASKS)
def test_every_step_is_the_packages(name, coding):
    world, rng = package(name), np.random.default_rng(0)
    task = make(name, coding=coding, **TASKS[name][1])
    assert task.horizon == world.max_steps
    steps, seen = 0, set()
    for episode, actions in enumerate(action_sequences(rng)):
        first, _ = world.reset(seed=episode)
        start, step = jax.device_get(play(task, state_of(world), jnp.asarray(actions)))
        observations, rewards, terminated, truncated = zip(*walk(world, actions), strict=True)
        length = len(rewards)
        step = jax.tree.map(lambda x, length=length: x[:length], step)
        np.testing.assert_allclose(step.reward, rewards, atol=1e-6)
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.truncated, truncated)
        images, directions = images_of(task, np.vstack([start, step.observation]))
        expected = np.stack([x["image"] for x in (first, *observations)])
        np.testing.assert_array_equal(images, expected)
        np.testing.assert_array_equal(directions, [x["direction"] for x in (first, *observations)])
        last = jax.tree.map(lambda x: x[-1], step.state)
        jax.tree.map(np.testing.assert_array_equal, last, jax.device_get(state_of(world)))
        steps += length
        seen |= set(np.unique(encoded(expected)).tolist())
    assert steps > 500
    if task.coding == "one-hot":  # all that can be shown has been
        assert {colourless(cell) for cell in seen} == {colourless(cell) for cell in task.things}


@pytest.mark.parametrize("name", TASKS)
def test_layouts_have_the_packages_distribution(name):
    """Initial states as wholes, where there are few, and their parts."""
    world, task = package(name), make(name, **TASKS[name][1])
    count = 3000
    keys = noise.folds(noise.root(1), count)
    ours = jax.device_get(jax.jit(jax.vmap(task.start))(keys))

    def parts(state):
        found = {"agent": (*np.asarray(state.position).tolist(), int(state.direction))}
        for x, y in np.argwhere(np.asarray(state.cells) != cells.EMPTY):
            cell = int(state.cells[x, y])
            if cell != cells.WALL:
                found[str(cell % 16)] = (int(x), int(y), cell)
        whole = (found["agent"], np.asarray(state.cells).tobytes())
        return found, whole

    def collected(states):
        found = [parts(state) for state in states]
        tables = {part: Counter(x[part] for x, _ in found) for part in found[0][0]}
        return tables | {"whole": Counter(whole for _, whole in found)}

    def theirs():
        for seed in range(count):
            world.reset(seed=seed)
            yield jax.device_get(state_of(world))

    expected = collected(theirs())
    got = collected(jax.tree.map(lambda x, i=i: x[i], ours) for i in range(count))
    assert expected.keys() == got.keys()
    for part in expected:
        values = sorted(expected[part] | got[part], key=repr)
        table = np.array([[c[part][v] for v in values] for c in (expected, got)])
        if len(values) > count / 20:  # too many to compare one by one
            assert part == "whole"
            continue
        if len(values) > 1:
            assert stats.chi2_contingency(table).pvalue > 1e-4, (part, table)


def test_a_solution_by_hand():
    """Empty-5: right, right, turn, down, down: 1 − 0.9·5/100."""
    task = make("minigrid-empty-5")
    state, _ = task.reset(noise.root(0))
    _, step = play(task, state, jnp.array([2, 2, 1, 2, 2], jnp.int32))
    assert np.asarray(step.terminated).tolist() == [False] * 4 + [True]
    np.testing.assert_allclose(step.reward, [0, 0, 0, 0, 1 - 0.9 * 5 / 100], rtol=1e-6)
    assert not np.asarray(step.truncated).any()


def test_a_time_limit_truncates():
    task = make("minigrid-doorkey-6", max_steps=3)
    state, _ = task.reset(noise.root(0))
    _, step = play(task, state, jnp.full(3, 6, jnp.int32))
    assert np.asarray(step.truncated).tolist() == [False, False, True]
    assert not np.asarray(step.terminated).any()


def test_the_score_is_success():
    settings = {"hidden": (8,), "batch_size": 4, "learning_starts": 50, "epsilon": 1.0}
    run = rove.train("dqn", make("minigrid-empty-5"), episodes=30, **settings)
    assert set(np.unique(run.scores)) == {0, 1}
    assert np.all((run.scores == 1) == (run.returns > 0))
    assert np.all(run.lengths[run.scores == 0] == 100)
