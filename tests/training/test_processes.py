"""Lanes in processes: the same bits as in threads, and no lane lost with its process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import rove
from helpers import SMALL
from rove import GE, Chain
from rove.agents.settings import with_settings
from rove.errors import ConfigError, Diverged, RunFolderError
from rove.parts import platform
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.training.executors import processes

AGENT = GE(**SMALL)


def config(seeds=2, episodes=60, **changes):
    settings = with_settings(AGENT, changes)
    return configure(settings, "chain-5", seeds=seeds, episodes=episodes)


def workers_of(pid: int) -> list[int]:
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(x) for file in threads for x in file.read_text().split()]
    return [x for x in children if b"processes" in Path(f"/proc/{x}/cmdline").read_bytes()]


@pytest.mark.slow
def test_the_bits_are_those_of_threads(tmp_path):
    apart, here = config(3), config(3)
    told = []
    saved = run_all([(apart, tmp_path / "a"), (apart, None)], told.append, 2, "processes")
    thread = run_all([(here, tmp_path / "b")], workers=2)[0]
    assert workers_of(os.getpid()) == []
    for run in saved:
        for a, b in zip(run.outcomes, thread.outcomes, strict=True):
            for x, y in zip(a.episodes, b.episodes, strict=True):
                np.testing.assert_array_equal(x, y)
    files = [(tmp_path / x / "episodes.csv").read_bytes() for x in "ab"]
    assert files[0] == files[1]
    assert sum(progress.finished for progress in told) == 6
    assert saved[1].path is None
    assert saved[1].evaluate().shape == (3, 1)


@pytest.mark.slow
def test_a_lane_whose_process_dies_goes_on_in_another(tmp_path):
    it, killed = config(2, episodes=1000), []

    def report(progress):
        if len(killed) < 2 and progress.episode > 10 and not progress.finished:
            killed.append(workers_of(os.getpid())[0])
            os.kill(killed[-1], signal.SIGKILL)

    run = run_all([(it, tmp_path)], report, 2, "processes")[0]
    assert len(killed) == 2
    assert not run.errors
    np.testing.assert_array_equal(run.returns, run_all([(it, None)])[0].returns)


def test_a_process_that_always_dies_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(processes.sys, "executable", "/bin/false")
    run = run_all([(config(), tmp_path)], on="processes")[0]
    assert len(run.errors) == 2
    assert "ended with code 1, 3 times" in str(run.errors[0])


@pytest.mark.slow
def test_a_worker_with_another_rove_is_refused(tmp_path, monkeypatch):
    """Such as one whose source was changed since the command began."""
    monkeypatch.setattr(platform, "CODE", "another")
    run = run_all([(config(2), tmp_path)], on="processes")[0]
    assert "the worker has a different version of rove" in str(run.errors[0])
    assert not run.outcomes


@pytest.mark.slow
def test_a_lane_that_fails_costs_the_others_nothing():
    good = config(2)
    ill, well = run_all([(config(2, lr=1e30), None), (good, None)], on="processes")
    told = [str(error) for error in ill.errors]
    assert all(isinstance(error, Diverged) for error in ill.errors)
    assert told[1].startswith("ge on chain-5, seed 1: the loss was not a finite number at step")
    assert not well.errors
    np.testing.assert_array_equal(well.returns, run_all([(good, None)])[0].returns)


def test_what_a_process_could_not_know_runs_in_threads():
    class Mine(Chain):
        """Of the user's own, though it has the name of rove's."""

    own = configure(AGENT, Mine(5), seeds=2, episodes=20)
    assert config().portable
    assert not own.portable
    assert run_all([(own, None)], on="processes")[0].returns.shape == (2, 20)


def test_unknown_places_are_refused():
    with pytest.raises(ConfigError, match="on must be threads, processes, ray"):
        rove.train("ge", "chain-5", episodes=1, on="moon")


@pytest.mark.slow
def test_processes_end_with_their_parent(tmp_path):
    code = (
        "import rove, sys; rove.train('ge', 'chain-20', seeds=2, episodes=10**6, "
        "out=sys.argv[1], on='processes')"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    wait_for(lambda: len(workers_of(parent.pid)) == 2)
    workers = workers_of(parent.pid)
    parent.kill()
    parent.wait()
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))


LAUNCH = """
import signal, sys
signal.signal(signal.SIGINT, getattr(signal, sys.argv.pop(1)))
from rove.cli.main import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "ignored",
    [
        pytest.param(False, id="ctrl-c"),
        pytest.param(True, id="sigterm, in the background", marks=pytest.mark.slow),
    ],
)
def test_stopped_by_hand_every_lane_is_saved(tmp_path, ignored):
    """Long before the first checkpoint is due, and though Ctrl-C reaches the workers too. A shell
    starts what is in the background with SIGINT ignored; SIGTERM stops it all the same."""
    command = [sys.executable, "-c", LAUNCH, "SIG_IGN" if ignored else "default_int_handler"]
    command += ["train", "dqn", "chain-5", "--seeds", "2", "--steps", "100000000"]
    command += ["--out", str(tmp_path / "run")]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE}
    parent = subprocess.Popen(command, start_new_session=True, **pipes)
    while b"steps/s" not in parent.stdout.readline():  # until a seed has reported its progress
        assert parent.poll() is None
    if ignored:
        parent.terminate()
    else:
        os.killpg(parent.pid, signal.SIGINT)
    _, told = parent.communicate(timeout=60)
    assert parent.returncode == 130
    assert b"repeat the command" in told
    assert b"Traceback" not in told
    assert any((tmp_path / "run" / "lanes").iterdir())


def wait_for(condition, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_folder_that_holds_another_run_is_refused(tmp_path):
    run_all([(config(2, 3), tmp_path)])
    with pytest.raises(RunFolderError, match="contains a different run"):
        run_all([(config(2, 4), tmp_path)], on="processes")


@pytest.mark.slow
def test_processes_that_were_started_early_are_used_and_the_rest_are_ended(tmp_path):
    with processes.started_early(3):
        early = list(processes._early)
        (run,) = run_all([(config(episodes=2), tmp_path / "run")], on="processes", workers=2)
        assert [process.wait(10) for process in early[:2]] == [0, 0]
        assert early[2].poll() is None
    assert len(run.outcomes) == 2
    assert early[2].poll() == -signal.SIGKILL
    assert not processes._early
