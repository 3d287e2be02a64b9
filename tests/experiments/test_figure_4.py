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
    assert len(found) == 10
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


def test_falls_are_measured_from_the_best_so_far(monkeypatch):
    """Ten episodes of 8, ten of 4, twenty of 8: by the window of ten the curve goes down to a half
    in 10 episodes and up again in 10, a mean of a quarter over half of the run."""
    monkeypatch.setattr(figure_4, "STEPS", 400)
    scores = np.repeat([8.0, 4.0, 8.0], [10, 10, 20])
    assert Figure4().falls(made_up([scores, np.full(40, 8.0)])) == pytest.approx(
        [1 / 8, 0], abs=0.01
    )


def test_claims_can_come_out_either_way(monkeypatch):
    monkeypatch.setattr(figure_4, "STEPS", 400)

    def verdicts(unsteady, **levels):
        runs = {}
        for agent, level in levels.items():
            dip = np.where((np.arange(40) // 10 == 2) & (agent in unsteady), 0.5, 1.0)
            for task in TASKS:
                up = np.full(40, -level) if task.startswith("Sparse") else level * dip
                runs[task, agent] = made_up(up + 0.01 * np.arange(5)[:, None])
        claims = Figure4().claims(runs)
        return {c.verdict for c in claims if "much advantage" not in c.text}, {
            c.verdict for c in claims if "much advantage" in c.text
        }

    critics = ("ddpg_noisynet", "ddpg_ge")
    reproduced, not_reproduced = {"reproduced"}, {"not reproduced"}
    found = verdicts(("ddpg",), ddpg=9.0, ddpg_noisynet=5.0, ddpg_ge=4.0)
    assert found == (reproduced, reproduced)
    found = verdicts(critics, ddpg=3.0, ddpg_noisynet=5.0, ddpg_ge=4.0)
    assert found == (not_reproduced, not_reproduced)
    found = verdicts((), ddpg=3.0, ddpg_noisynet=3.0, ddpg_ge=3.0)
    assert found == ({"inconclusive"}, reproduced)
