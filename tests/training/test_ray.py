"""Lanes on Ray: the same bits as in threads, and no lane lost with its worker or its driver."""

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.cli import main as cli
from rove.errors import ConfigError
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.training import checkpoint
from rove.training.executors import pool
from rove.training.executors import ray as on_cluster

HAS_RAY = importlib.util.find_spec("ray") is not None


def on_ray(test):
    """A test of the extra that `make test-slow` installs."""
    return pytest.mark.slow(pytest.mark.skipif(not HAS_RAY, reason="needs rove[ray]")(test))


AGENT = rove.GE(**SMALL)


def config(seeds=2, episodes=60, **changes):
    return configure(AGENT, "chain-5", seeds=seeds, episodes=episodes, **changes)


def ray_workers(of: int) -> list[int]:
    """Processes of Ray, below this one, that hold a worker of rove's."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if command.startswith(b"ray::Remote") and of in ancestors(int(status.parent.name)):
            found.append(int(status.parent.name))
    return sorted(found)


def ancestors(pid: int) -> list[int]:
    found = []
    while pid > 1:
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return found
        found.append(pid)
    return found


def wait_for(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.1)


@pytest.fixture
def three_minutes():
    """A test that would otherwise wait for good."""

    def over(*signal):
        raise TimeoutError("it waits for something")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(180)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def files(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    paths = sorted(folder.glob("**/lanes/*.safetensors"))
    return {str(p.relative_to(folder)): checkpoint.load_arrays(p)[0] for p in paths}


def assert_same_lanes(a: Path, b: Path) -> None:
    mine, theirs = files(a), files(b)
    assert mine.keys() == theirs.keys() != set()
    for name in mine:
        assert mine[name].keys() == theirs[name].keys()
        for part in mine[name]:
            np.testing.assert_array_equal(mine[name][part], theirs[name][part], err_msg=part)


@on_ray
def test_a_sweep_whose_worker_is_killed_twice_ends_with_the_bits_of_a_local_one(tmp_path):
    killed = []

    def report(standing):
        if len(killed) < 2 and standing.done > 2 * len(killed):
            killed.append(ray_workers(os.getpid())[0])
            os.kill(killed[-1], signal.SIGKILL)

    settings = {"fields": {"rho": (-6.0, -4.0, -2.0)}, "seeds": 2, "episodes": 300}
    there = rove.sweep(
        AGENT, "chain-5", out=tmp_path / "ray", on="ray", workers=2, report=report, **settings
    )
    local = rove.sweep(AGENT, "chain-5", out=tmp_path / "local", **settings)
    assert len(set(killed)) == 2
    assert there.points == local.points
    for name in ("sweep.csv", "sweep.json"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()
    assert_same_lanes(tmp_path / "ray", tmp_path / "local")


DRIVER = """
import sys, rove
from rove.training import progress
agent = rove.GE(hidden=(16, 16), buffer_size=400, learning_starts=50)
progress.CHECKPOINT_SECONDS = 0.5
rove.train(agent, "chain-5", seeds=2, episodes=3000, out=sys.argv[1], on="ray", workers=2)
"""


@on_ray
def test_a_killed_driver_loses_nothing_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "ray")]
    driver = subprocess.Popen(command)
    wait_for(lambda: len(files(tmp_path / "ray")) == 2, 300)
    workers = ray_workers(driver.pid)
    driver.kill()
    driver.wait()
    assert len(workers) == 2
    steps = [arrays["episodes.step"][-1] for arrays in files(tmp_path / "ray").values()]
    assert all(step > 0 for step in steps)
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))
    assert subprocess.run(command, timeout=600).returncode == 0
    rove.train(AGENT, "chain-5", seeds=2, episodes=3000, out=tmp_path / "local")
    assert_same_lanes(tmp_path / "ray", tmp_path / "local")


@on_ray
def test_a_lane_that_diverges_is_told_and_costs_the_others_nothing():
    ill = config(1, lr=1e30)
    runs = run_all([(ill, None), (config(1), None)], on="ray", workers=1)
    assert "the loss was not a finite number" in str(runs[0].errors[0])
    np.testing.assert_array_equal(runs[1].returns, run_all([(config(1), None)])[0].returns)


@on_ray
def test_more_workers_than_cores_keep_no_lane_waiting_and_leave_when_done(
    monkeypatch, three_minutes
):
    """Three on two cores. Once the short lanes are done, the third worker comes and goes, and there
    is a core to spare while the long lane goes on."""
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    spare = []

    def report(progress):
        if progress.job.episodes == 6000 and not progress.finished:
            spare.append(ray.available_resources().get("CPU", 0.0))

    try:
        lanes = [(config(1, 6000), None), (config(2), None)]
        runs = run_all(lanes, report, on="ray", workers=3)
    finally:
        ray.shutdown()
    assert [run.returns.shape for run in runs] == [(1, 6000), (2, 60)]
    assert spare[0] == 0.0
    assert spare[-1] == 1.0


@on_ray
def test_what_a_cluster_could_not_know_is_refused(tmp_path):
    class Mine(rove.Chain):
        """Of the user's own, though it has the name of rove's."""

    with pytest.raises(ConfigError, match="which the cluster does not have"):
        rove.train(AGENT, Mine(5), episodes=2, on="ray")
    with pytest.raises(ConfigError, match=r"workers must be .* got 0"):
        rove.train(AGENT, "chain-5", episodes=2, on="ray", workers=0)


class Answering(pool.Worker):
    """Says at once that every lane has failed; unless it is never there."""

    def __init__(self, inbox, there):
        super().__init__()
        self.inbox, self.waited = inbox, None
        if there:
            self.inbox.put((self, {"ready": True}))

    def send(self, **message):
        if "folder" in message:
            assert self.ready
            self.inbox.put((self, {"error": message["name"], "diverged": False}))

    def end(self, seconds):
        self.waited = seconds


def test_a_worker_has_no_lane_and_is_not_waited_for_until_it_is_ready(tmp_path):
    started = []

    def start_worker(inbox):
        started.append(Answering(inbox, there=not started))
        return started[-1]

    jobs = config(3).jobs(tmp_path)
    found = pool.run_jobs(
        jobs, start_worker, 2, lambda told: None, lambda *saved: None, "rove.runs.folder:jobs_in"
    )
    assert [str(error) for error in found] == [job.name for job in jobs]
    assert [worker.waited for worker in started] == [pool.STOP_SECONDS, 0.0]


def test_without_ray_the_error_says_how_to_get_it(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(on_cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", "ge", "chain-5", "--on", "ray", "--out", str(tmp_path / "a")])
    assert stopped.value.code == 2
    assert "pip install 'ray[client]'" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


class Transport:
    """What `_Actor` uses of Ray, in this process: calls are answered at once."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self, messages):
        self.said, self.killed = list(messages), 0

    def remote(self, **options):
        return lambda of: types.SimpleNamespace(
            remote=lambda: types.SimpleNamespace(
                messages=types.SimpleNamespace(remote=self._messages),
                receive=types.SimpleNamespace(remote=lambda order: None),
            )
        )

    def _messages(self):
        return self.said.pop(0) if self.said else []

    def get(self, value):
        time.sleep(0.01)
        return value

    def kill(self, remote):
        self.killed += 1


def test_a_checkpoint_that_cannot_be_written_ends_its_worker(tmp_path):
    """So that what it goes on to say of its lane is not taken for the next lane's."""
    first, second = config(2).jobs(tmp_path)
    first.path.parent.mkdir()
    inbox = pool.queue.Queue()
    worker = on_cluster._Actor(ray := Transport([[{"ready": True}]]), inbox)
    assert inbox.get(timeout=10)[1] == {"ready": True}
    worker.job = first
    ray.said.append([{"saved": True, "checkpoint": b"one"}])
    assert inbox.get(timeout=10)[1] == {"saved": True}
    assert first.path.read_bytes() == b"one"
    first.path.unlink()
    first.path.mkdir()  # nothing can be put in its place
    ray.said.append([{"saved": True, "checkpoint": b"two"}, {"saved": True, "checkpoint": b"3"}])
    assert str(first.path) in inbox.get(timeout=10)[1]["ended"]
    worker.job = second
    wait_for(lambda: ray.killed == 1, 10)
    assert inbox.empty()
    assert not second.path.exists()


def listening() -> set[str]:
    """Return the addresses on which this machine listens, in hexadecimal."""
    found = set()
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(file).read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            found |= {local} if state == "0A" else set()
    return found


LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


@pytest.mark.slow
def test_a_local_cluster_listens_on_the_loopback_interface_only(tmp_path):
    pytest.importorskip("ray")
    before = listening()
    command = [sys.executable, "-m", "rove", "train", "dqn", "chain-5", "--on", "ray", "--seeds"]
    command += ["2", "--steps", "100000000", "--out", str(tmp_path / "run")]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    try:
        while b"steps/s" not in driver.stdout.readline():
            assert driver.poll() is None
        opened = {address.partition(":")[0] for address in listening() - before}
    finally:
        driver.terminate()
        driver.wait(60)
    assert opened
    assert opened <= set(LOOPBACK)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://", "must be ray://HOST:PORT"),
        ("ray://:10001", "must be ray://HOST:PORT"),
        ("ray://localhost:no", "must be ray://HOST:PORT"),
        ("ray://127.0.0.1:1", "refused"),
        ("a server that is silent", "does not answer within"),
    ],
)
def test_a_head_that_is_not_there_is_told_before_anything_is_written(address, words, tmp_path):
    pytest.importorskip("ray")
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        if address.startswith("a server"):
            address = f"ray://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConfigError, match=words):
            rove.train("dqn", "chain-5", episodes=3, on=address, out=tmp_path / "run")
    assert time.monotonic() - began < 10
    assert not (tmp_path / "run").exists()
