"""Lanes: independent of each other, of chunks and of interruption; one program for a grid."""

import dataclasses
import re
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from helpers import SMALL, compilations, some_quick
from rove.errors import ConfigError, LaneError, RunFolderError
from rove.parts import noise
from rove.parts.replay import Transition
from rove.runs.configure import configure
from rove.training import checkpoint, chunks, compiled, outcomes, solving, storage
from rove.training.executors import Threads, base
from rove.training.lane import FAULTS, start


def ge(seeds=1, episodes=20, **settings):
    return configure(rove.GE(**{**SMALL, **settings}), "chain-5", seeds=seeds, episodes=episodes)


def same(a, b):
    """Every number of two lanes is the same, to the bit (a drained log does not count)."""
    pair = [jax.tree.leaves(outcome.lane._replace(log=None)) for outcome in (a, b)]
    leaves = zip(*pair, strict=True)
    return all(np.array_equal(x, y) for x, y in leaves) and all(
        np.array_equal(x, y) for x, y in zip(a.episodes, b.episodes, strict=True)
    )


@pytest.mark.parametrize("resample", some_quick(["step", "episode", 5], ["step"]))
def test_a_lane_does_not_depend_on_its_neighbours(resample):
    alone = Threads().execute(ge(seeds=[1], resample=resample).jobs(None))[0]
    among = Threads().execute(ge(seeds=[0, 1, 2], resample=resample).jobs(None), workers=2)[1]
    assert same(alone, among)


@pytest.mark.slow
@pytest.mark.parametrize("resample", some_quick(["step", "episode", 5], [5]))
def test_a_lane_does_not_depend_on_chunks(resample):
    job = ge(resample=resample).jobs(None)[0]
    whole = Threads().execute([job])[0]
    flight = outcomes.fresh(job)
    while not flight.finished:
        lane = chunks.advance([flight], [int(flight.lane.step)], chunk=7)[0]
        flight = outcomes.extended(flight, lane)
    assert same(whole, outcomes.retired(flight))


@pytest.mark.slow
def test_theta_is_held_for_exactly_so_many_steps():
    """An episode of chain-5 has 14 steps: θ changes after 5, 10, 15, … of the lane's, learning
    or not."""
    job = ge(resample=5).jobs(None)[0]
    agent, environment = job.agent, job.environment
    run = jax.jit(compiled.run)
    lane = jax.jit(start)(agent, environment, jnp.int32(0))
    changed = []
    for t in range(1, 71):  # the first update is at step 8
        before = lane.agent.theta
        lane = run(agent, environment, lane, jnp.int32(t), jnp.int32(10_000))
        same_theta = jax.tree.map(np.array_equal, before, lane.agent.theta)
        assert len({*jax.tree.leaves(same_theta)}) == 1
        if not any(jax.tree.leaves(same_theta)):
            changed.append(t)
    assert changed == list(range(5, 71, 5))


def test_seeds_differ():
    results = Threads().execute(ge(seeds=3).jobs(None))
    weights = [np.asarray(r.lane.agent.phi.learned.mu[0].weight) for r in results]
    assert not np.allclose(weights[0], weights[1])
    assert not np.allclose(weights[1], weights[2])


@pytest.mark.slow
def test_a_grid_of_numbers_compiles_one_program():
    """Over ρ, σ, α, γ, τ and seeds. No other test has a layer of this size."""
    jobs = []
    for rho, sigma, lr, gamma, period in [
        (-4.0, 1e-3, 1e-3, 0.99, 10),
        (-3.0, 1e-2, 1e-4, 0.9, 20),
        (-2.0, 1e-1, 1e-2, 0.5, 30),
    ]:
        numbers = {"rho": rho, "sigma": sigma, "lr": lr, "gamma": gamma, "target_period": period}
        jobs += ge(2, 3, hidden=(13,), **numbers).jobs(None)
    with compilations("run") as programs:
        Threads().execute(jobs)
    assert len(programs) == 1


@pytest.mark.slow
def test_together_agrees_with_apart():
    """In lockstep, with episodes of one lane budget ending before another's."""
    jobs = ge(seeds=2, episodes=12).jobs(None) + ge(seeds=[2], episodes=5).jobs(None)
    apart, together = Threads().execute(jobs), Threads(together=True).execute(jobs)
    for a, b in zip(apart, together, strict=True):
        assert len(b.episodes.returns) == a.job.episodes
        np.testing.assert_array_equal(a.episodes.returns, b.episodes.returns)
        np.testing.assert_array_equal(a.visits, b.visits)
        assert int(a.lane.step) == int(b.lane.step)
        for x, y in zip(jax.tree.leaves(a.lane.agent), jax.tree.leaves(b.lane.agent), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-3, atol=1e-5)


def test_steps_as_a_budget():
    config = configure(rove.DQN(**SMALL), "chain-5", seeds=1, steps=100)
    outcome = Threads().execute(config.jobs(None))[0]
    assert int(outcome.lane.step) == 100
    assert len(outcome.episodes.returns) == 100 // 14  # an episode of chain-5 has 14 steps
    np.testing.assert_array_equal(outcome.episodes.length, 14)
    np.testing.assert_array_equal(outcome.episodes.step, 14 * np.arange(1, 8))


def test_more_episodes_than_the_log_holds():
    config = configure(rove.DQN(**SMALL), "chain-3", seeds=1, episodes=600)
    outcome = Threads().execute(config.jobs(None))[0]
    assert len(outcome.episodes.returns) == 600 > 2 * compiled.LOG_CAPACITY
    np.testing.assert_array_equal(np.diff(outcome.episodes.step), 12)


def test_visits_count_episodes_not_steps():
    outcome = Threads().execute(ge(episodes=9).jobs(None))[0]
    assert outcome.visits[1] == 9  # every episode starts at s₂
    assert outcome.visits.max() <= 9


def test_a_lane_that_diverges_costs_the_others_nothing():
    bad = ge(seeds=[0], lr=1e30).jobs(None)
    good = ge(seeds=[1]).jobs(None)
    results = Threads().execute(bad + good)
    assert results[0].finished
    assert "chain-5, seed 0: the loss was not a finite number at step" in results[0].diverged
    assert not results[1].diverged
    assert same(results[1], Threads().execute(good)[0])


def test_lanes_of_a_version_with_another_buffer(tmp_path):
    """A finished one needs none, and is read; one that is to go on is refused in plain words."""
    run = rove.train(ge().agent, "chain-5", episodes=4, out=tmp_path)
    path = tmp_path / "lanes" / "seed-0.safetensors"
    arrays, about = checkpoint.load_arrays(path)
    arrays["replay"] = np.frombuffer(zlib.compress(bytes(99)), np.uint8)
    checkpoint.save_arrays(path, arrays, about)
    assert rove.load(tmp_path).outcomes[0].finished
    (job,) = dataclasses.replace(run.config, episodes=40).jobs(tmp_path)
    with pytest.raises(RunFolderError, match="replay buffer does not have 56 transitions"):
        storage.load(job)


class StartsAtNaN(rove.Chain):
    def reset(self, key):
        state, observation = super().reset(key)
        return state, observation * jnp.nan


class FarAway(rove.LinearQuadratic):
    def reset(self, key):
        state, observation = super().reset(key)
        return state, observation * jnp.nan


UNSEEING = {
    "ensemble": (rove.Agent(rove.Gaussian(0.1), rove.Ensemble(3, prior=1.0)), StartsAtNaN(5)),
    "low rank": (rove.Agent(rove.Gaussian(0.1), rove.LowRank(2, prior=1.0)), StartsAtNaN(5)),
    "actor-critic": (rove.ActorCritic(rove.Gaussian(0.1), rove.Dirac()), FarAway(1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", some_quick(UNSEEING, ["low rank"]))
def test_a_first_observation_that_is_not_finite_is_the_environments_fault(case):
    """Not the agent's, though its values of prior functions there, or its action, are no numbers
    either."""
    config = configure(*UNSEEING[case], seeds=1, episodes=2)
    (result,) = Threads().execute(config.jobs(None))
    assert isinstance(result, LaneError)
    assert "the observation was not a finite number at step 1" in str(result)


@pytest.mark.parametrize("word", ["observation", "reward"])
def test_a_number_of_the_environment_that_is_not_finite_is_no_divergence(word):
    flight = outcomes.fresh(ge().jobs(None)[0])
    faulty = flight.lane._replace(step=3, fault=FAULTS.index(word))
    with pytest.raises(LaneError, match=f"chain-5, seed 0: the {word} was not .* at step 3") as it:
        outcomes.extended(flight, faulty)
    assert it.type is LaneError


def test_a_very_small_spread_has_finite_gradients():
    """ρ far below where softplus² would underflow, and no weight on the entropy."""
    posterior = rove.MeanField(-30.0)
    agent = rove.Agent(rove.Gaussian(0.0), posterior, hidden=(8,), batch_size=4, buffer_size=64)
    state = agent.init(3, 2, noise.root(0))
    rho = jax.tree.map(lambda r: jnp.full_like(r, -60.0), state.phi.learned.rho)
    low = state.phi._replace(learned=state.phi.learned._replace(rho=rho))
    row = Transition(jnp.ones(3), jnp.array(1), jnp.array(1.0), jnp.ones(3), jnp.array(False))
    state = agent.observe(state._replace(phi=low), row)
    state, loss = jax.jit(agent.learn)(state, noise.root(1))
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves((state.phi, loss)))


@pytest.mark.parametrize(
    ("agent", "environment", "least", "message"),
    [
        (rove.GE(buffer_size=2**30), "chain-5", 4 * 2**30 * 13, "buffer_size=.* the replay"),
        (rove.GE(hidden=(2**16, 2**16)), "chain-5", 32 * 2**32, "hidden=.* the parameters"),
        (rove.RLSVI(), "deep-sea-500", 8 * 250_000**2, "features=250000: .* the parameters"),
        (rove.TD3(buffer_size=2**30), "linear-quadratic-1", 4 * 2**30 * 7, "buffer_size="),
    ],
)
def test_what_does_not_fit_is_refused_with_its_bytes(
    agent, environment, least, message, monkeypatch
):
    """GE has μ and ρ, their targets and two moments of each; RLSVI a root for each action."""
    monkeypatch.setattr(base, "_free_memory", lambda: 2**30)
    jobs = configure(agent, environment, episodes=1).jobs(None)
    with pytest.raises(ConfigError, match=message) as caught:
        Threads().execute(jobs)
    needed = re.search(r"([\d,.]+) GB", str(caught.value))[1].replace(",", "")
    assert 1e9 * float(needed) > 0.999 * least


def test_a_lane_stops_where_its_task_is_solved():
    """At the end of the tenth optimal episode in a row, and not before; up to there it is the
    same lane."""
    whole = rove.train(rove.PSRL(), "chain-4", episodes=150)
    cut = rove.train(rove.PSRL(), "chain-4", episodes=150, until_solved=True)
    solved = solving.episodes_to_solve(whole.returns[0], 11.0)
    assert solved is not None
    assert solved < 150
    assert cut.returns.shape == (1, solved)
    np.testing.assert_array_equal(cut.returns[0], whole.returns[0, :solved])
    with pytest.raises(ConfigError, match="requires a known optimum"):
        rove.train("thompson", "bandit-3", episodes=5, until_solved=True)
