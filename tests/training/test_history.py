"""The history of visits: which cells were visited early and late in training."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.training import lane as lane_module


@pytest.fixture(scope="module")
def runs():
    agent = rove.DQN(**SMALL, epsilon=0.5)
    return {n: rove.train(agent, "chain-6", episodes=n, seeds=1).outcomes[0] for n in (2, 4, 11)}


def test_each_period_counts_its_own_episodes(runs):
    """A run of n episodes is the beginning of a longer one: the difference of their visits are the
    visits of the episodes in between."""
    whole = runs[11]
    assert len(whole.history) == 5  # episodes 1, 2, 3 and 4, 5 to 8, 9 to 11
    np.testing.assert_array_equal(whole.history[:2].sum(axis=0), runs[2].visits)
    np.testing.assert_array_equal(whole.history[2], runs[4].visits - runs[2].visits)
    np.testing.assert_array_equal(whole.history[3:].sum(axis=0), whole.visits - runs[4].visits)
    assert whole.history[0, 1] == 1  # the first state, in the first episode
    assert whole.history[4, 1] == 3


def test_the_periods_add_up(runs):
    for outcome in runs.values():
        np.testing.assert_array_equal(outcome.history.sum(axis=0), outcome.visits)
    assert [len(outcome.history) for outcome in runs.values()] == [2, 3, 5]


def test_a_large_environment_has_none():
    for environment, shape in ((rove.Chain(100), (16, 100)), (rove.Chain(10_001), (16, 0))):
        agent = rove.DQN(**SMALL).compose()
        lane = jax.eval_shape(lane_module.start, agent, environment, jnp.int32(0))
        assert lane.snapshots.visits.shape == shape
