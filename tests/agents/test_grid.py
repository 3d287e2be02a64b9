"""The grid: every return family with every parameter family, through all of a run's life."""

from pathlib import Path

import jax
import numpy as np
import pytest

import rove
from helpers import some_quick
from rove.agents import grid
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.runs.configure import check_observations
from rove.training import outcomes

PAIRS = grid.working()
WORKING = [pair for pair, agent in PAIRS.items() if isinstance(agent, Agent)]
REFUSED = [pair for pair, agent in PAIRS.items() if not isinstance(agent, Agent)]
CONTROL = ("step", "episode", 5)
# Three programs are compiled for each pair, which takes minutes for all: `make test` runs every
# parameter family once, and thereby every return family; `make test-slow` runs the rest.
QUICK = [
    ("Gaussian", "MeanField"), ("Gaussian", "LastLayer"), ("Gaussian", "Conjugate"),
    ("Bernoulli", "Beta"), ("Categorical", "Dirac"), ("Quantile", "Ensemble, prior functions"),
    ("Mixture", "LowRank, prior functions"), ("LearnedGaussian", "FullCovariance"),
    ("Laplace", "Dropout"), ("SkewedLaplace", "ParameterNoise"), ("Quantile", "Factorised"),
    ("LearnedGaussian", "Langevin"),
]  # fmt: skip


def test_only_pairs_without_a_closed_form_are_refused():
    """LastLayer and Conjugate solve for their posterior, which only Gaussian returns allow, and
    Beta for that of Bernoulli returns."""
    likelihoods = {"LastLayer": "Gaussian", "Conjugate": "Gaussian", "Beta": "Bernoulli"}
    assert set(REFUSED) == {
        (returns, posterior)
        for posterior, needed in likelihoods.items()
        for returns in grid.RETURNS
        if returns != needed
    }
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    assert f"{len(WORKING)} pairs work." in readme


def usable(agent: Agent, chain: rove.Chain) -> bool:
    """Whether an agent can work with a chain's observations."""
    try:
        check_observations("", agent, chain)
    except ConfigError:
        return False
    return True


def test_the_quick_pairs_have_every_family():
    assert {returns for returns, _ in QUICK} == set(grid.RETURNS)
    kinds = {type(grid.POSTERIORS[posterior]) for _, posterior in QUICK}
    assert kinds == {type(posterior) for posterior in grid.POSTERIORS.values()}


@pytest.mark.fast_cases("Gaussian-MeanField")
@pytest.mark.parametrize(("returns", "posterior"), some_quick(WORKING, QUICK))
def test_a_pair_trains_is_saved_and_evaluated(tmp_path, returns, posterior):
    """Training changes φ, the run folder gives the same run back, and the greedy policy plays an
    episode. Each pair has one of the three kinds of control, and each family meets all three."""
    agent = PAIRS[returns, posterior]
    column, row = list(grid.RETURNS).index(returns), list(grid.POSTERIORS).index(posterior)
    resample = CONTROL[(column + row) % 3]
    agent = Agent(
        agent.returns, agent.posterior, resample=resample, epsilon=0.1,
        hidden=agent.hidden, batch_size=8, buffer_size=64, learning_starts=8,
    )  # fmt: skip
    environment = next(
        chain
        for chain in (rove.Chain(4), rove.Chain(4, features="one-hot"))
        if usable(agent, chain)
    )
    run = rove.train(agent, environment, seeds=1, episodes=6, out=tmp_path / "run")
    assert run.returns.shape == (1, 6)
    lane = run.outcomes[0].lane
    assert np.isfinite(float(lane.loss))
    first = outcomes.fresh(run.config.jobs(None)[0]).lane
    before, after = (jax.tree.leaves(x.agent.phi) for x in (first, lane))
    assert any(not np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    again = rove.load(tmp_path / "run")
    assert np.array_equal(again.returns, run.returns)
    assert grid.families_of(again.config.compose()) == (returns, posterior)
    policies = [r.policy() for r in (run, again)]
    for x in environment.probes().values():
        assert policies[0](x) == policies[1](x)
    assert run.evaluate()[0, 0] == again.evaluate()[0, 0] >= 0.0


@pytest.mark.parametrize("pair", REFUSED, ids=" × ".join)
def test_a_pair_that_makes_no_sense_names_one_that_does(pair):
    works = "Bernoulli" if pair[1] == "Beta" else "Gaussian"
    assert f"{works} × {pair[1]} works" in str(PAIRS[pair])
    assert (works, pair[1]) in WORKING


def test_every_agent_is_named_by_its_two_families():
    """Except the tabular agents, which are not made of two families."""
    for pair in WORKING:
        assert grid.families_of(PAIRS[pair]) == pair
    for diagonal in (None, -3.0):  # which does not distinguish the two rows
        for prior, row in ((None, "LowRank"), (2.0, "LowRank, prior functions")):
            agent = Agent(rove.Gaussian(0.2), rove.LowRank(prior=prior, rho=diagonal))
            assert grid.families_of(agent) == ("Gaussian", row)
    for settings in rove.AGENTS.values():
        agent = settings().compose()
        if isinstance(agent, Agent):
            assert grid.families_of(agent) in WORKING
