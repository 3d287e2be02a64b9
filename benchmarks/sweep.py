"""A grid for GE on the chain as one `rove sweep`: time, and what the cores did. ρ and σ have the
paper's ranges; the learning rates are ten times the paper's."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from contestants import CORES

GRID = {"rho": "-10:-1:10", "sigma": "1e-8:1e-1:log8", "lr": "1e-4:1e-2:log3"}
SMALL = {"rho": "-6:-2:3", "sigma": "1e-8:1e-1:log8"}
SCALES = {  # grid, environment, seeds, episodes
    "full": (GRID, "chain-50", 5, 150),
    "quick": (SMALL, "chain-10", 1, 100),
    "trial": ({"rho": "-6,-4"}, "chain-10", 1, 5),
}


def measure(scale: str) -> dict[str, Any]:
    """Return the wall time of a sweep from an empty cache, and the fraction of it computed."""
    grid, environment, seeds, episodes = SCALES[scale]
    command = ["sweep", "ge", environment, *(f"--agent.{name}={x}" for name, x in grid.items())]
    command += ["--seeds", str(seeds), "--confirm-seeds", "0", "--episodes", str(episodes)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        env = os.environ | {"ROVE_CACHE": str(place / "cache")}
        whole = [sys.executable, "-m", "rove", *command, "--out", str(place / "sweep")]
        cpu, began = _children(), time.perf_counter()
        subprocess.run(whole, env=env, check=True, stdout=subprocess.DEVNULL)
        seconds, cpu = time.perf_counter() - began, _children() - cpu
        runs = len(list(place.glob("sweep/points/*/lanes/*.safetensors")))
        programs = len(list((place / "cache").glob("jit_run-*-cache")))
    fields = {"seconds": seconds, "processor_seconds": cpu, "computing": cpu / seconds / CORES}
    return fields | {"command": " ".join(("rove", *command)), "runs": runs, "programs": programs}


def _children() -> float:
    """Return the processor time of the processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
