"""Steps a second of rove's agents and of stable-baselines3's DQN, in one run on this machine.

Every contestant is a process of its own that waits for orders; the parent gives each a short
slice of steps in turn, so that a noisy machine is noisy for all. See benchmarks/README.md.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEER_VENV = HERE / ".bench" / "sb3"
PEER_PACKAGES = ("torch==2.13.0", "stable-baselines3==2.9.2")  # in this order

AGENTS = ("dqn", "noisynet", "ge", "ge-episode")
LANES = 2
WARM_UP = 1_000
SETTINGS = {"hidden": (100, 100), "batch_size": 64, "buffer_size": 50_000, "target_period": 100}


# The rove side: one agent in one process


def make_agent(name: str) -> Any:
    from rove.algorithm import Agent
    from rove.posteriors import Dirac, MeanField
    from rove.returns import Gaussian

    match name:
        case "dqn":
            return Agent(Gaussian(0.0), Dirac(), epsilon=0.1, **SETTINGS)
        case "noisynet":
            return Agent(Gaussian(0.0), MeanField(-4.0), **SETTINGS)
        case "ge":
            return Agent(Gaussian(1e-3), MeanField(-4.0), **SETTINGS)
        case "ge-episode":
            return Agent(Gaussian(1e-3), MeanField(-4.0), resample="episode", **SETTINGS)
    raise ValueError(name)


def worker(name: str, lanes: int) -> None:
    """Answers "learn N" on stdin with one line of JSON: N steps of every lane, one thread each."""
    import jax
    import numpy as np

    from rove.environments.chain import Chain
    from rove.training import compiled

    answers, sys.stdout = sys.stdout, sys.stderr
    agent, environment = make_agent(name), Chain(4)
    start, run = jax.jit(compiled.start), jax.jit(compiled.run, donate_argnums=2)
    no_limit = np.int32(2**30)

    began = time.perf_counter()  # a first call that runs no step: tracing and compiling
    state = [jax.block_until_ready(start(agent, environment, np.int32(i))) for i in range(lanes)]
    state = [run(agent, environment, lane, np.int32(0), no_limit) for lane in state]
    jax.block_until_ready(state)
    compile_seconds = time.perf_counter() - began

    def advance(i: int, last: int) -> None:
        while int(state[i].step) < last:  # a chunk also ends when its episode log is full
            state[i] = run(agent, environment, state[i], np.int32(last), no_limit)
            if int(state[i].fault):
                raise RuntimeError(f"{name}: fault in {compiled.FAULTS[int(state[i].fault)]}")

    def learn(last: int) -> None:
        threads = [threading.Thread(target=advance, args=(i, last)) for i in range(1, lanes)]
        for thread in threads:
            thread.start()
        advance(0, last)
        for thread in threads:
            thread.join()
        if any(int(lane.step) != last for lane in state):
            raise RuntimeError(f"{name}: a lane is not at step {last}")

    def answer(**fields: object) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    last = WARM_UP
    learn(last)
    answer(compile_seconds=compile_seconds, programs=run._cache_size())
    for line in sys.stdin:
        steps = int(line.split()[1])
        last += steps
        cpu, began = time.process_time(), time.perf_counter()
        learn(last)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        answer(steps=steps * lanes, seconds=seconds, cpu=cpu)


# The parent


class Contestant:
    """A process that runs slices when told to."""

    def __init__(self, label: str, command: list[str]) -> None:
        env = {k: v for k, v in os.environ.items() if k not in _DROPPED}
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        self.label = label
        self.slices: dict[str, list[dict[str, float]]] = {}
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.ready = self._read()
        self.startup_seconds = time.perf_counter() - began

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.label}: its process ended with code {self.process.wait()}")
        return json.loads(line)

    def run(self, what: str, steps: int) -> None:
        assert self.process.stdin is not None
        print(what, steps, file=self.process.stdin, flush=True)
        self.slices.setdefault(what, []).append(self._read())

    def peak_mb(self) -> float | None:
        """VmHWM: the most memory that was resident at once."""
        status = Path(f"/proc/{self.process.pid}/status")
        lines = status.read_text().splitlines() if status.exists() else []
        return next((int(x.split()[1]) / 1024 for x in lines if x.startswith("VmHWM")), None)

    def summary(self, what: str) -> dict[str, float]:
        slices = self.slices[what]
        micros = [1e6 * x["seconds"] / x["steps"] for x in slices]
        low, median, high = statistics.quantiles(micros, n=4, method="inclusive")
        return {
            "median_us": median,
            "min_us": min(micros),
            "quarter_us": low,
            "three_quarters_us": high,
            "max_us": max(micros),
            "steps_per_second": 1e6 / median,
            "cores_busy": sum(x["cpu"] for x in slices) / sum(x["seconds"] for x in slices),
        }


# Variables that would change how many threads run, or hide the time to compile.
_DROPPED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "JAX_COMPILATION_CACHE_DIR")


def peer_python() -> str:
    """The peer's interpreter; its virtual environment is made the first time."""
    python, stamp = PEER_VENV / "bin" / "python", PEER_VENV / "installed.txt"
    if not stamp.exists() or stamp.read_text().split() != list(PEER_PACKAGES):
        print(f"making {PEER_VENV} (once)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(PEER_VENV)], check=True)
        for i in range(len(PEER_PACKAGES)):
            install = [str(python), "-m", "pip", "install", "--quiet", *PEER_PACKAGES[: i + 1]]
            if subprocess.run(install).returncode:
                raise SystemExit(f"pip could not install {PEER_PACKAGES[i]}; try --no-peer")
        stamp.write_text("\n".join(PEER_PACKAGES))
    return str(python)


def measure(rounds: int, steps: int, peer: bool) -> list[Contestant]:
    """Start everyone, one after the other, then take slices in an order shuffled every round."""
    commands = {
        f"sb3 dqn, {name}": [peer_python(), str(HERE / "peer_sb3.py"), threads]
        for name, threads in (("1 thread", "1"), ("default threads", "default"))
        if peer
    }
    this = [sys.executable, str(HERE / "throughput.py"), "--worker"]
    commands |= {f"rove {a}": [*this, a, "--lanes", "1"] for a in AGENTS}
    commands |= {f"rove {a}, {LANES} lanes": [*this, a, "--lanes", str(LANES)] for a in AGENTS}
    contestants = []
    for label, command in commands.items():
        contestants.append(Contestant(label, command))
        print(f"ready: {label}", file=sys.stderr)
    orders = [(x, "learn") for x in contestants]
    orders += [(x, "environment") for x in contestants if x.label == "sb3 dqn, 1 thread"]
    shuffle = random.Random(0).shuffle
    for i in range(rounds):
        shuffle(orders)
        for contestant, what in orders:
            time.sleep(0.02)  # the last one's threads may spin a little before they rest
            contestant.run(what, steps)
        if (i + 1) % 10 == 0:
            print(f"round {i + 1} of {rounds}", file=sys.stderr)
    return contestants


def report(contestants: list[Contestant]) -> dict[str, Any]:
    """Every figure, with its ratios: rates are of median slices."""
    rows: dict[str, dict[str, Any]] = {}
    for x in contestants:
        rows[x.label] = x.summary("learn") | {
            "compile_seconds": x.ready.get("compile_seconds"),
            "startup_seconds": x.startup_seconds,
            "peak_mb": x.peak_mb(),
        }
    out: dict[str, Any] = {"contestants": rows}
    peers = [x for x in contestants if x.label.startswith("sb3")]
    best = min(peers, key=lambda x: rows[x.label]["median_us"], default=None)
    if best is not None:
        alone = next(x.summary("environment") for x in peers if "environment" in x.slices)
        out["peer"] = {
            "best": best.label,
            "versions": best.ready["versions"],
            "threads": {x.label: x.ready["threads"] for x in peers},
            "environment_alone": alone,
            "without_environment_us": rows[best.label]["median_us"] - alone["median_us"],
        }
    for label, row in rows.items():
        one_lane = label.removesuffix(f", {LANES} lanes")
        if best is not None:
            row["rate_over_sb3"] = rows[best.label]["median_us"] / row["median_us"]
            row["rate_over_sb3_without_environment"] = (
                out["peer"]["without_environment_us"] / row["median_us"]
            )
        if one_lane != label:
            row["rate_over_one_lane"] = rows[one_lane]["median_us"] / row["median_us"]
        elif label.startswith("rove"):
            row["time_over_rove_dqn"] = row["median_us"] / rows["rove dqn"]["median_us"]
    return out


def checks(results: dict[str, Any]) -> list[dict[str, Any]]:
    rows = results["contestants"]
    figure = rows["rove ge"]["time_over_rove_dqn"]
    out = [{"check": "ge takes at most 2.5× dqn's time", "figure": figure, "met": figure <= 2.5}]
    if "peer" in results:
        figure = rows["rove dqn"]["rate_over_sb3"]
        check = "dqn does at least 12× the steps/s of SB3's DQN"
        out.insert(0, {"check": check, "figure": figure, "met": figure >= 12})
    figure = min(rows[f"rove {a}, {LANES} lanes"]["rate_over_one_lane"] for a in AGENTS)
    check = f"{LANES} lanes do at least 1.8× the steps/s of one (the lowest of the agents)"
    return [*out, {"check": check, "figure": figure, "met": figure >= 1.8}]


def show(results: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console, rows = Console(), results["contestants"]

    def text(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    speed = Table(title="Speed: µs a step over all slices; ratios are of medians")
    cost = Table(title="Cost: one process each")
    speed.add_column("")
    for head in ("median", "min", "middle half", "steps/s", "× sb3", "time/dqn", "× 1 lane", "cores"):
        speed.add_column(head, justify="right", no_wrap=True)
    cost.add_column("")
    for head in ("compile s", "start-up s", "peak MB"):
        cost.add_column(head, justify="right", no_wrap=True)
    for label, row in rows.items():
        speed.add_row(
            label,
            text(row["median_us"], ".0f"),
            text(row["min_us"], ".0f"),
            f"{row['quarter_us']:.0f}–{row['three_quarters_us']:.0f}",
            text(row["steps_per_second"], ",.0f"),
            text(row.get("rate_over_sb3"), ".2f"),
            text(row.get("time_over_rove_dqn"), ".2f"),
            text(row.get("rate_over_one_lane"), ".2f"),
            text(row["cores_busy"], ".2f"),
        )
        cost.add_row(
            label,
            text(row["compile_seconds"], ".1f"),
            text(row["startup_seconds"], ".1f"),
            text(row["peak_mb"], ".0f"),
        )
    console.print(speed, cost)
    if "peer" in results:
        peer, dqn = results["peer"], rows["rove dqn"]
        console.print(
            f"SB3 is '{peer['best']}'. CartPole-v1 alone takes {peer['environment_alone']['median_us']:.1f} µs"
            f" a step; without it SB3 takes {peer['without_environment_us']:.0f} µs and rove's dqn is"
            f" {dqn['rate_over_sb3_without_environment']:.2f}× it.",
            highlight=False,
        )
    for check in results["checks"]:
        met = "met" if check["met"] else "not met"
        console.print(f"{check['check']}: {check['figure']:.2f}, {met}", highlight=False)
