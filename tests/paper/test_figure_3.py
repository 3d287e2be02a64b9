"""Figure 3 on tiny runs: data, pictures, and claims that can come out either way."""

import csv
import gzip
import types

import numpy as np
import pytest

from rove.paper import figure_3, published
from rove.paper.figure_3 import AGENTS, CAR, EPISODES, Figure3, spread_of


def test_the_plan_is_the_papers():
    plan = Figure3().configs()
    panels = {(environment, agent) for environment in EPISODES for agent in AGENTS}
    seen = {("visits-10", agent) for agent in ("ge-step", "dqn", "dqn-paper")}
    assert set(plan) - panels == seen
    assert all(config.seeds == tuple(range(10)) for config in plan.values())
    for environment in EPISODES:
        paper = plan[environment, "dqn-paper"].agent
        assert (paper.epsilon, paper.epsilon_steps) == (0.1, 0)
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
    monkeypatch.setattr(figure_3, "EPISODES_PER_ITERATION", 1)
    monkeypatch.setattr(figure_3, "QUICK_VISITS_AFTER", (1, 2))
    made = Figure3(quick=True)
    found = made.run(tmp_path)
    assert found == published.claims("figure-3")  # the quick form only draws
    assert not (tmp_path / "claims.json").exists()
    with gzip.open(tmp_path / "figure-3.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * (2 + 1 + 3)
    assert {row["agent"] for row in rows} == {"dqn", "noisynet", "ge-step"}
    with gzip.open(tmp_path / "visits.csv.gz", "rt") as file:
        visits = list(csv.DictReader(file))
    assert {(v["agent"], v["iterations"]) for v in visits} == {
        (agent, n) for agent in ("ge-step", "dqn") for n in ("1", "2")
    }
    assert (tmp_path / "figure-3.png").read_bytes().startswith(b"\x89PNG")
    assert "(d) GE, 2 iterations" in (tmp_path / "figure-3.svg").read_text()


def made_up(scores, visits):
    """A run with the given scores, where only what the claims read is there."""
    place = types.SimpleNamespace(score_label="score", score_range=(0.0, 1.0))
    return types.SimpleNamespace(
        scores=np.asarray(scores, float),
        visits=np.asarray(visits, float),
        config=types.SimpleNamespace(environment=place),
    )


def verdicts(early=9, unsteady=(), **levels):
    """Of runs of 30 seeds and four iterations, each with its own level of score and so many cells
    visited; so many by the first look. The score of what is unsteady falls to 0 for a while."""
    runs = {}
    for agent, (level, cells) in levels.items():
        name = agent.replace("_", "-")
        own = level + 0.0001 * np.arange(30)[:, None]
        shape = np.repeat([1.0, 0.0 if agent in unsteady else 1.0, 1.0, 1.0], 20)
        visits = np.tile(np.arange(100) < cells, (30, 1))
        for environment in EPISODES:
            runs[environment, name] = made_up(own * shape, visits)
        runs["visits-10", name] = made_up([], np.tile(np.arange(100) < early, (30, 1)))
    return [claim.verdict for claim in Figure3().claims(runs)]


def dqns(level, cells):
    return {"dqn_paper": (level, cells), "dqn": (level, cells)}


def test_claims_can_come_out_either_way():
    yes, no, open_ = "supported", "not supported", "inconclusive"
    baselines, ge = (
        ("dqn", "dqn_paper", "noisynet"),
        {"ge_step": (0.6, 90), "ge_episode": (0.9, 90)},
    )
    assert set(verdicts(20, baselines, **dqns(0.01, 9), noisynet=(0.02, 9), **ge)) == {yes}
    assert set(verdicts(20, **dqns(0.0, 9), noisynet=(0.02, 9), **ge)) == {yes, open_}
    ge = {"ge_step": (0.6, 9), "ge_episode": (0.2, 9)}
    found = verdicts(20, ("ge_step",), **dqns(0.95, 90), noisynet=(0.95, 9), **ge)
    assert set(found) == {no}
    same = verdicts(**dqns(0.5, 9), noisynet=(0.5, 9), ge_step=(0.5, 9), ge_episode=(0.5, 9))
    rarely, cluster, maintained = slice(9, 12), slice(18, 20), 20
    assert same[maintained] == yes
    assert same[rarely] + same[cluster] == 5 * [no]  # visits that stay as they are do not cluster
    assert same[:9] + same[12:18] + same[21:] == 20 * [open_]


def test_never_or_very_rarely_is_a_count_of_seeds():
    """Eight seeds of ten that never do are not enough, whatever the others do; nine are."""

    def verdict(rare):
        scores = np.where(np.arange(10) < rare, 0.0, 1.0)[:, None] * np.ones((1, 80))
        runs = {
            (environment, agent): made_up(scores, np.ones((10, 100)))
            for environment in (*EPISODES, "visits-10")
            for agent in AGENTS
        }
        found = Figure3().claims(runs)
        return next(claim for claim in found if "DQN never, or very rarely" in claim.text).verdict

    found = [verdict(rare) for rare in (9, 8, 2, 1)]
    assert found == ["supported", "inconclusive", "inconclusive", "not supported"]


def test_spread_is_the_number_of_cells_where_visits_are_even():
    assert spread_of(np.array([[0.5] * 7 + [0.0] * 3])) == pytest.approx([7.0])
    assert spread_of(np.array([[0.9, 0.1]])) == pytest.approx(
        [np.exp(-0.9 * np.log(0.9) - 0.1 * np.log(0.1))]
    )
