"""The scoreboard: what a cell holds, by hand, and a small one from end to end."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Circle, FancyBboxPatch

import rove
from rove.analysis.intervals import mean_interval
from rove.paper import scoreboard, scoreboard_picture
from rove.paper.scoreboard import Cell, Scoreboard

DATA = Path(__file__).parents[2] / "docs" / "data" / "scoreboard.csv"
SOLVED = Cell(np.array([20.0, 40.0]), np.array([True, True]), 100, (10, 100))
NEVER = Cell(np.full(10, 100.0), np.zeros(10, bool), 100, (10, 100))


def test_what_a_cell_says():
    many = Cell(np.arange(20.0, 40.0, 2.0), np.ones(10, bool), 100, (10, 100))
    low, high = mean_interval(many.values, (10, 100))
    assert many.text == f"10/10 29 ({low:.0f}–{high:.0f})"
    assert low < 29 < high
    assert SOLVED.text == "2/2 30"  # no interval of two seeds
    assert NEVER.text == "0/10"
    assert Cell(np.array([3.0, 5.0]), np.zeros(0, bool), 100, (3, 5)).text == "4"


def test_the_committed_data_are_read_as_they_were_written():
    cells = scoreboard.read(DATA)
    assert scoreboard.lanes_csv(cells) == DATA.read_text()
    assert len(cells) == 18 * 9 + 3 * 9 + 18 + 3  # networks, tables, linear bandit, Thompson
    assert cells["deep-sea-20", "ige"].text == "10/10 263 (175–383)"
    assert cells["deep-sea-10", "auto"].text == "0/10"
    assert cells["deep-sea-10", "auto"].delivered_text == "6/10 408 (241–527)"
    assert cells["deep-sea-10", "bbvi"].delivered_text == ""  # not run again
    assert cells["bandit-10", "thompson"].text == "93 (57–858)"  # as in docs/scoreboard.md


def test_the_picture_is_coloured_by_success_first():
    """More solved seeds are darker however soon others were; speed is a number."""

    def cell(times, delivered, varying):
        """A cell whose seeds never solve the task while they explore."""
        never = np.full(2, 100.0), np.zeros(2, bool), 100, (10, 100)
        delivered = np.array(delivered), np.array(times), np.array(varying)
        return Cell(*never, *delivered, np.zeros(2), np.zeros(2))

    soon = cell([10.0, 100.0], [True, False], [1.0, 0.0])
    late = cell([90.0, 90.0], [True, True], [0.0, 1.0])
    none = cell([100.0, 100.0], [False, False], [0.0, 0.0])
    cells = {("chain-10", a): c for a, c in (("dqn", soon), ("ge", late), ("c51", none))}
    figure = scoreboard_picture.draw(cells, ["chain-10"], ["dqn", "c51", "ge"])
    shown = [text.get_text() for text in figure.axes[0].texts]
    assert [t for t in shown if t in ("DQN", "C51", "GE")] == ["GE", "DQN", "C51"]
    assert [t for t in shown if "/" in t] == ["2/2", "1/2", "0/2"]
    assert "90" in shown
    rings = [p for p in figure.axes[0].patches if isinstance(p, Circle)]
    assert len(rings) == 1  # a solved seed of GE, whose values are the same in every state
    boxes = [p for p in figure.axes[0].patches if isinstance(p, FancyBboxPatch)]
    card, *cells = (p.get_facecolor() for p in boxes)
    lightness = [sum(colour[:3]) for colour in cells]
    assert lightness == sorted(lightness)
    assert len(set(lightness)) == 3
    written = {t.get_text(): to_rgb(t.get_color()) for t in figure.axes[0].texts}
    for text, fill in zip(("2/2", "1/2", "0/2"), cells, strict=True):
        light, dark = sorted(map(luminance, (written[text], fill[:3])))[::-1]
        assert (light + 0.05) / (dark + 0.05) > 4.5, text  # WCAG's contrast for text
    assert card == (1.0, 1.0, 1.0, 1.0)  # legible on a dark page
    assert figure.get_facecolor()[3] == 0.0
    assert min(t.get_fontsize() for t in figure.axes[0].texts) >= 6.5  # 9 pixels at 830


def test_a_cell_from_a_run():
    run = rove.train("psrl", "chain-5", episodes=150, until_solved=True)
    found = scoreboard.cell(run)
    assert found.values[0] == run.returns.shape[1] < 150
    assert found.solved.all()
    short = rove.train("psrl", "chain-5", episodes=5, until_solved=True)
    assert scoreboard.cell(short)[:2] == (5.0, False)


def test_a_cell_counts_delivered_policies_and_looks_into_networks():
    """DQN with ε = 0.4 does not play ten optimal episodes in a row, but learns to."""
    task = {"seeds": 2, "episodes": 150, "until_solved": True, "eval_every": 10, "eval_episodes": 1}
    run = rove.train("dqn", "chain-5", epsilon=0.4, gamma=0.9, hidden=(16,), lr=0.003, **task)
    found = scoreboard.cell(run)
    assert found.solved.tolist() == [False, False]
    assert found.delivered.tolist() == [True, True]
    for value, evaluations in zip(found.delivered_values, run.evaluations, strict=True):
        first = int(np.flatnonzero(evaluations.mean >= 10.999)[0])
        assert value == evaluations.episode[first] == 10 * (first + 1)
    assert found.text == "0/2"
    assert found.delivered_text == f"2/2 {found.delivered_values.mean():.0f}"
    varying = [not x.values_constant for x in run.networks]
    assert found.values_vary.tolist() == varying == [1.0, 1.0]
    constant = sum(x.policy_constant for x in run.networks)
    assert found.network_text == f"2, {2 - constant} of 2; {found.greedy.mean():.3g}"
    cells = {
        ("chain-5", "dqn"): found,
        ("bandit-10", "dqn"): Cell(np.ones(2), np.zeros(0, bool), 9, (0, 9)),
    }
    rows = scoreboard.lanes_csv(cells).splitlines()
    assert rows[1].startswith("chain-5,dqn,0,150,0,150,1,")
    assert rows[3] == "bandit-10,dqn,0,9,,1,,,,,"


def test_claims_follow_from_the_cells():
    soon = Cell(np.arange(20.0, 40.0, 2.0), np.ones(10, bool), 100, (10, 100))
    cells = {("deep-sea-10", "ge"): NEVER, ("deep-sea-10", "ige"): soon}
    cells["deep-sea-10", "bootstrapped_dqn"] = NEVER
    assert [claim.verdict for claim in scoreboard.claims(cells)] == ["supported", "supported"]
    cells["deep-sea-10", "ge"] = cells["deep-sea-10", "bootstrapped_dqn"] = soon
    assert [c.verdict for c in scoreboard.claims(cells)] == ["not supported", "inconclusive"]
    half = soon._replace(solved=np.arange(10) < 5)
    cells["deep-sea-10", "ge"], cells["deep-sea-10", "ige"] = half, NEVER
    assert [c.verdict for c in scoreboard.claims(cells)] == ["inconclusive", "not supported"]


def luminance(colour):
    """The relative luminance of a colour in sRGB."""
    linear = np.where(np.array(colour) <= 0.04045, 0.0, ((np.array(colour) + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.slow
def test_a_small_one_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.setattr(scoreboard, "QUICK_EPISODES", {"chain-10": 3, "bandit-10": 20})
    monkeypatch.setattr(scoreboard, "QUICK_AGENTS", ("psrl", "thompson"))
    Scoreboard(quick=True).run(tmp_path)
    rows = (tmp_path / "scoreboard.csv").read_text().splitlines()
    assert len(rows) == 1 + 3 * scoreboard.QUICK_SEEDS
    table = (tmp_path / "scoreboard.md").read_text().splitlines()
    for title in ("### By the delivered policy", "### While exploring"):
        rows = table[table.index(title) + 2 :]
        assert rows[0] == "| agent | chain-10 (of 3) | bandit-10 (of 20) |"
        assert rows[2].startswith("| `psrl` | 0/2 | ")
        assert rows[3].startswith("| `thompson` |  | ")
    assert not (tmp_path / "claims.json").exists()
    assert (tmp_path / "scoreboard.png").stat().st_size > 5000
