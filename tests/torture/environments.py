"""Environments that misbehave, in this process and in worker processes: each trains right or ends
with an error that says why, and costs no other environment anything."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
from bad_tasks import EXPECTED, FATAL, NAMES
from campaign import PYTHON, Tally
from neighbours import leaves

import rove
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.runs.result import Run

SMALL = {"hidden": (8,), "batch_size": 8, "buffer_size": 64, "learning_starts": 8}
RIGHT = "bad_tasks:Right-v0"
KILLING = {name for name in FATAL if "code" in FATAL[name][1]}
"""What would end this process too."""


def run(tally: Tally, folder: Path, every: int) -> None:
    """Train on every so many of the environments together, in a process whose standard input and
    output they may use."""
    for on in ("processes", "threads"):
        result = folder / f"{on}.json"
        command = [PYTHON, __file__, on, str(folder / on), str(every), str(result)]
        with (folder / f"{on}.log").open("wb") as log:
            try:
                subprocess.run(command, stdin=-1, stdout=log, stderr=log, timeout=900)
            except subprocess.TimeoutExpired:
                tally.failed(f"{on}: took more than 15 minutes")
        if not result.exists():
            tally.failed(f"{on}: it died: {(folder / f'{on}.log').read_text('utf-8')[-300:]}")
            continue
        for name, wrong in json.loads(result.read_text("utf-8")).items():
            tally.attempts += 1
            if wrong:
                tally.failed(f"{name}, {on}: {wrong}"[:400])


def train(on: str, folder: Path, every: int) -> dict[str, str]:
    """Return what is wrong with each run."""
    names = [n for n in list(NAMES)[::every] if on == "processes" or n not in KILLING]
    tasks = [RIGHT, *(NAMES[name] for name in names)]
    plan = [(_config(task), folder / str(i)) for i, task in enumerate(tasks)]
    right, *others = run_all(plan, on=on, workers=2)
    runs = zip(names, others, strict=True)
    return {name: _judged(found, right, EXPECTED[name][1]) for name, found in runs}


def _config(task: str) -> Config:
    environment = rove.environments.make(f"gym/{task}", longest_episode=50)
    return configure(rove.DQN(**SMALL), environment, seeds=2, episodes=6)


def _judged(found: Run, right: Run, words: str | None) -> str:
    """Return what is wrong with a run, compared with one on an environment without faults."""
    if words is not None:
        said = [str(error) for error in found.errors]
        clear = len(said) == 2 and all(re.search(words, text) for text in said)
        return "" if clear else f"expected {words!r}, got {said}"
    if found.errors:
        return f"{found.errors}"
    pairs = zip(found.outcomes, right.outcomes, strict=True)
    same = all(
        np.array_equal(a, b) for x, y in pairs for a, b in zip(leaves(x), leaves(y), strict=True)
    )
    return "" if same else "other bits than without the fault"


if __name__ == "__main__":
    found = train(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    Path(sys.argv[4]).write_text(json.dumps(found), "utf-8")
