"""A finished run that is trained further ends as if it had been trained at once, to the bit."""

import json
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.environments import make
from rove.errors import RunFolderError
from rove.runs.configure import configure
from rove.training import checkpoint, outcomes, storage

CASES = {
    "episodes": (rove.GE(**SMALL, resample="episode"), "chain-5", "episodes", (2, 7, 12)),
    "steps, within an episode": (rove.DQN(**SMALL), "chain-5", "steps", (5, 47, 90)),
    "an ensemble": (rove.BootstrappedDQN(**SMALL, size=3), "chain-5", "steps", (30, 60, 90)),
    "counts, running scale": (
        rove.DQN(**SMALL, bonus="counts", reward_scale="running"),
        "chain-5",
        "steps",
        (5, 47, 90),
    ),
    "prioritised": (rove.DQN(**SMALL, n_step=3, prioritised=0.6), "chain-5", "steps", (30, 60, 90)),
    "a table": (rove.PSRL(), "chain-4", "steps", (20, 41, 66)),
    "Gymnasium, episodes": (rove.GE(**SMALL), "gym/CartPole-v1", "episodes", (1, 3, 5)),
    "Gymnasium, within an episode": (rove.DQN(**SMALL), "gym/CartPole-v1", "steps", (7, 40, 93)),
    "Gymnasium, normalised": (
        rove.DQN(**SMALL),
        make("gym/CartPole-v1", normalise=True),
        "steps",
        (30, 41, 77),
    ),
    "Gymnasium, continuous": (rove.DDPG(**SMALL), "gym/Pendulum-v1", "steps", (5, 210, 333)),
    "Gymnasium, copies": (
        rove.DQN(**SMALL, n_step=3),
        make("gym/CartPole-v1", copies=3),
        "steps",
        (7, 40, 93),
    ),
    "Gymnasium, random network distillation": (
        rove.DQN(**SMALL, bonus="rnd"),
        "gym/CartPole-v1",
        "steps",
        (7, 40, 93),
    ),
}


def contents(out: Path) -> tuple[str, list[dict[str, np.ndarray]]]:
    files = sorted((out / "lanes").glob("*.safetensors"))
    return (out / "episodes.csv").read_text(), [checkpoint.load_arrays(f)[0] for f in files]


def assert_same(one: Path, other: Path) -> None:
    (table, lanes), (other_table, other_lanes) = contents(one), contents(other)
    assert table == other_table
    assert len(lanes) == len(other_lanes)
    for a, b in zip(lanes, other_lanes, strict=True):
        assert a.keys() == b.keys()
        for name in a:
            assert np.array_equal(a[name], b[name], equal_nan=True), name


QUICK = ("episodes", "Gymnasium, normalised", "counts, running scale")
"""Cases of `make test`; the others compile programs of their own and are slow."""


@pytest.mark.fast_cases("counts, running scale")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_a_run_extended_in_three_steps_is_the_run_that_was_not(tmp_path, case):
    agent, environment, unit, budgets = CASES[case]
    for budget in budgets:
        run = rove.train(agent, environment, seeds=2, out=tmp_path / "a", **{unit: budget})
    whole = rove.train(agent, environment, seeds=2, out=tmp_path / "b", **{unit: budgets[-1]})
    assert_same(tmp_path / "a", tmp_path / "b")
    assert np.array_equal(run.returns, whole.returns, equal_nan=True)
    config = json.loads((tmp_path / "a" / "config.json").read_text())
    assert config[unit] == budgets[-1]
    assert [before[unit] for before in config["extended_from"]] == list(budgets[:-1])
    assert np.array_equal(rove.load(tmp_path / "a").returns, whole.returns, equal_nan=True)


@pytest.mark.slow
def test_a_run_in_processes_is_extended(tmp_path):
    agent, environment, unit, budgets = CASES["episodes"]
    for budget in budgets:
        options = {unit: budget, "on": "processes"}
        rove.train(agent, environment, seeds=2, out=tmp_path / "a", **options)
    rove.train(agent, environment, seeds=2, out=tmp_path / "b", episodes=budgets[-1])
    assert_same(tmp_path / "a", tmp_path / "b")


def test_a_seed_that_solved_its_task_or_diverged_stays_as_it_is(tmp_path):
    solves = {"agent": rove.PSRL(), "environment": "chain-4", "until_solved": True}
    run = rove.train(**solves, episodes=200, out=tmp_path / "a")
    assert 10 <= run.returns.shape[1] < 200
    again = rove.train(**solves, episodes=300, out=tmp_path / "a")
    np.testing.assert_array_equal(again.returns, run.returns)
    diverges = {"agent": rove.DQN(**SMALL, lr=1e30), "environment": "chain-5"}
    for episodes in (5, 9):
        with pytest.raises(rove.LaneError, match="was not a finite number at step"):
            rove.train(**diverges, episodes=episodes, out=tmp_path / "b")


def test_a_checkpoint_of_step_0_is_read(tmp_path):
    (job,) = configure(rove.DQN(**SMALL), "chain-5", episodes=3).jobs(tmp_path)
    storage.save(outcomes.fresh(job))
    assert int(storage.load(job).lane.step) == 0


@pytest.mark.parametrize(
    "change", [{"step": -1}, {"step": 500}, {"episode": "3"}, {"streak": None}]
)
def test_a_checkpoint_whose_counts_are_wrong_is_damaged(tmp_path, change):
    rove.train(rove.DQN(**SMALL), "chain-5", episodes=3, out=tmp_path)
    path = tmp_path / "lanes" / "seed-0.safetensors"
    arrays, about = checkpoint.load_arrays(path)
    checkpoint.save_arrays(path, arrays, about | change)
    with pytest.raises(RunFolderError, match="is damaged"):
        rove.load(tmp_path)


@pytest.mark.slow
def test_seeds_can_be_added(tmp_path):
    agent = CASES["episodes"][0]
    rove.train(agent, "chain-5", seeds=[1], episodes=4, out=tmp_path / "a")
    run = rove.train(agent, "chain-5", seeds=3, episodes=6, out=tmp_path / "a")
    assert run.seeds == (0, 1, 2)
    rove.train(agent, "chain-5", seeds=3, episodes=6, out=tmp_path / "b")
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    "changes", [{"episodes": 3}, {"seeds": [0]}, {"steps": 100, "episodes": None}, {"lr": 0.5}]
)
def test_a_run_is_not_cut_short_nor_changed(tmp_path, changes):
    settings = {"seeds": 2, "episodes": 4}
    rove.train("dqn", "chain-4", out=tmp_path, **SMALL, **settings)
    before = contents(tmp_path)[0]
    with pytest.raises(RunFolderError, match="contains a different run"):
        rove.train("dqn", "chain-4", out=tmp_path, **(SMALL | settings | changes))
    assert contents(tmp_path)[0] == before


def test_a_saved_run_has_no_replay_buffer_to_go_on_with(tmp_path):
    rove.train("dqn", "chain-4", episodes=3, **SMALL).save(tmp_path)
    with pytest.raises(RunFolderError, match="contains a different run"):
        rove.train("dqn", "chain-4", episodes=4, out=tmp_path, **SMALL)


class Unrepeatable(gymnasium.Wrapper):
    """Ignores the seed of a reset."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(options=options)


def test_an_environment_that_does_not_repeat_an_episode_is_not_continued_within_it(tmp_path):
    gymnasium.register("Unrepeatable-v0", lambda: Unrepeatable(gymnasium.make("CartPole-v1")))
    train = {"agent": rove.DQN(**SMALL), "environment": "gym/Unrepeatable-v0", "out": tmp_path}
    first = rove.train(**train, steps=6)
    with pytest.raises(rove.LaneError, match="does not repeat an episode"):
        rove.train(**train, steps=12)
    again = rove.train(**train, steps=6)  # the run is as it was
    np.testing.assert_array_equal(again.lengths, first.lengths)
