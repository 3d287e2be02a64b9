"""Figure 2 on tiny runs: data, pictures, and claims that can come out either way."""

import csv
import gzip
import json
import types

import numpy as np
import pytest

import rove
from rove import plots
from rove.experiments import figure_2
from rove.experiments.figure_2 import AGENTS, EPISODES, VISITS, Figure2, claims


def test_the_plan_is_the_papers():
    plan = Figure2().configs()
    panels = {(e, a) for e in EPISODES for a in AGENTS}
    text = {("chain-100", "bootstrapped_dqn")}
    assert {key for key in plan if key[0] != VISITS} == panels | text
    assert {key for key in Figure2(quick=True).configs() if key[0] != VISITS} == panels
    assert all(config.seeds == (0, 1, 2, 3, 4) for config in plan.values())
    assert plan["chain-128", "ge"].episodes == 20
    for (environment, agent), config in plan.items():
        assert config.agent_name == agent
        assert config.environment.name == environment


@pytest.mark.slow
def test_a_tiny_one_end_to_end(tmp_path, monkeypatch):
    for episodes in ("QUICK_EPISODES", "EPISODES"):
        monkeypatch.setattr(figure_2, episodes, {"chain-10": 4, "chain-50": 2, "chain-100": 2})
    monkeypatch.setattr(figure_2, "QUICK_SEEDS", 2)
    monkeypatch.setattr(figure_2, "SEEDS", 2)
    monkeypatch.setattr(figure_2, "ITERATION", 2)
    found = Figure2(quick=True).run(tmp_path)
    assert len(found) == 11
    with gzip.open(tmp_path / "figure-2.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * (4 + 2 + 2) + 2 * 2 * 2
    assert (tmp_path / "figure-2.png").read_bytes().startswith(b"\x89PNG")
    assert "Chain MDP, N = 100" in (tmp_path / "figure-2.svg").read_text()
    told = json.loads((tmp_path / "claims.json").read_text())
    assert [c["verdict"] for c in told] == [c.verdict for c in found]
    assert (tmp_path / "claims.md").read_text().count("\n") == 13
    again = Figure2(quick=True).run(tmp_path)  # goes on from what is there
    assert again == found


def made_up(agent, returns, greedy=11.0, visits=None):
    """A run with the given returns, where only what the claims read is there."""
    return types.SimpleNamespace(
        returns=np.asarray(returns, float),
        seeds=range(len(returns)),
        visits=visits,
        config=types.SimpleNamespace(agent_name=agent),
        evaluate=lambda: np.full(len(returns), greedy),
    )


def world(ge=11.0, noisynet=0.0, dqn=0.0, greedy=11.0, seen=(128, 3), spreads=(1.0, 0.1)):
    """Verdicts where agents have these returns, visit so many states, and where at N = 100 the
    seeds of GE and of Bootstrapped DQN lie so far apart."""
    runs = {}
    for environment in EPISODES:
        for agent, level in (("ge", ge), ("noisynet", noisynet), ("dqn", dqn)):
            runs[environment, agent] = made_up(agent, np.full((5, 40), level), greedy)
    for agent, spread in zip(("ge", "bootstrapped_dqn"), spreads, strict=True):
        seeds = ge + spread * np.linspace(-1, 1, 5)[:, None]
        runs["chain-100", agent] = made_up(agent, np.tile(seeds, (1, 40)))
    for agent, states in zip(("ge", "dqn"), seen, strict=True):
        visits = np.tile(np.arange(128) < states, (5, 1)).astype(float)
        runs[VISITS, agent] = made_up(agent, np.zeros((5, 20)), visits=visits)
    return [claim.verdict for claim in claims(runs)]


def test_claims_hold_in_the_papers_world():
    assert world() == ["reproduced"] * 11


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"greedy": 0.018}, [0]),
        ({"dqn": 5.0}, [1, 4]),
        ({"noisynet": 11.0}, [2, 3, 5]),
        ({"ge": 0.0}, [2, 5, 6]),
        ({"dqn": 11.0}, [1, 4, 6]),
        ({"spreads": (1.0, 1.0)}, [7]),
        ({"spreads": (0.1, 1.0)}, [7]),
        ({"seen": (128, 30)}, [8]),
        ({"seen": (4, 5)}, [9, 10]),
        ({"seen": (127, 3)}, [10]),
    ],
)
def test_claims_fail_in_others(changes, failing):
    verdicts = world(**changes)
    assert [i for i, verdict in enumerate(verdicts) if verdict != "reproduced"] == failing


def test_one_seed_that_is_lucky_does_not_refute_that_an_agent_is_stuck():
    returns = np.zeros((5, 40))
    returns[0] = 11.0
    assert figure_2._stuck("a claim", made_up("dqn", returns)).verdict == "inconclusive"
    assert figure_2._stuck("a claim", made_up("dqn", returns + 8.0)).verdict == "not reproduced"


def test_curves_of_unequal_length_can_be_drawn(tmp_path):
    """A run by steps has lanes of different lengths; the rest is NaN."""
    run = rove.train(rove.DQN(hidden=(8,), learning_starts=30), "chain-3", seeds=2, steps=100)
    plots.save(run.plot(), tmp_path / "curve.svg")
    assert "dqn on chain-3" in (tmp_path / "curve.svg").read_text()
