"""The searches: one budget for every agent, on seeds of its own, resumable; and what they feed."""

import csv
import dataclasses
import json
import math
from collections import defaultdict

import numpy as np
import pytest

import rove
from rove.agents import names_for, settings_of
from rove.agents.tuned import SOURCES, tuned
from rove.environments import make
from rove.errors import RunFolderError
from rove.paper import figure_2, scoreboard
from rove.runs.configure import configure, default_settings
from rove.search import trials, tune
from rove.search.grids import FIGURE_2, SCOREBOARD, SEARCHES, Search, variant

TINY = Search(
    environments={"chain-3": 3},
    grids={"dqn": {"hidden": ((8,),), "epsilon": (0.0, 1.0), "buffer_size": (64,)}},
    budget=2,
    first_seeds=(1000, 1001),
    further_seeds=(1002, 1003, 1004),
)


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_one_budget_for_every_agent_on_seeds_that_are_not_reported(search):
    for agent, grid in search.grids.items():
        whole = math.prod(map(len, grid.values()))
        assert len(search.points(agent)) == min(whole, search.budget)
    reported = range(max(figure_2.SEEDS, scoreboard.SEEDS))
    assert not set(search.first_seeds + search.further_seeds) & set(reported)


def test_a_sample_of_a_grid_has_every_value_equally_often():
    grid = {"lr": (1e-3, 1e-4), "rho": (-3.0, -2.0, -1.0), "target_period": (25, 50, 100, 200)}
    search = dataclasses.replace(TINY, grids={"noisynet": grid}, budget=12)
    points = search.points("noisynet")
    assert len({tuple(point.values()) for point in points}) == 12
    assert points == search.points("noisynet")
    for field, values in grid.items():
        counts = [sum(point[field] == value for point in points) for value in values]
        assert counts == [12 // len(values)] * len(values)


def test_neighbours_of_a_point_are_new_and_a_step_away():
    grid = {"lr": (1e-3, 3e-4, 1e-4), "rho": (-3.0, -2.0, -1.0, 0.0), "target_period": (25, 50)}
    search = dataclasses.replace(TINY, grids={"noisynet": grid}, budget=6)
    best = {"lr": 1e-3, "rho": -2.0, "target_period": 50}
    found = search.neighbours("noisynet", [best], [best])
    assert len(found) == 6
    assert best not in found
    assert found == search.neighbours("noisynet", [best], [best])
    for point in found:
        for field, values in grid.items():
            assert abs(values.index(point[field]) - values.index(best[field])) <= 1
    near = search.neighbours("noisynet", [best], [best, *found])
    assert not any(point in found for point in near)
    assert len(near) == 5, "there are 2·3·2 points within a step, itself among them"


def test_every_search_has_its_defaults():
    """What `rove reproduce tuning` finds is where `rove train` looks for it."""
    assert set(SOURCES) == set(SEARCHES)
    for name, search in SEARCHES.items():
        for environment in search.environments:
            for agent in search.grids:
                fallback = variant(agent)[0]
                assert tuned(agent, environment, [name]) or tuned(fallback, environment, [name])


def test_the_scoreboard_search_has_every_agent_and_every_kind_of_task():
    assert set(scoreboard.AGENTS) == set(names_for(continuous=False))
    assert set(SCOREBOARD.grids) == set(scoreboard.AGENTS) - set(scoreboard.UNTUNED)
    for environment in scoreboard.EPISODES:
        assert tuned("dqn", environment, ["scoreboard"])


@pytest.mark.slow
def test_every_point_of_every_search_can_be_run():
    for search in SEARCHES.values():
        for environment in search.environments:
            for agent in search.grids:
                base = search.base(environment, agent)
                for point in json.loads(json.dumps(search.points(agent))):
                    settings = settings_of(variant(agent)[0])(**(base | point))
                    configure(settings, make(environment), episodes=1)


@pytest.mark.slow
def test_a_tiny_search_picks_the_best_and_goes_on_from_its_record(tmp_path):
    """A second call trains nothing: its scores are those of the record, which is changed."""
    tune.tune(TINY, tmp_path, lambda text: None)
    record = read_record(tmp_path)
    assert len(record) == 2 * 2 + 3
    scores = scores_by_point(record)
    best = max(scores, key=lambda p: sum(scores[p][:2]))
    assert winner(tmp_path)["settings"] == json.loads(best)
    assert winner(tmp_path)["score"] == pytest.approx(sum(scores[best]) / 5, rel=1e-4)
    changed = [
        r | {"score": str(float(r["score"]) + 100 * (r["settings"] == best))} for r in record
    ]
    write_record(tmp_path, changed)
    tune.tune(TINY, tmp_path, lambda text: None)
    assert winner(tmp_path)["settings"] == json.loads(best)
    assert winner(tmp_path)["score"] == pytest.approx(100 + sum(scores[best]) / 5, rel=1e-4)
    assert read_record(tmp_path) == changed


def read_record(out):
    with open(out / "record.csv", newline="") as file:
        return list(csv.DictReader(file))


def write_record(out, rows):
    with open(out / "record.csv", "w", newline="") as file:
        table = csv.DictWriter(file, tune.COLUMNS)
        table.writeheader()
        table.writerows(rows)


def winner(out):
    return json.loads((out / "tuned.json").read_text())["chain-3"]["dqn"]


def scores_by_point(record):
    """The scores of every point, in the order in which its seeds were tried."""
    scores = defaultdict(list)
    for row in record:
        scores[row["settings"]].append(float(row["score"]))
    return scores


@pytest.mark.slow
def test_a_refined_search_tries_neighbours_too_and_resumes(tmp_path):
    """Two points of twelve, then two neighbours of the better one; the best of all gets the
    further seeds."""
    epsilons = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)
    grid = {"hidden": ((8,),), "epsilon": epsilons, "lr": (1e-3, 1e-4), "buffer_size": (64,)}
    search = dataclasses.replace(TINY, grids={"dqn": grid}, refined=True)
    tune.tune(search, tmp_path, lambda text: None)
    record = read_record(tmp_path)
    assert sorted(map(len, scores_by_point(record).values())) == [2, 2, 2, 5]
    raised = [row | {"score": str(float(row["score"]) + 100)} for row in record]
    write_record(tmp_path, raised)
    tune.tune(search, tmp_path, lambda text: None)  # trains nothing
    assert winner(tmp_path)["score"] > 50
    assert read_record(tmp_path) == raised


@pytest.mark.slow
def test_what_a_lane_scores_by_hand():
    """Five episodes of a budget of ten: the rest count as optimal. A bandit's is its regret."""
    run = rove.train("dqn", "chain-3", episodes=5, hidden=(8,), buffer_size=64)
    hand = (run.returns.sum() + 5 * 11.0) / 10
    longer = dataclasses.replace(run.outcomes[0].job, episodes=10)
    assert trials.score(run.outcomes[0]._replace(job=longer)) == pytest.approx(hand)
    by_steps = dataclasses.replace(
        run.outcomes[0].job, episodes=trials.UNLIMITED, steps=10**6, in_a_row=10
    )
    played = int(run.lengths.sum())
    hand = ((run.returns * run.lengths).sum() + (10**6 - played) * 11.0) / 10**6
    assert trials.score(run.outcomes[0]._replace(job=by_steps)) == pytest.approx(hand)
    bandit = rove.train("thompson", "bandit-3", episodes=30)
    pulls = bandit.visits[0, :3] * 30
    assert pulls.sum() == 30
    hand = -(pulls * (max(make("bandit-3").means) - make("bandit-3").means)).sum() / 30
    assert trials.score(bandit.outcomes[0]) == pytest.approx(hand, rel=1e-5)


def test_tuned_settings_are_those_of_the_nearest_size():
    assert tuned("ge", "chain-100") == tuned("ge", "chain-128")
    assert tuned("ge", "chain-11") == tuned("ge", "chain-10")
    assert tuned("nobody", "chain-10") == {}
    for agent in ("dqn", "noisynet", "ge"):
        for environment in FIGURE_2.environments:
            chosen = tuned(agent, environment)
            settings = default_settings(agent, make(environment))
            assert chosen
            assert all(getattr(settings, field) == value for field, value in chosen.items())


@pytest.mark.slow
def test_every_agent_has_settings_for_every_task_of_the_scoreboard():
    for (environment, agent), config in scoreboard.Scoreboard().configs().items():
        found = tuned(agent, environment, ["scoreboard"])
        assert found or agent in scoreboard.UNTUNED, (agent, environment)
        assert np.isfinite(config.episodes)


def recorded(point, seed, score):
    settings = json.dumps(point)
    return dict(zip(tune.COLUMNS, ("chain-3", "dqn", settings, str(seed), score), strict=True))


@pytest.mark.parametrize("scores", [["nan"], ["inf"], ["1.0", "99.0"]])
def test_a_record_with_impossible_or_repeated_scores_is_refused(tmp_path, scores):
    point = TINY.points("dqn")[0]
    write_record(tmp_path, [recorded(point, 1000, score) for score in scores])
    with pytest.raises(RunFolderError, match="not a record of this search"):
        tune.tune(TINY, tmp_path, lambda text: None)


def test_a_recorded_run_that_diverged_loses(tmp_path):
    first, second = TINY.points("dqn")
    write_record(
        tmp_path,
        [recorded(first, 1000, "-inf"), recorded(first, 1001, "99.0")]
        + [recorded(second, seed, "0.5") for seed in range(1000, 1005)],
    )
    tune.tune(TINY, tmp_path, lambda text: None)
    assert winner(tmp_path)["settings"] == json.loads(json.dumps(second))
    assert winner(tmp_path)["score"] == 0.5
