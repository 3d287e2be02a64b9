"""The suite: its tasks and their thresholds, its tables by hand, and a small one end to end."""

import gzip
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import rove
from rove.analysis.intervals import proportion_interval
from rove.cli import main as cli
from rove.paper import published, suite
from rove.paper.suite import experiment, judging, page, picture, results
from rove.paper.suite.experiment import Suite, plain_settings
from rove.paper.suite.results import DEFAULT, ResultTable, SeedResult, seed_result
from rove.paper.suite.tasks import BY_NAME, HALVES, TASKS, of_half
from rove.runs.configure import default_settings

EPSILON = 0.05


def result(task, agent, seed, score, delivered=None):
    """A result with a score between 0 and 1."""
    known = BY_NAME[task]
    scaled = lambda x: known.zero + x * (known.one - known.zero)  # noqa: E731
    policy, value = ("", np.nan) if delivered is None else ("mean", scaled(delivered))
    numbers = (known.steps, 60, scaled(score), policy, value, (np.nan,) * 10)
    return SeedResult(known, agent, seed, *numbers)


def test_the_halves_have_the_same_kinds_of_tasks():
    kinds = (
        "minigrid",
        "frozenlake|cliff",
        "sparse",
        "deep-sea",
        "chain",
        "point|swing",
        "minatar",
    )
    counts = [
        [sum(any(k in t.name for k in kind.split("|")) for t in of_half(half)) for kind in kinds]
        for half in HALVES
    ]
    assert counts[0] == counts[1]
    assert sum(counts[0]) == len(of_half("development"))
    assert len(TASKS) >= 16
    assert len(BY_NAME) == len(TASKS)
    assert BY_NAME["minigrid-doorkey-5"].half == "development"
    assert BY_NAME["frozenlake-8x8"].half == "held-out"
    assert (BY_NAME["minigrid-doorkey-5"].steps, BY_NAME["frozenlake-8x8"].steps) == (10**5, 30_000)
    assert all(30_000 <= task.steps <= 100_000 for task in TASKS)


@pytest.mark.parametrize("name", [task.name for task in TASKS if not task.extra])
def test_scores_are_within_what_is_possible(name):
    task, made = BY_NAME[name], BY_NAME[name].make()
    assert task.zero < task.one
    assert 0 < task.solved <= 1
    assert not made.continuous
    if made.optimum is not None:
        assert task.one <= made.optimum
    if made.score_range is not None:
        low, high = made.score_range
        assert low <= task.zero < task.one <= high
    assert task.normalised(np.array([task.zero - 1, task.zero, task.one])).tolist() == [0, 0, 1]


def tabular_score(name, horizon):
    """The mean return of the optimal policy with and without random actions, from the table of
    probabilities of a toy text task, by dynamic programming over the steps that are left."""
    task = BY_NAME[name]
    options = {k: v for k, v in task.options.items() if k == "is_slippery"}
    env = gymnasium.make(task.environment.removeprefix("gym/"), **options).unwrapped
    states, actions = env.observation_space.n, env.action_space.n
    best, noisy = np.zeros(states), np.zeros(states)
    for _ in range(horizon):
        q, value = np.zeros((2, states, actions))
        for s in range(states):
            for a in range(actions):
                for p, after, reward, ended in env.P[s][a]:
                    q[s, a] += p * (reward + (not ended) * best[after])
                    value[s, a] += p * (reward + (not ended) * noisy[after])
        best = q.max(axis=1)
        greedy = value[np.arange(states), (q + 1e-9 * value).argmax(axis=1)]
        noisy = (1 - EPSILON) * greedy + EPSILON * value.mean(axis=1)
    start = env.reset(seed=0)[0]
    return best[start], noisy[start]


@pytest.mark.parametrize(
    ("name", "horizon"),
    [("frozenlake-4x4", 100), ("frozenlake-4x4-slippery", 100), ("frozenlake-8x8", 200),
     ("cliffwalking", 200)],
)  # fmt: skip
def test_five_percent_of_random_actions_do_not_cost_the_solution_of_toy_text(name, horizon):
    task = BY_NAME[name]
    best, noisy = tabular_score(name, horizon)
    assert task.one <= best + 1e-6
    assert task.normalised(noisy) > task.solved
    if name == "frozenlake-4x4-slippery":
        assert best == pytest.approx(0.74, abs=0.005)


@pytest.mark.parametrize("n", [10, 20])
def test_five_percent_of_random_actions_do_not_cost_the_solution_of_deep_sea(n):
    """Every one of N steps must go right; half of the random actions do."""
    task = BY_NAME[f"deep-sea-{n}"]
    assert task.solved < (1 - EPSILON / 2) ** n < task.solved + 0.12


@pytest.mark.parametrize("n", [20, 50])
def test_five_percent_of_random_actions_do_not_cost_the_solution_of_a_chain(n):
    """The distribution over positions, step by step; the ends absorb."""
    task, wrong = BY_NAME[f"permuted-chain-{n}"], EPSILON / 2
    at, earned = np.zeros(n), 0.0
    at[1] = 1.0
    for _ in range(n + 9):
        earned += 0.001 * at[0] + at[-1]
        after = np.zeros(n)
        after[0], after[-1] = at[0], at[-1]
        after[2:] += (1 - wrong) * at[1:-1]
        after[:-2] += wrong * at[1:-1]
        at = after
    assert task.solved < earned / 11 < task.solved + 0.12


def test_agents_have_the_settings_of_a_task_without_a_search():
    """One setting for all tasks, not the searched ones that Deep Sea and the chain have."""
    vectors = [task for task in TASKS if not task.extra]
    for agent in ("dqn", "ige"):
        plain = plain_settings(agent, BY_NAME["point-rooms"])
        assert all(plain_settings(agent, task) == plain for task in vectors)
        assert plain == default_settings(agent, BY_NAME["point-rooms"].make())
        assert plain != default_settings(agent, BY_NAME["deep-sea-10"].make())
    uniform = plain_settings("random", BY_NAME["deep-sea-10"])
    assert uniform.epsilon == 1.0
    assert uniform.learning_starts > max(task.steps for task in TASKS)


def test_what_a_seed_is_summarised_to():
    task = BY_NAME["frozenlake-4x4"]
    scores = np.array([0.0] * 30 + [1.0] * 50)
    ends = np.arange(1, 81) * 10.0
    found = seed_result(task, "dqn", 3, 1000, scores, ends, "vote", [1.0, 0.0])
    assert (found.last, found.score, found.episodes, found.delivered) == (1.0, 1.0, 80, 0.5)
    assert found.solved
    assert found.tenths[:4] == (0, 0, 0, 1)  # the first ends at step 100, with ten episodes
    assert np.isnan(found.tenths[8:]).all()
    nothing = seed_result(task, "dqn", 3, 1000, np.zeros(0), np.zeros(0))
    assert nothing.score == 0.0
    assert not nothing.solved
    assert not seed_result(task, "dqn", 0, 1000, scores[:74], ends[:74]).solved  # 44 of 50


def test_a_table_is_read_as_it_was_written(tmp_path):
    rows = [
        result("deep-sea-10", "dqn", 0, 0.25, 0.5),
        seed_result(BY_NAME["cliffwalking"], "random", 1, 500,
                    np.array([-7.5]), np.array([200.0])),
    ]  # fmt: skip
    text = results.results_csv(rows)
    file = tmp_path / "suite.csv.gz"
    file.write_bytes(gzip.compress(text.encode()))
    again = results.read(file)
    assert results.results_csv(again) == text
    assert again[0].score == pytest.approx(0.25, abs=1e-4)
    assert again[1].policy == ""


def both_halves(first=1.0, second=0.0, seeds=10):
    """Results of two agents on two tasks of each half."""
    names = ("deep-sea-10", "frozenlake-4x4", "deep-sea-20", "frozenlake-8x8")
    return [
        result(name, agent, seed, score, score)
        for name in names
        for agent, score in ((DEFAULT, first), ("dqn", second), ("sb3-zoo", second))
        for seed in range(seeds)
    ]


def test_tables_say_how_many_seeds_solve_a_task():
    found = page.tables(both_halves())
    low, high = (round(100 * x) for x in proportion_interval(10, 10))
    assert (
        f"| deep-sea-20 (30k) | 0/10 (0–31%) | 10/10 ({low}–{high}%) |" in found["solved-held-out"]
    )
    assert (
        "| **tasks solved by most seeds** of 2 | **0** | **2** | **0** |"
        in (found["solved-development"])
    )
    assert "+2.0 (+1.5 to +2.0)" in found["differences-held-out"]
    assert "| deep-sea-20 | 0.00 → 0.00 | 1.00 → 1.00 |" in found["delivered-held-out"]
    few = page.tables(both_halves(seeds=2))["solved-held-out"]
    assert "| 0/2 | 2/2 |" in few  # no interval of two seeds


def test_a_policy_behind_its_last_episodes_is_marked():
    late = [result("deep-sea-10", DEFAULT, seed, 1.0, 0.94) for seed in range(3)]
    near = [result("deep-sea-10", DEFAULT, seed, 1.0, 0.96) for seed in range(3)]
    assert judging.behind(late)
    assert not judging.behind(near)
    assert "**1.00 → 0.94**" in page.tables(late)["delivered-development"]
    verdicts = [judging.claims(ResultTable(rows))[-1].verdict for rows in (late, near)]
    assert verdicts == ["not supported", "supported"]


def test_claims_follow_from_the_results():
    ahead, even = (judging.claims(ResultTable(both_halves(1.0, x))) for x in (0.0, 1.0))
    assert [c.verdict for c in ahead[:2]] == ["supported", "supported"]
    assert [c.verdict for c in even[:2]] == ["inconclusive", "inconclusive"]
    assert [c.verdict for c in judging.claims(ResultTable(both_halves(0.0, 1.0)))[:2]] == (
        ["not supported"] * 2
    )
    assert "frozenlake-8x8" in ahead[2].text
    only = [r for r in both_halves() if r.task.half == "development" or r.agent == DEFAULT]
    assert not [c for c in judging.claims(ResultTable(only)) if "more than" in c.text]


def test_the_picture_fits_a_phone():
    rows = both_halves() + [replace_agent(r, "random") for r in both_halves() if r.agent == "dqn"]
    figure = picture.draw(ResultTable(rows))
    assert len(figure.axes) == 2
    assert figure.axes[1].lines[0].get_label() == "random actions"
    width = figure.get_size_inches()[0]
    pixels = 390 / width / 72  # at the width of a phone, per point
    texts = [
        t for axes in figure.axes for t in (*axes.get_xticklabels(), axes.title, axes.yaxis.label)
    ]
    texts += figure.legends[0].get_texts()
    assert min(t.get_fontsize() for t in texts) * pixels > 10


def replace_agent(found, agent):
    return found._replace(agent=agent)


def test_a_page_is_filled_between_its_marks(tmp_path):
    marks = ("solved-development", "claims", "picture", "unknown")
    text = "# Suite\n" + "".join(f"<!-- suite: {m} -->\nold\n<!-- end -->\n" for m in marks)
    filled = page.filled(text, both_halves())
    assert filled.count("old") == 1  # the unknown one
    assert "| deep-sea-10 (30k) |" in filled
    assert page.filled(filled, both_halves()) == filled
    (tmp_path / "results").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / page.PAGE).write_text(text)
    csv = results.results_csv(both_halves())
    (tmp_path / page.DATA).write_bytes(gzip.compress(csv.encode()))
    suite.publish(tmp_path)
    assert (tmp_path / page.PAGE).read_text() == filled
    assert (tmp_path / "figures" / "suite.svg").stat().st_size > 5000


def test_a_small_suite_from_end_to_end_resumes(tmp_path, monkeypatch):
    """Also if it is asked for more seeds, and after results were lost."""
    monkeypatch.setattr(experiment, "QUICK_STEPS", 120)
    chosen = {"quick": True, "tasks": ("deep-sea-10",), "agents": ("random", "dqn")}
    claims = Suite(**chosen, seeds=1).run(tmp_path, workers=1)
    assert claims == published.claims("suite")
    assert not (tmp_path / "claims.json").exists()
    first = gzip.decompress((tmp_path / "suite.csv.gz").read_bytes()).decode()
    rows = results.read(tmp_path / "suite.csv.gz")
    found = [(r.task.name, r.agent, r.seed, r.steps, r.episodes) for r in rows]
    assert found == [("deep-sea-10", agent, 0, 120, 12) for agent in ("random", "dqn")]
    assert rows[0].policy == ""
    kept = rove.load(tmp_path / "runs" / "deep-sea-10-dqn-0")
    assert kept.outcomes[0].conclusion.delivered.policy == rows[1].policy
    (tmp_path / "suite.csv.gz").unlink()
    Suite(**chosen, seeds=2).run(tmp_path, workers=1)
    both = gzip.decompress((tmp_path / "suite.csv.gz").read_bytes()).decode().splitlines()
    assert set(first.splitlines()) < set(both)
    assert len(both) == 1 + 4
    assert "deep-sea-10 (0.12k)" in (tmp_path / "suite.md").read_text()
    assert (tmp_path / "suite.png").stat().st_size > 5000


def test_a_seed_that_diverged_scores_nothing(tmp_path):
    one = Suite(quick=True, tasks=("deep-sea-10",), agents=("dqn",), seeds=1)
    (config,) = one.configs().values()
    from rove.errors import Diverged
    from rove.runs.result import Run

    run = Run(config, [], tmp_path, [Diverged("the loss was not a finite number")])
    found = experiment.result_of(BY_NAME["deep-sea-10"], "dqn", run)
    assert (found.score, found.episodes, found.solved) == (0.0, 0, False)


def test_a_task_without_its_package_is_left_out(monkeypatch):
    monkeypatch.setitem(
        BY_NAME,
        "deep-sea-10",
        replace(BY_NAME["deep-sea-10"], environment="gymnax/x", extra="gymnax"),
    )
    one = Suite(tasks=("deep-sea-10", "frozenlake-4x4"))
    assert [task.name for task in one.chosen] == ["frozenlake-4x4"]
    assert one.left_out[0].startswith("deep-sea-10 is left out: ")
    assert "gymnax" in one.left_out[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--tasks", "deepsea-10"], "has no task 'deepsea-10'. Did you mean 'deep-sea-10'?"),
     (["--agents", "sb3_zoo"], "has no agent 'sb3_zoo'. Did you mean 'sb3-zoo'?"),
     (["--seeds", "0"], "--seeds must be an integer of at least 1, got 0")],
)  # fmt: skip
def test_what_the_command_refuses(arguments, message, capsys):
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "suite", *arguments])
    assert message in " ".join(capsys.readouterr().err.split())
