"""Tasks and agents in the report: what has the same name is the same, and is counted once."""

import json

import numpy as np
import pytest
from made import group_of, run_of, told, write_run

from rove import report
from rove.reporting.labels import NAMED

LAKE = "gym/FrozenLake-v1"


@pytest.fixture
def write(runs, tmp_path):
    """Write a run with options of its environment and changed settings of its agent."""

    def write(name, agent, fractions, settings=None, environment=LAKE, **options):
        folder = tmp_path / "runs" / name
        write_run(folder, runs, agent, environment, fractions)
        config = json.loads((folder / "config.json").read_text())
        config["agent"]["settings"] |= settings or {}
        config["environment"]["options"] = options
        config["task"] = {"optimum": options.get("optimum")}
        (folder / "config.json").write_text(json.dumps(config))

    return write


@pytest.fixture
def page(tmp_path):
    """Write the report of these runs."""
    return lambda: report([tmp_path / "runs"], tmp_path / "r.html")


def labels(group):
    return sorted(run["label"] for run in group["runs"])


def test_options_that_differ_are_in_the_names_of_tasks(write, page):
    for size in (6, 8):
        for agent in ("ge", "dqn"):
            write(f"{agent}-{size}", agent, np.zeros((2, 20)), size=size, sparse=None, goal="x")
    write("plain", "dqn", np.zeros((2, 20)), goal="x")
    write("other", "c51", np.zeros((2, 20)), environment="gym/Taxi-v3", size=6)
    data = told(page())
    groups = data["sources"][0]["groups"]
    assert [group["task"] for group in groups] == [
        LAKE, f"{LAKE} (size=6)", f"{LAKE} (size=8)", "gym/Taxi-v3",
    ]  # fmt: skip
    assert data["title"] == "3 agents on 4 tasks"


def test_the_page_counts_the_tasks_of_its_title(browser, write, page):
    for size in (6, 8, 9):
        write(f"dqn-{size}", "dqn", np.zeros((2, 20)), size=size)
    browser.open(page())
    assert browser.run("document.querySelector('h1').textContent") == "1 agent on 3 tasks"
    assert " 3 tasks" in browser.run("document.querySelector('header p').textContent")


def test_an_optimum_makes_no_other_task_and_is_used_for_all_runs(write, page):
    write("without", "dqn", np.full((2, 20), 1 / 11))
    write("with", "ge", np.full((2, 20), 1 / 11), optimum=1.0)
    (group,) = told(page())["sources"][0]["groups"]
    assert (group["task"], group["optimum"]) == (LAKE, 1)
    assert labels(group) == ["DQN", "GE"]
    assert [run["solved"]["count"] for run in group["runs"]] == [2, 2]


def test_an_agent_with_other_settings_on_another_task_is_another_entry(write, page):
    for size, settings in ((6, {}), (7, {"rho": -2.0}), (8, {"rho": -2.0})):
        write(f"ge-{size}", "ge", np.full((2, 20), 1 / 11), settings, size=size, optimum=1.0)
        write(f"dqn-{size}", "dqn", np.zeros((2, 20)), size=size, optimum=1.0)
    (source,) = told(page())["sources"]
    ge = [next(x for x in labels(group) if x.startswith("GE")) for group in source["groups"]]
    assert ge[0] != ge[1] == ge[2] == "GE, rho=-2"
    assert source["title"] == "DQN solves 0 of 6 seeds on 3 tasks"  # the only one on all of them
    assert source["several_settings"] == []


def test_settings_that_depend_on_the_task_by_default_keep_an_agent_one(runs, tmp_path, browser):
    """What is not one setting is said to be several."""
    for task, rate in (("chain-5", 0.01), ("chain-6", 0.02)):
        write_run(tmp_path / "runs" / task, runs, "ge", task, np.ones((2, 20)))
        config = json.loads((tmp_path / "runs" / task / "config.json").read_text())
        config["agent"]["settings"]["lr"] = rate
        (tmp_path / "runs" / task / "config.json").write_text(json.dumps(config))
    changed = told(report([tmp_path / "runs"], tmp_path / "a.html"))["sources"][0]
    assert [labels(group) for group in changed["groups"]] == [["GE, lr=0.01"], ["GE, lr=0.02"]]
    (tmp_path / "figure-2").mkdir()
    (tmp_path / "runs").rename(tmp_path / "figure-2" / "runs")  # whose settings were searched
    path = report([tmp_path / "figure-2"], tmp_path / "b.html")
    (source,) = told(path)["sources"]
    assert [labels(group) for group in source["groups"]] == [["GE"], ["GE"]]
    assert source["several_settings"] == ["GE"]
    browser.open(path)
    text = browser.run("document.querySelector('main').textContent")
    assert "The settings of GE depend on the task: see the configuration." in text


def test_of_many_settings_the_fewest_that_tell_runs_apart_are_named(write, page):
    many = {"lr": 0.5, "rho": -2.0, "gamma": 0.5, "batch_size": 9}
    assert len(many) > NAMED
    write("a", "ge", np.zeros((2, 20)))
    write("b", "ge", np.zeros((2, 20)), many)
    shown = labels(group_of(page(), LAKE))
    assert len(shown) == 2
    assert all(label.count("=") <= 1 for label in shown)
    assert any(f"{k}={v:g}" in label for label in shown for k, v in many.items())


def test_runs_with_the_same_settings_are_told_apart_by_their_folders(write, page):
    write("first", "ge", np.zeros((2, 20)), {"rho": -2.0})
    write("second", "ge", np.zeros((2, 20)), {"rho": -2.0})
    write("third", "ge", np.zeros((2, 20)), {"rho": -3.0})
    group = group_of(page(), LAKE)
    assert labels(group) == ["GE, rho=-2, first", "GE, rho=-2, second", "GE, rho=-3"]
    assert run_of(group, "GE, rho=-3")["folder"] == "third"
