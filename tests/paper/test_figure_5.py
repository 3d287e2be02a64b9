"""Figure 5 on tiny runs: data, pictures, and claims that can come out either way."""

import csv
import itertools
import types

import numpy as np
import pytest

from rove.paper import figure_5, published
from rove.paper.figure_5 import (
    RHO,
    SIGMA,
    Figure5,
    active,
    cells_by,
    chosen,
    critical,
    hindered,
    judged,
    key,
    lanes_at,
    more,
    peaked,
)


def test_the_plan_covers_the_papers_ranges():
    made = Figure5()
    plan = made.configs()
    on_lines = len(made.rhos) + len(made.sigmas) - 1
    assert len(plan) == 2 * (len(made.rhos) * len(made.sigmas) + on_lines)
    assert len(Figure5(quick=True).configs()) == 2 * 3 * 3
    assert (min(made.rhos), max(made.rhos)) == (-10.0, -1.0)
    assert (min(made.sigmas), max(made.sigmas)) == (1e-8, 1e-1)
    for quick in (False, True):
        assert RHO in Figure5(quick).rhos[1:-1]
        assert SIGMA in Figure5(quick).sigmas[1:-1]
    config = plan[key("episode", -4.0, 1e-3)]
    assert config.environment.name == "sparse-cartpole"
    assert (config.agent.resample, config.agent.rho, config.agent.sigma) == ("episode", -4.0, 1e-3)
    assert config.seeds == (0, 1, 2, 3, 4)
    for point in (key("step", -10.0, SIGMA), key("episode", RHO, 1e-1)):
        assert plan[point].seeds + plan[more(point)].seeds == tuple(range(15))
        assert plan[point].agent == plan[more(point)].agent
    assert more(key("step", -10.0, 1e-1)) not in plan
    others = {k: v for k, v in vars(config.agent).items() if k not in ("rho", "sigma")}
    for rho in made.rhos:
        agent = plan[key("episode", rho, 1e-8)].agent
        assert {k: v for k, v in vars(agent).items() if k not in ("rho", "sigma")} == others


@pytest.mark.slow
def test_a_tiny_one_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_5, "QUICK_EPISODES", 2)
    found = Figure5(quick=True).run(tmp_path)
    assert found == published.claims("figure-5")
    rows = list(csv.DictReader((tmp_path / "figure-5.csv").open()))
    assert len(rows) == 2 * 3 * 3 * 2
    assert {row["resample"] for row in rows} == {"step", "episode"}
    for row in rows:
        assert float(row["score"]) >= 8
        assert row["episodes"] == "2"
        assert 0 < int(row["cells"]) <= int(row["steps"])
    assert (tmp_path / "figure-5.png").read_bytes().startswith(b"\x89PNG")
    drawn = (tmp_path / "figure-5.svg").read_text()
    for text in ("(a) over ρ, at σ = 0.001", "(b) over σ, at ρ = -4", "(d) GE, θ per episode"):
        assert text in drawn
    assert not (tmp_path / "claims.json").exists()


def test_a_value_is_chosen_on_other_seeds():
    """Of six seeds the first two choose: the others, which would choose otherwise, do not."""
    table = np.array([[90.0, 80.0, 1, 2, 3, 4], [10, 10, 10, 20, 30, 40], [0, 0, 50, 50, 50, 50]])
    assert judged(table).shape == (3, 4)
    assert [chosen(table)[0], *chosen(table)[1]] == [0, 1, 2, 3, 4]
    assert [chosen(table, worst=True)[0], *chosen(table, worst=True)[1]] == [2, 50, 50, 50, 50]
    assert judged(table[:, :2]).shape == (3, 1)  # of two, one chooses


def test_the_lanes_of_a_point_are_those_of_all_its_seeds():
    runs = {key("step", -1.0, s): types.SimpleNamespace(outcomes=[s]) for s in (0.1, 0.2)}
    runs[more(key("step", -1.0, 0.1))] = types.SimpleNamespace(outcomes=[5, 6])
    assert lanes_at(runs, key("step", -1.0, 0.1)) == [0.1, 5, 6]
    assert lanes_at(runs, key("step", -1.0, 0.2)) == [0.2]


VALUES = (1.0, 2.0, 3.0, 4.0)


def line(means, cells=(1.0, 1.0, 1.0, 1.0), noise=1.0, n=15):
    """Lanes at the values, of n seeds with given means and cells visited a step; only what the
    claims read is there."""
    seeds = np.random.default_rng(0).normal(0.0, noise, (len(means), n))
    environment = types.SimpleNamespace(optimum=None)
    return [
        [
            types.SimpleNamespace(
                scores=np.full(20, mean + e),
                diverged="",
                job=types.SimpleNamespace(environment=environment, episodes=20),
                episodes=types.SimpleNamespace(
                    step=np.arange(100, 2100, 100),
                    coverage=(rate + 0.001 * e) * np.arange(100, 2100, 100),
                ),
            )
            for e in row
        ]
        for mean, rate, row in zip(means, cells, seeds, strict=True)
    ]


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((10, 50, 40, 10), "supported"),
        ((10, 20, 40, 80), "not supported"),
        ((80, 40, 20, 10), "not supported"),
        ((80, 10, 10, 80), "not supported"),
        ((1, 5, 10, 9.5), "inconclusive"),
        ((10, 90, 90, 90), "not supported"),  # of 90, an end lacks less than 5 of 100
    ],
)
def test_not_monotonic_is_a_peak_between_the_ends(means, verdict):
    assert peaked("a claim", line(means), VALUES).verdict == verdict


def test_of_seven_seeds_five_judge_and_show_no_peak():
    assert peaked("a claim", line((10, 50, 40, 10), n=7), VALUES).verdict == "inconclusive"


@pytest.mark.parametrize("rule", [critical, hindered, lambda text, x: peaked(text, x, VALUES)])
def test_noise_alone_seldom_shows_anything(rule):
    """Of 200 lines that are flat, about 5 may be taken for one that is not."""
    rng, flat = np.random.default_rng(0), line((0, 0, 0, 0), noise=0.0)
    verdicts = []
    for _ in range(200):
        for outcome in itertools.chain(*flat):
            outcome.scores = np.full(20, 100.0 + 20.0 * rng.normal())
        verdicts.append(rule("a claim", flat).verdict)
    assert verdicts.count("supported") <= 8


YES, NO, OPEN = "supported", "not supported", "inconclusive"


def test_the_other_claims_can_come_out_each_way():
    """Values that differ by less than 5% are not told apart, so at 5% it is a matter of chance."""
    assert critical("a claim", line((10, 50, 40, 10))).verdict == YES
    assert critical("a claim", line((10, 10, 10, 10))).verdict == NO
    found = [hindered("a claim", line((10, 50, 40, last))).verdict for last in (10, 47.5, 90)]
    assert found == [YES, OPEN, NO]
    rates = [(0.1, 1, 1, 0.7), (0.5, 1, 1, 0.5), (0.7, 1, 1, 0.1)]
    found = [active("a claim", line((1, 1, 1, 1), cells)).verdict for cells in rates]
    assert found == [YES, OPEN, NO]


def test_evidence_has_the_means():
    told = hindered("a claim", line((10, 50, 40, 20), noise=0.0)).evidence
    assert told == (
        "best other value, chosen on other seeds, ahead of the largest by more than 5% (mean steps "
        "per episode 50 and 20): 10 of 10 seeds (95% interval 69% to 100%)"
    )


def test_cells_are_counted_in_equally_many_steps():
    """A lane that lives longer has seen more by its end, and no more by the other's."""
    short, long = line((1, 1), cells=(0.5, 0.5), noise=0.0)
    for lane in long:
        lane.episodes.step, lane.episodes.coverage = np.array([60, 3000]), np.array([30, 1500])
    assert cells_by(long[0], 1530) == 765.0
    claim = active("a claim", [short, long])
    assert "within 2,000 steps" in claim.evidence
    assert claim.verdict == OPEN
