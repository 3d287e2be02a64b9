"""Evaluations during training are a curve of the report."""

import numpy as np
import pytest
from made import group_of, run_of

import rove
from helpers import SMALL
from rove import report

CHOOSE = """{
  const s = [...document.querySelectorAll("select")].find(
    (s) => [...s.options].some((o) => o.value === "evaluation"));
  s.value = "evaluation";
  s.dispatchEvent(new Event("change", {bubbles: true}));
}"""


@pytest.mark.slow
def test_evaluations_are_a_view_of_the_curves(browser, runs, tmp_path):
    agent = rove.GE(**SMALL, rho=-3.0)
    options = {"seeds": 2, "episodes": 12, "eval_every": 3, "eval_episodes": 2}
    run = rove.train(agent, "chain-5", out=tmp_path / "ge", **options)
    page = report([tmp_path / "ge", runs / "dqn"], tmp_path / "r.html")
    group = group_of(page, "chain-5")
    told = run_of(group, "GE")["evaluation"]
    means = np.array([x.mean for x in run.evaluations])
    assert told["at"] == [3, 6, 9, 12]
    np.testing.assert_allclose(told["mean"], means.mean(axis=0), rtol=1e-3)
    np.testing.assert_allclose(told["seeds"], means, rtol=1e-2)
    assert run_of(group, "DQN")["evaluation"] is None
    assert "--eval-every=3 --eval-episodes=2" in run_of(group, "GE")["about"]["command"]
    browser.open(page)
    browser.run(CHOOSE)
    browser.settle()
    text = browser.run("document.querySelector('main').textContent")
    assert "return of the greedy policy, evaluated during training" in text
    assert "Not evaluated during training: DQN." in text
    assert browser.run("document.querySelectorAll('figure .line').length") >= 1
    assert browser.complaints() == []


@pytest.mark.slow
def test_long_curves_keep_their_last_evaluation(tmp_path):
    options = {"episodes": 299, "eval_every": 1, "eval_episodes": 1}
    run = rove.train(rove.PSRL(sweeps=5), "chain-3", out=tmp_path / "run", **options)
    page = report([tmp_path / "run"], tmp_path / "r.html")
    told = run_of(group_of(page, "chain-3"), "PSRL")["evaluation"]
    assert told["at"] == list(range(1, 300, 2))
    np.testing.assert_allclose(told["mean"], run.evaluations[0].mean[::2], rtol=1e-3)
