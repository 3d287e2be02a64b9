"""rove's Gymnasium environments pass its own checker and agree with the compiled ones."""

import warnings

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.utils.env_checker import check_env

import rove
from rove.environments.base import Coordinate
from rove.environments.control import ControlState
from rove.environments.encoding import encoder
from rove.environments.faults import BadEnvironment
from rove.errors import ConfigError
from rove.parts import noise

CASES = [
    (rove.Chain, {}),
    (rove.Chain, {"n": 9, "features": "one-hot", "permuted": True}),
    (rove.DeepSea, {}),
    (rove.DeepSea, {"n": 4, "map_seed": 42, "randomised": False}),
    (rove.Bandit, {}),
    (rove.Bandit, {"n": 3, "map_seed": 1, "noise_std": 0.5}),
    (rove.BernoulliBandit, {"n": 3}),
    (rove.LinearBandit, {"n": 3, "features": 4}),
    (rove.Cliff, {"wind": 0.2}),
    (rove.MiniGridUnlock, {"max_steps": 20}),
]
UNSIZED = (rove.MiniGridUnlock, rove.Cliff)


SPARSE = {
    "SparseCartPole": ("CartPole-v1", -1.0),
    "SparseMountainCar": ("MountainCar-v0", 1.0),
    "SparseAcrobot": ("Acrobot-v1", 1.0),
}


def made(kind, options):
    return gymnasium.make(f"rove/{kind.__name__}-v0", **options)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_gymnasium_checker(kind, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(made(kind, options).unwrapped, skip_render_check=True)


@pytest.mark.fast_cases(
    "Chain-options0",
    "Chain-options1",
    "DeepSea-options2",
    "DeepSea-options3",
    "Bandit-options4",
    "Bandit-options5",
    "BernoulliBandit-options6",
    "LinearBandit-options7",
    "Cliff-options8",
)
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_agrees_with_the_compiled_environment(kind, options):
    """Step by step. An episode's key is from its seed, a step's from that and the time."""
    compiled = kind(**{"n": 10, **options} if kind not in UNSIZED else options)
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
    grids = (f"MiniGrid{kind}" for kind in ("Empty", "DoorKey", "FourRooms", "MultiRoom", "Unlock"))
    kinds = (
        "Chain",
        "DeepSea",
        "Bandit",
        "BernoulliBandit",
        "LinearBandit",
        "Cliff",
        "LinearQuadratic",
        "PointRooms",
        "SwingUp",
        *grids,
        *SPARSE,
    )
    assert names == {f"rove/{kind}-v0" for kind in (*kinds, *grids)}
    rove.register()  # a second call changes nothing


def test_step_before_reset_and_bad_actions_are_refused():
    env = gymnasium.make("rove/Chain-v0").unwrapped
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(gymnasium.error.InvalidAction):
        env.step(2)


@pytest.mark.parametrize("name", SPARSE)
def test_gymnasium_checker_on_sparse_rewards(name):
    """But for warnings that it has for the task itself, and for a wrapper."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*(infinity|different from the unwrapped).*")
        env = gymnasium.make(f"rove/{name}-v0", disable_env_checker=True)
        check_env(env, skip_render_check=True)


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rewards_change_nothing_but_the_reward(name):
    """Of Gymnasium's own task, over episodes that end and episodes that run out of time."""
    own, reward = SPARSE[name]
    env, plain = gymnasium.make(f"rove/{name}-v0"), gymnasium.make(own)
    wrapped = rove.SparseReward(gymnasium.make(own), reward=reward)
    rng, ends = np.random.default_rng(0), []
    for seed in range(8):
        shown = [e.reset(seed=seed)[0] for e in (env, wrapped, plain)][-1]
        done, last = False, env.action_space.n - 1
        while not done:
            along = last if shown[-1] > 0 else 0  # with the car, the pole or the second link
            action = along if seed % 2 else int(rng.integers(last + 1))
            *steps, theirs = [e.step(action) for e in (env, wrapped, plain)]
            shown = theirs[0]
            for step in steps:
                np.testing.assert_array_equal(step[0], theirs[0])
                assert step[1] == (reward if theirs[2] else 0.0)
                assert step[2:4] == theirs[2:4]
            done = theirs[2] or theirs[3]
        ends.append(theirs[2:4])
    assert (True, False) in ends


def test_a_time_limit_pays_nothing():
    env = rove.SparseReward(gymnasium.make("CartPole-v1", max_episode_steps=3), reward=5.0)
    env.reset(seed=0)
    steps = [env.step(0)[1:4] for _ in range(3)]
    assert steps == [(0.0, False, False)] * 2 + [(0.0, False, True)]


def test_a_bad_sparse_reward_is_refused():
    with pytest.raises(rove.ConfigError, match="reward"):
        rove.SparseReward(gymnasium.make("CartPole-v1"), reward=float("nan"))


@pytest.mark.slow
def test_any_task_can_be_made_sparse():
    """CartPole on the host: −1 for the fall, nothing else, and scored by its length; with a
    positive reward, scored by whether the task ended."""
    for reward, label in ((-1.0, "episode length"), (2.0, "goal reached")):
        place = rove.environments.make("gym/CartPole-v1", sparse=reward)
        assert place.score_label == label
        run = rove.train("dqn", place, episodes=3, hidden=(4,), batch_size=4, learning_starts=10)
        assert run.returns.tolist() == [[reward] * 3]
        length = run.lengths if reward < 0 else np.ones((1, 3))
        np.testing.assert_array_equal(run.scores, length)
    with pytest.raises(ConfigError, match="sparse"):
        rove.environments.make("gym/CartPole-v1", sparse=float("nan"))


class Lattice(gymnasium.Env):
    """Points of a lattice that is given by its space."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, observation_space):
        self.observation_space = observation_space

    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, True, False, {}


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Box(np.array([-1, 2]), np.array([5, 4]), dtype=np.int64),
        gymnasium.spaces.MultiDiscrete([7, 3], start=[-1, 2]),
    ],
    ids=["box", "multi-discrete"],
)
def test_integers_have_a_cell_each(space):
    place = rove.adopt(Lattice(space))
    assert place.cells == (3, 7)
    assert place.coordinates[1] == ("observation 0", -1.5, 5.5, 7)
    start, _ = place.reset(noise.root(0))
    cells = [
        int(place.bin(place.updated(start, jnp.asarray(place.observation(np.array([x, y]))))))
        for y in range(2, 5)
        for x in range(-1, 6)
    ]
    assert cells == list(range(21))


def test_many_integers_share_cells_evenly():
    assert Coordinate.of_integers("x", 0, 39) == ("x", -0.5, 39.5, 40)
    assert Coordinate.of_integers("x", 0, 99) == ("x", -0.5, 101.5, 34)  # three in each


def test_the_states_of_a_discrete_space_have_its_numbers():
    assert rove.adopt(Lattice(gymnasium.spaces.Discrete(4))).first_cell == 0
    assert rove.adopt(Lattice(gymnasium.spaces.Discrete(4, start=3))).first_cell == 3
    assert rove.environments.make("chain-5").first_cell == 1


def test_visits_are_counted_by_two_entries_of_a_box():
    """Of a box of two that are bounded by themselves, as in the compiled environment; otherwise of
    those that a person names."""
    hosted, compiled = rove.environments.make("gym/MountainCar-v0"), rove.MountainCar()
    assert hosted.cells == compiled.cells
    np.testing.assert_allclose(
        [side[1:] for side in hosted.coordinates], [side[1:] for side in compiled.coordinates]
    )
    for shown in np.random.default_rng(0).uniform(*compiled.observation_bounds, size=(20, 2)):
        shown = jnp.asarray(shown, jnp.float32)
        state = hosted.updated(hosted.reset(noise.root(0))[0], shown)
        theirs = ControlState(shown, jnp.zeros((), jnp.int32))
        assert int(hosted.bin(state)) == int(compiled.bin(theirs))

    assert rove.environments.make("gym/CartPole-v1").bins == 0
    pole = rove.environments.make("gym/CartPole-v1", axes=[1, 2])  # a speed, which has no bounds
    assert pole.coordinates[1] == ("observation 1", -3.0, 3.0, 40)
    assert pole.coordinates[0][1:3] == pytest.approx((-0.419, 0.419), abs=1e-3)
    assert pole.options()["axes"] == [1, 2]
    for axes in ((0, 4), (1, 1), (0, 1, 2), 3):
        with pytest.raises(ConfigError, match="axes"):
            rove.environments.make("gym/CartPole-v1", axes=axes)
    with pytest.raises(ConfigError, match="axes"):
        rove.environments.make("gym/FrozenLake-v1", axes=(0, 1))


class Sentence(gymnasium.Space):
    """A package's own kind of space, as MiniGrid's missions are."""

    def __init__(self):
        super().__init__(dtype=str)

    def sample(self, mask=None, probability=None):
        return "go to the door"

    def contains(self, x):
        return isinstance(x, str)


def test_the_parts_of_a_dictionary_that_have_no_size_are_left_out():
    parts = {
        "place": gymnasium.spaces.Discrete(3),
        "mission": Sentence(),
        "far": gymnasium.spaces.Box(0.0, 9.0, (2,), np.float32),
    }
    encode = encoder(gymnasium.spaces.Dict(parts))
    seen = {"place": 2, "mission": "go", "far": np.array([4.0, 5.0], np.float32)}
    np.testing.assert_array_equal(encode(seen), [4.0, 5.0, 0.0, 0.0, 1.0])
    with pytest.raises(BadEnvironment, match="must be a dictionary"):
        encode([1, 2])
    with pytest.raises(BadEnvironment, match="not in its space"):
        encode({"place": 5, "mission": "go", "far": np.zeros(2, np.float32)})
    with pytest.raises(BadEnvironment, match="fixed size"):
        encoder(gymnasium.spaces.Dict({"mission": Sentence()}))


def test_each_state_of_a_discrete_space_is_a_cell():
    lake = rove.environments.make("gym/FrozenLake-v1", is_slippery=False)
    assert lake.cells == (16,)
    agent = rove.DQN(hidden=(8,), learning_starts=10, buffer_size=100, epsilon=1.0)
    run = rove.train(agent, lake, episodes=30, seeds=1)
    assert run.visits.shape == (1, 16)
    assert run.visits[0, 0] == 1.0  # every episode starts in the first state
    assert 0.2 < run.visits[0, 1] < 1.0
    assert run.visits[0, 5] + run.visits[0, 7] + run.visits[0, 11] + run.visits[0, 12] > 0.5
    assert rove.adopt(lambda: Numbered(10_001)).cells == (0,)


class Numbered(gymnasium.Env):
    """An environment with many states, whose first one is number 3."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, states):
        self.observation_space = gymnasium.spaces.Discrete(states)

    def reset(self, *, seed=None, options=None):
        return 3, {}

    def step(self, action):
        return 4, 1.0, True, False, {}


def test_cells_that_were_not_visited_are_not_counted():
    agent = rove.DQN(hidden=(8,), learning_starts=10, buffer_size=100)
    run = rove.train(agent, lambda: Numbered(6), episodes=3, seeds=1)
    np.testing.assert_array_equal(run.visits, [[0, 0, 0, 1, 1, 0]])


def test_the_optimum_of_a_gymnasium_environment_can_be_given(tmp_path):
    agent = rove.DQN(hidden=(8,), learning_starts=10, buffer_size=100)
    task = rove.adopt(lambda: Numbered(6), optimum=1.0)
    run = rove.train(agent, task, episodes=40, seeds=1, until_solved=True)
    assert run.solved_at == [10]
    assert run.returns.shape == (1, 10)
    assert rove.load(run.save(tmp_path), environment=task).solved_at == [10]
    with pytest.raises(ConfigError, match="optimum"):
        rove.adopt(lambda: Numbered(6), optimum=float("nan"))


def test_the_range_of_scores_can_be_given():
    agent = rove.DQN(hidden=(8,), learning_starts=10, buffer_size=100)
    tasks = [rove.adopt(lambda: Numbered(6), score_range=given) for given in ((0.0, 1.0), None)]
    first, second = (rove.train(agent, task, episodes=3, seeds=2) for task in tasks)
    found = rove.difference(first, first)
    assert (found.value, found.p) == (0.0, 1.0)
    found = rove.difference(second, second)  # a permutation test
    assert (found.value, found.p) == (0.0, 1.0)
    with pytest.raises(ConfigError, match="score_range must be a minimum and a larger maximum"):
        rove.adopt(lambda: Numbered(6), score_range=(1.0, 0.0))
    with pytest.raises(ConfigError, match="score_range must be two numbers"):
        rove.environments.make("gym/CartPole-v1", score_range=[1.0])
    sparse = rove.environments.make("gym/MountainCar-v0", sparse=1.0)
    assert sparse.score_range == (0.0, 1.0)


def test_a_goal_that_pays_has_a_known_optimum():
    assert rove.environments.make("gym/MountainCar-v0", sparse=1.0).optimum == 1.0
    assert rove.environments.make("gym/MountainCar-v0", sparse=1.0, optimum=2.0).optimum == 2.0
    assert rove.environments.make("gym/CartPole-v1", sparse=-1.0).optimum is None
