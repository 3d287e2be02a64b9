"""Outcomes of runs that diverge: which episodes count."""

import jax.numpy as jnp
import pytest

import rove
from rove.errors import ConfigError
from rove.runs.configure import configure
from rove.training import outcomes
from rove.training.lane import FAULTS

SMALL = {"hidden": (8,), "batch_size": 8, "buffer_size": 64, "learning_starts": 8}


def diverged(environment, logged, length):
    """The outcome of a run whose action was not finite, with episodes that were not yet read."""
    job = configure(rove.DQN(**SMALL), environment, episodes=9).jobs(None)[0]
    before = outcomes.fresh(job)
    log = before.lane.log._replace(count=jnp.int32(logged), returns=before.lane.log.returns + 3.0)
    fault = jnp.int32(FAULTS.index("action"))
    return outcomes.extended(
        before, before.lane._replace(log=log, fault=fault, length=jnp.int32(length))
    )


@pytest.mark.parametrize(
    ("environment", "logged", "length", "episodes"),
    [
        ("chain-4", 3, 0, 2),  # the faulty step ended the third episode
        ("chain-4", 3, 5, 3),
        ("chain-4", 0, 0, 0),
        ("gym/CartPole-v1", 3, 0, 3),  # the action after the third episode was not taken
        ("gym/CartPole-v1", 0, 0, 0),
    ],
)
def test_only_episodes_that_ended_before_the_fault_count(environment, logged, length, episodes):
    outcome = diverged(environment, logged, length)
    assert outcome.diverged
    assert outcome.episodes.returns.tolist() == [3.0] * episodes


def test_an_environment_without_probes_is_checked_by_its_first_observation():
    class Plain(rove.CartPole):
        def probes(self):
            return {}

    for agent in ("thompson", "psrl"):
        with pytest.raises(ConfigError, match="cannot be trained on cartpole"):
            rove.train(agent, Plain(), episodes=1)
