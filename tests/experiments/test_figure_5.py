"""Figure 5 on tiny runs: data, pictures, and claims that can come out either way."""

import csv
import json
import types

import numpy as np
import pytest

from rove.experiments import figure_5
from rove.experiments.figure_5 import Figure5, active, critical, held_out, key, peaked


def test_the_plan_covers_the_papers_ranges():
    made = Figure5()
    plan = made.configs()
    assert len(plan) == 2 * len(made.rhos) * len(made.sigmas)
    assert (min(made.rhos), max(made.rhos)) == (-10.0, -1.0)
    assert (min(made.sigmas), max(made.sigmas)) == (1e-8, 1e-1)
    for quick in (False, True):
        assert figure_5.RHO in Figure5(quick).rhos[1:-1]
        assert figure_5.SIGMA in Figure5(quick).sigmas[1:-1]
    config = plan[key("episode", -4.0, 1e-3)]
    assert config.environment.name == "sparse-cartpole"
    assert (config.agent.resample, config.agent.rho, config.agent.sigma) == ("episode", -4.0, 1e-3)
    assert config.seeds == (0, 1, 2, 3, 4)
    others = {k: v for k, v in vars(config.agent).items() if k not in ("rho", "sigma")}
    for rho in made.rhos:
        agent = plan[key("episode", rho, 1e-8)].agent
        assert {k: v for k, v in vars(agent).items() if k not in ("rho", "sigma")} == others


@pytest.mark.slow
def test_a_tiny_one_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_5, "QUICK_EPISODES", 2)
    found = Figure5(quick=True).run(tmp_path)
    assert len(found) == 12
    rows = list(csv.DictReader((tmp_path / "figure-5.csv").open()))
    assert len(rows) == 2 * 3 * 3 * 2
    assert {row["resample"] for row in rows} == {"step", "episode"}
    assert all(float(row["score"]) >= 8 and row["episodes"] == "2" for row in rows)
    assert (tmp_path / "figure-5.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "figure-5.svg").read_text()
    for text in ("(a) over ρ, at σ = 0.001", "(b) over σ, at ρ = -4", "(d) GE, a θ an episode"):
        assert text in drawn
    told = json.loads((tmp_path / "claims.json").read_text())
    assert [c["verdict"] for c in told] == [c.verdict for c in found]


def test_a_value_is_chosen_on_the_other_seeds():
    """Seed 0 alone likes the first value; it must not choose it for itself."""
    line = np.array([[90.0, 0.0, 0.0], [10.0, 10.0, 10.0], [0.0, 0.0, 0.0]])
    assert held_out(line) == [1, 0, 0]
    assert held_out(line, worst=True) == [0, 2, 2]


VALUES = (1.0, 2.0, 3.0, 4.0)


def line(means, spreads=(1.0, 1.0, 1.0, 1.0), noise=1.0):
    """Runs at the values, with given means over five seeds; only what the claims read is there."""
    seeds = np.random.default_rng(0).normal(0.0, noise, (len(means), 5))
    environment = types.SimpleNamespace(optimum=None)
    return [
        types.SimpleNamespace(
            outcomes=[
                types.SimpleNamespace(
                    scores=np.full(20, mean + e),
                    job=types.SimpleNamespace(environment=environment, episodes=20),
                )
                for e in row
            ],
            spread=np.full((5, 20), spread) * np.exp(0.01 * row)[:, None],
        )
        for mean, spread, row in zip(means, spreads, seeds, strict=True)
    ]


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((10, 50, 40, 10), "reproduced"),
        ((10, 20, 40, 80), "not reproduced"),
        ((80, 40, 20, 10), "not reproduced"),
        ((80, 10, 10, 80), "not reproduced"),
        ((10, 20, 40, 40), "inconclusive"),
    ],
)
def test_not_monotonic_is_a_peak_between_the_ends(means, verdict):
    assert peaked("a claim", line(means), VALUES).verdict == verdict


def test_a_peak_of_noise_alone_is_not_one():
    """Of forty lines that are flat, few have a peak: it is chosen and measured on other seeds."""
    verdicts = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        flat = line((0, 0, 0, 0), noise=0.0)
        for run in flat:
            for outcome in run.outcomes:
                outcome.scores = np.full(20, rng.normal())
        verdicts.append(peaked("a claim", flat, VALUES).verdict)
    assert verdicts.count("reproduced") <= 4


def test_critical_and_active_can_fail():
    assert critical("a claim", line((10, 50, 40, 10))).verdict == "reproduced"
    assert critical("a claim", line((10, 10, 10, 10))).verdict != "reproduced"
    assert active("a claim", line((1, 1, 1, 1), (0.1, 1, 1, 9))).verdict == "reproduced"
    assert active("a claim", line((1, 1, 1, 1), (9, 1, 1, 0.1))).verdict == "not reproduced"
