"""Runs that are compared: their budgets, colours, errors and environments."""

import itertools
import json
import re
from typing import NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made import group_of, run_of, told, write_run

import rove
from helpers import SMALL
from rove import report
from rove.agents import AGENTS
from rove.analysis import colours, plots
from rove.environments import Step
from rove.errors import RunFolderError
from rove.reporting import folders
from rove.reporting.labels import colours_of


@pytest.mark.slow
def test_runs_with_different_budgets_are_compared_on_the_part_that_they_share(runs, tmp_path):
    rng = np.random.default_rng(0)
    short, long = rng.random((5, 30)), rng.random((5, 60))
    write_run(tmp_path / "short", runs, "dqn", "chain-5", short)
    write_run(tmp_path / "long", runs, "ge", "chain-5", long)
    group = group_of(report([tmp_path], tmp_path / "r.html"), "chain-5")
    assert group["title"] == "chain-5, 30 to 60 episodes"
    assert group["common"] == 30
    a, b = run_of(group, "DQN"), run_of(group, "GE")
    assert [len(run["scores"]["1"][0]) for run in (a, b)] == [30, 60]
    assert [run["budget"] for run in (a, b)] == [30, 60]
    assert b["all"][0] == pytest.approx(11 * long[:, :30].mean(), rel=1e-3)
    assert b["last"][0] == pytest.approx(11 * long[:, -20:].mean(), rel=1e-3)
    i, j = (group["runs"].index(run) for run in (a, b))
    expected = 11 * (short.mean() - long[:, :30].mean())
    assert group["differences"][i][j][0] == pytest.approx(expected, rel=1e-3)


def test_only_what_all_budgets_have_ranks_agents(runs, tmp_path):
    """An agent that solves its task after the other has ended is not ahead of it."""
    late = np.zeros((8, 60))
    late[:, 40:] = 1.0
    write_run(tmp_path / "short", runs, "dqn", "chain-5", np.zeros((8, 30)))
    write_run(tmp_path / "long", runs, "ge", "chain-5", late)

    def title():
        return told(report([tmp_path], tmp_path / "r.html"))["title"]

    said = "GE solves chain-5 on 8 of 8 seeds and DQN on 0 of 8"
    unknown = "too few seeds to rank them: difference in mean score in training"
    assert title() == f"{said} ({unknown} 0, p = 1)"
    write_run(tmp_path / "other" / "short", runs, "dqn", "chain-5", np.zeros((8, 60)))
    tmp_path = tmp_path / "other"
    late[:, 20:] = 1.0
    write_run(tmp_path / "long", runs, "ge", "chain-5", late)
    assert title().startswith(f"{said} (difference in mean score in training +7.33, p = 0.00")


def test_the_same_agent_with_two_budgets_is_told_apart(runs, tmp_path):
    for episodes in (30, 60):
        write_run(tmp_path / f"{episodes}", runs, "dqn", "chain-5", np.zeros((2, episodes)))
    group = group_of(report([tmp_path], tmp_path / "r.html"), "chain-5")
    assert {run["label"] for run in group["runs"]} == {"DQN, 30 episodes", "DQN, 60 episodes"}
    assert len({run["colour"] for run in group["runs"]}) == 2


@pytest.mark.slow
def test_budgets_of_episodes_and_of_steps_are_compared_over_steps(tmp_path):
    agent = rove.DQN(**SMALL)
    first = rove.train(agent, "cartpole", seeds=2, episodes=20, out=tmp_path / "a")
    rove.train(rove.GE(**SMALL), "cartpole", seeds=2, steps=900, out=tmp_path / "b")
    group = group_of(report([tmp_path], tmp_path / "r.html"), "cartpole")
    played = max(int(o.episodes.step[-1]) for o in first.outcomes)
    assert group["unit"] == "step"
    assert {run["budget"] for run in group["runs"]} == {played, 900}
    assert group["common"] == min(played, 900)


def test_agents_have_the_colours_of_all_plots(page):
    text = page.read_text("utf-8")
    for i, (light, dark) in enumerate(colours.PALETTE):
        assert f".s{i} {{ stroke: light-dark({light}, {dark})" in text
    group = group_of(page, "chain-5")
    for agent, label in (("ge", "GE"), ("dqn", "DQN")):
        axes = plots.figure().axes[0]
        plots.learning_curves(axes, {agent: np.zeros((1, 3))})
        number = run_of(group, label)["colour"]
        assert axes.lines[0].get_color() == colours.PALETTE[number][0]
    assert colours.line_of("ge")["color"] == "#2a9d5c"
    assert colours.line_of("ige")["color"] == "#c44e52"


def test_agents_that_can_meet_have_different_styles():
    continuous = {"ddpg", "ddpg_noisynet", "ddpg_ge", "ddpg_dropout", "td3"}
    for names in (continuous, set(AGENTS) - continuous):
        numbers = [colours.number_of(name) for name in names]
        assert len(set(numbers)) == len(numbers)
        assert colours.CUSTOM not in numbers


def test_no_agent_is_dotted_like_the_optimum():
    axes = plots.figure().axes[0]
    plots.learning_curves(axes, {name: np.zeros((1, 3)) for name in AGENTS}, optimum=1.0)
    *curves, optimum = [line.get_linestyle() for line in axes.lines]
    assert len(curves) == len(AGENTS)
    assert optimum not in curves


@pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])
def test_colours_are_told_apart(ground):
    """By their distances in Oklab, in which a difference just noticed is about 0.02."""
    places = [oklab(pair[ground]) for pair in colours.PALETTE]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)]
    assert min(distances) > 0.1


def oklab(colour):
    """The place of a colour in Oklab (Ottosson 2020)."""
    srgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    to_cones = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    to_lab = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return np.array(to_lab) @ np.cbrt(np.array(to_cones) @ linear)


def test_labels_of_one_agent_have_different_colours_where_they_meet():
    numbers = colours_of(
        [{"GE, a": "ge", "GE, b": "ge", "DQN": "dqn"}, {"GE": "ge"}, {"x": "X", "y": "Y"}]
    )
    assert numbers["GE"] == numbers["GE, a"] == colours.number_of("ge")
    assert numbers["DQN"] == colours.number_of("dqn")
    assert numbers["GE, b"] not in {numbers["GE"], numbers["DQN"]}
    assert numbers["x"] != numbers["y"]


class Rooms(gymnasium.Env):
    """A walk over two coordinates; it may break."""

    observation_space = gymnasium.spaces.Box(np.float32([-1.0, 0.0]), np.float32([2.0, 5.0]))
    action_space = gymnasium.spaces.Discrete(2)
    broken = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = np.float32([-1.0, 0.0]), 0
        return self.at.copy(), {}

    def step(self, action):
        self.at[action] += 0.07
        self.time += 1
        if self.broken and self.np_random.random() < 0.1:
            raise ValueError("the door <b>is</b> jammed")
        return self.at.copy(), 0.1, self.time == 9, False, {}


class Broken(Rooms):
    broken = True


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Runs on environments that only their user has."""
    folder = tmp_path_factory.mktemp("own")
    rove.train(rove.DQN(**SMALL), Rooms, episodes=10, out=folder / "rooms")
    rove.train(rove.GE(**SMALL), Pair(), seeds=2, episodes=30, out=folder / "pair")
    with pytest.raises(rove.LaneError, match="jammed"):
        rove.train(rove.DQN(**SMALL), Broken, seeds=2, episodes=99, out=folder / "broken")
    return folder


class PairState(NamedTuple):
    time: jax.Array


class Pair(rove.Environment):
    """Two cells, with a known optimum."""

    name, observation_size, num_actions, bins = "pair", 2, 2, 2
    optimum, score_range, action_names = 3.0, (0.0, 3.0), ("stay", "go")

    def bin(self, state):
        return state.time % 2

    def probes(self):
        return {"first": jnp.array([1.0, 0.0])}

    def reset(self, key):
        return PairState(jnp.zeros((), jnp.int32)), jnp.array([1.0, 0.0])

    def step(self, state, action, key):
        after = PairState(state.time + 1)
        observation = jax.nn.one_hot(after.time % 2, 2)
        done = after.time >= 3
        return Step(after, observation, jnp.ones(()) * (action == 1), done, jnp.zeros((), bool))


@pytest.mark.slow
def test_an_environment_of_the_users_own_has_its_visits_posterior_and_optimum(own, tmp_path):
    group = group_of(report([own / "pair"], tmp_path / "r.html"), "pair")
    (run,) = group["runs"]
    assert group["optimum"] == 3
    assert group["bounded"]
    assert run["solved"] is not None
    assert run["visits"]["cells"] == [2]
    np.testing.assert_allclose(run["visits"]["mean"], [1.0, 1.0])
    assert run["beliefs"]["probes"] == ["first"]
    assert run["beliefs"]["actions"] == ["stay", "go"]
    comment, call = run["about"]["command"].splitlines()
    assert comment == "# environment: 'pair', which is custom"
    assert call.startswith("rove.train(rove.GE(")
    assert call.endswith("environment, seeds=2, episodes=30)")


@pytest.mark.slow
def test_a_board_has_the_coordinates_of_its_environment(own, tmp_path):
    group = group_of(report([own / "rooms"], tmp_path / "r.html"), "Rooms")
    visits = group["runs"][0]["visits"]
    assert visits["cells"] == [40, 40]
    assert visits["sides"] == [["observation 1", 0, 5, 40], ["observation 0", -1, 2, 40]]
    assert visits["mean"][0] == 1  # the start: lowest of both


def test_a_folder_without_facts_is_shown_without_visits(own, tmp_path):
    """As written by other versions."""
    config = json.loads((own / "rooms" / "config.json").read_text())
    del config["task"]
    (tmp_path / "old").mkdir()
    for path in (own / "rooms").rglob("*"):
        if path.is_file():
            target = tmp_path / "old" / path.relative_to(own / "rooms")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    (tmp_path / "old" / "config.json").write_text(json.dumps(config))
    (run,) = group_of(report([tmp_path / "old"], tmp_path / "r.html"), "Rooms")["runs"]
    assert run["visits"] is None
    assert run["beliefs"]["probes"][0] == "start"


@pytest.mark.parametrize(
    "facts",
    [
        [1], {"cells": "x"}, {"cells": [2, -1]}, {"cells": [1, 2, 3]}, {"optimum": "x"},
        {"score_range": [0.0]}, {"coordinates": [["x", 2.0, 1.0]]}, {"action_names": [1]},
        {"cells": [2, 2], "coordinates": [["x", 0.0, 1.0], ["y", 0.0]]}, {"probes": 3},
        {"optimum": float("nan")}, {"score_label": []}, {"first_cell": 0.5},
        {"cells": [2, 2], "coordinates": [["x", 0.0, 1.0, 0], ["y", 0.0, 1.0, 2]]},
    ],
)  # fmt: skip
def test_facts_of_other_kinds_are_refused(facts, runs, tmp_path):
    config = json.loads((runs / "ge" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"task": facts}))
    with pytest.raises(RunFolderError, match="is not the configuration of a run"):
        folders.read([tmp_path])


def test_the_errors_of_a_failed_run_are_kept_and_shown(own, tmp_path):
    errors = json.loads((own / "broken" / "errors.json").read_text())
    assert set(errors) == {"0", "1"}
    data = told(report([own / "broken"], tmp_path / "r.html"))
    assert data["title"] == "DQN on Broken failed"
    (failed,) = data["sources"][0]["failed"]
    assert failed["errors"] == list(errors.values())
    assert "the door <b>is</b> jammed" in failed["errors"][0]
    assert data["sources"][0]["waiting"] == 0
    beside = told(report([own], tmp_path / "r.html"))["sources"][0]
    assert len(beside["failed"]) == 1
    assert len(beside["groups"]) == 2


def test_a_run_some_of_whose_seeds_failed_says_so(runs, tmp_path):
    write_run(tmp_path / "a", runs, "ge", "chain-5", np.ones((2, 20)))
    (tmp_path / "a" / "errors.json").write_text('{"1": "seed 1 broke"}')
    (run,) = group_of(report([tmp_path], tmp_path / "r.html"), "chain-5")["runs"]
    assert run["errors"] == ["seed 1 broke"]
    assert run["unfinished"] == 1  # the other one, which has no checkpoint
    (tmp_path / "a" / "errors.json").write_text('["x"]')
    with pytest.raises(RunFolderError, match="is not a list of errors"):
        folders.read([tmp_path])


def test_errors_are_forgotten_when_a_run_is_resumed_without_any(tmp_path, monkeypatch):
    agent = rove.DQN(**SMALL)
    monkeypatch.setattr(Rooms, "broken", True)
    with pytest.raises(rove.LaneError):
        rove.train(agent, Rooms, episodes=40, out=tmp_path / "r")
    assert (tmp_path / "r" / "errors.json").exists()
    monkeypatch.setattr(Rooms, "broken", False)
    rove.train(agent, Rooms, episodes=40, out=tmp_path / "r")
    assert not (tmp_path / "r" / "errors.json").exists()


BOARD = "document.querySelector('svg[aria-label^=\"State visits\"]')"


def corner(browser, kind, side):
    """The left end of something on the board, and its top or bottom."""
    rectangle = f"{BOARD}.querySelector('{kind}').getBoundingClientRect()"
    return browser.run(f"(r => [r.left, r.{side}])({rectangle})")


CAPTION = "document.querySelector('.boards figcaption').textContent"


def test_the_page_draws_a_board_upwards_with_its_limits(browser, own, tmp_path):
    """As diagnostics.png does: the start is at the bottom left."""
    browser.open(report([own / "rooms"], tmp_path / "r.html"), 400)
    words = browser.run(f"[...{BOARD}.querySelectorAll('text')].map(t => t.textContent)")
    assert {"observation 0", "observation 1", "−1", "2", "0", "5"} <= set(words)
    ground, start = (corner(browser, kind, "bottom") for kind in (".ground", ".cell"))
    np.testing.assert_allclose(ground, start, atol=1.5)
    browser.run(f"{BOARD}.focus()")
    browser.press("Home")  # the highest row
    tip = browser.run(f"{BOARD}.parentElement.querySelector('.tip').textContent")
    assert tip.startswith("observation 0 −1 to −0.925, observation 1 4.88 to 5")
    assert re.fullmatch(r"DQN, \d+ cells seen", browser.run(CAPTION))
    assert browser.complaints() == []


def test_lines_of_code_stay_apart(browser, own, tmp_path):
    browser.open(report([own / "pair"], tmp_path / "r.html"))
    browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    comment, call = browser.run("document.querySelector('pre').innerText").splitlines()
    assert comment.startswith("# environment: 'pair'")
    assert call.startswith("rove.train(")


def test_a_board_without_coordinates_is_drawn_downwards(browser, runs, tmp_path):
    browser.open(report([runs / "c51"], tmp_path / "r.html"))
    ground, start = (corner(browser, kind, "top") for kind in (".ground", ".cell"))
    np.testing.assert_allclose(ground, start, atol=1.5)
    titles = browser.run(f"[...{BOARD}.querySelectorAll('.title')].map(t => t.textContent)")
    assert titles == ["column", "row"]
    assert re.fullmatch(r"C51, \d+ of 16 cells seen", browser.run(CAPTION))


def test_the_page_shows_errors_and_budgets_as_text(browser, own, runs, tmp_path):
    browser.open(report([own / "broken"], tmp_path / "r.html"), 400)
    shown = browser.run("document.querySelector('.failed').textContent")
    assert "the door <b>is</b> jammed" in shown
    assert browser.run("document.querySelectorAll('.failed b').length") == 0
    assert browser.run("document.documentElement.scrollWidth") <= 400
    for episodes in (30, 60):
        write_run(tmp_path / "c" / f"{episodes}", runs, "dqn", "chain-5", np.zeros((2, episodes)))
    browser.open(report([tmp_path / "c"], tmp_path / "r.html"))
    text = browser.run("document.querySelector('main').textContent")
    assert "The budgets differ: each curve has its own length." in text
    assert "over the first 30 episodes, which all runs have" in text
    assert "return, first 30 episodes" in text
    assert browser.complaints() == []


def test_the_comparison_is_a_list_on_a_phone(browser, five, tmp_path):
    """Nothing of it is beyond the edge, and every number has its name."""
    path = report([five], tmp_path / "r.html")
    table = "document.querySelector('.stacked')"
    browser.open(path, 400)
    assert browser.run(f"{table}.scrollWidth") <= 400
    assert browser.run(f"getComputedStyle({table}.querySelector('thead')).display") == "none"
    names = browser.run(f"[...{table}.querySelectorAll('td')].map(e => e.dataset.label)")
    assert names[:3] == ["seeds", "solved within 30 episodes", "episodes to solve, median"]
    assert None not in names
    browser.open(path, 1400)
    assert browser.run(f"getComputedStyle({table}.querySelector('thead')).display") != "none"


def test_a_map_of_solved_seeds_needs_two_tasks(browser, own, runs, tmp_path):
    shown = "document.querySelectorAll('svg[aria-label^=\"Seeds that solved\"]').length"
    for paths, count in (([runs], 1), ([own / "rooms", own / "pair"], 0)):
        browser.open(report(paths, tmp_path / "r.html"))
        assert browser.run(shown) == count


def test_bands_lie_below_all_lines_and_many_are_faint(browser, runs, tmp_path):
    agents = ("ge", "dqn", "c51", "noisynet", "ige", "vdqn")
    curve = "document.querySelector('svg[aria-label^=\"Curves\"]')"
    for count in (2, 6):
        for agent in agents[:count]:
            write_run(tmp_path / f"{count}" / agent, runs, agent, "chain-5", np.ones((6, 20)))
        browser.open(report([tmp_path / f"{count}"], tmp_path / "r.html"))
        kinds = browser.run(
            f"[...{curve}.querySelectorAll('path.band, path.line')].map(p => p.classList[0])"
        )
        assert kinds == ["band"] * count + ["line"] * count
        faint = browser.run(f"{curve}.querySelector('path.band').getAttribute('fill-opacity')")
        assert float(faint) == min(1.0, 3 / count)
