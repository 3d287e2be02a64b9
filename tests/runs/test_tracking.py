"""What trackers are given is what episodes.csv says, once, however a run was stopped."""

import csv
import dataclasses
import json
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

import killing
import rove
from helpers import SMALL
from rove.cli import main as cli
from rove.errors import ConfigError, RunFolderError
from rove.runs import tracking
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.runs.tracking import trackio
from rove.runs.tracking.points import Logger, rollout
from rove.training import progress
from rove.training.outcomes import Episodes, Tables

AGENT = rove.GE(**SMALL)
LANE = "ge-chain-5-seed-{}"
KEYS = {"rollout/ep_rew_mean", "rollout/ep_len_mean", "train/loss", "time/fps"}
KEYS |= {"explore/spread", "explore/return_spread", "explore/coverage"}
Curves = dict[str, list[tuple[int, float]]]


class Memory(tracking.Tracker):
    """Keeps what it is given."""

    command = "{root}"

    def __init__(self) -> None:
        self.curves: dict[str, Curves] = {}
        self.settings: dict[str, dict] = {}

    def begin(self, lane):
        self.settings[lane.name] = lane.settings
        curves = self.curves.setdefault(lane.name, defaultdict(list))
        return {key: points[-1][0] for key, points in curves.items()}

    def write(self, lane, points):
        for step, values in points:
            for key, value in values.items():
                self.curves[lane.name][key].append((step, value))


class Broken(Memory):
    """Fails, in one of its two ways."""

    def __init__(self, at: str, error: Exception) -> None:
        super().__init__()
        self.at, self.error, self.calls = at, error, 0

    def begin(self, lane):
        return self.failed("begin") or super().begin(lane)

    def write(self, lane, points):
        self.failed("write")

    def failed(self, at: str) -> None:
        if at == self.at:
            self.calls += 1
            raise self.error


def in_tensorboard(out: Path) -> dict[str, Curves]:
    """Every lane, by TensorBoard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found: dict[str, Curves] = {}
    for folder in sorted((out / "tensorboard").iterdir()):
        read = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
        scalars = {tag: read.Scalars(tag) for tag in read.Tags()["scalars"]}
        found[folder.name] = {k: [(e.step, e.value) for e in v] for k, v in scalars.items()}
    return found


def in_trackio(out: Path, what: str = "get_logs") -> dict:
    """Every run of the one project, by Trackio's own storage."""
    script = f"""
import json
from trackio.sqlite_storage import SQLiteStorage as s
[project] = s.get_projects()
print(json.dumps({{run: s.{what}(project, run) for run in s.get_runs(project)}}))
"""
    environment = os.environ | {"TRACKIO_DIR": str(out / "trackio")}
    command = [sys.executable, "-c", script]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout
    found = json.loads(said)
    if what != "get_logs":
        return found
    for run, rows in found.items():
        found[run] = defaultdict(list)
        for row in rows:
            for key in row.keys() - {"step", "timestamp"}:
                found[run][key].append((row["step"], row[key]))
    return found


READERS = {"tensorboard": in_tensorboard, "trackio": in_trackio}
both = pytest.mark.parametrize(
    "log", ["tensorboard", pytest.param("trackio", marks=pytest.mark.slow)]
)


def expected(out: Path, seed: int) -> Curves:
    """The curves of a lane of fewer than 512 episodes, from episodes.csv."""
    with (out / "episodes.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if int(row["seed"]) == seed]
    curves = defaultdict(list)
    for i, row in enumerate(rows):
        last = rows[max(0, i - 99) : i + 1]
        for key, column in (("rew", "return"), ("len", "length")):
            mean = math.fsum(float(r[column]) for r in last) / len(last)
            curves[f"rollout/ep_{key}_mean"].append((int(row["step"]), mean))
        for column in ("spread", "return_spread", "coverage"):
            curves[f"explore/{column}"].append((int(row["step"]), float(row[column])))
    return curves


def check(curves: Curves, out: Path, seed: int) -> None:
    """The curves are those of episodes.csv, and no step is there twice."""
    assert curves.keys() == KEYS
    for key, points in expected(out, seed).items():
        assert [step for step, _ in curves[key]] == [step for step, _ in points]
        found, told = ([value for _, value in each] for each in (curves[key], points))
        np.testing.assert_allclose(found, told, rtol=1e-3 if "spread" in key else 1e-6)
    for key in ("train/loss", "time/fps"):
        steps = [step for step, _ in curves[key]]
        assert steps == sorted(set(steps)), key
        assert all(math.isfinite(value) for _, value in curves[key])


def config(seeds=2, episodes=130, **changes):
    return configure(AGENT, "chain-5", seeds=seeds, episodes=episodes, **changes)


@pytest.mark.parametrize("on", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_the_curves_are_those_of_the_episodes_and_change_nothing(tmp_path, on):
    memory = Memory()
    run_all([(config(), tmp_path / "a")], on=on, tracker=memory)
    run_all([(config(), tmp_path / "b")])
    for seed in (0, 1):
        check(memory.curves[LANE.format(seed)], tmp_path / "a", seed)
        settings = memory.settings[LANE.format(seed)]
        assert (settings["agent"], settings["environment"]) == ("ge", "chain-5")
        assert (settings["seed"], settings["agent.rho"]) == (seed, AGENT.rho)
        assert (settings["env.n"], "episodes" in settings) == (5, False)
        assert min(step for step, _ in memory.curves[LANE.format(seed)]["train/loss"]) >= 8
    a, b = ((tmp_path / x / "episodes.csv").read_bytes() for x in "ab")
    assert a == b


@pytest.mark.parametrize(
    ("on", "at", "error"),
    [
        ("threads", "begin", OSError("no\nspace")),
        ("threads", "write", RunFolderError("no space")),
        pytest.param("processes", "write", RunFolderError("no space"), marks=pytest.mark.slow),
    ],
)
def test_a_tracker_that_fails_costs_a_warning_and_nothing_else(tmp_path, capsys, on, at, error):
    broken, plan = Broken(at, error), [(config(episodes=40), tmp_path / x) for x in "ab"]
    runs = run_all(plan, on=on, tracker=broken)
    told = capsys.readouterr().err
    assert told.startswith("warning: ")
    assert told.count("\n") == 1
    assert "Training continues without Broken" in told
    assert broken.calls <= 2  # one a thread
    assert not any(run.errors for run in runs)
    run_all([(config(episodes=40), tmp_path / "c")])
    a, b, c = ((tmp_path / x / "episodes.csv").read_bytes() for x in "abc")
    assert a == b == c
    memory = Memory()
    run_all(plan[:1], tracker=memory)
    for seed in (0, 1):
        for key, points in expected(tmp_path / "a", seed).items():
            steps = [step for step, _ in memory.curves[LANE.format(seed)][key]]
            assert steps == [step for step, _ in points]


def test_evaluations_during_training_are_tracked_once(tmp_path):
    """Also those of a run that is extended, and those that a tracker has missed."""
    memory, late = Memory(), Memory()
    for episodes in (5, 12):
        it = configure(AGENT, "chain-5", episodes=episodes, eval_every=2, eval_episodes=1)
        it = dataclasses.replace(it, extendable=True)
        (run,) = run_all([(it, tmp_path)], tracker=memory)
    run_all([(it, tmp_path)], tracker=late)
    (evaluations,) = run.evaluations
    points = list(zip(evaluations.step.tolist(), evaluations.mean.tolist(), strict=True))
    assert len(points) == 6
    for tracker in (memory, late):
        assert tracker.curves[LANE.format(0)]["eval/mean_score"] == points
        settings = tracker.settings[LANE.format(0)]
        assert (settings["eval_every"], settings["eval_episodes"]) == (2, 1)
        assert "stop_at" not in settings


@pytest.mark.slow
def test_a_lane_on_the_host_is_tracked(tmp_path):
    memory, it = Memory(), configure(AGENT, "gym/CartPole-v1", episodes=8)
    run_all([(it, tmp_path)], tracker=memory)
    curves = memory.curves["ge-gym-CartPole-v1-seed-0"]
    steps = [step for step, _ in expected(tmp_path, 0)["rollout/ep_len_mean"]]
    assert [step for step, _ in curves["rollout/ep_len_mean"]] == steps
    assert curves["train/loss"][-1][0] == steps[-1]
    assert "explore/coverage" not in curves


def test_a_composed_agents_parts_are_among_the_settings(tmp_path):
    agent = rove.Agent(rove.Gaussian(sigma=1e-2), rove.MeanField(rho=-3.0))
    told = tracking.points.settings(configure(agent, "chain-5", steps=5), 3)
    rho = [value for key, value in told.items() if key.endswith(".rho")]
    assert (told["seed"], told["until_solved"], rho) == (3, False, [-3.0])


def episodes(count: int) -> Episodes:
    rng, n = np.random.default_rng(0), np.arange(1, count + 1)
    returns, spread = rng.normal(size=(2, count)).astype(np.float32)
    return Episodes(returns, n % 7 + 1, np.cumsum(n % 7 + 1), n > 0, spread, spread, n)


def test_long_curves_are_thinned_the_same_way_however_they_come():
    played = episodes(5000)
    whole = list(rollout(played))
    number = {int(step): i for i, step in enumerate(played.step, 1)}
    numbers = [number[point.step] for point in whole]
    assert numbers[:512] == list(range(1, 513))
    assert numbers[512:768] == list(range(514, 1025, 2))
    assert len(numbers) < 512 + 256 * 4
    at = numbers.index(4000)
    mean = np.mean(played.returns[3900:4000], dtype=float)
    assert whole[at].values["rollout/ep_rew_mean"] == pytest.approx(mean)
    parts, after = [], 0
    for upto in (3, 700, 701, 4999, 5000):
        parts += rollout(Episodes(*(column[:upto] for column in played)), after)
        after = int(played.step[upto - 1])
    assert parts == whole


def test_nothing_is_written_before_its_checkpoint_nor_twice(tmp_path):
    """A worker dies past its checkpoint; its successor takes the same steps, cut elsewhere."""
    it, memory, played = config(seeds=1), Memory(), episodes(600)
    [job], logger = it.jobs(tmp_path), Logger(memory, config(seeds=1))

    def hear(step: int, loss: float = 0.5) -> None:
        logger.on_progress(progress.Progress(job, step, 0, 0.0, 100.0, False, loss))

    curves = memory.curves
    for step in (10, 20, 30, 15, 25, 35):
        hear(step, math.nan if step == 10 else step)
    assert not curves[LANE.format(0)]
    logger.saved(job, Tables(Episodes(*(column[:10] for column in played))))
    assert [step for step, _ in curves[LANE.format(0)]["time/fps"]] == [10, 15, 25, 35]
    assert curves[LANE.format(0)]["train/loss"] == [(15, 15.0), (25, 25.0), (35, 35.0)]
    hear(50)  # lost: the process is killed, and another goes on from step 35
    logger = Logger(memory, it)
    hear(30)  # was written
    for step in range(2000, 4000):
        hear(step)
    logger.saved(job, Tables(played))
    steps = [step for step, _ in curves[LANE.format(0)]["train/loss"]]
    assert steps[:4] == [15, 25, 35, 2000]
    assert len(steps) < 4 + 256
    ends = [step for step, _ in curves[LANE.format(0)]["rollout/ep_rew_mean"]]
    assert ends == [point.step for point in rollout(played)]


@both
def test_a_tracker_reads_back_what_the_episodes_say(tmp_path, log):
    pytest.importorskip(log)
    rove.train(AGENT, "chain-5", seeds=2, episodes=130, out=tmp_path, log=log)
    found = READERS[log](tmp_path)
    assert found.keys() == {LANE.format(0), LANE.format(1)}
    for seed in (0, 1):
        check(found[LANE.format(seed)], tmp_path, seed)
    rove.train(AGENT, "chain-5", seeds=2, episodes=130, out=tmp_path, log=log)  # is over
    assert READERS[log](tmp_path) == found
    if log == "tensorboard":
        assert len(list((tmp_path / "tensorboard").glob("*/*"))) == 2  # one a lane
    assert rove.load(tmp_path).returns.shape == (2, 130)


@both
def test_a_run_that_was_not_logged_is_from_its_checkpoint(tmp_path, log):
    pytest.importorskip(log)
    rove.train(AGENT, "chain-5", episodes=40, out=tmp_path)
    rove.train(AGENT, "chain-5", episodes=40, out=tmp_path, log=log)
    curves = READERS[log](tmp_path)[LANE.format(0)]
    for key, points in expected(tmp_path, 0).items():
        assert [step for step, _ in curves[key]] == [step for step, _ in points]


def in_hparams(folder: Path):
    """What TensorBoard is told of a lane."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    read = EventAccumulator(str(folder)).Reload()
    told = read.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    return HParamsPluginData.FromString(told).session_start_info


def test_tensorboard_has_the_settings(tmp_path):
    pytest.importorskip("tensorboard")
    rove.train(AGENT, "chain-5", episodes=10, out=tmp_path, log="tensorboard", rho=-3.0)
    settings = in_hparams(tmp_path / "tensorboard" / LANE.format(0)).hparams
    assert settings["agent.rho"].number_value == -3.0
    assert settings["environment"].string_value == "chain-5"
    assert settings["agent.hidden"].string_value == "[8]"


def test_a_row_of_hparams_is_a_point_of_a_sweep_and_its_seeds(tmp_path):
    pytest.importorskip("tensorboard")
    options = {"seeds": 2, "confirm_seeds": 1, "episodes": 10, "on": "threads"}
    fields = {"rho": [-6.0, -4.0]}
    rove.sweep(AGENT, "chain-5", fields, **options, out=tmp_path, log="tensorboard")
    rows: dict[str, list] = defaultdict(list)
    for folder in tmp_path.glob("*/*/tensorboard/*"):
        told = in_hparams(folder)
        lane = told.hparams["agent.rho"].number_value, int(told.hparams["seed"].number_value)
        rows[told.group_name].append(lane)
    lanes_of = {row[0][0]: sorted(row) for row in rows.values()}
    assert lanes_of.keys() == {-6.0, -4.0}
    assert len(rows) == 2
    for rho, found in lanes_of.items():  # and that of the best has the seeds it is confirmed on
        assert [lane for lane in found if lane[1]] == [(rho, 1000), (rho, 1001)]
    assert sum(map(len, rows.values())) == 5


def test_a_record_that_was_cut_off_is_written_again(tmp_path):
    pytest.importorskip("tensorboard")
    rove.train(AGENT, "chain-5", episodes=40, out=tmp_path, log="tensorboard")
    folder = tmp_path / "tensorboard" / LANE.format(0)
    [file] = folder.iterdir()
    whole = file.read_bytes()
    file.unlink()
    names = [f"events.out.tfevents.00000{i}.rove" for i in (1, 2)]
    (folder / names[0]).write_bytes(whole[:-7])
    rove.train(AGENT, "chain-5", episodes=40, out=tmp_path, log="tensorboard")
    assert sorted(path.name for path in folder.iterdir()) == names
    check(in_tensorboard(tmp_path)[LANE.format(0)], tmp_path, 0)


OFFLINE = """
import socket
def refused(*arguments):
    raise OSError("no network here")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refused
"""


@pytest.mark.slow
def test_trackio_has_the_settings_and_asks_for_no_network(tmp_path, monkeypatch):
    pytest.importorskip("trackio")
    (tmp_path / "sitecustomize.py").write_text(OFFLINE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TRACKIO_SPACE_ID", "someone/elsewhere")  # means nothing here
    out = tmp_path / "run"
    rove.train(AGENT, "chain-5", episodes=10, out=out, log="trackio", rho=-3.0)
    [(run, settings)] = in_trackio(out, "get_run_config").items()
    assert (run, settings["agent.rho"], settings["agent.hidden"]) == (
        LANE.format(0),
        -3.0,
        [8],
    )
    monkeypatch.undo()
    check(in_trackio(out)[LANE.format(0)], out, 0)


@both
def test_a_sweep_is_tracked(tmp_path, log):
    pytest.importorskip(log)
    fields = {"rho": [-6.0, -4.0]}
    options = {"seeds": 1, "confirm_seeds": 1, "episodes": 20, "out": tmp_path, "log": log}
    rove.sweep(AGENT, "chain-5", fields, **options)
    runs = {f"points/000{i}": 1000 for i in (0, 1)}
    runs |= {f"confirmed/{path.name}": 0 for path in (tmp_path / "confirmed").iterdir()}
    if log == "trackio":
        found = in_trackio(tmp_path)
    else:
        read = {place: in_tensorboard(tmp_path / place) for place in runs}
        found = {f"{place}/{name}": c for place, each in read.items() for name, c in each.items()}
    assert found.keys() == {f"{place}/{LANE.format(seed)}" for place, seed in runs.items()}
    for place, seed in runs.items():
        check(found[f"{place}/{LANE.format(seed)}"], tmp_path / place, seed)


def train_with_words(out: Path, log: str, words: Connection | None = None) -> None:
    """A run with many short chunks, and word of each."""
    progress.CHUNK_SECONDS, progress.CHECKPOINT_SECONDS = 0.05, 0.2
    report = (lambda told: words.send(told.step)) if words else (lambda told: None)
    rove.train(AGENT, "chain-5", seeds=2, episodes=500, out=out, log=log, report=report)


@pytest.mark.slow
@both
def test_no_step_is_there_twice_after_kill_9(tmp_path, log):
    pytest.importorskip(log)
    rng = random.Random(log)
    for _ in range(3):
        heard, words = multiprocessing.Pipe(duplex=False)
        process = killing.start(train_with_words, tmp_path, log, words)
        words.close()
        for _ in range(rng.randint(1, 8)):
            heard.recv()
        process.kill()
        process.join()
    killing.finish(train_with_words, tmp_path, log)
    found = READERS[log](tmp_path)
    for seed in (0, 1):
        check(found[LANE.format(seed)], tmp_path, seed)


@both
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_one_that_is_not_installed_is_refused_at_once(tmp_path, monkeypatch, capsys, log, command):
    monkeypatch.setitem(sys.modules, log, None)
    for name in [name for name in sys.modules if name.startswith(f"{log}.")]:
        monkeypatch.delitem(sys.modules, name)
    fields = ["--agent.rho=-6,-4"] if command == "sweep" else []
    with pytest.raises(SystemExit) as stopped:
        cli.main([command, "ge", "chain-5", *fields, "--out", str(tmp_path / "a"), "--log", log])
    assert stopped.value.code == 2
    told = capsys.readouterr()
    assert f"pip install {log}" in told.err.replace('"', "")
    assert told.err.count("\n") == 1
    assert not told.out
    assert not (tmp_path / "a").exists()


WORKS = """
class SQLiteStorage:
    get_logs = get_run_config = bulk_log = lambda *told, **named: []
"""


def trackio_is(tmp_path: Path, monkeypatch, storage: str) -> None:
    """Another Trackio is installed."""
    package = tmp_path / "installed" / "trackio"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sqlite_storage.py").write_text(storage)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))


@pytest.mark.parametrize(
    ("storage", "why"),
    [
        ("class Storage: pass", "ImportError: cannot import name 'SQLiteStorage'"),
        ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
        (WORKS.replace("**named", "run_id"), "TypeError: "),
        (WORKS.replace("get_logs", "logs"), "AttributeError: "),
        ("import os; os._exit(3)", "its process ended"),
    ],
)
def test_a_trackio_that_does_not_work_is_refused_at_once(
    tmp_path, monkeypatch, capfd, storage, why
):
    trackio_is(tmp_path, monkeypatch, storage)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", "ge", "chain-5", "--out", str(tmp_path / "a"), "--log", "trackio"])
    assert stopped.value.code == 2
    told = capfd.readouterr()
    assert f"needs another version of Trackio ({why}" in told.err
    assert str(tmp_path) not in told.err
    assert told.err.count("\n") == 1
    assert not told.out
    assert not (tmp_path / "a").exists()


def trackio_process() -> int:
    """The child of this process that writes for Trackio."""
    threads = Path("/proc/self/task").glob("*/children")
    children = [int(pid) for file in threads for pid in file.read_text().split()]
    (process,) = (
        pid for pid in children if b"trackio_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    return process


def test_trackios_process_ends_with_its_parent_and_not_before(tmp_path, monkeypatch):
    trackio_is(tmp_path, monkeypatch, WORKS)
    lane = tracking.SeedRun(tmp_path, "a", {"agent": "ge", "environment": "chain-5"})
    tracker, process = trackio.Trackio(tmp_path), trackio_process()
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(process, number)
    assert tracker.begin(lane) == {}
    tracker.close()
    assert not Path(f"/proc/{process}").exists()
    with pytest.raises(RunFolderError, match="its process ended"):
        tracker.begin(lane)
    tracker, process = trackio.Trackio(tmp_path), trackio_process()
    os.kill(process, signal.SIGSTOP)
    monkeypatch.setattr(trackio, "STOP_SECONDS", 0.2)
    tracker.close()
    assert not Path(f"/proc/{process}").exists()


def test_what_cannot_be_logged_is_refused():
    with pytest.raises(ConfigError, match="needs a run folder: pass out=FOLDER"):
        rove.train("ge", "chain-5", episodes=5, log="tensorboard")
    with pytest.raises(ConfigError, match="Did you mean 'tensorboard'"):
        rove.train("ge", "chain-5", episodes=5, out="a", log="tensorbored")


@pytest.mark.slow
def test_the_command_says_how_to_follow_it(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    out, small = str(tmp_path / "a"), ["--agent.hidden", "16", "16", "--episodes", "5"]
    cli.main(["train", "ge", "chain-5", *small, "--out", out, "--log", "tensorboard"])
    assert f"tensorboard --logdir {out}" in capsys.readouterr().out.replace("\n", "")
