"""The one test of two runs: against SciPy and closed cases, and the same wherever it is shown."""

import json
import re

import numpy as np
import pytest
from scipy import stats

import rove
from helpers import SMALL
from rove.analysis import permutations
from rove.analysis.comparing import adjusted, compare_means
from rove.analysis.intervals import difference_test
from rove.analysis.permutations import permutation_test
from rove.paper.suite.page import difference_text, differences_table
from rove.paper.suite.results import ResultTable, read, results_csv, seed_result
from rove.paper.suite.tasks import BY_NAME
from rove.runs.tables import publish_text


def told(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text("utf-8"), re.S)[1])


def group_of(path, start):
    groups = [g for source in told(path)["sources"] for g in source["groups"]]
    return next(g for g in groups if g["title"].startswith(start))


def studentised(x, y, axis):
    square = x.var(axis, ddof=1) / x.shape[axis] + y.var(axis, ddof=1) / y.shape[axis]
    return np.abs(x.mean(axis) - y.mean(axis)) / np.sqrt(square)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (6, 4), (3, 8), (8, 8)])
def test_the_permutation_test_is_scipys(n, m):
    random = np.random.default_rng(n)
    a, b = random.normal(1.0, 1.0, n), random.normal(0.0, 3.0, m)
    options = {"vectorized": True, "n_resamples": np.inf, "alternative": "greater"}
    expected = stats.permutation_test((a, b), studentised, **options).pvalue
    assert permutation_test([a], [b]).p == pytest.approx(expected)


@pytest.mark.slow
def test_of_many_values_random_permutations_are_drawn():
    random = np.random.default_rng(0)
    a, b = random.normal(0.7, 1.0, 20), random.normal(0.0, 2.0, 25)
    options = {"vectorized": True, "n_resamples": 100_000, "alternative": "greater", "rng": 1}
    expected = stats.permutation_test((a, b), studentised, **options).pvalue
    found = permutation_test([a], [b])
    assert found.p == pytest.approx(expected, abs=0.005)
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    assert (found.low, found.high) == pytest.approx(tuple(welch), abs=0.1)


def test_closed_cases_of_the_permutation_test():
    """Groups that do not overlap are one of 252 assignments, and their mirror image another."""
    a, b = np.array([9.0, 9.1, 8.9, 9.0, 9.2]), np.array([1.0, 1.1, 0.9, 1.0, 1.2])
    assert permutation_test([a], [b]).p == pytest.approx(2 / 252)
    same = permutation_test([np.ones(5)], [np.ones(5)])  # 0/0
    assert same[:4] == (0.0, 0.0, 0.0, 1.0)
    assert permutation_test([np.ones(5)], [np.zeros(5)]).p == pytest.approx(2 / 252)
    few = permutation_test([a[:3]], [b[:3]])
    assert few[1:] == (-np.inf, np.inf, pytest.approx(2 / 20), "difference")
    assert permutation_test([a[:1]], [b[:1]]).p == 1.0


def test_the_interval_has_the_shifts_that_are_not_rejected():
    random = np.random.default_rng(2)
    a, b = random.normal(1.0, 1.0, 7), random.normal(0.0, 1.0, 6)
    found = permutation_test([a], [b])
    for end, inward in ((found.low, 1e-3), (found.high, -1e-3)):
        assert permutation_test([a - end - inward], [b]).p > 0.05
        assert permutation_test([a - end + inward], [b]).p <= 0.05
    scaled = permutation_test([1e6 + 1e3 * a], [1e6 + 1e3 * b])
    assert scaled[:4] == pytest.approx([1e3 * x for x in found[:3]] + [found.p], rel=1e-6)


def test_values_change_groups_within_their_task():
    """Of two tasks with 1 + 1 values there are four assignments, and the observed one ties with its
    mirror image: both differences have the same sign in half of them."""
    a, b = [np.array([5.0]), np.array([3.0])], [np.array([1.0]), np.array([1.5])]
    assert permutation_test(a, b).value == pytest.approx((4.0 + 1.5) / 2)
    random = np.random.default_rng(0)
    rows = [[random.random(6) + level + 0.5 * sign for level in (0, 9, 90)] for sign in (1, 0)]
    apart = permutation_test(*rows)
    assert apart.p < 0.001
    assert apart.low > 0.0
    assert permutation_test([np.concatenate(rows[0])], [np.concatenate(rows[1])]).p > 0.9


def test_random_assignments_of_many_tasks_take_little_memory():
    """A byte per value and assignment: those of the last tasks are kept for the next pair."""
    kept = permutations._assignments(((10, 10), (30, 30)))
    assert sum(groups.nbytes for groups in kept) == permutations.EXACT * (20 + 60)
    assert all((groups.sum(axis=1) == n).all() for groups, n in zip(kept, (10, 30), strict=True))


def test_the_order_of_groups_and_seeds_does_not_matter():
    random = np.random.default_rng(4)
    a, b = random.random(5), random.random(6)
    for support in ((0.0, 1.0), None):
        there, back = compare_means(a, b, support), compare_means(b[::-1], a[::-1], support)
        assert (there.value, there.low, there.high, there.p) == (
            -back.value, -back.high, -back.low, back.p,
        )  # fmt: skip
    inside = compare_means(a, b, (0.0, 1.0))
    assert inside[:3] == pytest.approx(difference_test(a, b, (0.0, 1.0))[:3], abs=0.01)
    assert compare_means(a, b, (0.0, 0.5)) == compare_means(a, b)  # values outside the range
    with pytest.raises(ValueError, match="finite"):
        compare_means(a, np.array([np.nan]))


def test_several_comparisons_are_adjusted_and_one_is_not():
    test = compare_means(np.ones(5), np.zeros(5), (0.0, 1.0))
    assert adjusted([None, test]) == [None, test.p]
    assert adjusted([None, test, test]) == [None, 2 * test.p, 2 * test.p]


PAIRS = {
    "a score range": (
        "minigrid-empty-6",
        ("dqn", {"epsilon": 0.0}, 6),
        ("dqn", {"epsilon": 1.0}, 5),
    ),
    "another agent": ("minigrid-empty-6", ("dqn", {"epsilon": 1.0}, 7), ("noisynet", {}, 5)),
    "no score range": ("cliffwalking", ("dqn", {"epsilon": 0.0}, 6), ("dqn", {"epsilon": 1.0}, 6)),
}
STEPS = 3_000


def numbers(test):
    return [test.value, test.low, test.high, test.p]


@pytest.mark.parametrize("name", PAIRS)
def test_two_runs_have_the_same_numbers_everywhere(name, tmp_path):
    task_name, *sides = PAIRS[name]
    task = BY_NAME[task_name]
    pair, results = [], []
    for suite_agent, (agent, settings, seeds) in zip(("auto", "dqn"), sides, strict=True):
        options = SMALL | settings | {"learning_starts": 10_000, "workers": 1}
        run = rove.train(agent, task.make(), seeds=seeds, episodes=None, steps=STEPS, **options)
        run.save(tmp_path / "runs" / suite_agent)
        pair.append(run)
        for seed in run.outcomes:
            ends = seed.episodes.step.astype(float)
            scores = np.asarray(seed.scores, float)
            results.append(seed_result(task, suite_agent, seed.job.seed, STEPS, scores, ends))
    known = rove.difference(*pair)
    assert (pair[0].config.environment.score_range is None) == (name == "no score range")
    assert 0.0 < known.p <= 1.0
    assert np.isfinite(numbers(known)).all()

    note = rove.compare(pair)._supxlabel.get_text()
    said = str(known).rpartition(": ")[2]
    assert f"{task.make().name}: {said}" in re.sub(r"\s+", " ", note)

    page = rove.report([tmp_path / "runs"], tmp_path / "r.html")
    group = group_of(page, task.make().name)
    folders = [run["folder"] for run in group["runs"]]
    i, j = folders.index("auto"), folders.index("dqn")
    of_report = [*group["differences"][i][j][:3], next(p for p in group["tested"]["p"] if p)]
    assert of_report == pytest.approx(numbers(known), rel=1e-3)
    assert known.p_text in told(page)["title"]

    table = ResultTable(results)
    assert numbers(table.compared("auto", "dqn")) == pytest.approx(numbers(known), rel=1e-9)
    assert difference_text(table.compared("auto", "dqn"), 2) in differences_table(table)

    print(f"\n{name}: {known}")
    print("report:", of_report, told(page)["title"])
    print("suite:", difference_text(table.compared("auto", "dqn"), 3))
    kept = ResultTable(read_back(results, tmp_path))
    assert numbers(kept.compared("auto", "dqn")) == pytest.approx(numbers(known), rel=1e-3)


def read_back(results, folder):
    publish_text(folder / "suite.csv.gz", results_csv(results))
    return read(folder / "suite.csv.gz")


def test_of_several_runs_the_adjustment_is_named():
    options = SMALL | {"episodes": 20, "workers": 1, "learning_starts": 10_000}
    runs = [rove.train("dqn", "chain-4", seeds=5, epsilon=e, **options) for e in (1.0, 0.5, 0.0)]
    note = re.sub(r"\s+", " ", rove.compare(runs)._supxlabel.get_text())
    smallest = min(rove.difference(runs[0], run).p for run in runs[1:])
    assert "(Holm, 2 comparisons)" in note
    assert f"p = {min(1.0, 2 * smallest):.2g}" in note
    assert "Holm" not in rove.compare(runs[:2])._supxlabel.get_text()


def test_a_seed_that_diverged_counts_with_its_lowest_score(tmp_path):
    """As in the report, also for runs of this process."""
    options = SMALL | {"episodes": 30, "workers": 1}
    good = rove.train("dqn", "chain-4", seeds=3, **options)
    diverging = options | {"lr": 1e30, "learning_starts": 60}
    with pytest.raises(rove.errors.LaneError):
        rove.train("dqn", "chain-4", seeds=3, out=tmp_path / "bad", **diverging)
    bad = rove.load(tmp_path / "bad")
    assert len(bad.errors) == 3
    assert all(error.outcome.diverged for error in bad.errors)
    played = [error.outcome.scores for error in bad.errors]
    assert min(map(len, played)) > 0
    filled = [np.append(x, [np.min(x)] * (30 - len(x))).mean() for x in played]
    expected = good.scores.mean() - np.mean(filled)
    assert rove.difference(good, bad).value == pytest.approx(expected)
    good.save(tmp_path / "good")
    group = group_of(rove.report([tmp_path / "good", tmp_path / "bad"], tmp_path / "r.html"), "ch")
    assert abs(group["differences"][0][1][0]) == pytest.approx(abs(expected), rel=1e-3)
