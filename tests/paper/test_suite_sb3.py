"""stable-baselines3's side of the suite: environments, records, and processes that are killed.

The library is not installed for tests: `rove reproduce suite` installs it when it is asked for.
"""

import sys

import gymnasium
import numpy as np
import pytest

from rove.errors import LaneError
from rove.paper import peers
from rove.paper.suite import sb3
from rove.paper.suite.experiment import Suite
from rove.paper.suite.sb3 import PeerRun
from rove.paper.suite.sb3_worker import SETTINGS, Recorder, gymnasium_env, scores_of
from rove.paper.suite.tasks import BY_NAME, TASKS

FAKE = """
import json, sys, pathlib
for file, task, agent, seed, steps in json.loads(sys.argv[1]):
    if seed == 9:
        sys.exit(3)
    record = {"task": task, "agent": agent, "seed": seed, "steps": steps, "lengths": [10, 20],
              "returns": [0.0, 0.99], "terminated": [1, 1]}
    record["greedy"] = {k: record[k][1:] for k in ("returns", "lengths", "terminated")}
    path = pathlib.Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record))
    print(file, flush=True)
"""


@pytest.mark.fast_cases(
    "minigrid-empty-6",
    "minigrid-doorkey-5",
    "frozenlake-4x4",
    "frozenlake-4x4-slippery",
    "sparse-mountain-car",
    "deep-sea-10",
    "permuted-chain-20",
    "point-rooms",
    "minatar-breakout",
    "minigrid-unlock",
    "frozenlake-8x8",
    "cliffwalking",
    "sparse-acrobot",
    "deep-sea-20",
    "permuted-chain-50",
    "swing-up",
)
@pytest.mark.parametrize("name", [task.name for task in TASKS])
def test_the_same_task_with_gymnasiums_interface(name):
    task = BY_NAME[name]
    if reason := task.missing:
        pytest.skip(reason)
    made, env = task.make(), gymnasium_env(task)
    assert env.action_space.n == made.num_actions
    size = gymnasium.spaces.flatdim(env.observation_space)
    assert size == made.observation_size
    record = Recorder(env)
    observation, _ = record.reset(seed=0)
    assert env.observation_space.contains(observation)
    steps, longest = 0, 600
    while not record.returns and steps < longest:
        *_, _ = record.step(steps % made.num_actions)
        steps += 1
    assert record.lengths == [steps]
    episode = {
        "returns": record.returns,
        "lengths": record.lengths,
        "terminated": record.terminated,
    }
    (score,) = scores_of(made, episode)
    assert score <= task.one or task.name.startswith(("minatar", "sparse-acrobot"))


def test_time_limits_are_those_of_the_task():
    record = Recorder(gymnasium_env(BY_NAME["cliffwalking"]))
    record.reset(seed=0)
    for _ in range(200):
        record.step(0)  # up
    assert (record.returns, record.lengths, record.terminated) == ([-200.0], [200], [False])


def test_sparse_tasks_pay_at_the_goal_only():
    record = Recorder(gymnasium_env(BY_NAME["sparse-mountain-car"]))
    observation, _ = record.reset(seed=0)
    while not record.returns:
        observation, *_ = record.step(2 if observation[1] >= 0 else 0)
    assert (record.returns, record.terminated) == ([1.0], [True])
    episodes = {"returns": [1.0, 0.0], "lengths": [120, 200], "terminated": [1, 0]}
    scores = scores_of(BY_NAME["sparse-mountain-car"].make(), episodes)
    assert scores.tolist() == [1.0, 0.0]


def test_settings_are_the_librarys_and_the_zoos():
    assert SETTINGS["sb3"] == {}
    assert len(SETTINGS["sb3-zoo"]) == 11
    assert SETTINGS["sb3-zoo"]["train_freq"] == 2 * SETTINGS["sb3-zoo"]["gradient_steps"]


def runs_in(folder, seeds):
    names = ("deep-sea-10", "sb3"), ("deep-sea-10", "sb3-zoo")
    return [
        PeerRun(folder / f"{task}-{agent}-{seed}.json", BY_NAME[task], agent, seed, 300)
        for seed in seeds
        for task, agent in names
    ]


@pytest.fixture
def fake(monkeypatch):
    """A process that writes records without training."""
    monkeypatch.setattr(peers, "python_of", lambda *_: sys.executable)
    monkeypatch.setattr(sb3, "_WORKER", FAKE)


def test_runs_resume_seed_by_seed(tmp_path, fake):
    said: list[str] = []
    sb3.run(runs_in(tmp_path, range(2)), 2, said.append)
    assert said[0] == "stable-baselines3: 0 of 4 runs are done"
    assert said[-1].endswith("4 of 4 runs, 0 minutes left")
    (tmp_path / "deep-sea-10-sb3-1.json").write_text('{"steps": 300, "task"')  # cut off
    times = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    said.clear()
    sb3.run(runs_in(tmp_path, range(3)), 1, said.append)
    assert said[0] == "stable-baselines3: 3 of 6 runs are done"
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    changed = {name for name in after if after[name] != times.get(name)}
    assert changed == {f"deep-sea-10-{x}.json" for x in ("sb3-1", "sb3-2", "sb3-zoo-2")}
    said.clear()
    sb3.run(runs_in(tmp_path, range(3)), 1, said.append)
    assert said == []  # nothing is installed or started


def test_a_process_that_fails_is_an_error_and_keeps_what_is_done(tmp_path, fake):
    with pytest.raises(LaneError, match="ended with code 3"):
        sb3.run(runs_in(tmp_path, [0, 9]), 1, lambda _: None)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_record_becomes_a_result(tmp_path, fake):
    (one, _) = runs_in(tmp_path, [4])
    sb3.run([one], 1, lambda _: None)
    found = one.result()
    assert (found.agent, found.seed, found.episodes, found.policy) == ("sb3", 4, 2, "greedy")
    assert found.last == pytest.approx(0.495)
    assert found.delivered_score == 1.0
    np.testing.assert_equal(sb3.read_results(tmp_path), [found])  # NaN equals NaN
    assert one._replace(steps=400).record is None


def test_the_suite_asks_for_seed_after_seed(tmp_path):
    runs = Suite(tasks=("deep-sea-10", "cliffwalking"), seeds=2).peer_runs(tmp_path)
    assert [r.seed for r in runs] == [0] * 4 + [1] * 4
    assert {(r.task.name, r.agent) for r in runs[:4]} == {
        (task, agent) for task in ("deep-sea-10", "cliffwalking") for agent in SETTINGS
    }


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    calls: list[list[str]] = []
    monkeypatch.setattr(peers.subprocess, "run", lambda command, check: calls.append(command))
    (tmp_path / "x").mkdir()
    python = peers.python_of(tmp_path / "x", ("torch==1", "sb3==2"))
    assert python == str(tmp_path / "x" / "bin" / "python")
    assert [c[-1] for c in calls] == [str(tmp_path / "x"), "torch==1", "sb3==2"]
    peers.python_of(tmp_path / "x", ("torch==1", "sb3==2"))
    assert len(calls) == 3
    peers.python_of(tmp_path / "x", ("torch==1", "sb3==3"))
    assert len(calls) == 6
