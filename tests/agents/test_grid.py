"""The grid: every return family with every parameter family, through all of a run's life."""

import jax
import numpy as np
import pytest

import rove
from rove.agents import grid
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.runs.configure import check_observations
from rove.training import outcomes

PAIRS = grid.working()
WORKING = [pair for pair, agent in PAIRS.items() if isinstance(agent, Agent)]
REFUSED = [pair for pair, agent in PAIRS.items() if not isinstance(agent, Agent)]
CONTROL = ("step", "episode", 5)
# A program is compiled for each pair, which takes minutes for all: `make test` runs each family
# with the plainest of the other side, and `make test-slow` the rest.
PLAIN = ("Gaussian", "Dirac")
RUNS = [
    pytest.param(
        pair, marks=() if set(pair) & set(PLAIN) else pytest.mark.slow, id=" × ".join(pair)
    )
    for pair in WORKING
]


def test_at_least_forty_pairs_work():
    assert len(WORKING) >= 40
    assert len(WORKING) + len(REFUSED) == len(grid.RETURNS) * len(grid.POSTERIORS)


def usable(agent: Agent, chain: rove.Chain) -> bool:
    """Whether an agent can work with a chain's observations."""
    try:
        check_observations("", agent, chain)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("pair", RUNS)
def test_a_pair_trains_is_saved_and_evaluated(tmp_path, pair):
    """Training moves φ, the run folder gives the same run back, and the greedy policy plays an
    episode. Each pair has one of the three kinds of control, and each family meets all three."""
    agent = PAIRS[pair]
    assert isinstance(agent, Agent)
    column, row = list(grid.RETURNS).index(pair[0]), list(grid.POSTERIORS).index(pair[1])
    resample = CONTROL[(column + row) % 3]
    agent = Agent(
        agent.returns, agent.posterior, resample=resample, epsilon=0.1,
        hidden=agent.hidden, batch_size=8, buffer_size=64, learning_starts=8,
    )  # fmt: skip
    place = next(
        chain
        for chain in (rove.Chain(4), rove.Chain(4, features="one-hot"))
        if usable(agent, chain)
    )
    run = rove.train(agent, place, seeds=1, episodes=6, out=tmp_path / "run")
    assert run.returns.shape == (1, 6)
    lane = run.outcomes[0].lane
    assert np.isfinite(float(lane.loss))
    first = outcomes.fresh(run.config.jobs(None)[0]).lane
    before, after = (jax.tree.leaves(x.agent.phi) for x in (first, lane))
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    again = rove.load(tmp_path / "run")
    assert np.array_equal(again.returns, run.returns)
    assert grid.families_of(again.config.compose()) == pair
    policies = [r.policy() for r in (run, again)]
    for x in place.probes().values():
        assert policies[0](x) == policies[1](x)
    assert run.evaluate()[0] == again.evaluate()[0] >= 0.0


@pytest.mark.parametrize("pair", REFUSED, ids=" × ".join)
def test_a_pair_that_makes_no_sense_names_one_that_does(pair):
    error = PAIRS[pair]
    assert isinstance(error, ConfigError)
    assert f"Gaussian × {pair[1]} works" in str(error)
    assert isinstance(PAIRS["Gaussian", pair[1]], Agent)


def test_every_composition_has_its_place():
    """Except the tabular ones, which are not compositions."""
    for pair in WORKING:
        assert grid.families_of(PAIRS[pair]) == pair
    for diagonal in (None, -3.0):  # which neither row is about
        for prior, row in ((None, "LowRank"), (2.0, "LowRank, prior functions")):
            agent = Agent(rove.Gaussian(0.2), rove.LowRank(prior=prior, rho=diagonal))
            assert grid.families_of(agent) == ("Gaussian", row)
    for settings in rove.AGENTS.values():
        agent = settings().compose()
        if isinstance(agent, Agent):
            assert grid.families_of(agent) in WORKING
