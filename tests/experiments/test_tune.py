"""The search: one budget for every agent, on seeds of its own, resumable; and what it feeds."""

import json

import pytest

from rove import runner
from rove.environments import make
from rove.experiments import figure_2, tune
from rove.tuned import tuned


def test_one_budget_for_every_agent_on_seeds_that_no_figure_reports():
    sizes = {agent: len(tune.points(agent)) for agent in tune.GRIDS}
    assert set(sizes.values()) == {24}
    assert not set(tune.FIRST_SEEDS + tune.FURTHER_SEEDS) & set(range(figure_2.SEEDS))


def test_a_tiny_search_picks_the_best_and_goes_on_from_its_record(tmp_path, monkeypatch):
    monkeypatch.setattr(tune, "ENVIRONMENTS", {"chain-3": 3})
    grid = {"hidden": ((8,),), "epsilon": (0.0, 1.0), "buffer_size": (64,)}
    monkeypatch.setattr(tune, "GRIDS", {"dqn": grid})
    monkeypatch.setattr(tune, "FINALISTS", 1)
    said = []
    tune.tune(tmp_path, said.append)
    rows = (tmp_path / "record.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 2 + 3
    record = tune._read(tmp_path / "record.csv")
    winner = json.loads((tmp_path / "tuned.json").read_text())["chain-3"]["dqn"]
    scores = {p: [s for (_, _, q, _), s in record.items() if q == p] for _, _, p, _ in record}
    best = max(scores, key=lambda p: sum(scores[p][:2]))
    assert winner["settings"] == json.loads(best)
    assert winner["score"] == pytest.approx(sum(scores[best]) / 5, rel=1e-4)
    monkeypatch.setattr(tune.lanes, "execute", None)  # a second call trains nothing
    again = []
    tune.tune(tmp_path, again.append)
    assert again == said


def test_tuned_settings_are_those_of_the_nearest_size():
    assert tuned("ge", "chain-100") == tuned("ge", "chain-128") == tuned("ge", "permuted-chain-90")
    assert tuned("ge", "chain-11") == tuned("ge", "chain-10")
    assert tuned("nobody", "chain-10") == {}
    for agent in tune.GRIDS:
        for environment in tune.ENVIRONMENTS:
            chosen = tuned(agent, environment)
            settings = runner.default_settings(agent, make(environment))
            assert chosen
            assert all(getattr(settings, field) == value for field, value in chosen.items())
