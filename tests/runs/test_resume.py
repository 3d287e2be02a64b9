"""Kill -9 at any moment, run the same command again: the end is the same, to the bit."""

import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import killing
import rove
from helpers import SMALL
from rove.training import checkpoint, progress

EPISODES = 400
LARGE = {"hidden": (32, 32), "buffer_size": 700, "learning_starts": 100}
AGENTS = {
    "small": rove.GE(**SMALL, resample="episode"),
    "dqn": rove.DQN(**LARGE, n_step=3, prioritised=0.6),
    "ge": rove.GE(**LARGE, resample="episode", reward_scale="running"),
}
"""Of the large ones, one has priorities, and one holds its θ and a scale of rewards."""


def train(out: Path, agent: str) -> None:
    """A run with many short chunks, and a file after each."""
    progress.CHUNK_SECONDS, progress.CHECKPOINT_SECONDS = 0.05, 0.0
    rove.train(AGENTS[agent], "chain-8", seeds=2, episodes=EPISODES, out=out)


def content(out: Path) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    files = sorted((out / "lanes").glob("*.safetensors"))
    return (out / "episodes.csv").read_bytes(), [checkpoint.load_arrays(f)[0] for f in files]


def until_first_file(process, out: Path) -> None:
    """Waits until a run has written its first checkpoint, or has ended."""
    while process.is_alive() and not any(out.glob("lanes/*")):
        time.sleep(0.005)


def assert_same(one: Path, other: Path) -> None:
    (csv, lanes), (other_csv, other_lanes) = content(one), content(other)
    assert csv == other_csv
    for mine, theirs in zip(lanes, other_lanes, strict=True):
        assert mine.keys() == theirs.keys()
        for name in mine:
            np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)


@pytest.mark.slow
def test_a_run_killed_after_its_first_checkpoint_ends_bit_identical(tmp_path):
    killed = killing.start(train, tmp_path / "killed", "small")
    until_first_file(killed, tmp_path / "killed")
    killed.kill()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL, "it ended before it could be killed"
    for name in ("killed", "whole"):
        killing.finish(train, tmp_path / name, "small")
    assert_same(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["dqn", "ge"])
def test_killed_runs_end_bit_identical(tmp_path, agent):
    """Kills at random moments: every other one at any time since the start, the others at any time
    since the first checkpoint. A run that reached its end before its kill does not count, and the
    next starts anew."""
    killing.finish(train, tmp_path / "whole", agent)
    began, process = time.monotonic(), killing.start(train, tmp_path / "warm", agent)
    until_first_file(process, tmp_path / "warm")
    first = time.monotonic() - began
    process.join()
    takes = time.monotonic() - began
    rng, limit, kills, runs, inside = random.Random(agent), 20, 0, 0, 0
    while kills < limit:
        out = tmp_path / f"killed-{runs}"
        runs += 1
        assert runs < 5 * limit, "runs end before they can be killed"
        for attempt in range(5):
            process = killing.start(train, out, agent)
            if attempt % 2:
                until_first_file(process, out)
                process.join(rng.uniform(0.0, (takes - first) / 2))
            else:
                process.join(rng.uniform(0.0, takes))
            alive = process.is_alive()
            process.kill()
            process.join()
            kills += alive
            inside += alive and any(out.glob("lanes/*"))
            if not alive:
                break
        killing.finish(train, out, agent)
        assert_same(out, tmp_path / "whole")
    assert inside >= 3, "too few kills fell after the first checkpoint"
