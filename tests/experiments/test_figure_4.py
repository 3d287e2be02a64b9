"""Figure 4 on tiny runs of MuJoCo: data, pictures, and claims that can come out either way."""

import csv
import gzip
import types

import numpy as np
import pytest

from rove.experiments import figure_4
from rove.experiments.figure_4 import AGENTS, TASKS, Figure4

pytest.importorskip("mujoco")


def test_the_plan_is_the_papers():
    plan = Figure4().configs()
    assert set(plan) == {(task, agent) for task in TASKS for agent in AGENTS}
    assert all(config.seeds == (0, 1, 2, 3, 4) for config in plan.values())
    for (task, _), config in plan.items():
        assert config.environment.sparse == (-1.0 if task.startswith("Sparse") else None)
        assert ("Double" in task) == ("Double" in config.environment.source.name)


def test_a_tiny_one_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_4, "QUICK_STEPS", 100)
    made = Figure4(quick=True)
    found = made.run(tmp_path)
    assert len(found) == 6
    with gzip.open(tmp_path / "figure-4.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert {(row["task"], row["agent"]) for row in rows} == {(t, a) for t in TASKS for a in AGENTS}
    for row in rows:
        if row["task"].startswith("Sparse"):
            assert row["score"] == row["length"]
    assert (tmp_path / "figure-4.png").read_bytes().startswith(b"\x89PNG")
    assert "(d) Sparse InvertedDoublePendulum" in (tmp_path / "figure-4.svg").read_text()


def made_up(scores):
    """Runs of lanes with the given scores, one episode every 10 steps."""
    rows = [np.asarray(row, float) for row in scores]
    outcomes = [
        types.SimpleNamespace(
            scores=row, episodes=types.SimpleNamespace(step=10 * np.arange(1, len(row) + 1))
        )
        for row in rows
    ]
    place = types.SimpleNamespace(score_label="return")
    return types.SimpleNamespace(outcomes=outcomes, config=types.SimpleNamespace(environment=place))


def test_a_curve_is_the_mean_of_the_last_ten_episodes(monkeypatch):
    monkeypatch.setattr(figure_4, "STEPS", 400)  # a point every 4 steps
    curve = Figure4().curve(made_up([np.arange(40)]))[0]
    assert curve[:2].tolist() == [0.0, 0.0]  # no episode has ended
    assert curve[4] == 0.5  # at step 20, two have
    assert curve[99] == np.mean(np.arange(30, 40))


def test_claims_can_come_out_either_way(monkeypatch):
    monkeypatch.setattr(figure_4, "STEPS", 400)

    def verdicts(**levels):
        runs = {}
        for agent, level in levels.items():
            for task in TASKS:
                up = -level if task.startswith("Sparse") else level
                runs[task, agent] = made_up(up + 0.01 * np.arange(5)[:, None] + np.zeros(40))
        return {claim.verdict for claim in Figure4().claims(runs)}

    assert verdicts(ddpg=9.0, ddpg_noisynet=5.0, ddpg_ge=4.0) == {"reproduced"}
    assert verdicts(ddpg=3.0, ddpg_noisynet=5.0, ddpg_ge=4.0) == {"not reproduced"}
    assert verdicts(ddpg=3.0, ddpg_noisynet=3.0, ddpg_ge=3.0) == {"inconclusive"}
