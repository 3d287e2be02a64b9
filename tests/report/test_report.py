"""The report's file: what is in it, what it refuses, how large it is."""

import fcntl
import html
import importlib
import json
import re
import shlex
import shutil
import sys
from contextlib import contextmanager

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from made import group_of, run_of, sweep_of, told, write_run

import rove
from helpers import SMALL
from rove import report, reporting
from rove.analysis.comparing import compare_means
from rove.analysis.curves import area_under_curve, moving_average, recent_at
from rove.analysis.intervals import (
    BAND_DRAWS,
    mean_interval,
    proportion_interval,
)
from rove.cli import main as cli
from rove.errors import RoveError, RunFolderError
from rove.reporting import binning, commands, folders, groups, run_data, summaries
from rove.reporting.settings import about
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.runs.folder import RunFolder
from rove.runs.recorded import facts_of
from rove.search import sweep_plan
from rove.training import storage


def test_it_is_one_file_that_asks_for_nothing(page):
    text = page.read_text("utf-8")
    addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|img|link|iframe)[^>]* (src|href)=", text)
    assert "unsafe-inline" not in text
    assert page.stat().st_size < 400_000


def test_the_same_data_give_the_same_bytes(page, experiment, sweeps, tmp_path):
    again = report([experiment, sweeps], tmp_path / "again.html")
    assert again.read_bytes() == page.read_bytes()


def test_names_cannot_leave_the_data(hostile, tmp_path):
    text = report([hostile], tmp_path / "h.html").read_text("utf-8")
    inside = re.search(r'id="data">(.*?)</script>', text, re.S).group(1)
    assert "<" not in inside
    assert "hacked" in inside
    title = html.escape(told(tmp_path / "h.html")["title"])
    assert "hacked" in title  # which is text too
    assert "hacked" not in text.replace(inside, "").replace(f"<title>{title} · rove</title>", "")


def test_a_name_that_is_no_unicode_is_written(tmp_path):
    """And a folder by a picture's name is none."""
    swept = sweep_of({"rho": [-2.0, -1.0]}) | {"environment": "bad\ud800"}
    (tmp_path / "sweep.json").write_text(json.dumps(swept))
    (tmp_path / "aaa.png").mkdir()
    source = told(report([tmp_path], tmp_path / "r.html"))["sources"][0]
    assert source["sweep"]["environment"] == "bad\ud800"
    assert source["picture"] is None


@pytest.mark.slow
def test_a_budget_of_steps_is_told_over_steps(tmp_path):
    """Its lanes have different numbers of episodes, the better ones fewer."""
    run = rove.train(
        rove.DQN(hidden=(8,), batch_size=8, learning_starts=20),
        "cartpole",
        seeds=3,
        steps=600,
        out=tmp_path / "run",
    )
    assert len({len(o.scores) for o in run.outcomes}) > 1
    group = group_of(report([tmp_path / "run"], tmp_path / "a.html"), "cartpole, 600 steps")
    shown = group["runs"][0]
    assert (group["unit"], group["bin"], group["windows"]) == ("step", 2, [1, 20])
    by_hand = [np.average(o.scores, weights=o.episodes.length) for o in run.outcomes]
    assert shown["all"][0] == pytest.approx(np.mean(by_hand), rel=1e-3)
    assert shown["starts"] == 20  # the step, not the episode
    begin = max(int(o.episodes.step[0]) for o in run.outcomes)
    assert shown["first"] == begin + begin % 2
    at = np.arange(shown["first"], 601, 2)
    for row, o in zip(shown["scores"]["20"], run.outcomes, strict=True):
        np.testing.assert_allclose(row, recent_at(o.scores, o.episodes.step, at, 20), rtol=1e-3)
    (line, *_) = run.plot(tmp_path / "a.png").axes[0].lines
    assert line.get_xdata()[-1] == 600
    assert np.isfinite(line.get_ydata()[-1])
    last = [np.mean(o.scores[-20:]) for o in run.outcomes]
    assert line.get_ydata()[-1] == pytest.approx(np.mean(last))


def test_a_sweep_tells_how_to_run_it_again(tmp_path, capsys):
    """The command in the page, given to `rove sweep`, is the same sweep."""
    environment = rove.Chain(5, permuted=True)
    plan = sweep_plan.plan(
        rove.GE(hidden=(8, 4), lr=0.01, rho=-1.0),  # the swept ρ has no effect
        environment,
        {"rho": [-6.0, -4.0], "target_period": [10, 20]},
        seeds=2,
        confirm_seeds=1,
        steps=70,
        method="random",
        points=3,
    )
    folder = tmp_path / "swept"
    folder.mkdir()
    (folder / "sweep.json").write_text(json.dumps(sweep_of({"rho": [-6.0, -4.0]})))
    (folder / "config.json").write_text(json.dumps(plan.identity() | {"versions": {"jax": "1"}}))
    shown = told(report([folder], tmp_path / "a.html"))["sources"][0]["sweep"]["about"]
    assert shown["versions"] == {"jax": "1"}
    assert shown["run"]["seeds"] == [1000, 1001]
    assert_is_the_command_of(shown["command"], plan, tmp_path / "locked", capsys)


def assert_is_the_command_of(command, plan, folder, capsys):
    """The command finds its own sweep in a folder that is locked, as if by another process; any
    other sweep is refused as a different one."""
    words = [*shlex.split(command)[1:], "--out", str(folder)]
    for change, message in (
        ([], "in use by another process"),
        (["--agent.gamma=0.5"], "contains a different sweep"),
    ):
        with RunFolder(folder).open(plan), pytest.raises(SystemExit) as stopped:
            cli.main(words + change)
        assert stopped.value.code == 2
        assert message in " ".join(capsys.readouterr().err.split())


def test_sweeps_that_the_command_has_few_words_for(tmp_path, capsys):
    """A list of one value has a comma; what no command can express is a call in Python."""

    def plan(fields, environment="chain-5", **options):
        return sweep_plan.plan("dqn", environment, fields, episodes=5, **options)

    one = plan({"lr": [1e-3], "double": [True, False]})
    command = commands.of_sweep(one.identity()["sweep"])
    assert "--agent.lr=0.001, " in command
    assert_is_the_command_of(command, one, tmp_path, capsys)
    own = gymnasium.make("CartPole-v1").unwrapped  # which no name stands for
    halved = {"method": "halving", "points": 2, "seeds": 2, "confirm_seeds": 0}
    for planned in (
        plan({"hidden": [(8,), (9, 4)]}, environment="permuted-chain-6", **halved),
        plan({"lr": [1e-3, 1e-2]}, environment=own),
    ):
        *_, call = commands.of_sweep(planned.identity()["sweep"]).splitlines()
        assert call.startswith("rove.sweep(rove.DQN(")
        again = eval(
            call.replace("rove.sweep(", "rove.search.sweep_plan.plan("),
            {"rove": rove, "environment": own},
        )
        assert again.identity() == planned.identity()


def test_curves_are_those_of_the_run_and_three_seeds_have_no_interval(page, runs):
    group = group_of(page, "chain-5")
    scores, shown = rove.load(runs / "ge").scores, run_of(group, "GE")
    assert group["bin"] == 1
    assert group["windows"] == [1, 20]
    np.testing.assert_allclose(np.array(shown["scores"]["1"]), scores, rtol=1e-3)
    assert set(shown["bands"].values()) == {None}
    area = area_under_curve(scores)
    value, low, high, n, seeds = shown["all"]
    np.testing.assert_allclose(value, area.mean(), rtol=1e-3)
    assert (low, high, n) == (None, None, 3)
    np.testing.assert_allclose(seeds, area, rtol=1e-3)
    assert shown["solved"]["interval"] is shown["solved"]["band"] is None
    assert shown["more"]["coverage"]["range"] is shown["visits"]["range"] is None
    assert len(shown["more"]["coverage"]["seeds"]) == len(shown["visits"]["seeds"]) == 3
    assert group["bounded"]


def test_five_seeds_have_the_intervals_that_verdicts_use(five, tmp_path):
    group = group_of(report([five], tmp_path / "r.html"), "chain-5")
    first, second = run_of(group, "GE"), run_of(group, "DQN")
    scores = np.array(first["scores"]["1"], float)
    band = mean_interval(moving_average(scores, 20), (0.0, 11.0), draws=BAND_DRAWS)
    np.testing.assert_allclose(np.array(first["bands"]["20"]), band, rtol=1e-3)
    areas = [area_under_curve(np.array(run["scores"]["1"], float)) for run in (first, second)]
    _, low, high, n, seeds = first["all"]
    np.testing.assert_allclose([low, high], mean_interval(areas[0], (0.0, 11.0)), rtol=1e-3)
    assert (n, seeds) == (5, None)
    exact = proportion_interval(2, 5)
    assert second["solved"]["count"] == 2
    np.testing.assert_allclose(second["solved"]["interval"], exact, rtol=1e-3)
    assert second["solved"]["at"] == [0, 25, 26]
    assert second["solved"]["share"] == [0, 0.2, 0.4]
    band = np.array(second["solved"]["band"])
    np.testing.assert_allclose(band[:, 0], proportion_interval(0, 5), rtol=1e-3)
    np.testing.assert_allclose(band[:, 2], exact, rtol=1e-3)
    i, j = (group["runs"].index(run) for run in (first, second))
    test = compare_means(*areas, (0.0, 11.0))
    forth, back = group["differences"][i][j], group["differences"][j][i]
    np.testing.assert_allclose(forth[:3], [test.value, test.low, test.high], rtol=1e-3)
    assert back[:3] == [-forth[0], -forth[2], -forth[1]]


def test_titles_say_what_the_page_shows(five, runs, experiment, sweeps, tmp_path):
    def title(*paths):
        path = report(paths, tmp_path / "r.html")
        said = told(path)["title"]
        assert f"<title>{html.escape(said)} · rove</title>" in path.read_text("utf-8")
        return said

    assert title(five / "ge") == "GE solves chain-5 on 5 of 5 seeds"
    assert title(five) == (
        "GE solves chain-5 on 5 of 5 seeds and DQN on 2 of 5 "
        "(difference in mean score in training +8.14, p = 0.041)"
    )
    best = r"\w+ solves chain-5 on \d of \d seeds? \(too few seeds to rank them: [^)]*\)"
    assert re.fullmatch(f"{best}; C51 does not solve deep-sea-4: 0 of 1 seed", title(runs))
    assert title(experiment) == "figure-2-quick: 1 of 2 claims supported"
    quick = tmp_path / "figure-3-quick"
    shutil.copytree(experiment, quick)
    (quick / "claims.json").unlink()  # the quick form only draws
    assert title(quick) == title(runs)
    assert title(sweeps / "over-1") == "GE on chain-5: best of 3 points at rho=-2"
    assert title(experiment, sweeps).endswith("at rho=-2; 2 more")


def test_the_title_of_many_tasks_counts_the_seeds_of_each_agent(runs, tmp_path):
    solved = np.ones((2, 10))
    write_run(tmp_path / "chain-5" / "c51", runs, "c51", "chain-5", solved)
    for task in ("chain-5", "chain-6", "chain-7"):
        write_run(tmp_path / task / "ge", runs, "ge", task, solved)
        write_run(tmp_path / task / "dqn", runs, "dqn", task, 0 * solved)

    def title():
        return told(report([tmp_path], tmp_path / "r.html"))["sources"][0]["title"]

    apart = " (difference in fraction of solved seeds +1, p < 0.001)"
    assert title() == f"GE solves 6 of 6 seeds on 3 tasks, DQN 0 of 6{apart}"
    for task in ("chain-5", "chain-6"):
        shutil.rmtree(tmp_path / task / "dqn")
    shutil.rmtree(tmp_path / "chain-7" / "ge")
    assert title() == "3 agents on 3 tasks"  # none of which was run on all


def test_curves_of_solved_seeds_end_where_an_unsolved_one_does():
    shown = summaries.solved([20, None, 45, 30], np.array([20, 40, 45, 30]))
    assert (shown["count"], shown["until"]) == (3, 40)
    assert shown["at"] == [0, 20, 30]
    assert shown["share"] == [0, 0.25, 0.5]
    assert summaries.solved([20, 30], np.array([20, 30]))["until"] == 30


def test_learning_starts_actions_and_a_note_are_told(page, runs):
    """An episode of chain-5 has 14 steps: step 20 is in the second one."""
    shown = run_of(group_of(page, "chain-5"), "GE")
    assert shown["starts"] == shown["beliefs"]["starts"] == 2
    assert shown["beliefs"]["actions"] == ["left", "right"]
    assert shown["beliefs"]["note"] is None
    assert group_of(page, "deep-sea-4")["runs"][0]["beliefs"]["actions"] == ["action 0", "action 1"]


def test_values_above_the_optimum_are_explained(tmp_path):
    """A chain pays in its last step too, and values include rewards after it."""
    chain = rove.make("gym/rove/Chain-v0", n=4, optimum=-1.0)
    rove.train(rove.DQN(**SMALL), chain, episodes=3, out=tmp_path / "run")
    page = report([tmp_path / "run"], tmp_path / "r.html")
    note = group_of(page, "gym/rove/Chain-v0")["runs"][0]["beliefs"]["note"]
    assert "targets bootstrap past it" in note


def test_visits_and_beliefs_are_those_of_the_run(page, runs):
    run, shown = rove.load(runs / "ge"), run_of(group_of(page, "chain-5"), "GE")
    np.testing.assert_allclose(shown["visits"]["mean"], run.visits.mean(axis=0), rtol=1e-2)
    beliefs = shown["beliefs"]
    assert beliefs["episodes"] == [1, 2, 4, 8, 16, 32]
    assert beliefs["probes"] == ["start", "middle", "last"]
    values = np.asarray(run.outcomes[0].lane.snapshots.values)  # [slots, draws, probes, actions]
    assert np.array(beliefs["values"]).shape == (6, 3, 2, 16)
    np.testing.assert_allclose(beliefs["values"][4][1][0], values[4, :, 1, 0], rtol=1e-2)
    outputs = np.asarray(run.outcomes[0].lane.snapshots.outputs)
    points = np.asarray(run.config.compose().densities(jnp.asarray(outputs[4, 2]))[1][0])
    z = beliefs["returns"][2]
    assert z["x"][0] < points[50] < z["x"][1]
    np.testing.assert_allclose(z["means"][4][1], points[50], rtol=1e-3)
    first, *shown_heights = z["y"][4][1]
    assert max(shown_heights) == 99
    peak = first + int(np.argmax(shown_heights))
    assert np.linspace(*z["x"], 61)[peak] == pytest.approx(points[50], abs=np.diff(z["x"])[0] / 60)
    board = group_of(page, "deep-sea-4")["runs"][0]
    assert board["visits"]["cells"] == [4, 4]


def test_of_many_runs_the_best_have_pictures(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(groups, "PICTURED", 1)
    page = report([runs], tmp_path / "few.html")
    best, other = group_of(page, "chain-5")["runs"]
    assert best["all"][0] >= other["all"][0]
    assert best["visits"]
    assert best["beliefs"]
    assert other["visits"] is other["beliefs"] is None
    assert group_of(page, "chain-5")["pictured"] == 1
    assert group_of(page, "deep-sea-4")["pictured"] is None


@pytest.mark.parametrize("episodes", [1, 7, 250, 251, 500, 1000, 1234, 5001, 100_000, 3_000_000])
def test_thinning_keeps_moving_averages_exact(episodes):
    """A window of whole bins is the same mean as one of episodes."""
    size = binning.bin_size(episodes)
    values = np.random.default_rng(0).normal(size=(1, episodes))
    binned = binning.binned(values, size)
    assert binned.shape[1] <= binning.POINTS
    for window in [w for w in groups.WINDOWS if w % size == 0 and w <= episodes]:
        ends = np.arange(size - 1, size * binned.shape[1], size)
        exact = moving_average(values, window)[:, ends]
        np.testing.assert_allclose(moving_average(binned, window // size), exact, atol=1e-9)


@pytest.mark.slow
def test_a_lane_that_solved_its_task_keeps_its_score(tmp_path):
    run = rove.train(
        "psrl", "chain-5", seeds=2, episodes=200, until_solved=True, out=tmp_path / "p"
    )
    assert max(len(o.scores) for o in run.outcomes) < 200
    shown = group_of(report([tmp_path / "p"], tmp_path / "r.html"), "chain-5")["runs"][0]
    assert {len(row) for row in shown["scores"]["1"]} == {200}
    assert shown["scores"]["1"][0][-1] == 11
    played = [np.mean(o.scores[-20:]) for o in run.outcomes]  # as on the command line
    assert min(played) < 11
    value, low, high, n, seeds = shown["last"]
    assert (low, high, n) == (None, None, 2)
    np.testing.assert_allclose([value, *seeds], [np.mean(played), *played], rtol=1e-3)
    assert group_of(tmp_path / "r.html", "chain-5")["stopped"]
    assert shown["solved"]["count"] == 2


@pytest.mark.parametrize("until_solved", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_lane_that_diverged_is_told_and_gains_nothing_by_it(until_solved, tmp_path):
    """It has the lowest score it ever had for the rest of its budget, and never solves the task."""
    agent = rove.DQN(hidden=(4,), lr=1e30, learning_starts=300, batch_size=4, epsilon=1.0)
    config = configure(agent, "chain-5", seeds=2, episodes=30, until_solved=until_solved)
    (run,) = run_all([(config, tmp_path / "d")])
    assert len(run.errors) == 2
    scores = [storage.load(job).scores for job in config.jobs(tmp_path / "d")]
    assert all(0 < len(each) < 30 for each in scores)
    assert any(each[-1] > each.min() for each in scores)
    shown = group_of(report([tmp_path / "d"], tmp_path / "r.html"), "chain-5")["runs"][0]
    assert shown["diverged"] == 2
    assert shown["unfinished"] == 0
    for row, each in zip(shown["scores"]["1"], scores, strict=True):
        assert len(row) == 30
        np.testing.assert_allclose(row[len(each) :], each.min(), atol=1e-4)
    exact = [(each.sum() + (30 - len(each)) * each.min()) / 30 for each in scores]
    assert shown["all"][0] == pytest.approx(np.mean(exact), rel=1e-3)
    assert shown["solved"]["until"] == 30


def test_runs_of_one_agent_are_told_apart(runs, tmp_path):
    shutil.copytree(runs / "ge", tmp_path / "a")
    shutil.copytree(runs / "ge", tmp_path / "b")

    def labels():
        page = report([tmp_path / "a", tmp_path / "b"], tmp_path / "r.html")
        return sorted(run["label"] for run in group_of(page, "chain-5")["runs"])

    assert labels() == ["GE, a", "GE, b"]
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    config["agent"]["settings"]["rho"] = -1.0
    (tmp_path / "b" / "config.json").write_text(json.dumps(config))
    assert labels() == ["GE, rho=-1", "GE, rho=-3"]


def test_all_tasks_together_have_the_most_agents_and_tasks(runs, tmp_path):
    """Three agents on two tasks are more pairs than two agents on three tasks; an agent that is
    not on all of the tasks is named."""
    three = {"dqn": [0.5, 1.0], "ge": [0.25, 0.75], "c51": [0.0, 0.0]}
    tasks = {
        "chain-5": three, "chain-6": three | {"qr_dqn": [1.0]},
        "chain-7": {"dqn": [1.0], "ge": [1.0]},
    }  # fmt: skip
    for task, agents in tasks.items():
        for agent, fractions in agents.items():
            write_run(tmp_path / task / agent, runs, agent, task, fractions)
    (source,) = told(report([tmp_path], tmp_path / "r.html"))["sources"]
    overall = source["overall"]
    assert overall["tasks"] == ["chain-5", "chain-6"]
    assert [row["label"] for row in overall["agents"]] == ["DQN", "GE", "C51"]
    assert [row["mean"][0] for row in overall["agents"]] == [0.75, 0.5, 0.0]
    assert overall["agents"][0]["mean"][4] == [0.5, 1]  # by seed, over both tasks
    assert overall["agents"][0]["band"] is None
    assert overall["left_out"] == ["QR-DQN"]
    (source,) = told(report([tmp_path / "chain-5"], tmp_path / "r.html"))["sources"]
    assert source["overall"] is None


def run_in(folder):
    """The run in a folder, as the report reads it."""
    (source,) = folders.read([folder])
    return source.runs[0]


def test_the_command_is_that_run(runs, capsys):
    """It goes on from the run's folder, which refuses any other run."""
    words = shlex.split(commands.of_run(run_in(runs / "ge")))
    assert words[:4] == ["rove", "train", "ge", "chain-5"]
    before = (runs / "ge" / "episodes.csv").read_bytes()
    cli.main([*words[1:], "--out", str(runs / "ge"), "--on", "threads"])
    assert (runs / "ge" / "episodes.csv").read_bytes() == before
    changed = [w.replace("--agent.rho=-3.0", "--agent.rho=-2.0") for w in words[1:]]
    with pytest.raises(SystemExit):
        cli.main([*changed, "--out", str(runs / "ge")])
    assert "rho" in capsys.readouterr().err


def claimed_by(config, folder, task=None):
    """A run that has not finished an episode, in a new folder."""
    with RunFolder(folder).open(config, task=task):
        return run_data.RunData(folder, RunFolder(folder).read(), {})


def test_the_command_of_other_environments_and_seeds(tmp_path):
    environment = rove.environments.make("sparse-acrobot", reward=2.0)
    config = configure("dqn", environment, seeds=2, steps=100)
    words = commands.of_run(claimed_by(config, tmp_path / "a"))
    assert "--env.reward=2.0" in words
    assert "--env.environment" not in words
    assert "--steps 100" in words
    config = configure("ge", "permuted-chain-6", seeds=[4, 7], episodes=5)
    text = commands.of_run(claimed_by(config, tmp_path / "b"))
    assert text.startswith("rove train ge permuted-chain-6 --seeds 4,7, --episodes 5")


@pytest.fixture
def walk(tmp_path, monkeypatch):
    """The name of a module that registers Walk-v0 with Gymnasium, and can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "walks.py").write_text(
        """import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
class Walk(CartPoleEnv): pass
gymnasium.register("Walk-v0", entry_point="walks:Walk", max_episode_steps=9)"""
    )
    yield "walks"
    sys.modules.pop("walks", None)
    gymnasium.registry.pop("Walk-v0", None)


STATED = {"optimum": 9.0, "score_range": (0.0, 9.0)}


def test_the_command_states_the_optimum_and_the_range(walk, tmp_path, capsys):
    """It finds its own run in the folder, which refuses any other."""
    folder, task = tmp_path / "a", rove.make(f"gym/{walk}:Walk-v0", **STATED)
    rove.train(rove.DQN(hidden=(8,), batch_size=8), task, episodes=2, out=folder)
    run = run_in(folder)
    command = commands.of_run(run)
    assert command.startswith("rove train dqn gym/walks:Walk-v0 --seeds 1 --episodes 2")
    assert command.endswith("--env.optimum=9.0 --env.score-range 0.0 9.0")
    before = (folder / "config.json").read_text()
    cli.main([*shlex.split(command)[1:], "--out", str(folder), "--on", "threads"])
    assert (folder / "config.json").read_text() == before
    shown = about(run)["environment"]
    assert (shown["optimum"], shown["score_range"]) == (9.0, [0.0, 9.0])


def test_a_module_that_no_name_tells_has_to_be_imported(walk, tmp_path):
    importlib.import_module(walk)
    task = rove.make("gym/Walk-v0", **STATED)
    config = configure(rove.DQN(), task, seeds=[0, 3], episodes=5)
    code = commands.of_run(claimed_by(config, tmp_path / "a", task))
    first, call = code.splitlines()
    assert first == "import walks  # or the module that registers 'Walk-v0'"
    gymnasium.registry.pop("Walk-v0")
    del sys.modules["walks"]
    scope = {"rove": rove}
    exec(first, scope)
    again = eval(call.replace("rove.train(", "configure("), scope | {"configure": configure})
    assert again.identity() == config.identity()
    plan = sweep_plan.plan("dqn", task, {"lr": [1e-3, 1e-2]}, episodes=5)
    raw = plan.identity()["sweep"] | {"task": facts_of(task)}
    assert commands.of_sweep(raw).startswith("import walks  # or")
    named = facts_of(rove.make("gym/walks:Walk-v0"))
    assert commands.of_sweep(raw | {"task": named}).startswith("rove sweep dqn gym/walks:Walk-v0 ")


@pytest.mark.parametrize("module", ["__main__", "os; evil()", "a\nb"])
def test_a_module_that_cannot_be_imported_is_described(walk, module, tmp_path):
    importlib.import_module(walk)
    task = rove.make("gym/Walk-v0")
    run = claimed_by(configure("dqn", task, episodes=5), tmp_path / "a", task)
    run.raw["task"]["module"] = module
    first, call = commands.of_run(run).splitlines()
    assert first == "# first import the module that registers 'Walk-v0'"
    assert call.startswith("rove.train(rove.DQN(")
    assert "'gym/Walk-v0', seeds=1, episodes=5)" in call


def test_environments_of_gymnasium_itself_need_no_import(tmp_path):
    task = rove.adopt(gymnasium.make("CartPole-v1"))
    run = claimed_by(configure("dqn", task, episodes=5), tmp_path / "a", task)
    assert commands.of_run(run).startswith("rove train dqn gym/CartPole-v1 ")


def test_environments_of_gymnasium_are_not_made(runs, tmp_path, monkeypatch):
    """To make one would import a package that a folder from elsewhere names."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "evilmod.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    evil = {"name": "gym/evilmod:X-v0", "options": {"normalise": False, "sparse": -1.0, "x": 2}}
    inside = {"name": "sparse-cartpole", "options": {"environment": evil, "reward": 1.0}}
    facts = {"score_label": "episode length", "probes": ["start", "start 2", "start 3"]}
    for name, place in (("evil", evil), ("inside", inside)):
        shutil.copytree(runs / "ge", tmp_path / name)
        config = json.loads((tmp_path / name / "config.json").read_text())
        config |= {"environment": place, "task": facts}
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    swept = tmp_path / "swept"
    swept.mkdir()
    plan = sweep_plan.plan("ge", "chain-5", {"rho": [-6.0, -4.0]}, episodes=5).identity()
    plan["sweep"]["environment"] = evil
    (swept / "config.json").write_text(json.dumps(plan))
    (swept / "sweep.json").write_text(json.dumps(sweep_of({"rho": [-6.0, -4.0]})))
    page = report([tmp_path / "evil", tmp_path / "inside", swept], tmp_path / "a.html")
    assert not (tmp_path / "mark").exists()
    group = group_of(page, "gym/evilmod")
    assert group["label"] == "episode length"
    shown = group["runs"][0]
    assert shown["beliefs"]["probes"] == ["start", "start 2", "start 3"]
    commands = [shown["about"]["command"], told(page)["sources"][1]["sweep"]["about"]["command"]]
    assert all(c.endswith(" --env.sparse=-1.0 --env.x=2") for c in commands)


def test_a_point_that_diverged_has_no_score(tmp_path):
    """Not the mean of what is left."""
    swept = sweep_of({"rho": [-2.0, -1.0]})
    swept["points"][1]["scores"] = [5.0, None, 6.0]
    (tmp_path / "sweep.json").write_text(json.dumps(swept))
    page = report([tmp_path], tmp_path / "r.html")
    good, bad = told(page)["sources"][0]["sweep"]["points"]
    assert good["score"][0] == pytest.approx(-1.9)
    assert good["diverged"] == 0
    assert bad["score"] is None
    assert bad["diverged"] == 1


def test_folders_of_folders(experiment, runs, sweeps, tmp_path):
    names = [s.name for s in folders.read([experiment.parent, runs, sweeps])]
    assert names == [folders.LOOSE, "figure-2-quick", "over-1", "over-2", "over-3"]
    assert told_command(experiment) == "rove reproduce figure-2 --quick"


def told_command(experiment):
    return commands.of_source(folders.read([experiment])[0])


def nested(levels):
    return {"a": nested(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("episodes", "3", "episodes must be an integer of at least 1, got '3'"),
        ("episodes", [3], "episodes must be an integer of at least 1, got [3]"),
        ("episodes", None, "steps must be an integer of at least 1, got None"),
        ("seeds", [10**400], "and 2,147,483,647, got 1000"),
        ("seeds", {"a": 1}, "a list"),
        ("agent", {"composition": "x"}, "composition must be a dict, got 'x'"),
        ("agent", {"name": "ge", "settings": [1]}, "settings must be a dict, got [1]"),
        ("environment", {"name": "chain-5", "options": [1]}, "options must be a dict, got [1]"),
        ("environment", {"name": "chain-5", "options": nested(900)}, "deeper than 50 levels"),
    ],
)
def test_a_configuration_of_other_kinds_is_refused(field, value, words, tmp_path):
    config = sweep_plan.plan("ge", "chain-5", {"rho": [-6.0]}, episodes=5).base.identity()
    (tmp_path / "config.json").write_text(json.dumps(config | {"schema": 3, field: value}))
    with pytest.raises(RunFolderError) as refused:
        folders.read([tmp_path])
    assert words in str(refused.value)


def bad_folders(root, runs):
    """Folders that cannot be reported, and a word of what is to be said."""
    (root / "empty").mkdir()
    yield root / "empty", "contains no results"
    yield root / "none", "does not exist"
    (root / "file").write_text("")
    yield root / "file", "is not a folder"
    for name, file, text, word in (
        ("cut", "config.json", '{"schema": 3, "agen', "cannot be read"),
        ("other", "config.json", '{"schema": 99}', "another version of rove"),
        ("bare", "config.json", '{"schema": 3}', "is not the configuration of a run"),
        ("csv", "episodes.csv", "agent,seed,episode\nge,0", "cannot be read"),
        ("half", "episodes.csv", None, "cannot be read"),
        ("lane", "lanes/seed-0.safetensors", "", "is not a checkpoint"),
    ):
        shutil.copytree(runs / "ge", root / name)
        whole = (runs / "ge" / "episodes.csv").read_text()
        (root / name / file).write_text(whole[: len(whole) // 2 - 7] if text is None else text)
        yield root / name, word
    shutil.copytree(runs / "ge", root / "new")
    (root / "new" / "episodes.csv").unlink()
    yield root / "new", "no episode has ended yet"
    for name, file, text, word in (
        ("claims", "claims.json", '[{"text": 1}]', "is not a list of claims"),
        ("swept", "sweep.json", '{"fields": {}}', "is not a sweep"),
        ("swept2", "sweep.json", "{", "cannot be read"),
    ):
        shutil.copytree(runs, root / name / "runs")
        (root / name / file).write_text(text)
        yield root / name, word


def test_bad_input_is_refused(runs, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    for folder, words in bad_folders(tmp_path / "in", runs):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["report", str(folder), "--out", str(tmp_path / "out.html")])
        said = " ".join(capsys.readouterr().err.split())
        assert stopped.value.code == 2, folder
        assert words in said, folder
        assert not (tmp_path / "out.html").exists()
    with pytest.raises(SystemExit) as stopped:
        cli.main(["report"])
    assert stopped.value.code == 2
    with pytest.raises(RoveError, match="is a folder"):
        report([runs], tmp_path)


def test_the_command_line(runs, tmp_path, capsys):
    cli.main(["report", str(runs), "--out", str(tmp_path / "out.html")])
    assert "MB" in capsys.readouterr().out
    assert told(tmp_path / "out.html")["follow"] is None


@contextmanager
def at_work(folder):
    """As long as a process is training in a folder."""
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_follow_ends_with_the_runs(runs, tmp_path, monkeypatch):
    """It waits for a first episode, shows what there is, and ends with the last lane, or when
    nobody is at work any more."""
    shutil.copytree(runs / "ge", tmp_path / "r")
    last, first = tmp_path / "r" / "lanes" / "seed-2.safetensors", tmp_path / "r" / "episodes.csv"
    kept = {path: path.read_bytes() for path in (last, first)}
    for path in kept:
        path.unlink()
    seen = []

    def sleep(seconds):
        done = (tmp_path / "out.html").exists()
        seen.append(told(tmp_path / "out.html")["follow"] if done else None)
        path = [first, last][len(seen) - 1]
        path.write_bytes(kept[path])

    monkeypatch.setattr(reporting.time, "sleep", sleep)
    with at_work(tmp_path / "r"):
        reporting.follow([tmp_path / "r"], tmp_path / "out.html", every=3.0)
    assert seen == [None, 3.0]
    assert told(tmp_path / "out.html")["follow"] is None
    last.unlink()  # as if its lane had failed, or the run had been killed
    reporting.follow([tmp_path / "r"], tmp_path / "out.html", every=3.0)
    first.unlink()
    with pytest.raises(rove.RunFolderError, match="no episode has ended yet"):
        reporting.follow([tmp_path / "r"], tmp_path / "out.html", every=3.0)
    assert len(seen) == 2


def test_a_follower_that_is_stopped_leaves_a_page_that_rests(runs, tmp_path, monkeypatch, capsys):
    (tmp_path / "r").mkdir()
    shutil.copytree(runs / "ge", tmp_path / "r" / "ge")
    (tmp_path / "r" / "ge" / "lanes" / "seed-2.safetensors").unlink()

    def stop(seconds):
        assert told(tmp_path / "out.html")["follow"] == reporting.UPDATE_PERIOD
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting.time, "sleep", stop)
    with at_work(tmp_path / "r" / "ge"):
        cli.main(["report", str(tmp_path / "r"), "--out", str(tmp_path / "out.html"), "--follow"])
    assert "written to" in capsys.readouterr().out
    page = told(tmp_path / "out.html")
    assert page["follow"] is None
    assert page["sources"][0]["groups"][0]["runs"][0]["unfinished"] == 1


def test_a_run_of_500_episodes_takes_little(runs, tmp_path):
    """A hundred and fifty of them, and some pictures, are to stay under 6 MB."""
    rng = np.random.default_rng(0)
    for agent in ("ge", "dqn"):
        shutil.copytree(runs / agent, tmp_path / "runs" / agent)
        head = (runs / agent / "episodes.csv").read_text().splitlines()[0]
        rows = [
            f"{agent},chain-5,{seed},{i},{9 * i},{x},9,0,{x},{s:.4g},{z:.4g},5"
            for seed in range(5)
            for i, (x, s, z) in enumerate(rng.random((500, 3)).astype(np.float32), start=1)
        ]
        (tmp_path / "runs" / agent / "episodes.csv").write_text("\n".join([head, *rows]) + "\n")
    path = report([tmp_path / "runs"], tmp_path / "r.html")
    assert len(json.dumps(told(path), separators=(",", ":"))) / 2 < 37_000


@pytest.mark.slow
def test_a_real_sweep_beside_a_run(tmp_path):
    """What `rove sweep` writes, before its first result and after; a run beside it is shown too."""
    small = {"hidden": (4,), "batch_size": 4, "learning_starts": 5}
    rove.train("dqn", "chain-4", episodes=3, out=tmp_path / "run", **small)
    rove.sweep(
        rove.DQN(**small), "chain-4", {"lr": [1e-3, 1e-2]}, seeds=1, confirm_seeds=1, episodes=3,
        out=tmp_path / "sweep",
    )  # fmt: skip
    told = folders.read([tmp_path / "run", tmp_path / "sweep"])
    assert [bool(source.sweep) for source in told] == [False, True]
    assert told[1].finished  # so that --follow ends
    rove.report([tmp_path / "sweep"], tmp_path / "page.html")
    (tmp_path / "sweep" / "sweep.json").unlink()
    assert len(folders.read([tmp_path / "run", tmp_path / "sweep"])[0].runs) == 1
    with at_work(tmp_path / "sweep"), pytest.raises(folders.NothingYet):
        folders.read([tmp_path / "sweep"])


def test_a_report_goes_over_no_other_file(tmp_path):
    rove.train("dqn", "chain-4", episodes=2, out=tmp_path / "run", hidden=(4,))
    with pytest.raises(rove.RunFolderError, match="html"):
        rove.report([tmp_path / "run"], tmp_path / "run" / "config.json")
    assert rove.load(tmp_path / "run").returns.shape == (1, 2)


def test_a_seed_that_found_nothing_is_a_warning(runs, tmp_path):
    write_run(tmp_path / "dqn", runs, "dqn", "chain-5", np.zeros((2, 30)))
    (run,) = group_of(report([tmp_path], tmp_path / "r.html"), "chain-5")["runs"]
    assert run["warnings"] == [
        f"seed {seed}: all 30 episodes scored 0: nothing better was found" for seed in (0, 1)
    ]


def test_the_title_of_a_sweep_has_the_score_on_fresh_seeds(tmp_path):
    swept = sweep_of({"rho": [-2.0, -4.0]})  # the first point is the best, and confirmed
    (tmp_path / "sweep.json").write_text(json.dumps(swept))
    data = told(report([tmp_path], tmp_path / "r.html"))
    assert data["title"] == (
        "GE on chain-5: best of 2 points at rho=-2, mean score −1.8 on 2 fresh seeds"
    )
    assert [p["label"] for p in data["sources"][0]["sweep"]["points"]] == ["rho=-2", "rho=-4"]
