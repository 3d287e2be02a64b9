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
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEER_VENV = HERE / ".bench" / "sb3"
PEER_PACKAGES = ("torch==2.13.0", "stable-baselines3==2.9.2")  # in this order

AGENTS = ("dqn", "noisynet", "ge", "ge-episode")
LANES = 2
WARM_UP = 1_000
STEPS, PEER_STEPS = 500, 100  # in a slice: about a tenth of a second of rove, two of the peer
SETTINGS = {"hidden": (100, 100), "batch_size": 64, "buffer_size": 50_000, "target_period": 100}


# The rove side: one agent in one process


def make_agent(name: str) -> Any:
    from rove.algorithm import Agent
    from rove.posteriors import Dirac, MeanField
    from rove.returns import Gaussian

    return {
        "dqn": Agent(Gaussian(0.0), Dirac(), epsilon=0.1, **SETTINGS),
        "noisynet": Agent(Gaussian(0.0), MeanField(-4.0), **SETTINGS),
        "ge": Agent(Gaussian(1e-3), MeanField(-4.0), **SETTINGS),
        "ge-episode": Agent(Gaussian(1e-3), MeanField(-4.0), resample="episode", **SETTINGS),
    }[name]


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
    compile_s = time.perf_counter() - began

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
    answer(compile_s=compile_s)
    for line in sys.stdin:
        steps = int(line.split()[1])
        last += steps
        cpu, began = time.process_time(), time.perf_counter()
        learn(last)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        answer(steps=steps * lanes, seconds=seconds, cpu=cpu)


# The parent

# The tables' columns, by their names in the JSON.
COLUMNS = {
    "µs a step": ("median", "min", "¼", "¾", "cpu", "steps/s"),
    "ratios of medians": ("rate_over_sb3", "time_over_dqn", "rate_over_one_lane"),
    "each in its own process": ("compile_s", "startup_s", "peak_MB"),
}
# Variables that would change how many threads run, or hide the time to compile.
_DROPPED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "JAX_COMPILATION_CACHE_DIR")


def proc(file: str, field: str) -> str | None:
    """A field of a file in /proc; None where there is no such thing."""
    path = Path("/proc") / file
    lines = path.read_text().splitlines() if path.exists() else []
    return next((x.split(":")[1].strip() for x in lines if x.startswith(field)), None)


class Contestant:
    """A process that runs slices when told to."""

    def __init__(self, label: str, command: list[str]) -> None:
        env = {k: v for k, v in os.environ.items() if k not in _DROPPED}
        env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        if command[-2:] == ["--lanes", "1"]:
            env["NPROC"] = "1"  # as `rove train` does for one lane
        self.label = label
        self.slices: dict[str, list[dict[str, float]]] = {}
        print(f"starting {label}", file=sys.stderr)
        began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.ready = self._read()
        self.startup_s = time.perf_counter() - began

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

    def summary(self, what: str) -> dict[str, float]:
        slices = self.slices[what]
        micros = [1e6 * x["seconds"] / x["steps"] for x in slices]
        low, median, high = statistics.quantiles(micros, n=4, method="inclusive")
        cpu = statistics.median(1e6 * x["cpu"] / x["steps"] for x in slices)
        values = (median, min(micros), low, high, cpu, 1e6 / median)
        return dict(zip(COLUMNS["µs a step"], values, strict=True))


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


def measure(rounds: int, peer: bool) -> list[Contestant]:
    """Start everyone, one after the other, then take slices in an order shuffled every round."""
    commands = {
        f"sb3 dqn, threads: {threads}": [peer_python(), str(HERE / "peer_sb3.py"), threads]
        for threads in ("1", "default")
        if peer
    }
    this = [sys.executable, str(HERE / "throughput.py"), "--worker"]
    commands |= {f"rove {a}": [*this, a, "--lanes", "1"] for a in AGENTS}
    commands |= {f"rove {a}, {LANES} lanes": [*this, a, "--lanes", str(LANES)] for a in AGENTS}
    contestants = [Contestant(label, command) for label, command in commands.items()]
    orders = [(x, "learn", PEER_STEPS if "sb3" in x.label else STEPS) for x in contestants]
    orders += [(x, "environment", STEPS) for x in contestants[:1] if peer]
    shuffle = random.Random(0).shuffle
    for i in range(rounds):
        shuffle(orders)
        for contestant, what, steps in orders:
            time.sleep(0.02)  # the last one's threads may spin a little before they rest
            contestant.run(what, steps)
        if (i + 1) % 10 == 0:
            print(f"round {i + 1} of {rounds}", file=sys.stderr)
    return contestants


def report(contestants: list[Contestant]) -> dict[str, Any]:
    """Every figure, with its ratios; ratios are of medians."""
    rows: dict[str, dict[str, Any]] = {x.label: x.summary("learn") for x in contestants}
    out: dict[str, Any] = {"contestants": rows}
    peers = [x for x in contestants if x.label.startswith("sb3")]
    best = min(peers, key=lambda x: rows[x.label]["median"], default=None)
    if best is not None:
        alone = peers[0].summary("environment")
        out["peer"] = {
            "best": best.label,
            "versions": best.ready["versions"],
            "threads": {x.label: x.ready["threads"] for x in peers},
            "environment_alone": alone["median"],
            "without_environment": rows[best.label]["median"] - alone["median"],
        }
    for x in contestants:
        row, one_lane = rows[x.label], x.label.removesuffix(f", {LANES} lanes")
        row["compile_s"], row["startup_s"] = x.ready.get("compile_s"), x.startup_s
        peak = proc(f"{x.process.pid}/status", "VmHWM")
        row["peak_MB"] = int(peak.split()[0]) / 1024 if peak else None
        if best is not None:
            row["rate_over_sb3"] = rows[best.label]["median"] / row["median"]
        if one_lane != x.label:
            row["rate_over_one_lane"] = rows[one_lane]["median"] / row["median"]
        elif x not in peers:
            row["time_over_dqn"] = row["median"] / rows["rove dqn"]["median"]
    out["checks"] = checks(rows)
    return out


def checks(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    rate, time_ratio = rows["rove dqn"].get("rate_over_sb3"), rows["rove ge"]["time_over_dqn"]
    two = min(rows[f"rove {a}, {LANES} lanes"]["rate_over_one_lane"] for a in AGENTS)
    found = (
        ("dqn's steps/s, at least 12× SB3 DQN's", rate, rate is not None and rate >= 12),
        ("ge's time a step, at most 2.5× dqn's", time_ratio, time_ratio <= 2.5),
        (f"{LANES} lanes' steps/s, at least 1.8× one lane's (lowest agent)", two, two >= 1.8),
    )
    return [{"check": c, "figure": x, "met": met} for c, x, met in found if x is not None]


def show(results: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=max(90, Console().width))
    for (title, columns), places in zip(COLUMNS.items(), (0, 2, 1), strict=True):
        table = Table(title)
        for name in columns:
            table.add_column(name.replace("_", " "), justify="right")
        for label, row in results["contestants"].items():
            cells = (row.get(name) for name in columns)
            table.add_row(label, *("" if x is None else f"{x:,.{places}f}" for x in cells))
        console.print(table)
    if "peer" in results:
        peer, dqn = results["peer"], results["contestants"]["rove dqn"]["median"]
        console.print(
            f"sb3 is '{peer['best']}'. CartPole-v1 alone: {peer['environment_alone']:.1f} µs a"
            f" step. sb3 without it: {peer['without_environment']:.0f} µs, and dqn is"
            f" {peer['without_environment'] / dqn:.2f}× as fast as that."
        )
    if results["load_before"] > 0.3:
        load = f"The load average before the start was {results['load_before']:.1f}:"
        console.print(f"{load} something else was running, and it slows two lanes most.")
    for x in results["checks"]:
        console.print(f"{x['check']}: {x['figure']:.2f}, {'met' if x['met'] else 'not met'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="6 rounds in place of 30")
    parser.add_argument("--no-peer", action="store_true", help="leave stable-baselines3 out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--worker", choices=AGENTS, help=argparse.SUPPRESS)
    parser.add_argument("--lanes", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, options.lanes)

    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")

    rounds = 6 if options.quick else 30
    counts = {"rounds": rounds, "steps": STEPS, "peer_steps": PEER_STEPS, "lanes": LANES}
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": SETTINGS | counts,
        "machine": {"cores": os.cpu_count(), "cpu": proc("cpuinfo", "model name")},
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in ("jax", "jaxlib", "optax", "equinox", "numpy")},
        "load_before": os.getloadavg()[0],
    }
    results = about | report(measure(rounds, not options.no_peer))
    show(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
