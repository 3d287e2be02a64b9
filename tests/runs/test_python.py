"""What a user of the Python interface meets first: folders, warnings, comparisons and advice."""

import json
import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest

import rove
from helpers import SMALL, some_quick
from rove.cli.main import main
from rove.environments.base import Step
from rove.errors import ConfigError, RoveError, RunFolderError
from rove.runs.recorded import RecordedTask

FLAGS = ("--agent.hidden=8", "--agent.learning-starts=8", "--agent.buffer-size=64")
FLAGS = (*FLAGS, "--agent.batch-size=8")
MODULE = """
import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"]}

    def __init__(self, length=4, render_mode=None):
        self.length, self.render_mode = length, render_mode
        self.observation_space = gymnasium.spaces.Discrete(length)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = 0, 0
        return 0, {}

    def step(self, action):
        self.at, self.time = max(self.at + 2 * int(action) - 1, 0), self.time + 1
        done = self.at == self.length - 1
        return self.at, float(done), done, self.time == 20, {}


if "Corridor-v0" not in gymnasium.registry:
    gymnasium.register("Corridor-v0", entry_point="corridor:Corridor")
"""


@pytest.fixture
def corridor(tmp_path, monkeypatch):
    """A module that registers an environment, which is forgotten afterwards."""
    (tmp_path / "corridor.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    import corridor

    yield corridor
    sys.modules.pop("corridor", None)
    gymnasium.registry.pop("Corridor-v0", None)


def train(environment, out=None, agent="dqn", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rove.RoveWarning)
        options = {"seeds": 2, "episodes": 6} | SMALL | options
        return rove.train(agent, environment, out=out, **options)


def names(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_a_run_from_python_has_the_files_of_the_command(tmp_path, capsys, pictures):
    train("chain-4", tmp_path / "python")
    command = ["train", "dqn", "chain-4", "--seeds", "2", "--episodes", "6", *FLAGS, "--quiet"]
    main([*command, "--on", "threads", "--out", str(tmp_path / "command")])
    assert names(tmp_path / "python") == names(tmp_path / "command")
    for name in ("diagnostics.json", "episodes.csv"):
        ours, theirs = ((tmp_path / x / name).read_text() for x in ("python", "command"))
        assert ours == theirs


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch, pictures):
    monkeypatch.chdir(tmp_path)
    train("chain-4")
    assert list(tmp_path.iterdir()) == []


def test_alarms_are_warned_of_once(tmp_path):
    with pytest.warns(rove.RoveWarning) as caught:
        run = rove.train("dqn", "chain-4", seeds=1, episodes=25, learning_starts=10_000)
    (warning,) = caught
    assert warning.filename == __file__
    assert run.alarms
    for alarm in run.alarms:
        assert alarm in str(warning.message)
    assert any("nothing was learned" in alarm for alarm in run.alarms)


def test_a_warning_names_seeds_with_the_same_alarm_together():
    """Untrained networks, of which three never reach the far end."""
    settings = SMALL | {"epsilon": 0.0, "learning_starts": 10_000}
    with pytest.warns(rove.RoveWarning) as caught:
        run = rove.train("dqn", "chain-4", seeds=6, episodes=20, **settings)
    low = np.flatnonzero(run.scores[:, 0] < 1.0)
    assert len(low) == 3
    least, most = run.scores[low, 0].min(), run.scores[low, 0].max()
    words = "seeds {}, {} and {}: all 20 episodes scored ".format(*low)
    assert f"{words}{least:.3g} to {most:.3g}: nothing better" in str(caught[0].message)


def test_a_run_without_alarms_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error", rove.RoveWarning)
        run = rove.train("dqn", "chain-4", seeds=1, episodes=15, **SMALL | {"epsilon": 1.0})
    assert run.alarms == []


def test_the_difference_of_solved_seeds_is_fishers():
    fisher_exact = pytest.importorskip("scipy.stats").fisher_exact
    always = train("chain-3", seeds=6, episodes=60, agent="dqn", epsilon=0.0, epsilon_steps=100)
    never = train("chain-3", seeds=5, episodes=9)
    solved = sum(at is not None for at in always.solved_at)
    assert solved > 1  # an episode less than ten cannot be solved
    test = rove.difference(always, never, of="solved")
    assert test.value == solved / 6
    assert test.low <= test.value <= test.high
    sides = [
        fisher_exact([[solved, 6 - solved], [0, 5]], alternative=side).pvalue
        for side in ("less", "greater")
    ]
    np.testing.assert_allclose(test.p, min(1.0, 2 * min(sides)))
    assert rove.difference(never, always, of="solved").value == -test.value
    assert str(test).startswith(f"fraction of solved seeds, DQN − DQN on chain-3: {test.value:.3g}")
    assert repr(test) == f"<Comparison: {test}>"
    # Nothing is known about the run of nine episodes after them, before which nothing is solved.
    assert rove.difference(always, never, of="episodes").p == 1.0
    evaluated = rove.difference(always, never, of="evaluated")
    means = [np.mean([np.mean(scores) for scores in run.evaluated]) for run in (always, never)]
    assert evaluated.value == pytest.approx(means[0] - means[1])


@pytest.mark.slow
def test_a_difference_that_cannot_be_told_is_refused():
    run = train("gym/CartPole-v1", seeds=1, episodes=2)
    with pytest.raises(ConfigError, match=r"State it with rove\.adopt\(…, optimum=…\)"):
        rove.difference(run, run, of="solved")
    with pytest.raises(ConfigError, match="of must be one of score, solved, episodes"):
        rove.difference(run, run, of="returns")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="other must be a run"):
        rove.difference(run, "runs/a")  # type: ignore[arg-type]
    sparse = train(rove.make("gym/CartPole-v1", sparse=10.0), seeds=1, episodes=2)
    with pytest.raises(ConfigError, match=r"a run on gym/CartPole-v1 with the same sparse"):
        rove.difference(run, sparse)
    narrow = train(rove.make("gym/CartPole-v1", score_range=(0.0, 1.0)), seeds=1, episodes=2)
    assert rove.difference(narrow, narrow).p == 1.0  # as without a range
    none = train("gym/CartPole-v1", seeds=1, episodes=None, steps=3)
    for compare in (lambda: rove.difference(run, none), lambda: rove.compare([run, none])):
        with pytest.raises(ConfigError, match="in which every seed has finished an episode"):
            compare()


def test_a_missing_checkpoint_is_mentioned(tmp_path):
    run = train("chain-3", seeds=3, episodes=2, out=tmp_path / "run")
    assert len(run.seeds) == 3
    (tmp_path / "run" / "lanes" / "seed-1.safetensors").unlink()
    with pytest.warns(rove.RoveWarning, match="has no checkpoint of seed 1"):
        assert rove.load(tmp_path / "run").seeds == (0, 2)


def test_a_task_has_one_name(corridor):
    by_id, made = rove.make("Corridor-v0"), rove.adopt(gymnasium.make("Corridor-v0"))
    with_package = rove.make("gym/corridor:Corridor-v0")
    function = rove.adopt(lambda: gymnasium.make("Corridor-v0", render_mode="rgb_array"))
    for task in (by_id, made, with_package, function):
        assert task.name == "gym/Corridor-v0"
        assert rove.environments.options(task) == rove.environments.options(by_id)
    longer = rove.adopt(gymnasium.make("Corridor-v0", length=7))
    assert longer.name == "gym/Corridor-v0"
    assert rove.environments.options(longer) == rove.environments.options(
        rove.make("Corridor-v0", length=7)
    )
    limited = gymnasium.make("Corridor-v0", max_episode_steps=5)
    wrapped = rove.SparseReward(gymnasium.make("Corridor-v0"))
    for other in (limited, wrapped, gymnasium.make("Corridor-v0").unwrapped):
        assert rove.adopt(other).name == "Corridor-v0"
    assert rove.adopt(corridor.Corridor()).name == "Corridor"


@pytest.mark.slow
def test_runs_of_one_task_extend_each_other(corridor, tmp_path, capsys):
    once = train("Corridor-v0", episodes=12)
    train(gymnasium.make("Corridor-v0"), tmp_path / "run", episodes=6)
    train("Corridor-v0", tmp_path / "run", episodes=9)
    command = ["train", "dqn", "gym/corridor:Corridor-v0", "--seeds", "2", *FLAGS, "--quiet"]
    main([*command, "--on", "threads", "--episodes", "12", "--out", str(tmp_path / "run")])
    np.testing.assert_array_equal(rove.load(tmp_path / "run").returns, once.returns)
    with pytest.raises(RunFolderError, match="a different run"):
        train(gymnasium.make("Corridor-v0", length=7), tmp_path / "run", episodes=15)


@pytest.mark.slow
def test_runs_of_one_task_are_grouped(corridor, tmp_path):
    runs = [train(gymnasium.make("Corridor-v0"), tmp_path / "runs" / "a"), train("Corridor-v0")]
    runs[1].save(tmp_path / "runs" / "b")
    assert len(rove.compare(runs).axes) == 1
    page = rove.report(tmp_path / "runs", tmp_path / "r.html").read_text()
    assert page.count('"task": "gym/Corridor-v0"') + page.count('"task":"gym/Corridor-v0"') == 1


@pytest.mark.slow
def test_the_report_repeats_the_package(corridor, tmp_path):
    train("gym/corridor:Corridor-v0", tmp_path / "run")
    page = rove.report(tmp_path / "run", tmp_path / "r.html").read_text()
    assert "rove train dqn gym/corridor:Corridor-v0" in page


@pytest.mark.slow
@pytest.mark.parametrize("kind", some_quick(["object", "id", "package", "sparse"], ["package"]))
def test_results_are_loaded_without_the_environment(corridor, tmp_path, kind):
    environment = {
        "object": corridor.Corridor(),
        "id": "Corridor-v0",
        "package": "gym/corridor:Corridor-v0",
        "sparse": rove.adopt(corridor.Corridor, sparse=1.0),
    }[kind]
    run = train(environment, tmp_path / "run")
    program = f"""
import sys, json, rove
run = rove.load({str(tmp_path / "run")!r})
run.plot("a.png"), run.plot_diagnostics("b.png"), rove.compare([run, run], "c.png")
rove.report(run)
told = []
for action in (run.evaluate, run.policy, lambda: run.save("copy"), lambda: rove.watch(run)):
    try:
        action()
    except rove.RunFolderError as error:
        told.append(str(error))
assert "corridor" not in sys.modules
print(json.dumps([run.scores.tolist(), run.visits.tolist(), run.alarms, run.solved_at, told]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    scores, visits, alarms, solved_at, told = json.loads(done.stdout)
    np.testing.assert_array_equal(scores, run.scores)
    np.testing.assert_array_equal(visits, run.visits)
    assert (alarms, solved_at) == (run.alarms, run.solved_at)
    assert len(told) == 4
    for message in told:
        assert "rove.load(folder, " in message
    assert not (tmp_path / "copy").exists()
    passed = rove.load(tmp_path / "run", environment=environment)
    np.testing.assert_array_equal(passed.evaluate(), run.evaluate())


def test_a_package_that_is_imported_already_needs_no_trust(corridor, tmp_path):
    run = train("gym/corridor:Corridor-v0", tmp_path / "run")
    np.testing.assert_array_equal(rove.load(tmp_path / "run").evaluate(), run.evaluate())
    del sys.modules["corridor"]
    assert isinstance(rove.load(tmp_path / "run").config.environment, RecordedTask)


class Doubled(rove.Chain):
    """A custom compiled environment with a score of its own."""

    @property
    def name(self):
        return "doubled-chain"

    def score(self, returns, length, terminated):
        return 2 * returns

    def step(self, state, action, key) -> Step:
        return super().step(state, action, key)


def test_scores_of_a_custom_environment_are_loaded(tmp_path):
    run = train(Doubled(4), tmp_path / "run")
    loaded = rove.load(tmp_path / "run")
    assert isinstance(loaded.config.environment, RecordedTask)
    np.testing.assert_array_equal(loaded.scores, run.scores)
    np.testing.assert_array_equal(loaded.scores, 2 * run.returns)
    (tmp_path / "run" / "episodes.csv").write_text("return,length,terminated,score\n")
    with pytest.raises(RunFolderError, match="pass the environment"):
        _ = rove.load(tmp_path / "run").scores
    np.testing.assert_array_equal(rove.load(tmp_path / "run").returns, run.returns)


@pytest.mark.parametrize(
    ("owner", "name", "advice"),
    [
        (rove, "list", "rove.AGENTS"),
        (rove, "eval", "run.evaluate"),
        (rove, "resume", "out=FOLDER"),
        (rove.DQN(), "learn", "rove.train"),
    ],
)
def test_names_of_other_libraries_get_advice(owner, name, advice):
    with pytest.raises(AttributeError, match=advice):
        getattr(owner, name)
    assert not hasattr(owner, "no_such_name")


def test_a_run_advises_and_still_tells_its_own_errors():
    run = train("chain-4", seeds=1, episodes=2)
    with pytest.raises(AttributeError, match=r"run\.policy"):
        run.predict  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'retruns'"):
        run.retruns  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"optimum": 500.0}, r"rove\.make\('CartPole-v1', optimum=500\.0\)"),
        ({"optimum": 500.0, "environment": "made"}, r"rove\.adopt\(env, optimum=500\.0\)"),
        ({"environment": "FrozenLake-v1", "is_slippery": False}, r"rove\.make\('FrozenLake-v1'"),
        ({"environment": rove.Chain(5), "permuted": True}, r"rove\.Chain\(…, permuted=True\)"),
        ({"env_kwargs": {}}, r"rove\.make"),
        ({"n_envs": 4}, "seeds=N"),
        ({"callback": print}, "'report'"),
        ({"net_arch": (64,)}, "'hidden'"),
        ({"environment": "dqn", "agent": "chain-5"}, "agent comes first"),
        ({"agent": rove.DQN}, r"rove\.DQN\(\)"),
        ({"agent": "DQN"}, "'dqn'"),
        ({"environment": rove.Chain}, "an instance"),
    ],
)
def test_arguments_of_other_libraries_get_advice(arguments, advice):
    arguments = {"agent": "dqn", "environment": "CartPole-v1"} | arguments
    if arguments["environment"] == "made":
        arguments["environment"] = gymnasium.make("CartPole-v1")
    with pytest.raises(RoveError, match=advice):
        rove.train(**arguments)


def test_settings_have_names():
    with pytest.raises(ConfigError, match=r"rove\.DQN\(lr=0\.001\)"):
        rove.DQN("MlpPolicy", "CartPole-v1")


@pytest.mark.slow
def test_workers_create_the_environment_that_the_user_gave(corridor, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    train("Corridor-v0", tmp_path / "run", episodes=6)  # whose package is not recorded
    train("Corridor-v0", tmp_path / "once", episodes=8)
    for seed in (0, 1):
        (tmp_path / "run" / "lanes" / f"seed-{seed}.safetensors").unlink()
    again = train("gym/corridor:Corridor-v0", tmp_path / "run", episodes=6, on="processes")
    once = rove.load(tmp_path / "once")
    np.testing.assert_array_equal(again.returns, once.returns[:, :6])
    with_package = train("gym/corridor:Corridor-v0", episodes=8, on="processes")
    np.testing.assert_array_equal(with_package.returns, once.returns)


def test_a_run_loaded_with_another_environment_names_the_difference(tmp_path):
    train("chain-5", tmp_path / "run", episodes=2)
    assert rove.load(tmp_path / "run", environment="chain-5").seeds == (0, 1)
    with pytest.raises(rove.RunFolderError, match='its environment is "chain-5", not "chain-6"'):
        rove.load(tmp_path / "run", environment="chain-6")
