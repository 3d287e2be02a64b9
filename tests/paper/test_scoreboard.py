"""The scoreboard: what a cell holds, by hand, and a small one from end to end."""

import json

import numpy as np
import pytest

import rove
from rove.analysis.intervals import mean_interval
from rove.paper import scoreboard
from rove.paper.scoreboard import Cell, Scoreboard

SOLVED = Cell(np.array([20.0, 40.0]), np.array([True, True]), 100, (10, 100))
NEVER = Cell(np.full(10, 100.0), np.zeros(10, bool), 100, (10, 100))


def test_what_a_cell_says():
    low, high = mean_interval(SOLVED.values, (10, 100))
    assert SOLVED.text == f"2/2 30 ({low:.0f}–{high:.0f})"
    assert low < 20 < 40 < high
    assert SOLVED.share == pytest.approx(0.7)
    assert NEVER.text == "0/10"
    assert Cell(np.array([3.0, 5.0]), np.zeros(0, bool), 100, (3, 5)).text == "4 (3–5)"


def test_a_cell_from_a_run():
    run = rove.train("ge", "chain-5", episodes=150, until_solved=True)
    found = scoreboard.cell(run)
    assert found.values[0] == run.returns.shape[1] < 150
    assert found.solved.all()
    short = rove.train("ge", "chain-5", episodes=5, until_solved=True)
    assert scoreboard.cell(short)[:2] == (5.0, False)


def test_claims_follow_from_the_cells():
    soon = Cell(np.arange(20.0, 40.0, 2.0), np.ones(10, bool), 100, (10, 100))
    cells = {("deep-sea-10", "ge"): NEVER, ("deep-sea-10", "ige"): soon}
    cells["deep-sea-10", "bootstrapped_dqn"] = NEVER
    assert [claim.verdict for claim in scoreboard.claims(cells)] == ["reproduced", "reproduced"]
    cells["deep-sea-10", "ge"] = cells["deep-sea-10", "bootstrapped_dqn"] = soon
    assert [c.verdict for c in scoreboard.claims(cells)] == ["not reproduced", "inconclusive"]
    half = soon._replace(solved=np.arange(10) < 5)
    cells["deep-sea-10", "ge"], cells["deep-sea-10", "ige"] = half, NEVER
    assert [c.verdict for c in scoreboard.claims(cells)] == ["inconclusive", "not reproduced"]


@pytest.mark.slow
def test_a_small_one_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(scoreboard, "QUICK_EPISODES", {"chain-10": 3, "bandit-10": 20})
    monkeypatch.setattr(scoreboard, "QUICK_AGENTS", ("psrl", "thompson"))
    Scoreboard(quick=True).run(tmp_path)
    rows = (tmp_path / "scoreboard.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * scoreboard.QUICK_SEEDS
    table = (tmp_path / "scoreboard.md").read_text().splitlines()
    assert table[0] == "| agent | chain-10 (of 3) | bandit-10 (of 20) |"
    assert table[2].startswith("| `psrl` | 0/2 | ")
    assert table[3].startswith("| `thompson` |  | ")
    assert json.loads((tmp_path / "claims.json").read_text()) == []
    assert (tmp_path / "scoreboard.png").stat().st_size > 5000
