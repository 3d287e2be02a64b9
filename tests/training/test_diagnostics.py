"""What every lane records of its beliefs, and the alarm that reads it."""

import io
import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import rove
from helpers import SMALL
from rove.agents import AGENTS
from rove.cli import display
from rove.core.algorithm import Agent
from rove.core.diagnostics import DRAWS
from rove.parts import noise
from rove.runs.configure import configure
from rove.training.lane import SNAPSHOTS


@pytest.fixture(scope="module")
def run():
    return rove.train(rove.GE(**SMALL, sigma=0.25), "chain-5", seeds=2, episodes=9)


def test_every_episode_has_its_spreads_and_coverage(run):
    for values in (run.spread, run.return_spread, run.coverage):
        assert values.shape == (2, 9)
    assert np.all(run.spread > 0)
    np.testing.assert_allclose(run.return_spread, 0.25, rtol=1e-6)
    assert np.all(np.diff(run.coverage) >= 0)
    for outcome in run.outcomes:
        assert outcome.episodes.coverage[-1] == np.sum(outcome.visits > 0)


def test_snapshots_are_of_episodes_one_two_four_and_eight(run):
    values, outputs, *_ = run.outcomes[0].lane.snapshots
    assert values.shape == (SNAPSHOTS, DRAWS, 3, 2)
    assert outputs.shape == (SNAPSHOTS, 3, 2)
    taken = [i for i in range(SNAPSHOTS) if np.any(values[i])]
    assert taken == [0, 1, 2, 3]
    # Episode 8's, after 8 · 14 steps, is what `spread` of that episode was taken from.
    spread = np.mean(np.std(np.asarray(values[3]), axis=0))
    assert run.spread[0, 7] == pytest.approx(spread, rel=1e-5)


def test_beliefs_are_the_posteriors():
    """Against a linear layer written out: Q ~ N(x·μ, x²·σ²), and Z's σ."""
    agent = Agent(rove.Gaussian(0.5), rove.MeanField(0.0), hidden=(), buffer_size=64)
    state, x = agent.init(3, 2, noise.root(0)), jnp.array([[1.0, -2.0, 0.5]])
    draws = [agent.beliefs(state, x, noise.root(seed)) for seed in range(1, 41)]
    values = np.concatenate([np.asarray(d.values)[:, 0] for d in draws])
    assert values.shape == (40 * DRAWS, 2)
    mean = np.asarray(x[0] @ state.phi.learned.mu[0].weight + state.phi.learned.mu[0].bias)
    std = np.log(2.0) * np.sqrt(1 + 4 + 0.25 + 1)
    np.testing.assert_allclose(values.mean(0), mean, atol=4 * std / np.sqrt(len(values)))
    np.testing.assert_allclose(values.std(0), std, rtol=0.12)
    np.testing.assert_allclose(draws[0].stds, 0.5)
    np.testing.assert_allclose(draws[0].outputs[0], mean, rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "dqn",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("bootstrapped_dqn", "bayesian_q_learning", "psrl")
        ),
    ],
)
def test_any_agent_draws_its_diagnostics(name, tmp_path):
    shown = {f: v for f, v in SMALL.items() if hasattr(AGENTS[name](), f)}
    run = rove.train(name, "chain-4", seeds=1, episodes=4, **shown)
    run.plot_diagnostics(tmp_path / "d.svg")
    drawn = (tmp_path / "d.svg").read_text()
    assert "s = middle" in drawn
    # Z is drawn unless it is a point.
    assert ("Z(s, a) after episode 4, s = " in drawn) == (run.return_spread.max() > 1e-3)
    assert (run.spread.max() > 0) == (name != "dqn")


def test_policies_that_are_optimal_are_counted_though_training_still_explores(run):
    console = Console(record=True, width=120, file=io.StringIO())
    told = display.summary(run) | {"evaluated": [11.0, 2.0], "solved_at": [None, None]}
    display.closing_table(console, run, told)
    assert "whose trained policy is optimal: 1 of 2" in console.export_text()
    display.closing_table(console, run, told | {"evaluated": [10.0, 2.0]})
    assert "trained policy is optimal" not in console.export_text()


def test_the_closing_lines_say_which_policies_are_delivered(run):
    console = Console(record=True, width=160, file=io.StringIO())
    told = display.summary(run) | {"policy": ["mean", "mean"]}
    display.closing_table(console, run, told)
    text = console.export_text()
    scores = [rf"{np.mean(row):.3f} \(mean\)" for row in run.evaluated]
    assert re.search(r"┃ last 20 ┃ +policy ┃ +solved at ┃", text)
    assert all(re.search(rf"│ +{score} │", text) for score in scores)
    display.closing_table(console, run, told | {"policy": ["vote", "mean"]})
    lines = "greedy on the posterior mean (mean): 1 seed; the majority of 15 samples of θ, drawn "
    assert f"(and which it is): {lines}as in training (vote): 1 seed" in console.export_text()


def test_without_an_episode_nothing_is_drawn_or_printed(run, tmp_path):
    """A budget of steps may end before the first episode does."""
    outcome = run.outcomes[0]
    none = outcome._replace(episodes=type(outcome.episodes)(*(x[:0] for x in outcome.episodes)))
    rove.Run(run.config, [none]).plot_diagnostics(tmp_path / "d.svg")
    drawn = (tmp_path / "d.svg").read_text()
    assert "no episode of seed 0 has ended" in drawn
    assert not any(word in drawn for word in ("s = start", "spread", "visits"))
    console = Console(record=True, width=120, file=io.StringIO())
    twice = rove.Run(run.config, [none, none])
    display.closing_table(console, twice, display.summary(twice))
    text = console.export_text()
    assert re.search(r"│ +0 │ +0 │ +126 │ +– │ +– │", text), text
    assert "nan" not in text


def test_the_alarm_rings_when_the_spread_dies_before_the_return_is_found(run):
    outcome = run.outcomes[0]

    def alarms(spread, returns):
        columns = {"spread": spread, "returns": returns}
        episodes = outcome.episodes._replace(**columns)
        warnings = rove.Run(run.config, [outcome._replace(episodes=episodes)]).alarms
        return [sentence for sentence in warnings if "collapsed" in sentence]

    dying = np.r_[np.ones(30), np.full(40, 0.009)]
    assert "seed 0: q_φ collapsed by episode 50" in alarms(dying, np.zeros(70))[0]
    assert not alarms(dying, np.r_[np.zeros(25), 11.0, np.zeros(44)])  # found before
    assert not alarms(np.r_[np.ones(30), np.full(40, 0.011)], np.zeros(70))
    assert not alarms(np.zeros(70), np.zeros(70))  # a Dirac never had a spread
    blinking = np.where(np.arange(70) % 19 == 0, 1.0, 0.001)
    assert not alarms(blinking, np.zeros(70))


def test_visits_alarms_and_policies_are_in_the_run_folder(tmp_path):
    run = rove.train("dqn", "chain-5", seeds=[3, 4], episodes=4, hidden=(4,), out=tmp_path)
    run.draw(tmp_path)
    told = json.loads((tmp_path / "diagnostics.json").read_text())
    assert told["alarms"] == run.alarms
    assert told["not_watched"] is None
    bandit = configure("thompson", "bandit-3", episodes=1)
    assert "bandit-3 has no known optimum" in rove.Run(bandit, []).not_watched
    assert told["cells"] == [5]
    assert list(told["visits"]) == ["3", "4"]
    np.testing.assert_allclose(list(told["visits"].values()), run.visits, atol=1e-6)
    for seed, scores, delivered, network in zip(
        ("3", "4"), run.evaluated, run.delivered, run.networks, strict=True
    ):
        entry = told["policies"][seed]
        assert entry["policy"] == delivered.policy
        assert entry["candidates"] == delivered.candidates
        assert (entry["scores"], len(entry["greedy"]), entry["step"]) == (scores, 20, 56)
        assert entry["network"]["value_range"] == network.value_range
        assert entry["network"]["numbers"] == list(range(56))
    np.testing.assert_array_equal(run.evaluate(20), run.evaluated)
