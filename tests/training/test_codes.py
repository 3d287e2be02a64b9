"""Environments whose observations are codes train as those with the vectors, in less memory."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.environments import DeepSea
from rove.environments.base import Observation
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.onehot import Form, OneHot
from rove.training.executors.base import fitting_workers
from rove.training.outcomes import Job

SMALL = {"hidden": (16, 12), "batch_size": 16, "buffer_size": 300, "learning_starts": 20}
TABULAR = ("psrl", "bayesian_q_learning")


class VectorSea(DeepSea):
    """Deep Sea with vectors in place of codes."""

    @property
    def coded(self) -> bool:
        return False

    def observe(self, row, column) -> Observation:
        return jnp.asarray(super().observe(row, column))


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(agent, marks=pytest.mark.slow if agent in ("ge", "bootstrapped_dqn") else ())
        for agent in ("dqn", "ge", "ige", "bootstrapped_dqn", "bayesian_dqn", *TABULAR)
    ],
)
def test_training_is_that_of_the_vectors(agent):
    """The same episodes; and, to rounding, the same parameters and beliefs."""
    settings = {} if agent in TABULAR else SMALL
    learner = rove.AGENTS[agent](**settings)
    runs = [rove.train(learner, sea(4), seeds=2, episodes=12) for sea in (DeepSea, VectorSea)]
    np.testing.assert_array_equal(runs[0].returns, runs[1].returns)
    np.testing.assert_array_equal(runs[0].visits, runs[1].visits)
    np.testing.assert_allclose(runs[0].spread, runs[1].spread, rtol=2e-2, atol=1e-4)
    for ours, theirs in zip(runs[0].outcomes, runs[1].outcomes, strict=True):
        assert isinstance(ours.lane.observation, OneHot)
        learned = [jax.tree.leaves(o.lane.agent.phi.learned) for o in (ours, theirs)]
        for a, b in zip(*learned, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-2, atol=1e-3)
    np.testing.assert_allclose(runs[0].evaluate(3), runs[1].evaluate(3), rtol=1e-6)


@pytest.mark.parametrize("agent", ["dqn", "ige", "bootstrapped_dqn", "ge"])
def test_a_million_transitions_of_deep_sea_100_take_20_megabytes(agent):
    """Prior functions included: their values are looked up, not stored with a transition."""
    learner = rove.AGENTS[agent](buffer_size=10**6).compose()
    sea = DeepSea(100)
    state = jax.eval_shape(lambda: learner.init(10_000, 2, noise.root(0), sea.form))
    sizes = [x.size * x.dtype.itemsize for x in jax.tree.leaves(state.replay)]
    assert sum(sizes) == 20 * 10**6 + 4
    coded, vectors = (learner.dry_run(10_000, 2, Form(flag)).nbytes for flag in (True, False))
    assert vectors - coded > 79e9
    needs = Job(learner, sea, 0), Job(learner, VectorSea(100), 0)
    assert fitting_workers(needs[:1], 1) == 1
    with pytest.raises(ConfigError, match="buffer"):
        fitting_workers(needs[1:], 1)


def test_a_policy_takes_the_vector_or_the_code():
    run = rove.train(rove.AGENTS["dqn"](**SMALL), "deep-sea-4", episodes=20)
    act, sea = run.policy(), DeepSea(4)
    for row in range(4):
        code = sea.observe(row, row // 2)
        assert act(code) == act(np.asarray(code)) == act(np.asarray(code).tolist())
    with pytest.raises(ConfigError, match=r"shape \(16,\)"):
        act(3)


class Rooms(gymnasium.Env):
    """Five rooms in a row, numbered from 3; the last one pays."""

    observation_space = gymnasium.spaces.Discrete(5, start=3)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.room = 0
        return np.int64(3), {}

    def step(self, action):
        self.room = min(max(self.room + (1 if action else -1), 0), 4)
        return np.int64(3 + self.room), float(self.room == 4), self.room == 4, False, {}


@pytest.mark.fast_cases("False")
@pytest.mark.parametrize("normalise", [False, True])
def test_a_discrete_space_is_coded_unless_it_is_normalised(normalise):
    task = rove.adopt(gymnasium.wrappers.TimeLimit(Rooms(), 20), normalise=normalise)
    assert task.coded is not normalise
    assert (task.observation_size, task.bins) == (5, 5)
    run = rove.train(rove.AGENTS["dqn"](**SMALL), task, episodes=15)
    (outcome,) = run.outcomes
    assert isinstance(outcome.lane.observation, OneHot) is not normalise
    assert outcome.lane.agent.replay.layout.widths[0] == (5 if normalise else 1)
    assert run.visits[0][0] == 1.0
    reached = run.scores[0] == 1.0
    assert run.visits[0][4] == pytest.approx(reached.mean())
    assert run.policy()(5) in (0, 1)
    for wrong in (8, [0, 0, 1, 0, 0]):
        with pytest.raises(ConfigError, match="not in its space"):
            run.policy()(wrong)


@pytest.mark.slow
def test_codes_are_in_checkpoints(tmp_path):
    agent = rove.AGENTS["ige"](**SMALL)
    run = rove.train(agent, "deep-sea-4", episodes=15, out=tmp_path / "run")
    again = rove.load(tmp_path / "run")
    np.testing.assert_array_equal(run.returns, again.returns)
    np.testing.assert_array_equal(run.evaluate(2), again.evaluate(2))
    whole = rove.train(agent, "deep-sea-4", episodes=30)
    np.testing.assert_array_equal(whole.returns[:, :15], run.returns)
