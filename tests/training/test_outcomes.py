"""Outcomes of runs that diverge: which episodes count."""

import jax
import jax.numpy as jnp
import pytest

import rove
from helpers import SMALL
from rove.errors import ConfigError
from rove.runs.configure import configure
from rove.training import outcomes
from rove.training.lane import FAULTS, LOG_CAPACITY, start
from rove.training.stepping import measure


def diverged(environment, logged, length):
    """The outcome of a run whose action was not finite, with episodes that were not yet read."""
    job = configure(rove.DQN(**SMALL), environment, episodes=9).jobs(None)[0]
    before = outcomes.fresh(job)
    ends, returns = 7 * (1 + jnp.arange(LOG_CAPACITY)), before.lane.log.returns + 3.0
    log = before.lane.log._replace(count=jnp.int32(logged), returns=returns, step=ends)
    lane = before.lane._replace(log=log, fault=jnp.int32(FAULTS.index("action")))
    step, length = jnp.int32(7 * logged + length), jnp.int32(length)
    return outcomes.extended(before, lane._replace(step=step, length=length))


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


def test_with_copies_only_episodes_that_ended_before_the_faulty_round_count():
    """The round of steps 16 to 18, in which the third and the fourth ended."""
    environment = rove.make("gym/CartPole-v1", copies=3)
    job = configure(rove.DQN(**SMALL), environment, episodes=9).jobs(None)[0]
    before = outcomes.fresh(job)
    ends = before.lane.log.step.at[:4].set(jnp.array([9, 15, 16, 18]))
    log = before.lane.log._replace(count=jnp.int32(4), step=ends)
    fault = jnp.int32(FAULTS.index("loss"))
    lane = before.lane._replace(log=log, fault=fault, step=jnp.int32(18), episode=jnp.int32(4))
    outcome = outcomes.extended(before, lane)
    assert outcome.diverged
    assert outcome.episodes.step.tolist() == [9, 15]
    assert int(outcome.lane.episode) == 2


@pytest.mark.parametrize("starts", [37, 38, 39])
def test_a_run_that_diverges_at_the_end_of_an_episode_can_be_loaded(starts, tmp_path):
    """An episode of the chain has 19 steps; learning fails at once, at the end of the second one
    or beside it."""
    settings = SMALL | {"learning_starts": starts, "lr": 1e9}
    for _ in range(2):  # also when it is trained again
        with pytest.raises(rove.LaneError, match=r"not a finite number|overflowed"):
            rove.train("dqn", "chain-10", episodes=20, out=tmp_path / "run", **settings)
    run = rove.load(tmp_path / "run")
    assert len(run.errors) == 1
    assert run.outcomes == []


def test_returns_that_overflow_end_a_seed():
    """Rewards of 3e38 are finite in float32, and the sum of two is not."""
    job = configure(rove.DQN(**SMALL), "chain-4", episodes=9).jobs(None)[0]
    before = outcomes.fresh(job)
    log = before.lane.log._replace(
        count=jnp.int32(2), returns=before.lane.log.returns.at[1].set(jnp.inf)
    )
    with pytest.raises(rove.LaneError, match=r"seed 0: the return of episode 2 was not a finite"):
        outcomes.extended(before, before.lane._replace(log=log, episode=jnp.int32(2)))


def test_an_overflow_is_noticed_at_a_fixed_episode():
    """Whenever the host reads the log."""
    config = configure(rove.DQN(**SMALL), "chain-4", episodes=9)
    agent, task = config.compose(), config.environment
    lane = jax.jit(start)(agent, task, jnp.int32(0))
    moments = jax.tree.map(lambda x: x + jnp.inf, lane.agent.optimiser)
    broken = lane._replace(agent=lane.agent._replace(optimiser=moments), episode=jnp.int32(1))
    found = jax.jit(measure)(agent, task, broken._replace(due=jnp.array(True)))
    assert FAULTS[int(found.fault)] == "optimiser"
    assert not jax.jit(measure)(agent, task, broken).fault
    assert not jax.jit(measure)(agent, task, lane._replace(due=jnp.array(True))).fault


def test_an_environment_without_probes_is_checked_by_its_first_observation():
    class Plain(rove.CartPole):
        def probes(self):
            return {}

    for agent in ("thompson", "psrl"):
        with pytest.raises(ConfigError, match="cannot be trained on cartpole"):
            rove.train(agent, Plain(), episodes=1)
