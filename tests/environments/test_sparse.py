"""Sparse rewards: paid where the task ends, and nowhere else."""

import gymnasium
import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import rove
from rove import environments
from rove.environments.control import ControlState
from rove.errors import ConfigError
from rove.parts import noise

ENDING = {
    "sparse-cartpole": ((2.39, 2.0, 0.0, 0.0), -1.0),
    "sparse-mountain-car": ((0.49, 0.05), 1.0),
    "sparse-acrobot": ((2.05, 0.0, 2.0, 0.0), 1.0),
}


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_only_the_end_is_paid(name, ends, late):
    """Whether or not time runs out at the same step."""
    sparse = environments.make(name)
    values, reward = ENDING[name]
    time = sparse.environment.horizon - 1 if late else 0
    start = jnp.array(values if ends else np.zeros(len(values)), jnp.float32)
    step = sparse.step(ControlState(start, jnp.int32(time)), jnp.int32(1), noise.root(0))
    assert bool(step.terminated) == ends
    assert bool(step.truncated) == late
    assert float(step.reward) == (reward if ends else 0.0)


@pytest.mark.parametrize(
    ("name", "original"),
    [
        ("sparse-inverted-pendulum", "InvertedPendulum-v5"),
        ("sparse-inverted-double-pendulum", "InvertedDoublePendulum-v5"),
    ],
)
def test_a_fall_of_mujocos_pendulums_costs_one(name, original):
    """Section 6: "r = −1 when the episode terminates and r = 0 otherwise", beside Gymnasium's own
    task, which is pushed to one side until it falls; nothing is paid where time runs out."""
    pytest.importorskip("mujoco", reason="needs rove[mujoco]")
    ours, theirs = environments.make(name).make(), gymnasium.make(original)
    ours.reset(3)
    theirs.reset(seed=3)
    rewards, terminated = [], False
    while not terminated:
        _, reward, terminated, truncated = ours.step(np.ones(1, np.float32))
        _, dense, fell, *_ = theirs.step(theirs.action_space.high)
        assert (terminated, truncated) == (fell, False)
        rewards.append((reward, dense))
    assert len(rewards) > 2
    assert [reward for reward, _ in rewards] == [0.0] * (len(rewards) - 1) + [-1.0]
    assert all(dense > 0.0 for _, dense in rewards[:-1])
    cut = environments.make(name, time_limit=2).make()
    cut.reset(3)
    steps = [cut.step(np.ones(1, np.float32))[1:] for _ in range(2)]
    assert steps == [(0.0, False, False), (0.0, False, True)]


@pytest.mark.parametrize("name", ENDING)
def test_all_else_is_the_environments_own(name):
    sparse = environments.make(name)
    inner = sparse.environment
    assert sparse.name == f"sparse-{inner.name}"
    for field in (
        "observation_size", "observation_bounds", "num_actions", "bins", "cells", "coordinates",
    ):  # fmt: skip
        assert getattr(sparse, field) == getattr(inner, field)
    assert list(sparse.probes()) == list(inner.probes())
    state, _ = sparse.reset(noise.root(3))
    assert jax.tree.all(jax.tree.map(jnp.array_equal, state, inner.reset(noise.root(3))[0]))
    ours, theirs = (e.step(state, jnp.int32(0), noise.root(0)) for e in (sparse, inner))
    assert jnp.array_equal(ours.observation, theirs.observation)
    assert int(sparse.bin(ours.state)) == int(inner.bin(theirs.state))


def test_where_the_score_is_the_return_the_optimum_is_not_the_dense_one():
    assert rove.Sparse(rove.DeepSea(4)).optimum is None


def test_a_run_scores_and_is_read_back(tmp_path):
    """Returns of the sparse CartPole are −1, its scores are lengths; the csv has both."""
    agent = rove.DQN(hidden=(8,), batch_size=4, buffer_size=200, learning_starts=20, epsilon=1.0)
    task = environments.make("sparse-cartpole", environment=rove.CartPole(horizon=30))
    run = rove.train(agent, task, seeds=2, episodes=40, out=tmp_path / "a")
    np.testing.assert_array_equal(run.scores, run.lengths)
    fell = np.array([outcome.episodes.terminated for outcome in run.outcomes])
    np.testing.assert_array_equal(run.returns, np.where(fell, -1.0, 0.0))
    assert 0 < fell.mean() < 1
    assert np.all(run.lengths[~fell] == 30)
    back = rove.load(tmp_path / "a")
    assert back.config.environment == task
    np.testing.assert_array_equal(back.scores, run.scores)
    greedy = back.evaluate()
    np.testing.assert_array_equal(greedy, run.evaluate())
    assert np.all((greedy > 1) & (greedy <= 30))
    rows = (tmp_path / "a" / "episodes.csv").read_text().splitlines()
    column = rows[0].split(",").index("score")
    assert [float(r.split(",")[column]) for r in rows[1:]] == run.scores.ravel().tolist()


def test_pictures_say_what_they_show():
    agent = rove.DQN(hidden=(8,), batch_size=4, buffer_size=200, learning_starts=20)
    task = rove.Sparse(rove.MountainCar(horizon=20))
    run = rove.train(agent, task, episodes=3)
    assert run.plot().axes[0].get_ylabel() == "goal reached"
    board = run.plot_diagnostics().axes[0]
    assert (board.get_xlabel(), board.get_ylabel()) == ("position", "velocity")
    assert board.get_xlim() == pytest.approx((-1.2, 0.6))
    assert board.get_ylim() == pytest.approx((-0.07, 0.07))
    assert board.images[0].origin == "lower"


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("environment", {"environment": "cartpole"}),
        ("reward", {"environment": rove.CartPole(), "reward": float("nan")}),
        ("reward", {"environment": rove.CartPole(), "reward": "1"}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError) as caught:
        rove.Sparse(**settings)
    assert caught.value.field == field
