"""A seed stops at the episode, or evaluation, at which its mean score reaches a given one."""

import io
import json

import gymnasium
import numpy as np
import pytest
from rich.console import Console

import rove
from helpers import SMALL
from rove import report
from rove.analysis.seed_scores import score_table
from rove.cli.main import main
from rove.errors import ConfigError, RunFolderError
from rove.reporting import folders
from rove.reporting.binning import stopped_early
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.runs.live import Live
from rove.training import progress
from rove.training.solving import lowest_optimal

RANDOM = rove.DQN(**SMALL, epsilon=1.0)
"""An agent whose scores go up and down."""


class Coin(gymnasium.Env):
    """Three steps: action 1 pays 1."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        self.time = 0
        return np.ones(2, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.ones(2, np.float32), float(action), self.time == 3, False, {}


TASKS = {"compiled": "chain-3", "Gymnasium": Coin}


@pytest.fixture(scope="module", params=TASKS)
def plain(request):
    """A run of two seeds that does not stop, and its task."""
    return rove.train(RANDOM, TASKS[request.param], seeds=2, episodes=60), TASKS[request.param]


def first_at(scores, score):
    """The first episode from the 20th on at which the mean of the last 20 reaches a score."""
    for episode in range(20, len(scores) + 1):
        if np.mean(scores[episode - 20 : episode], dtype=float) >= lowest_optimal(score):
            return episode
    return None


def level(run):
    """A score that the first seed reaches after its 20th episode, and before the last."""
    scores = run.scores[0]
    means = [np.mean(scores[e - 20 : e], dtype=float) for e in range(20, len(scores) + 1)]
    chosen = float(np.max(means))
    assert 20 < first_at(scores, chosen) < len(scores)
    return chosen


@pytest.mark.fast_cases("compiled")
def test_a_seed_stops_at_the_first_episode_that_reaches_the_score(plain, tmp_path, monkeypatch):
    run, task = plain
    score = level(run)
    expected = [first_at(row, score) for row in run.scores]
    stopped = rove.train(RANDOM, task, seeds=2, episodes=60, stop_at=score, out=tmp_path / "a")
    assert stopped.stopped_at == expected
    for mine, whole, at in zip(stopped.outcomes, run.outcomes, expected, strict=True):
        for column, other in zip(mine.episodes, whole.episodes, strict=True):
            np.testing.assert_array_equal(column, other[:at])
    back = rove.load(tmp_path / "a")
    assert back.stopped_at == expected
    assert back.config.stop_at == score
    assert json.loads((tmp_path / "a" / "config.json").read_text())["stop_at"] == score
    # Stopped at any moment, it ends at the same episode; and a longer budget does not change that.
    monkeypatch.setattr(progress, "CHECKPOINT_SECONDS", 0.0)
    config = configure(RANDOM, task, seeds=2, episodes=60, stop_at=score)

    def interrupt(update):
        if update.episode == expected[0] - 1 and update.job.seed == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all([(config, tmp_path / "b")], interrupt)
    assert run_all([(config, tmp_path / "b")])[0].stopped_at == expected
    longer = rove.train(RANDOM, task, seeds=2, episodes=90, stop_at=score, out=tmp_path / "a")
    assert longer.stopped_at[0] == expected[0]
    with pytest.raises(RunFolderError, match=f"its stop_at is {score}, not null"):
        rove.train(RANDOM, task, seeds=2, episodes=90, out=tmp_path / "a")


@pytest.mark.fast_cases("compiled-steps", "Gymnasium-episodes")
@pytest.mark.parametrize("unit", ["episodes", "steps"])
@pytest.mark.parametrize("task", TASKS)
def test_with_evaluations_a_seed_stops_by_them(task, unit, tmp_path):
    agent = rove.DQN(**SMALL | {"learning_starts": 40}, lr=0.1)
    options = {"seeds": 3, unit: {"episodes": 40, "steps": 170}[unit], "eval_episodes": 2}
    options |= {"eval_every": {"episodes": 4, "steps": 17}[unit]}
    whole = rove.train(agent, TASKS[task], **options)
    means = [x.mean for x in whole.evaluations]
    score = float(np.max(means))
    firsts = [np.flatnonzero(row >= lowest_optimal(score))[:1] for row in means]
    run = rove.train(agent, TASKS[task], **options, stop_at=score, out=tmp_path)
    assert any(
        len(first) and first[0] + 1 < len(row) for first, row in zip(firsts, means, strict=True)
    )
    for mine, theirs, first in zip(run.outcomes, whole.outcomes, firsts, strict=True):
        count = int(first[0]) + 1 if len(first) else len(theirs.evaluations.step)
        np.testing.assert_array_equal(mine.evaluations.scores, theirs.evaluations.scores[:count])
        assert mine.stopped == bool(len(first))
        if len(first):
            assert int(mine.lane.step) == theirs.evaluations.step[count - 1]
    again = rove.train(agent, TASKS[task], **options, stop_at=score, out=tmp_path)
    assert [int(o.lane.step) for o in again.outcomes] == [int(o.lane.step) for o in run.outcomes]


def test_whichever_comes_first_stops_a_seed_that_may_also_solve_its_task():
    """On the chain of 3 a random walk now and then earns 11: ten in a row come late."""
    agent = rove.DQN(**SMALL, epsilon=0.0, epsilon_steps=150, lr=0.01)
    train = lambda **options: rove.train(agent, "chain-3", seeds=3, episodes=120, **options)  # noqa: E731
    solved, low, high = (train(until_solved=True, stop_at=score) for score in (None, 3.0, 11.0))
    assert any(solved.solved_at)
    for i, scores in enumerate(train().scores):
        ends = [first_at(scores, 3.0), solved.solved_at[i], 120]
        assert len(low.outcomes[i].scores) == min(end for end in ends if end)
    assert [o.stopped for o in high.outcomes] == [False] * 3  # ten in a row come before twenty
    assert high.solved_at == solved.solved_at


def test_a_score_that_cannot_be_reached_is_refused():
    for task, highest in (("chain-4", "11"), ("deep-sea-3", "0.99"), ("bandit-3", None)):
        agent = "thompson" if task == "bandit-3" else "dqn"
        if highest is None:
            assert configure(agent, task, stop_at=50).stop_at == 50.0
            continue
        message = f"stop_at must be at most {highest}, the best possible return of {task}, got 12.5"
        with pytest.raises(ConfigError, match=message):
            configure(agent, task, stop_at=12.5)
        assert configure(agent, task, stop_at=float(highest)).stop_at == float(highest)
    for value in (float("nan"), "0.9", True):
        with pytest.raises(ConfigError, match="stop_at must be a finite number"):
            configure("dqn", "chain-4", stop_at=value)


@pytest.mark.slow
def test_the_command_says_that_a_score_was_reached(capsys, tmp_path):
    words = ["train", "dqn", "chain-3", "--seeds", "2", "--episodes", "60", "--on", "threads"]
    words += ["--agent.hidden=4", "--agent.epsilon=1", "--agent.learning-starts=8"]
    words += ["--out", str(tmp_path / "a")]
    main([*words, "--stop-at", "0.5"])
    shown = capsys.readouterr().out
    ends = rove.load(tmp_path / "a").stopped_at
    assert None not in ends
    listed = ", ".join(map(str, ends))
    said = f"seeds that reached 0.5, the mean of the last 20 episodes: 2 of 2, at episodes {listed}"
    assert said in shown.replace("\n", " ")
    assert f"{ends[0]} of 60 episodes" in shown
    assert "stopped: reached 0.5" in shown
    with pytest.raises(SystemExit):
        main([*words, "--stop-at", "12"])
    message = capsys.readouterr().err
    assert "--stop-at must be at most 11, the best possible return of chain-3, got 12.0" in message
    main(["train", "--config", str(tmp_path / "a"), "--out", str(tmp_path / "b"), "--quiet"])
    assert rove.load(tmp_path / "b").stopped_at == ends


def test_the_live_display_counts_seeds_that_reached_the_score():
    jobs = configure(RANDOM, "chain-3", seeds=13, episodes=60, stop_at=3).jobs(None)
    console = Console(file=io.StringIO(), force_terminal=True, width=150)
    with Live(console, jobs) as live:
        for i, job in enumerate(jobs):
            ended = 60 if i == 4 else 30 + i
            live.report(progress.Progress(job, 300, ended, 3.5, 10.0, True, 0.0, 2, i != 4))
    assert "reached 3 12/13, return 3.500 of 11" in console.file.getvalue()


def test_the_report_keeps_the_mean_of_the_last_episodes(tmp_path):
    rove.train(RANDOM, "chain-3", seeds=2, episodes=60, stop_at=0.5, out=tmp_path / "run")
    (run,) = folders.read([tmp_path / "run"])[0].runs
    assert stopped_early(run)
    assert all(run.finished.values())
    table = score_table(run.trained, 0)
    assert table.shape == (2, 60)
    for row, columns in zip(table, run.columns.values(), strict=True):
        end = len(columns["score"])
        np.testing.assert_array_equal(row[:end], columns["score"])
        np.testing.assert_allclose(row[end:], columns["score"][-20:].mean())
    page = report([tmp_path / "run"], tmp_path / "r.html").read_text("utf-8")
    assert "--stop-at=0.5" in page
