"""Figure 3 on tiny runs: data, pictures, and claims that can come out either way."""

import csv
import gzip
import types

import numpy as np
import pytest

from rove.experiments import figure_3
from rove.experiments.figure_3 import AGENTS, CAR, EPISODES, Figure3, spread_of


def test_the_plan_is_the_papers():
    plan = Figure3().configs()
    panels = {(environment, agent) for environment in EPISODES for agent in AGENTS}
    assert set(plan) - panels == {("visits-10", "ge-step"), ("visits-10", "dqn")}
    assert all(config.seeds == (0, 1, 2, 3, 4) for config in plan.values())
    assert plan["visits-10", "dqn"].episodes == 200
    assert EPISODES[CAR] == 600  # so that the panel of 30 iterations is the run itself
    for agent, resample in (("ge-step", "step"), ("ge-episode", "episode")):
        found = {plan[environment, agent].compose().resample for environment in EPISODES}
        assert found == {resample}
    for environment in EPISODES:  # all have the network of the search
        assert len({plan[environment, agent].compose().hidden for agent in AGENTS}) == 1


@pytest.mark.slow
def test_a_tiny_one_end_to_end(tmp_path, monkeypatch):
    few = {CAR: 2, "sparse-acrobot": 1, "sparse-cartpole": 3}
    monkeypatch.setattr(figure_3, "QUICK_EPISODES", few)
    monkeypatch.setattr(figure_3, "ITERATION", 1)
    monkeypatch.setattr(figure_3, "QUICK_VISITS_AFTER", (1, 2))
    made = Figure3(quick=True)
    found = made.run(tmp_path)
    assert len(found) == 18
    with gzip.open(tmp_path / "figure-3.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 4 * (2 + 1 + 3)
    with gzip.open(tmp_path / "visits.csv.gz", "rt") as file:
        visits = list(csv.DictReader(file))
    assert {(v["agent"], v["iterations"]) for v in visits} == {
        (agent, n) for agent in ("ge-step", "dqn") for n in ("1", "2")
    }
    assert (tmp_path / "figure-3.png").read_bytes().startswith(b"\x89PNG")
    assert "(d) GE, 2 iterations" in (tmp_path / "figure-3.svg").read_text()
    assert made.run(tmp_path) == found  # goes on from what is there


def made_up(agent, scores, visits):
    """A run with the given scores, where only what the claims read is there."""
    place = types.SimpleNamespace(score_label="score")
    return types.SimpleNamespace(
        scores=np.asarray(scores, float),
        visits=np.asarray(visits, float),
        config=types.SimpleNamespace(agent_name=agent, environment=place),
    )


def verdicts(early=9, unsteady=(), **levels):
    """Of runs of five seeds and four iterations, each with its own level of score and so many cells
    visited; so many by the first look. The score of what is unsteady falls to 0 for a while."""
    runs = {}
    for agent, (level, cells) in levels.items():
        name = agent.replace("_", "-")
        own = level + 0.001 * np.arange(5)[:, None]
        shape = np.repeat([1.0, 0.0 if agent in unsteady else 1.0, 1.0, 1.0], 20)
        visits = np.tile(np.arange(100) < cells, (5, 1))
        for environment in EPISODES:
            runs[environment, name] = made_up(agent.partition("_")[0], own * shape, visits)
        runs["visits-10", name] = made_up(agent, [], np.tile(np.arange(100) < early, (5, 1)))
    return [claim.verdict for claim in Figure3().claims(runs)]


def test_claims_can_come_out_either_way():
    yes, no, open_ = "reproduced", "not reproduced", "inconclusive"
    baselines, ge = ("dqn", "noisynet"), {"ge_step": (0.8, 90), "ge_episode": (0.9, 90)}
    assert set(verdicts(20, baselines, dqn=(0.01, 9), noisynet=(0.02, 9), **ge)) == {yes}
    assert set(verdicts(20, dqn=(0.0, 9), noisynet=(0.02, 9), **ge)) == {yes, open_}
    ge = {"ge_step": (0.6, 9), "ge_episode": (0.4, 9)}
    assert set(verdicts(20, ("ge_step",), dqn=(0.9, 90), noisynet=(0.9, 9), **ge)) == {no}
    same = verdicts(dqn=(0.5, 9), noisynet=(0.5, 9), ge_step=(0.5, 9), ge_episode=(0.5, 9))
    maintained = 13
    assert same[maintained] == yes
    assert same[:6] + same[8:maintained] + same[maintained + 1 :] == 15 * [open_]
    assert same[6:8] == [no, no]


def test_spread_is_the_number_of_cells_where_visits_are_even():
    even = made_up("ge", [], [[0.5] * 7 + [0.0] * 3])
    assert spread_of(even) == pytest.approx([7.0])
    uneven = made_up("ge", [], [[0.9, 0.1]])
    assert spread_of(uneven) == pytest.approx([np.exp(-0.9 * np.log(0.9) - 0.1 * np.log(0.1))])
