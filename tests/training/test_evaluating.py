"""The greedy policy is evaluated during training, which changes nothing else."""

import csv
import json
import shutil

import gymnasium
import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.errors import ConfigError, LaneError, RunFolderError
from rove.runs.execution import run_all
from rove.runs.train import configure
from rove.training import checkpoint, evaluating, progress, storage
from rove.training.conclusion import FIELDS


class Walk(gymnasium.Env):
    """Five places in a row, from a random one; 1 at the right end, and at most 9 steps."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (5,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = int(self.np_random.integers(4)), 0
        return self.seen(), {}

    def seen(self):
        return np.eye(5, dtype=np.float32)[self.at]

    def step(self, action):
        self.at, self.time = max(self.at + 2 * int(action) - 1, 0), self.time + 1
        done = self.at == 4
        return self.seen(), float(done), done, self.time == 9, {}


CASES = {
    "compiled, episodes": (rove.GE(**SMALL, resample="episode"), "cartpole", "episodes", 2, 6),
    "compiled, steps": (rove.DQN(**SMALL), "chain-5", "steps", 20, 70),
    "Gymnasium, episodes": (rove.GE(**SMALL), Walk, "episodes", 4, 13),
    "Gymnasium, steps": (rove.DQN(**SMALL), Walk, "steps", 25, 110),
}
"""Agent, task, unit, number between evaluations, and budget."""


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A run with evaluations, of two seeds, in a folder, and how it was trained."""
    agent, task, unit, every, budget = CASES[request.param]
    out = tmp_path_factory.mktemp("runs") / "evaluated"
    options = {"seeds": 2, "eval_every": every, "eval_episodes": 3, unit: budget}
    run = rove.train(agent, task, out=out, **options)
    return run, out, agent, task, unit, every, budget


def same(a, b):
    """Whether two lanes, without their logs, and their episodes have the same bits."""
    results = ((o.lane._replace(log=None), o.episodes) for o in (a, b))
    mine, theirs = map(checkpoint.flatten, results)
    return mine.keys() == theirs.keys() and all(
        np.array_equal(mine[name], theirs[name], equal_nan=True) for name in mine
    )


@pytest.mark.fast_cases("compiled, steps", "Gymnasium, steps")
def test_training_has_the_same_bits_without_it(case):
    run, _, agent, task, unit, _, budget = case
    plain = rove.train(agent, task, seeds=2, **{unit: budget})
    assert all(map(same, run.outcomes, plain.outcomes))
    assert [len(x.step) for x in plain.evaluations] == [0, 0]


@pytest.mark.fast_cases("compiled, steps")
def test_an_evaluation_is_that_of_the_policy_at_that_moment(case):
    """A run that is trained only so far is evaluated afterwards."""
    run, _, agent, task, unit, every, budget = case
    points = list(range(every, budget + 1, every))
    for evaluations in run.evaluations:
        assert getattr(evaluations, unit[:-1]).tolist() == points
        assert evaluations.scores.shape == (len(points), 3)
    for i, at in enumerate(points):
        shorter = rove.train(agent, task, seeds=2, **{unit: at})
        scores = shorter.evaluate(3, policy="mean")
        for seed in range(2):
            np.testing.assert_array_equal(run.evaluations[seed].scores[i], scores[seed])
            assert run.evaluations[seed].step[i] == shorter.outcomes[seed].lane.step
            assert run.evaluations[seed].episode[i] == shorter.outcomes[seed].lane.episode
    assert len({row.tobytes() for x in run.evaluations for row in x.scores}) > 1


@pytest.mark.fast_cases("compiled, episodes", "compiled, steps", "Gymnasium, steps")
def test_evaluations_are_in_the_run_folder(case):
    run, out, agent, task, unit, every, _ = case
    with (out / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    expected = [
        (seed, int(x.episode[i]), int(x.step[i]), 3, scores.mean(), scores.min(), scores.max())
        for seed, x in enumerate(run.evaluations)
        for i, scores in enumerate(x.scores)
    ]
    columns = ("seed", "episode", "step", "episodes", "score", "lowest", "highest")
    told = [tuple(float(row[name]) for name in columns) for row in rows]
    np.testing.assert_allclose(told, expected, rtol=1e-7)
    config = json.loads((out / "config.json").read_text())
    assert (config["eval_every"], config["eval_episodes"]) == (every, 3)
    back = rove.load(out)
    assert back.config.eval_every == every
    for mine, theirs in zip(back.evaluations, run.evaluations, strict=True):
        for column, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(column, other)
    with pytest.raises(RunFolderError, match=f"its eval_every is {every}, not 1"):
        rove.train(agent, task, seeds=2, out=out, eval_every=1, **{unit: case[-1]})


@pytest.mark.fast_cases("compiled, steps", "Gymnasium, episodes")
def test_a_run_that_was_stopped_has_the_same_curve(case, tmp_path, monkeypatch):
    """It is stopped after every checkpoint, of which there is one in each chunk or episode, and
    then extended."""
    _, out, agent, task, unit, every, budget = case
    monkeypatch.setattr(progress, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(progress, "CHUNK_SECONDS", 0.01)
    options = {"seeds": 2, "eval_every": every, "eval_episodes": 3}
    short = configure(agent, task, **options, **{unit: budget - every // 2})
    stops = 0
    for _ in range(40):
        began: dict[int, int] = {}

        def stop(update, began=began):
            first = began.setdefault(update.job.seed, update.step)
            if update.step > first and not update.finished:
                raise KeyboardInterrupt

        try:
            run_all([(short, tmp_path / "a")], stop)
            break
        except KeyboardInterrupt:
            stops += 1
    assert stops > 1
    rove.train(agent, task, out=tmp_path / "b", **options, **{unit: budget - every // 2})
    longer = rove.train(agent, task, out=tmp_path / "b", **options, **{unit: budget})
    assert (tmp_path / "b" / "evaluations.csv").read_bytes() == (
        out / "evaluations.csv"
    ).read_bytes()
    finished = run_all([(short, tmp_path / "a")])[0]
    for mine, theirs in zip(finished.evaluations, longer.evaluations, strict=True):
        count = len(mine.step)
        assert count == (budget - every // 2) // every
        np.testing.assert_array_equal(mine.scores, theirs.scores[:count])


def test_a_checkpoint_whose_evaluations_are_not_its_own_is_refused(case, tmp_path):
    run, out, *_ = case
    job = run.config.jobs(out)[0]
    arrays, metadata = checkpoint.load_arrays(job.path)
    moved = run.config.jobs(tmp_path)[0]
    checkpoint.save_arrays(moved.path, arrays, metadata)
    assert storage.load(moved).evaluations.step.tolist() == run.evaluations[0].step.tolist()
    scores = arrays["evaluations.scores"]
    for bad in (scores[:-1], scores[:, :2], np.full_like(scores, np.nan)):
        checkpoint.save_arrays(moved.path, arrays | {"evaluations.scores": bad}, metadata)
        checkpoint.previous(moved.path).unlink()
        with pytest.raises(RunFolderError, match="its evaluations contradict its episodes"):
            storage.load(moved)
    del arrays["evaluations.step"]
    checkpoint.save_arrays(moved.path, arrays, metadata)
    with pytest.raises(RunFolderError, match=r"evaluations\.step' is missing"):
        storage.load_tables(moved)


@pytest.mark.fast_cases("compiled, steps")
def test_evaluations_that_did_not_ask_the_network_are_extended(case, tmp_path):
    run, out, agent, task, unit, every, budget = case
    for job in run.config.jobs(shutil.copytree(out, tmp_path / "run")):
        arrays, metadata = checkpoint.load_arrays(job.path)
        del arrays["evaluations.network"]  # as of earlier versions
        checkpoint.save_arrays(job.path, arrays, metadata)
    options = {"seeds": 2, "eval_every": every, "eval_episodes": 3, unit: budget + every}
    again = rove.train(agent, task, out=tmp_path / "run", **options)
    for before, after in zip(run.evaluations, again.evaluations, strict=True):
        count = len(before.step)
        np.testing.assert_array_equal(after.scores[:count], before.scores)
        assert np.isnan(after.network[:count]).all()
        assert len(after.step) > count
        assert np.isfinite(after.network[count:]).all()


class Single(Walk):
    """An environment of which no second one takes a step."""

    created, most = 0, np.inf

    def __init__(self):
        Single.created += 1
        self.number = Single.created

    def step(self, action):
        if self.number > Single.most:
            raise RuntimeError("the robot is in use")
        return super().step(action)


def test_the_reason_why_a_policy_cannot_be_played_is_said():
    agent = rove.DQN(**SMALL)
    Single.most = np.inf
    rove.train(agent, Single, episodes=3)
    Single.most, Single.created = Single.created - 1, 0  # all but the one for evaluation
    run = rove.train(agent, Single, episodes=3)
    with pytest.raises(LaneError, match=r"during evaluation: step raised .*robot"):
        _ = run.evaluated
    assert run.policy().name == "mean"  # nothing can be chosen


class Uncopyable(Walk):
    def __deepcopy__(self, memo):
        raise TypeError


def test_evaluations_that_cannot_be_are_refused():
    train = lambda task="chain-4", **options: configure("dqn", task, **options)  # noqa: E731
    for every in (0, -1, 1.5, True, "often"):
        with pytest.raises(ConfigError, match="eval_every must be an integer of at least 1"):
            train(eval_every=every)
    with pytest.raises(ConfigError, match="eval_episodes must be an integer between 1 and 10,000"):
        train(eval_every=5, eval_episodes=0)
    with pytest.raises(ConfigError, match="eval_episodes=5 needs eval_every"):
        train(eval_episodes=5)
    env = Walk()
    for task in (Uncopyable(), lambda: env):
        with pytest.raises(ConfigError, match="a function that returns a new one each time"):
            train(task, eval_every=5)
    assert train(eval_every=np.int64(5)).identity()["eval_episodes"] == 10


def test_a_run_folder_without_what_networks_said_is_read_and_extended(tmp_path):
    """As an earlier version of rove wrote it."""
    options = {"eval_every": 10, "eval_episodes": 2, "out": tmp_path / "r"}
    before = rove.train(rove.DQN(**SMALL), "chain-5", episodes=20, **options)
    (job,) = before.config.jobs(tmp_path / "r")
    arrays, metadata = checkpoint.load_arrays(job.path)
    kept = ("evaluations.network", "kept.")
    arrays = {name: x for name, x in arrays.items() if not name.startswith(kept)}
    checkpoint.save_arrays(job.path, arrays, metadata | {"conclusion": None})
    (old,) = rove.load(tmp_path / "r").evaluations
    np.testing.assert_array_equal(old.scores, before.evaluations[0].scores)
    assert np.isnan(old.network).all()
    after = rove.train(rove.DQN(**SMALL), "chain-5", episodes=40, **options)
    for run in (after, rove.load(tmp_path / "r")):
        (new,) = run.evaluations
        assert np.isnan(new.network[:2]).all()
        assert np.isfinite(new.network[2:]).all()
        assert len(new.network) == 4


def test_a_network_that_is_not_finite_when_it_is_evaluated_diverges():
    """The update before the evaluation made it so: what was known before is kept."""
    agent = rove.DQN(**SMALL | {"learning_starts": 20, "lr": 1e30, "hidden": (8, 6)})
    with pytest.raises(rove.errors.LaneError, match="the loss was not a finite number at step"):
        rove.train(agent, "chain-6", seeds=2, steps=60, eval_every=1, eval_episodes=1)
    table = evaluating._with_row(np.ones((1, len(FIELDS) + 2)), [])
    assert np.isnan(table[1]).all()
    np.testing.assert_array_equal(table[0], 1.0)
