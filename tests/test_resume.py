"""Kill -9 at any moment, run the same command again: the end is the same, to the bit."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from rove.training import checkpoint

KILLS = 20
COMMAND = """
import sys, rove
from rove import runner
from rove.training import lanes
lanes.SECONDS_A_CHUNK = 0.05
original = lanes.execute
def often(*arguments, **options):
    return original(*arguments, checkpoint_seconds=0.0, **options)
runner.lanes.execute = often
settings = rove.GE(hidden=(32, 32), buffer_size=700, learning_starts=100, resample=sys.argv[2])
rove.train(settings, "chain-8", seeds=2, episodes=int(sys.argv[3]), out=sys.argv[1])
"""


def start(out: Path, resample: str, episodes: int) -> subprocess.Popen:
    arguments = [sys.executable, "-c", COMMAND, str(out), resample, str(episodes)]
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def content(out: Path) -> tuple[bytes, list[dict[str, np.ndarray]]]:
    files = sorted((out / "lanes").glob("*.safetensors"))
    return (out / "episodes.csv").read_bytes(), [checkpoint.load_arrays(f)[0] for f in files]


def finish(out: Path, resample: str, episodes: int) -> None:
    process = start(out, resample, episodes)
    _, told = process.communicate(timeout=120)
    assert process.returncode == 0, told.decode()


@pytest.mark.parametrize("resample", ["step", "episode"])
def test_killed_runs_end_bit_identical(tmp_path, resample):
    """Half of the kills for each kind of control. The moments are random, from the first
    import to the last file; a run that got to its end counts as not killed and starts anew."""
    episodes = 800
    finish(tmp_path / "whole", resample, episodes)
    began = time.monotonic()
    finish(tmp_path / "warm", resample, episodes)
    takes = time.monotonic() - began
    rng, kills, runs, inside = random.Random(resample), 0, 0, 0
    while kills < KILLS // 2 or (inside < 3 and runs < KILLS):
        out = tmp_path / f"killed-{runs}"
        runs += 1
        for _ in range(3):
            process = start(out, resample, episodes)
            # Mostly while it trains, which is the second half, but from the first import on.
            moment = rng.uniform(0.0 if rng.random() < 0.2 else 0.4 * takes, takes)
            began = time.monotonic()
            try:
                process.wait(moment)
                alive = False
                takes = time.monotonic() - began  # the machine has less to do than it had
            except subprocess.TimeoutExpired:
                alive = True
                process.kill()
                process.wait()
            kills += alive
            inside += alive and any(out.glob("lanes/*"))
            if not alive:
                break
        finish(out, resample, episodes)
        (csv, arrays), (csv_whole, arrays_whole) = content(out), content(tmp_path / "whole")
        assert csv == csv_whole
        for mine, theirs in zip(arrays, arrays_whole, strict=True):
            assert mine.keys() == theirs.keys()
            for name in mine:
                np.testing.assert_array_equal(mine[name], theirs[name], err_msg=name)
    assert inside >= 3, "too few kills fell between the first checkpoint and the end"
