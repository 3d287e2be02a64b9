"""Deep Sea against a sea written here in plain Python, and against bsuite where it is installed."""

import itertools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import rove
from rove.environments.deep_sea import DeepSea
from rove.errors import ConfigError
from rove.parts import noise
from rove.training.solving import episodes_to_solve


class PlainSea:
    """The rules as published, with the diver's place in a grid of zeros and a one."""

    def __init__(self, n, rightward):
        self.n, self.rightward = n, rightward

    def reset(self):
        self.depth, self.across = 0, 0
        return self.observation()

    def observation(self):
        grid = np.zeros((self.n + 1, self.n))  # a row more, which is not shown
        grid[self.depth, self.across] = 1
        return grid[: self.n].ravel()

    def step(self, action):
        reward = 0.0
        if action == self.rightward[self.depth][self.across]:
            if (self.depth, self.across) == (self.n - 1, self.n - 1):
                reward += 1
            reward -= 0.01 / self.n
            self.across = min(self.across + 1, self.n - 1)
        else:
            self.across = max(self.across - 1, 0)
        self.depth += 1
        return self.observation(), reward, self.depth == self.n


class Bsuite:
    """bsuite's own environment behind the same three methods."""

    def __init__(self, n, map_seed, randomised):
        deep_sea = pytest.importorskip("bsuite.environments.deep_sea")
        self.sea = deep_sea.DeepSea(n, mapping_seed=map_seed, randomize_actions=randomised)

    def reset(self):
        return self.sea.reset().observation.ravel()

    def step(self, action):
        told = self.sea.step(action)
        return told.observation.ravel(), told.reward, told.last()


@jax.jit
def play(sea: DeepSea, actions):
    """[episodes, N] actions to the first observation and all that each step gives."""

    def episode(actions):
        first, observation = sea.reset(noise.root(0))

        def one(state, action):
            step = sea.step(state, action, noise.root(0))
            return step.state, step._replace(observation=jnp.asarray(step.observation))

        return jnp.asarray(observation), jax.lax.scan(one, first, actions)[1]

    return jax.vmap(episode)(actions)


def optimal(sea: DeepSea):
    """The one episode that goes right throughout."""
    return np.diagonal(sea.rightward)[None].astype(np.int32)


def episodes(sea: DeepSea, rng):
    """Every episode there is, of a small sea. Of others some that leave the diagonal at each
    depth, and some at random."""
    if sea.n <= 6:
        return np.array(list(itertools.product([0, 1], repeat=sea.n)), np.int32)
    actions = rng.integers(0, 2, (4 * sea.n, sea.n))
    along = np.arange(sea.n) < np.arange(sea.n + 1)[:, None]
    actions[: sea.n + 1] = np.where(along, optimal(sea), actions[: sea.n + 1])
    return actions.astype(np.int32)


@pytest.mark.fast_cases(
    "2-0-True-plain",
    "2-0-True-bsuite",
    "2-42-True-plain",
    "2-42-True-bsuite",
    "2-0-False-plain",
    "2-0-False-bsuite",
    "3-0-True-plain",
    "3-0-True-bsuite",
    "3-42-True-plain",
    "3-42-True-bsuite",
    "3-0-False-plain",
    "3-0-False-bsuite",
    "6-0-True-plain",
    "6-0-True-bsuite",
    "6-42-True-plain",
    "6-42-True-bsuite",
    "6-0-False-plain",
    "6-0-False-bsuite",
    "17-0-True-plain",
    "17-0-True-bsuite",
    "17-42-True-plain",
    "17-42-True-bsuite",
    "17-0-False-plain",
    "17-0-False-bsuite",
    "50-0-True-bsuite",
)
@pytest.mark.parametrize("oracle", ["plain", "bsuite"])
@pytest.mark.parametrize(("map_seed", "randomised"), [(0, True), (42, True), (0, False)])
@pytest.mark.parametrize("n", [2, 3, 6, 17, 50])
@pytest.mark.filterwarnings("ignore:Environment is in debug mode")
def test_every_step_is_the_oracles(n, map_seed, randomised, oracle):
    sea = DeepSea(n, map_seed, randomised)
    world = PlainSea(n, sea.rightward) if oracle == "plain" else Bsuite(n, map_seed, randomised)
    actions = episodes(sea, np.random.default_rng(n))
    first, step = jax.device_get(play(sea, jnp.asarray(actions)))
    for e, episode in enumerate(actions):
        assert np.array_equal(first[e], world.reset())
        for t, action in enumerate(episode):
            observation, reward, ended = world.step(int(action))
            assert np.array_equal(step.observation[e, t], observation)
            assert step.reward[e, t] == np.float32(reward)
            assert step.terminated[e, t] == ended
            assert ended == (t == n - 1)
    assert not step.truncated.any()
    assert step.reward.dtype == step.observation.dtype == np.float32


@pytest.mark.parametrize("n", [2, 10, 37, 50, 100])
def test_always_right_solves_it_in_float32(n):
    """0.99, added up as training does; one step to the left forgoes the reward."""
    sea = DeepSea(n, map_seed=3)
    best = optimal(sea)
    rewards = np.asarray(play(sea, jnp.asarray(best))[1].reward[0])
    total = np.add.accumulate(rewards)[-1]
    assert total.dtype == np.float32
    assert total == pytest.approx(0.99, abs=1e-6)
    assert sea.optimum == 0.99
    assert episodes_to_solve(np.full(10, total), sea.optimum) == 10
    wrong = best ^ (np.arange(n) == n // 2)
    assert play(sea, jnp.asarray(wrong))[1].reward.sum() <= 0


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
def test_only_one_episode_is_rewarded(n):
    sea = DeepSea(n, map_seed=1)
    actions = episodes(sea, None)
    totals = np.asarray(play(sea, jnp.asarray(actions))[1].reward.sum(1))
    rewarded = actions[totals > 0]
    assert np.array_equal(rewarded, optimal(sea))


def test_maps_are_bsuites():
    """Written down from bsuite 0.3.6."""
    rows = ["1111", "0101", "1011", "1100"]
    assert DeepSea(4).rightward.tolist() == [[int(a) for a in row] for row in rows]
    rows = "0111000111 0110000100 1000010110 1001110010 0001010110"
    rows += " 1111110000 0010010101 1001111000 1100001110 0111101000"
    assert DeepSea(10, map_seed=42).rightward.tolist() == [
        [int(a) for a in r] for r in rows.split()
    ]
    assert np.all(DeepSea(10, map_seed=42, randomised=False).rightward == 1)


def test_one_action_throughout_does_not_solve_it():
    sea = DeepSea(10)
    for action in (0, 1):
        assert play(sea, jnp.full((1, 10), action, jnp.int32))[1].reward.sum() <= 0


def test_visits_count_one_cell_a_row():
    """And nothing for the state after the last row."""
    settings = {"hidden": (8,), "batch_size": 4, "learning_starts": 10, "epsilon": 0.5}
    run = rove.train("dqn", "deep-sea-4", episodes=40, **settings)
    assert np.all(run.lengths == 4)
    cells = run.visits.reshape(4, 4)
    np.testing.assert_allclose(cells.sum(1), 1)
    assert cells[0, 0] == 1
    assert not np.triu(cells, 1).any()
    # Going left at the side stays in column 0, as a cell of the second row shows.
    assert cells[1, 0] > 0


def test_probes_are_on_the_diagonal():
    probes = {name: int(x.index) for name, x in DeepSea(10).probes().items()}
    assert probes == {"start": 0, "middle": 55, "last": 99}
    assert all(np.asarray(x).sum() == 1 for x in DeepSea(10).probes().values())


def test_sizes_and_name():
    sea = DeepSea(12)
    assert sea.name == "deep-sea-12"
    assert (sea.observation_size, sea.num_actions, sea.bins) == (144, 2, 144)


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("n", {"n": 1}),
        ("n", {"n": 1001}),
        ("n", {"n": 10.0}),
        ("n", {"n": True}),
        ("map_seed", {"n": 10, "map_seed": -1}),
        ("map_seed", {"n": 10, "map_seed": 2**32}),
        ("randomised", {"n": 10, "randomised": 1}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        DeepSea(**settings)
    assert caught.value.field == field
    assert repr(settings[field]) in str(caught.value)
