"""`rove demo`: what it prints is what was measured, and its page needs nothing else."""

import re

import numpy as np
import pytest

import rove
from rove.cli import main as cli
from rove.reporting import demo
from rove.training.solving import episodes_to_solve

SMALL = {"chain-5": (("dqn", "ge"), 40), "deep-sea-3": (("dqn",), 40)}


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "TASKS", SMALL)
    monkeypatch.setattr(demo, "CHAIN", "chain-5")
    monkeypatch.setattr(demo, "SEEDS", 2)


def test_the_table_is_what_the_runs_did(small, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr("sys.argv", [".venv/bin/rove"])  # as make demo calls it
    cli.main(["demo", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    for task, (agents, episodes) in SMALL.items():
        for agent in agents:
            run = rove.load(tmp_path / "runs" / f"{agent}-{task}")
            optimum = run.config.environment.optimum
            solved = sum(episodes_to_solve(o.scores, optimum) is not None for o in run.outcomes)
            final = round(float(np.mean(run.evaluate(policy="mean"))), 2) + 0.0
            networks = [x for x, at in zip(run.networks, run.solved_at, strict=True) if at]
            varying = [sum(not x.values_constant for x in networks)]
            varying += [sum(not x.policy_constant for x in networks)]
            columns = r"\s+".join(f"{n} of {solved}" if solved else "–" for n in varying)
            row = rf"{task}\s+{rove.AGENTS[agent].label}\s+{solved} of 2\s+\S+\s+{columns}"
            row += rf"\s+{final:.2f} of"
            assert re.search(row, printed)
            assert all(len(o.scores) <= episodes for o in run.outcomes)
    runs = [
        tmp_path / "runs" / f"{a}-{task}" for task, (agents, _) in SMALL.items() for a in agents
    ]
    rows = [demo.row(rove.load(folder)) for folder in runs]
    assert demo.sentence(rows) in printed
    page = (tmp_path / "index.html").read_text()
    assert demo.sentence(rows) in page
    assert page.count("<svg") == 6
    for words, _ in demo.NEXT:
        assert f"  .venv/bin/rove {words}  " in printed
        assert f"<code>.venv/bin/rove {words}</code>" in page
    assert not re.search(r'(src|href)="(?!#|data:)', page)
    assert "{{" not in page
    cli.main(["demo", "--out", str(tmp_path)])  # nothing is trained again
    assert (tmp_path / "index.html").read_text() == page


def test_the_sentence_names_every_agent():
    rows = [
        demo.Row("chain-100", "dqn", 0, 5, np.inf, 0, 0, 0.1, 11.0),
        demo.Row("chain-100", "noisynet", 1, 5, np.inf, 1, 0, 2.0, 11.0),
        demo.Row("chain-100", "ge", 5, 5, 120.0, 2, 0, 11.0, 11.0),
        demo.Row("deep-sea-10", "dqn", 0, 5, np.inf, 0, 0, -0.001, 0.99),
        demo.Row("deep-sea-10", "ige", 4, 5, 70.0, 4, 4, 0.8, 0.99),
    ]
    assert demo.sentence(rows) == (
        "On chain-100 GE solved 5 of 5 seeds (3 with networks that say the same in every state), "
        "NoisyNet 1 and DQN 0; "
        "on deep-sea-10 Index GE solved 4 of 5 seeds, DQN 0."
    )
    never = ("deep-sea-10", "DQN", "0 of 5", "–", "–", "–", "0.00 of 0.99")
    assert demo.cells(rows[3]) == never
    assert demo.cells(rows[2])[4:6] == ("2 of 5", "0 of 5")
