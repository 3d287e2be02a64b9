"""Contestants: processes that take short slices of training in turn, so that noise is shared.

Every contestant is a process of its own, or several side by side, that waits for orders. A round
gives a slice to everyone in a shuffled order; a slow spell of the machine falls on all alike.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from peers import PEERS, folder, python_of

HERE = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SECONDS = 0.15
"""Length of a slice. Where several processes run side by side it is four times as long, because
they do not begin and end at quite the same moment."""
ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"
_DROPPED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "XLA_FLAGS", "NPROC")


@dataclass(frozen=True)
class Entry:
    """What a contestant trains; by default the setting that all libraries share."""

    library: str
    agent: str = "dqn"
    environment: str = "cartpole"
    """A compiled environment of the library's own or, with gym/ before its id, Gymnasium's."""
    width: int = 100
    """Units of each of the two hidden layers."""
    batch: int = 64
    seeds: int = 1
    threads: int | None = 1
    """The default of the library if None."""
    copies: int = 1
    """Number of copies of a Gymnasium environment that a seed is trained on."""

    @property
    def processes(self) -> int:
        """Seeds of rove run in one process per core, as in `rove train`; those of rejax share one
        process."""
        return min(self.seeds, CORES) if self.library == "rove" else 1


class Contestant:
    """The running processes of an entry."""

    def __init__(self, entry: Entry) -> None:
        self.entry, self.steps = entry, 0
        self.processes: list[Any] = []
        self.slices: list[dict[str, float]] = []
        self.versions: dict[str, str] = {}

    def start(self) -> None:
        """Start the processes, which divide the seeds among themselves, and choose the number of
        steps in a slice."""
        print(f"starting {self.entry}", file=sys.stderr)
        count = self.entry.processes
        shares = [range(self.entry.seeds)[i::count] for i in range(count)]
        self.processes = [_process(self.entry, share) for share in shares]
        self.versions = self._read()[0]["versions"]
        copies = self.entry.copies
        trial = self._slice(50 * copies)
        length = SECONDS * (4 if count > 1 else 1)
        steps = length * trial["steps"] / trial["seconds"] / self.entry.seeds
        self.steps = copies * int(min(max(steps / copies, 20), 20_000))

    def _read(self) -> list[dict[str, Any]]:
        lines = [process.stdout.readline() for process in self.processes]
        for line, process in zip(lines, self.processes, strict=True):
            if not line:
                raise RuntimeError(f"{self.entry}: its process ended with code {process.wait()}")
        return [json.loads(line) for line in lines]

    def _slice(self, steps: int) -> dict[str, float]:
        """Take a slice. Processes do not wait for each other: their rates are added."""
        for process in self.processes:
            print(steps, file=process.stdin, flush=True)
        answers = self._read()
        total = {field: sum(answer[field] for answer in answers) for field in ("steps", "cpu")}
        rate = sum(answer["steps"] / answer["seconds"] for answer in answers)
        return total | {"seconds": total["steps"] / rate}

    def run(self) -> None:
        self.slices.append(self._slice(self.steps))

    def close(self) -> None:
        """End the processes, which end with their standard input."""
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()

    def row(self) -> dict[str, Any]:
        """Return the entry, and the microseconds of a step over all slices."""
        micros = [1e6 * x["seconds"] / x["steps"] for x in self.slices]
        cpu = statistics.median(1e6 * x["cpu"] / x["steps"] for x in self.slices)
        peaks = [_peak_memory(process.pid) for process in self.processes]
        peak = None if None in peaks else sum(peaks)
        slices = {"slices": len(micros), "steps": self.steps}
        return asdict(self.entry) | spread(micros) | {"cpu": cpu, "peak_MB": peak} | slices


class Measured(NamedTuple):
    rows: list[dict[str, Any]]
    errors: dict[str, str]
    """Errors of contestants that were left out."""
    versions: dict[str, dict[str, str]]
    """Versions of the packages of every library."""


def spread(values: list[float]) -> dict[str, Any]:
    """Return the median, the quartiles and the minimum."""
    many = values if len(values) > 1 else values * 2
    low, median, high = statistics.quantiles(many, n=4, method="inclusive")
    return {"median": median, "quartiles": [low, high], "min": min(values)}


def measure(entries: Iterable[Entry], rounds: int) -> Measured:
    """Start everyone, one per core at a time; then take slices in an order shuffled every round.

    A contestant that fails is left out.
    """
    errors: dict[str, str] = {}

    def start(entry: Entry) -> Contestant:
        contestant = Contestant(entry)
        attempt(contestant, contestant.start)
        return contestant

    def attempt(contestant: Contestant, action: Callable[[], None]) -> None:
        if str(contestant.entry) not in errors:
            try:
                action()
            except Exception as error:
                print(f"left out: {contestant.entry}: {error}", file=sys.stderr)
                errors[str(contestant.entry)] = str(error)

    with ThreadPoolExecutor(CORES) as pool:
        everyone = list(pool.map(start, entries))
    try:
        order, shuffle = list(everyone), random.Random(0).shuffle
        for _ in range(rounds):
            shuffle(order)
            for contestant in order:
                time.sleep(0.02)  # threads of the previous one may spin a little before they rest
                attempt(contestant, contestant.run)
        complete = [x for x in everyone if str(x.entry) not in errors]
        rows = [contestant.row() for contestant in complete]
    finally:
        for contestant in everyone:
            contestant.close()
    versions = {x.entry.library: x.versions for x in complete}
    return Measured(rows, errors, versions)


def _process(entry: Entry, seeds: range) -> Any:
    peer = PEERS.get(entry.library)
    python = python_of(entry.library) if peer else sys.executable
    script = HERE / (peer.script if peer else "rove_side.py")
    env = {k: v for k, v in os.environ.items() if k not in _DROPPED}
    env |= {"JAX_PLATFORMS": "cpu"}
    if peer:
        env |= {"JAX_COMPILATION_CACHE_DIR": str(folder() / "cache")}
    if entry.threads == 1:
        env |= {"XLA_FLAGS": ONE_THREAD, "NPROC": "1", "OMP_NUM_THREADS": "1"}
    command = [python, str(script), json.dumps(asdict(entry) | {"seeds": list(seeds)})]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=env, **pipes)


def proc(file: str, field: str) -> str | None:
    """Return a field of a file in /proc, or None where there is no such file."""
    path = Path("/proc") / file
    lines = path.read_text().splitlines() if path.exists() else []
    return next((x.split(":")[1].strip() for x in lines if x.startswith(field)), None)


def _peak_memory(pid: int) -> float | None:
    """Return the peak resident memory of a process in MB."""
    peak = proc(f"{pid}/status", "VmHWM")
    return int(peak.split()[0]) / 1024 if peak else None
