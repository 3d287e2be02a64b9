"""Run folders that are hostile, damaged or deleted."""

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import rove
from helpers import SMALL
from rove import report
from rove.errors import RoveWarning, RunFolderError
from rove.runs import execution
from rove.runs.configure import configure
from rove.runs.folder import read_config
from rove.runs.recorded import check_created
from rove.training import checkpoint


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    rove.train("dqn", "chain-4", seeds=1, episodes=12, out=folder, **SMALL)
    return folder


@pytest.fixture
def folder(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


def seed_file(folder):
    return folder / "lanes" / "seed-0.safetensors"


def change_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("name", ["gym/evil_package:Thing-v0", "evil_package:Thing-v0"])
def test_a_package_that_a_folder_names_is_imported_only_on_trust(
    folder, name, tmp_path, monkeypatch
):
    (tmp_path / "evil_package.py").write_text("open('executed', 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "evil_package", raising=False)
    monkeypatch.chdir(tmp_path)
    facts = json.loads((folder / "config.json").read_text())["task"]
    plain = {"name": "gym/Thing-v0", "options": {}}
    package = {"name": name, "options": {}}
    nested = {"name": "sparse-cartpole", "options": {"environment": package}}
    disguises = (package, facts), (nested, facts), (plain, facts | {"package": "evil_package"})
    seed_file(folder).unlink()  # it belongs to another environment
    for environment, task in disguises:
        change_config(folder, environment=environment, task=task)
        run = rove.load(folder)
        assert run.seeds == ()
        with pytest.raises(RunFolderError, match=r"package evil_package.*trust=True"):
            check_created(run.config.environment)
        with pytest.raises(RunFolderError, match="package evil_package"):
            read_config(folder)
        report([folder], tmp_path / "report.html")
        assert not (tmp_path / "executed").exists()
    for environment, task in (disguises[0], disguises[2]):
        change_config(folder, environment=environment, task=task)
        monkeypatch.delitem(sys.modules, "evil_package", raising=False)
        with pytest.raises(RunFolderError, match="not registered"):
            read_config(folder, trust=True)
        assert (tmp_path / "executed").exists()
        (tmp_path / "executed").unlink()


@pytest.mark.parametrize(
    "task", [[], {"package": ["os"]}, {"observation_size": -1}, {"num_actions": "2"}, {"given": 1}]
)
def test_wrong_facts_about_an_environment_are_refused(folder, task):
    change_config(folder, task=task or [1])
    with pytest.raises(RunFolderError, match="task must be"):
        rove.load(folder)


@pytest.mark.parametrize("wrong", ["x", None, [], 3])
@pytest.mark.parametrize("part", ["agent", "environment", "options"])
def test_a_part_that_is_no_dict_is_refused(part, wrong, folder):
    named = {"name": "chain-4", "options": wrong}
    change_config(folder, **({"environment": named} if part == "options" else {part: wrong}))
    with pytest.raises(RunFolderError, match=f"config.json is invalid: {part} must be a dict, got"):
        rove.load(folder)


@pytest.mark.parametrize("copies", [0, 1.5, "x", None, [], 10**30])
def test_a_wrong_number_of_copies_is_refused(copies, folder, tmp_path):
    environment = {"name": "gym/CartPole-v1", "options": {"copies": copies}}
    change_config(folder, environment=environment, task={"given": True, "observation_size": 4})
    for read in (rove.load, lambda path: report([path], tmp_path / "report.html")):
        with pytest.raises(RunFolderError, match=r"config.json is .*: copies must be an integer"):
            read(folder)


@pytest.mark.slow
def test_workers_do_not_import_from_the_current_folder(tmp_path):
    for module in ("signal", "queue", "colorsys"):
        (tmp_path / f"{module}.py").write_text("open('executed', 'w').close()")
    script = tmp_path / "bin" / "rove.py"  # which does not import from the current folder itself
    script.parent.mkdir()
    script.write_text("import sys; sys.path.pop(0); from rove.cli.main import main; main()")
    command = [sys.executable, script, "train", "dqn", "chain-4", "--seeds", "2"]
    subprocess.run([*command, "--episodes", "2", "--quiet"], cwd=tmp_path, check=True)
    assert not (tmp_path / "executed").exists()
    assert (tmp_path / "runs" / "dqn-chain-4" / "episodes.csv").exists()


@pytest.mark.slow
def test_an_optimum_can_be_stated_later(tmp_path):
    from gymnasium.envs.toy_text import FrozenLakeEnv

    def train(**options):
        task = rove.adopt(lambda: FrozenLakeEnv(is_slippery=False), time_limit=9, **options)
        return rove.train(rove.DQN(**SMALL), task, episodes=5, seeds=1, out=tmp_path / "run")

    before = train()
    after = train(optimum=1.0)
    np.testing.assert_array_equal(before.returns, after.returns)
    assert (before.config.environment.optimum, after.config.environment.optimum) == (None, 1.0)
    stated = json.loads((tmp_path / "run" / "config.json").read_text())
    assert stated["optimum"] == 1.0
    assert stated["extended_from"] == []


@pytest.mark.parametrize("name", ["config.json", "episodes.csv", "learning-curve.png", "watch.gif"])
def test_links_are_replaced_and_not_followed(name, folder, tmp_path, request):
    if name == "learning-curve.png":
        request.getfixturevalue("pictures")
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"years of work")
    for link in (folder / name, folder / f"{name}.partial"):
        link.unlink(missing_ok=True)
        if name != "config.json" or link.suffix == ".partial":
            link.symlink_to(theirs)
    if name == "config.json":
        shutil.rmtree(folder / "lanes")
        for written in ("episodes.csv", "diagnostics.json"):
            (folder / written).unlink()
    run = rove.train("dqn", "chain-4", seeds=1, episodes=12, out=folder, **SMALL)
    run.draw(folder)
    from rove.reporting.video import watch

    watch(run)
    assert theirs.read_bytes() == b"years of work"
    assert not (folder / name).is_symlink()


def test_a_folder_of_checkpoints_that_leads_elsewhere_is_refused(folder, tmp_path):
    shutil.move(folder / "lanes", tmp_path / "elsewhere")
    (folder / "lanes").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunFolderError, match="is a symbolic link"):
        rove.train("dqn", "chain-4", seeds=1, episodes=20, out=folder, **SMALL)


def flipped(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def test_every_flipped_bit_is_noticed(folder):
    path = seed_file(folder)
    shutil.rmtree(path.parent / "previous", ignore_errors=True)
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    generator = np.random.default_rng(0)
    for at in (0, 8, header // 2, header, *generator.integers(header, len(whole), 40)):
        flipped(path, at)
        with pytest.raises(RunFolderError):
            rove.load(folder)
        path.write_bytes(whole)
    rove.load(folder)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda arrays, about: about.update(step=-1), "number of steps"),
        (lambda arrays, about: about.update(diverged=0), "whether it diverged"),
        (lambda arrays, about: about.update(episode=True), "number of episodes"),
        (lambda arrays, about: arrays[".agent.replay.added"].fill(-3), "contradict"),
        (lambda arrays, about: arrays[".agent.replay.added"].fill(10**6), "contradict"),
        (lambda arrays, about: arrays["episodes.returns"].fill(np.nan), "contradict"),
        (lambda arrays, about: arrays["episodes.length"].fill(-1), "contradict"),
        (lambda arrays, about: arrays["episodes.step"].__setitem__(0, 0), "contradict"),
    ],
)
def test_numbers_out_of_range_are_refused_though_the_checksum_is_right(folder, change, words):
    arrays, about = checkpoint.load_arrays(seed_file(folder))
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays, about)
    shutil.rmtree(folder / "lanes")
    checkpoint.save_arrays(seed_file(folder), arrays, about)
    with pytest.raises(RunFolderError, match=words):
        rove.load(folder)


def test_the_previous_checkpoint_replaces_a_damaged_one(tmp_path):
    folder = tmp_path / "run"
    for episodes in (12, 20):
        rove.train("dqn", "chain-4", seeds=1, episodes=episodes, out=folder, **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        whole = rove.load(folder).returns
    flipped(seed_file(folder), -1)
    with pytest.warns(RoveWarning, match=r"is damaged; the previous checkpoint is used"):
        np.testing.assert_array_equal(rove.load(folder).returns, whole[:, :12])
    with pytest.warns(RoveWarning):
        again = rove.train("dqn", "chain-4", seeds=1, episodes=20, out=folder, **SMALL)
    np.testing.assert_array_equal(again.returns, whole)


def test_a_checkpoint_without_a_checksum_is_refused(folder):
    path = seed_file(folder)
    shutil.rmtree(path.parent / "previous", ignore_errors=True)
    _, about = checkpoint.load_arrays(path)
    save_file(load_file(path), path, metadata={"rove": json.dumps(about)})
    with pytest.raises(RunFolderError, match="checksum"):
        rove.load(folder)


@pytest.mark.parametrize("file", ["config.json", "episodes.csv", "lanes/seed-0.safetensors"])
@pytest.mark.parametrize("kind", ["pipe", "device", "huge"])
def test_what_is_not_a_regular_file_is_refused_at_once(folder, file, kind, tmp_path):
    shutil.rmtree(folder / "lanes" / "previous", ignore_errors=True)
    path = folder / file
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as sparse:
            sparse.truncate(2**40)
    previous = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it hangs"))
    signal.alarm(60)  # far longer than needed, also on a busy machine
    try:
        if file != "episodes.csv":
            with pytest.raises(RunFolderError, match=r"regular file|bytes|checkpoint"):
                rove.load(folder)
        with pytest.raises(RunFolderError, match=r"regular file|bytes|checkpoint"):
            report([folder], tmp_path / "report.html")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def test_a_folder_that_is_deleted_while_it_trains_is_noticed(tmp_path):
    config = configure(rove.DQN(**SMALL), "chain-4", seeds=2, episodes=30)
    path, deleted = tmp_path / "run", []

    def delete(progress):
        if progress.finished and not deleted:
            deleted.append(progress.job.seed)
            shutil.rmtree(path)

    (run,) = execution.run_all([(config, path)], delete, workers=1)
    assert [f"seed {deleted[0]}" in str(e) for e in run.errors] == [True]
    assert "was deleted while the run trained" in str(run.errors[0])
    assert json.loads((path / "config.json").read_text())["seeds"] == [0, 1]
    (again,) = execution.run_all([(config, path)])
    assert not again.errors
    assert again.returns.shape == (2, 30)


def test_a_refused_folder_leaves_no_empty_folders(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError):
        rove.train("dqn", "chain-4", episodes=2, out=tmp_path / "file" / "a" / "b", **SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("out", ["", "a\0b"])
def test_paths_that_are_none_are_refused(out):
    with pytest.raises(rove.ConfigError, match="out must be the path of a folder"):
        rove.train("dqn", "chain-4", episodes=2, out=out)


@pytest.mark.parametrize("seeds", [[], [-1], ["0"], [True], {"a": 1}, [2**40]])
def test_seeds_of_a_config_are_checked(folder, seeds):
    change_config(folder, seeds=seeds)
    with pytest.raises(RunFolderError, match="seeds"):
        rove.load(folder)


LOST = """
import os, signal
import gymnasium
import numpy as np

class Swallows(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}
    def step(self, action):
        self.steps += 1
        if self.steps == 50:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:
                pass
        return np.zeros(2, np.float32), 0.0, self.steps % 10 == 0, False, {}

gymnasium.register("Swallows-v0", entry_point=Swallows)
"""


@pytest.mark.slow
def test_an_interrupt_that_a_callback_swallows_is_not_lost(tmp_path):
    (tmp_path / "swallowing.py").write_text(LOST)
    command = [sys.executable, "-m", "rove", "train", "dqn", "gym/swallowing:Swallows-v0"]
    command += ["--steps", "1000000", "--agent.hidden", "4"]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        command, cwd=tmp_path, env=env, timeout=120, capture_output=True, text=True
    )
    assert ended.returncode == 130
    assert "repeat the command" in ended.stderr


def test_a_report_that_is_no_function_is_refused_before_anything_is_written(tmp_path):
    for call in (rove.train, rove.sweep):
        fields = [{"lr": [1e-3, 1e-4]}] if call is rove.sweep else []
        with pytest.raises(rove.ConfigError, match="report must be a function, got None"):
            call("dqn", "chain-4", *fields, episodes=2, report=None, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_resuming_a_folder_imports_only_what_the_user_named(tmp_path):
    (tmp_path / "evil_package.py").write_text("open('executed', 'w').close()")
    flags = ["--agent.hidden=4", "--agent.learning-starts=8", "--agent.buffer-size=64"]
    command = [sys.executable, "-m", "rove", "train", "dqn", "chain-4", "--seeds", "2", *flags]
    command += ["--episodes", "3", "--on", "processes", "--workers", "2", "--quiet"]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = os.environ | {"PYTHONPATH": path}
    folder = tmp_path / "run"
    subprocess.run([*command, "--out", folder], cwd=tmp_path, check=True, env=variables)
    facts = json.loads((folder / "config.json").read_text())["task"]
    change_config(folder, task=facts | {"package": "evil_package"})
    shutil.rmtree(folder / "lanes")
    subprocess.run([*command, "--out", folder], cwd=tmp_path, check=True, env=variables)
    assert len(list((folder / "lanes").glob("*.safetensors"))) == 2
    assert not (tmp_path / "executed").exists()
