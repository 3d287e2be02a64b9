"""What the tables say beside the scores: p-values, policies, settings, budgets, one order."""

import json
import math
import shutil

import numpy as np
import pytest
from made import group_of, run_of, told, write_run

import rove
from helpers import SMALL
from rove import report
from rove.analysis.comparing import compare_means
from rove.reporting import folders, run_data
from rove.reporting.settings import source_of
from rove.runs.configure import configure
from rove.runs.folder import RunFolder
from rove.training import checkpoint

HEADS = "[...document.querySelectorAll('.stacked thead th')].map(e => e.textContent)"


def fisher(a, b, n):
    """Twice the one-sided p-value of a > b successes in n trials each."""
    ways = [math.comb(a + b, k) * math.comb(2 * n - a - b, n - k) for k in range(a, n + 1)]
    return 2 * sum(ways) / math.comb(2 * n, n)


def solving(count, episodes=30):
    """Fractions of the optimum of five seeds, of which some solve the task."""
    return np.repeat(np.arange(5) < count, episodes).reshape(5, episodes)


def test_the_p_values_of_the_title_are_in_the_table(browser, runs, tmp_path):
    """Seeds whose scores are 0 or the optimum: the p-values are those of Fisher's test."""
    for agent, count in (("ge", 5), ("dqn", 0), ("c51", 2)):
        write_run(tmp_path / agent, runs, agent, "chain-5", solving(count))
    page = report([tmp_path], tmp_path / "r.html")
    group = group_of(page, "chain-5")
    assert [run["label"] for run in group["runs"]] == ["GE", "C51", "DQN"]
    assert told(page)["title"].endswith("the seeds do not tell C51 from GE)")
    assert group["tested"]["reference"] == "GE"
    best, *others = group["tested"]["p"]
    assert best is None
    expected = [fisher(5, 2, 5), 2 * fisher(5, 0, 5)]  # the lower one times two (Holm)
    np.testing.assert_allclose(others, expected, rtol=1e-3)
    browser.open(page)
    heads = browser.run(HEADS)
    column = heads.index("p against GE (Holm, 2 comparisons)")
    rows = f"[...document.querySelectorAll('.stacked tbody tr')].map(r => r.children[{column}]"
    cells = browser.run(f"{rows}.textContent)")
    assert cells[0] == "–"
    assert cells[1:] == [f"{p:.2g}" for p in expected]
    text = browser.run("document.querySelector('main').textContent")
    assert (
        "p compares the mean return in training with that of GE, the reference on chain-5: the "
        "melded test, two-sided, adjusted for 2 comparisons (Holm). Titles rank agents only where "
        "p is below 0.05."
    ) in text
    assert browser.run("chance(0.0004)") == "< 0.001"


def test_without_a_range_of_scores_there_is_a_p_value(browser, runs, tmp_path):
    for agent, count in (("ge", 5), ("dqn", 0)):
        write_run(tmp_path / agent, runs, agent, "own", solving(count))

    def page(facts):
        for agent in ("ge", "dqn"):
            path = tmp_path / agent / "config.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"task": facts}))
        return report([tmp_path], tmp_path / "r.html")

    for facts, kind in (({"score_range": [0.0, 11.0]}, "the melded"), ({}, "a studentised")):
        tested = group_of(page(facts), "own")["tested"]
        assert tested["reference"] == "GE"
        assert tested["p"][1] == pytest.approx(fisher(5, 0, 5), rel=1e-3)
        browser.open(tmp_path / "r.html")
        heads = browser.run(HEADS)
        assert heads[heads.index("return, all episodes") + 1] == "p against GE"
        text = browser.run("document.querySelector('main').textContent")
        assert f"training with that of GE, the reference on own: {kind}" in text
        assert "test, two-sided. Titles" in text  # a single comparison
    assert browser.complaints() == []


def test_the_p_values_of_a_title_over_many_tasks_are_below_its_map(browser, runs, tmp_path):
    for task in ("chain-5", "chain-6", "chain-7"):
        for agent, count in (("ge", 4), ("dqn", 1)):
            write_run(tmp_path / f"{agent}-{task}", runs, agent, task, solving(count))
    page = report([tmp_path], tmp_path / "r.html")
    first, second = told(page)["sources"][0]["ranking"]
    assert (first["label"], first["p"]) == ("GE", None)
    rows = [[np.repeat([1.0, 0.0], (n, 5 - n))] * 3 for n in (4, 1)]
    expected = compare_means(*rows, (0.0, 1.0))
    assert 0.0 < expected.p < 0.05
    assert second["p"] == pytest.approx(expected.p, rel=1e-3)
    said = f"difference in fraction of solved seeds +0.6, {expected.p_text}"
    assert told(page)["title"] == f"GE solves 12 of 15 seeds on 3 tasks, DQN 3 of 15 ({said})"
    browser.open(page, 400)
    shown = browser.run(
        "document.querySelector('[aria-label=\"Solved seeds on all tasks\"] tbody').textContent"
    )
    assert shown.startswith("GE12 of 15–DQN3 of 15")
    assert browser.run("document.documentElement.scrollWidth") <= 400
    two = [tmp_path / f"ge-chain-{n}" for n in (5, 6)]
    assert told(report(two, tmp_path / "r.html"))["sources"][0]["ranking"] == []


@pytest.fixture
def drawn(runs, tmp_path):
    """A run folder with pictures and the scores of policies."""
    return shutil.copytree(runs / "ge", tmp_path / "ge")


@pytest.fixture
def undrawn(runs, tmp_path):
    """A run folder without the scores of policies, as of a run that was killed."""
    folder = shutil.copytree(runs / "dqn", tmp_path / "dqn")
    for path in (folder / "lanes").glob("seed-*"):
        arrays, metadata = checkpoint.load_arrays(path)
        checkpoint.save_arrays(path, arrays, metadata | {"conclusion": None})
    return folder


def test_scores_of_policies_are_beside_the_last_episodes(browser, drawn, undrawn, tmp_path):
    page = report([drawn, undrawn], tmp_path / "r.html")
    group = group_of(page, "chain-5")
    scores = rove.load(drawn).evaluate(20).mean(axis=1)
    value, low, high, n, seeds = run_of(group, "GE")["evaluated"]
    assert (low, high, n) == (None, None, 3)
    np.testing.assert_allclose([value, *seeds], [scores.mean(), *scores], rtol=1e-3)
    assert run_of(group, "DQN")["evaluated"] is None
    names = [delivered.policy for delivered in rove.load(drawn).delivered]
    policies = run_of(group, "GE")["policies"]
    assert {name: count for name, _, count in policies} == {n: names.count(n) for n in names}
    browser.open(page)
    heads = browser.run(HEADS)
    assert heads[heads.index("return, last 20 episodes") + 1] == "return, trained policy"
    facts = "[...document.querySelectorAll('.card')].map(e => e.innerText.split('\\n'))"
    cards = {card[0].strip(): card for card in browser.run(facts)}
    of_policy = f"return of the trained policy ({', '.join(x for x, *_ in policies)}), mean over"
    assert of_policy in " ".join(cards["GE"])
    assert "trained policy" not in " ".join(cards["DQN"])
    text = browser.run("document.querySelector('main').textContent")
    assert "in up to 20 episodes other than those that it was chosen by" in text
    browser.open(report([undrawn], tmp_path / "r.html"))
    assert "return, trained policy" not in browser.run(HEADS)
    assert browser.complaints() == []


def test_policies_that_no_version_of_rove_wrote_are_not_shown(drawn):
    path = next((drawn / "lanes").glob("seed-*"))
    arrays, metadata = checkpoint.load_arrays(path)
    entry = metadata["conclusion"]
    assert folders.read([drawn])[0].runs[0].evaluated is not None
    bad = ({"policy": "<b>"}, {"scores": []}, {"scores": [float("nan")]}, {"step": None})
    for hostile in ([1.0], "", *(entry | change for change in bad)):
        checkpoint.save_arrays(path, arrays, metadata | {"conclusion": hostile})
        assert folders.read([drawn])[0].runs[0].evaluated is None


def test_policies_of_an_earlier_budget_are_not_shown(drawn):
    config = json.loads((drawn / "config.json").read_text())
    (drawn / "config.json").write_text(json.dumps(config | {"episodes": 80}))
    assert folders.read([drawn])[0].runs[0].evaluated is None


def test_agents_have_one_order_and_are_compared_with_one_agent(browser, runs, tmp_path):
    """GE is ahead on one task and DQN on the other, where C51 is not."""
    scores = {
        "chain-5": {"ge": 0.9, "dqn": 0.2, "c51": 1.0},
        "chain-6": {"ge": 0.3, "dqn": 0.4},
    }
    for task, agents in scores.items():
        for agent, fraction in agents.items():
            write_run(tmp_path / f"{agent}-{task}", runs, agent, task, np.full((2, 20), fraction))
    page = report([tmp_path], tmp_path / "r.html")
    (source,) = told(page)["sources"]
    assert source["order"] == ["C51", "GE", "DQN"]
    assert source["reference"] == "GE"  # the first that is on both tasks
    first, second = ([run["label"] for run in group["runs"]] for group in source["groups"])
    assert first == ["C51", "GE", "DQN"]
    assert second == ["GE", "DQN"]
    assert [row["label"] for row in source["overall"]["agents"]] == ["GE", "DQN"]
    browser.open(page)
    chosen = """[...document.querySelectorAll("label")].filter(
        e => e.textContent.startsWith("Compare with")).map(
        e => e.querySelector("select").selectedOptions[0].textContent)"""
    assert browser.run(chosen) == ["GE", "GE"]
    names = """[...document.querySelectorAll('svg[aria-label^="Seeds that solved"] text')].map(
        t => t.textContent).filter(t => ["C51", "GE", "DQN"].includes(t))"""
    assert browser.run(names) == ["DQN", "GE", "C51"]  # from the bottom


def planned(folder, agent, task, **settings):
    """A run that has not begun, as the report reads it."""
    with RunFolder(folder).open(configure(agent, task, episodes=5, **settings)):
        return run_data.RunData(folder, RunFolder(folder).read(), {})


def test_where_settings_come_from(tmp_path):
    sources = [
        source_of(planned(tmp_path / "near", "dqn", "deep-sea-5")),
        source_of(planned(tmp_path / "none", "dqn", "cartpole")),
        source_of(planned(tmp_path / "auto", "auto", "cartpole")),
        source_of(planned(tmp_path / "own", "dqn", "deep-sea-5", lr=0.5, hidden=(3,))),
        source_of(planned(tmp_path / "parts", rove.DQN().compose(), "chain-5")),
    ]
    assert sources == [
        "defaults (tuned on deep-sea-10)",
        "defaults (generic, not tuned for this environment)",
        "defaults (the same for all tasks, chosen on the development half of the suite)",
        "not the defaults: lr, hidden",
        "custom agent",
    ]


@pytest.mark.slow
def test_the_page_says_where_settings_come_from(browser, tmp_path):
    for agent, task in (("thompson", "bandit-3"), ("psrl", "deep-sea-4")):
        rove.train(agent, task, episodes=2, out=tmp_path / task)
    rove.train(rove.DQN(**SMALL), "deep-sea-4", episodes=2, out=tmp_path / "small")
    browser.open(report([tmp_path], tmp_path / "r.html"))
    text = browser.run("document.querySelector('main').textContent")
    assert "Settings: defaults (generic, not tuned for this environment)." in text
    assert "Settings: DQN: not the defaults: " in text or "; DQN: not the defaults: " in text
    folded = browser.run("[...document.querySelectorAll('summary')].map(e => e.textContent)")
    end = " (bandit-3); settings: defaults (generic, not tuned for this environment)"
    assert any(t.endswith(end) for t in folded)


def test_performance_profiles_are_steps_with_bands(browser, runs, tmp_path):
    rng = np.random.default_rng(0)
    for agent in ("ge", "dqn"):
        for task in ("chain-5", "chain-6"):
            fractions = rng.random((5, 20))
            write_run(tmp_path / f"{agent}-{task}", runs, agent, task, fractions)
    browser.open(report([tmp_path], tmp_path / "r.html"))
    figure = "document.querySelector('svg[aria-label^=\"Performance profiles\"]')"
    kinds = "['line', 'band', 'trace'].map(k => {}.querySelectorAll('path.' + k).length)"
    assert browser.run(kinds.format(figure)) == [2, 2, 0]
    paths = browser.run(
        f"[...{figure}.querySelectorAll('path.line')].map(p => p.getAttribute('d'))"
    )
    for path in paths:
        points = np.array([p.split() for p in path[1:].split("L")], float)
        moves = np.diff(points, axis=0)
        assert np.all((moves == 0).any(axis=1))  # either across or down
        assert np.ptp(points[:, 1]) > 0


def test_the_title_of_rows_is_clear_of_their_labels(browser, runs, tmp_path):
    for task in ("chain-5", "chain-6"):
        for agent in ("ge", "bootstrapped_dqn"):
            write_run(tmp_path / f"{agent}-{task}", runs, agent, task, np.ones((2, 20)))
    page = report([tmp_path], tmp_path / "r.html")
    for width in (1400, 400):
        browser.open(page, width)
        right, left = browser.run(
            """(texts => { const box = t => texts.find(e => e.textContent === t)
            .getBoundingClientRect(); return [box("agent").right, box("Bootstrapped DQN").left]; })(
            [...document.querySelectorAll('svg[aria-label^="Seeds that solved"] text')])"""
        )
        assert left - right > 12


def test_budgets_are_said_beside_solved_seeds(browser, runs, tmp_path):
    for task, episodes in (("chain-5", 20), ("chain-6", 30)):
        write_run(tmp_path / task, runs, "dqn", task, np.zeros((5, episodes)))
    page = report([tmp_path / "chain-5"], tmp_path / "r.html")
    browser.open(page)
    card = browser.run("document.querySelector('.card').textContent")
    assert "seeds solved it within 20 episodes0 of 5" in card
    assert "solved within 20 episodes" in browser.run(HEADS)
    browser.open(report([tmp_path], tmp_path / "r.html"))
    figure = "document.querySelector('svg[aria-label^=\"Seeds that solved\"]')"
    browser.run(f"{figure}.focus()")
    browser.press("End")
    tip = browser.run(f"{figure}.parentElement.querySelector('.tip').textContent")
    assert "budget, episodes30" in tip
    text = browser.run("document.querySelector('main').textContent")
    assert "(ten optimal episodes in a row) within 20 episodes or 30 episodes;" in text


def test_a_column_has_one_number_of_decimals(browser, page):
    browser.open(page)
    format_of = "const f = formatOf([[0.707, -0.00064, 0.9, 5, null], null]); "
    assert browser.run(f"{{ {format_of} [f(0.707), f(-0.00064), f(null)] }}") == [
        "0.707", "−0.001", "–",
    ]  # fmt: skip
    assert browser.run("formatOf([[11, 0, 11, 5, null]])(11)") == "11"
