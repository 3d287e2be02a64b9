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
    "minigrid-fourrooms": ("FourRooms", {}),
    "minigrid-multiroom": ("MultiRoom-N2-S4", {}),
    "minigrid-unlock": ("Unlock", {}),
}
STEPS, LENGTH, LAYOUTS = 1500, 251, 1500


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
    rest = world.agent_pos, world.agent_dir, carried, world.step_count
    grid = encoded(world.grid.encode()).astype(np.int32)
    return cells.GridState(grid, *(np.asarray(x, np.int32) for x in rest))


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


observe = jax.jit(jax.vmap(lambda task, state: task.observe(state), in_axes=(None, 0)))


def bring_the_key_to_the_door(world):
    """Place the package's agent before a locked door, with the key, and return what it sees."""
    found = {x.type: x for x in world.grid.grid if x is not None}
    x, y = next(
        (x, y)
        for x in range(world.width)
        for y in range(world.height)
        if world.grid.get(x, y) is found["door"]
    )
    world.grid.set(*found["key"].cur_pos, None)
    world.agent_pos, world.agent_dir, world.carrying = (x - 1, y), 0, found["key"]
    return world.gen_obs()


def walk(world, actions):
    """Yield the package's results until the episode ends."""
    for action in actions:
        observation, reward, terminated, truncated, _ = world.step(int(action))
        yield observation, reward, terminated, truncated
        if terminated or truncated:
            return


@pytest.mark.fast_cases("minigrid-doorkey-5", "minigrid-multiroom")
@pytest.mark.parametrize("name", TASKS)
def test_every_step_is_the_packages(name):
    """Random actions, most of which are useful ones, so that doors are opened."""
    world, rng = package(name), np.random.default_rng(0)
    task = make(name, **TASKS[name][1])
    scaled = make(name, coding="scaled", **TASKS[name][1])
    likely = [0.2, 0.2, 0.35, 0.1, 0.03, 0.1, 0.02]
    assert task.horizon == world.max_steps
    steps, seen = 0, set()
    while steps < STEPS:
        first, _ = world.reset(seed=steps)
        if steps % 2 and "key" in world.mission:
            first = bring_the_key_to_the_door(world)
        actions = rng.choice(7, LENGTH, p=likely).astype(np.int32)
        start, step = play(task, state_of(world), actions)
        shown = np.asarray(observe(scaled, step.state))
        observations, rewards, terminated, truncated = zip(*walk(world, actions), strict=True)
        length = len(rewards)
        step = jax.tree.map(lambda x, length=length: np.asarray(x)[:length], step)
        np.testing.assert_allclose(step.reward, rewards, atol=1e-6)
        np.testing.assert_array_equal(step.terminated, terminated)
        np.testing.assert_array_equal(step.truncated, truncated)
        images = np.stack([x["image"] for x in (first, *observations)])
        directions = [x["direction"] for x in (first, *observations)]
        ours = images_of(task, np.vstack([start, step.observation]))
        np.testing.assert_array_equal(ours[0], images)
        np.testing.assert_array_equal(ours[1], directions)
        ours = images_of(scaled, shown[:length])
        np.testing.assert_array_equal(ours[0], images[1:])
        np.testing.assert_array_equal(ours[1], directions[1:])
        last = jax.tree.map(lambda x: x[-1], step.state)
        jax.tree.map(np.testing.assert_array_equal, last, state_of(world))
        steps += length
        seen |= {colourless(cell) for cell in np.unique(encoded(images)).tolist()}
    assert seen == {colourless(cell) for cell in task.things}


def facts(state):
    """Where things are, each by itself and seen from the agent, and which way it looks."""
    x, y = np.asarray(state.position).tolist()
    found = {"agent": (x, y), "x": x, "y": y, "direction": int(state.direction)}
    ahead = np.asarray(state.position) + cells.DIRECTIONS[int(state.direction)]
    found["ahead"] = int(state.cells[tuple(ahead)]) % 16
    found["walls"] = hash(np.asarray(state.cells == cells.WALL).tobytes())
    for at in np.argwhere((state.cells != cells.EMPTY) & (state.cells != cells.WALL)).tolist():
        cell = int(state.cells[tuple(at)])
        kind = {4: "door", 5: "key", 8: "goal"}[cell % 16]
        found |= {kind: tuple(at), f"{kind}'s x": at[0], f"{kind}'s y": at[1], f"{kind}'s": cell}
        found[f"{kind} from agent"] = (at[0] - x, at[1] - y)
    return found


@pytest.mark.fast_cases("minigrid-empty-6", "minigrid-doorkey-5", "minigrid-multiroom")
@pytest.mark.parametrize("name", TASKS)
def test_layouts_have_the_packages_distribution(name):
    """A χ² test for each of the facts, with rare values taken together."""
    world, task = package(name), make(name, **TASKS[name][1])
    keys = noise.folds(noise.root(1), LAYOUTS)
    starts = jax.device_get(jax.jit(jax.vmap(task.start))(keys))
    ours = [facts(jax.tree.map(lambda x, i=i: x[i], starts)) for i in range(LAYOUTS)]
    theirs = []
    for seed in range(LAYOUTS):
        world.reset(seed=seed)
        theirs.append(facts(state_of(world)))
    for fact in theirs[0].keys() | ours[0].keys():
        counts = [Counter(found[fact] for found in side) for side in (ours, theirs)]
        values = counts[0] | counts[1]
        rare = {value for value in values if counts[0][value] + counts[1][value] < 10}
        table = [[c[v] for v in values if v not in rare] for c in counts]
        others = [sum(c[v] for v in rare) for c in counts]
        if sum(others) >= 10:
            table = [[*row, other] for row, other in zip(table, others, strict=True)]
        if len(table[0]) > 1:
            assert stats.chi2_contingency(table).pvalue > 1e-4, (fact, table)


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


@pytest.mark.slow
def test_the_score_is_success():
    settings = {"hidden": (8,), "batch_size": 4, "learning_starts": 50, "epsilon": 1.0}
    run = rove.train("dqn", make("minigrid-empty-5"), episodes=30, **settings)
    assert set(np.unique(run.scores)) == {0, 1}
    assert np.all((run.scores == 1) == (run.returns > 0))
    assert np.all(run.lengths[run.scores == 0] == 100)
