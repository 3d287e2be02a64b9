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
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PEER_VENV = HERE / ".bench" / "sb3"
PEER_PACKAGES = ("torch==2.13.0", "stable-baselines3==2.9.2", "gymnasium[mujoco]")  # in this order

AGENTS = (
    "dqn", "noisynet", "ge", "ge-minibatch", "ge-episode", "c51", "qr_dqn", "vdqn", "bbq",
    "bayesian_dqn", "bootstrapped_dqn", "bootstrapped_dqn-plain", "parameter_noise",
    "double_uncertain", "ige", "rlsvi", "thompson", "psrl", "bayesian_q_learning",
)  # fmt: skip
VARIANTS = {
    "ge-episode": {"resample": "episode"},
    "ge-minibatch": {"draws": "minibatch"},
    "bootstrapped_dqn-plain": {"prior": None},
}
SIDE_BY_SIDE = ("dqn", "noisynet", "ge", "ge-episode")  # measured with several lanes too
AT_MOST = {  # times the time of a dqn step
    2.5: ("ge",),
    3.0: ("noisynet", "vdqn", "bbq", "bayesian_dqn", "double_uncertain", "parameter_noise"),
    6.0: ("bootstrapped_dqn", "bootstrapped_dqn-plain"),  # with prior functions, and without
}
LINEAR = ("rlsvi", "thompson")  # by definition; with their own batch and buffer
LANES = 2
WARM_UP = 1_000
STEPS, PEER_STEPS = 500, 100  # in a slice: about a tenth of a second of rove, two of the peer
LANE_STEPS = 2000  # of each of several lanes, which do not begin and end at quite the same moment
SETTINGS = {"hidden": (100, 100), "batch_size": 64, "buffer_size": 50_000, "target_period": 100}


# The rove side: one agent in one process


def make_agent(name: str) -> Any:
    """A named agent, with its own defaults but for the shared settings that it has."""
    from rove.agents import settings_of
    from rove.agents.settings import with_settings

    chosen, name = VARIANTS.get(name, {}), name.partition("-")[0]
    settings = settings_of(name)()
    shared = {"target_period": 100} if name in LINEAR else SETTINGS
    shared = {k: v for k, v in shared.items() if hasattr(settings, k)}
    return with_settings(settings, shared | chosen).compose()


def worker(name: str, seed: int) -> None:
    """Answers "learn N" on stdin with one line of JSON: N steps of one lane."""
    import jax
    import numpy as np

    from rove.environments.chain import Chain
    from rove.training import compiled
    from rove.training.lane import FAULTS, Lane, start

    answers, sys.stdout = sys.stdout, sys.stderr
    agent, environment = make_agent(name), Chain(4, features="one-hot")
    begin, run = jax.jit(start), jax.jit(compiled.run, donate_argnums=2)
    no_limit = np.int32(2**30)

    began = time.perf_counter()  # a first call that runs no step: tracing and compiling
    lane = jax.block_until_ready(begin(agent, environment, np.int32(seed)))
    lane = jax.block_until_ready(run(agent, environment, lane, np.int32(0), no_limit))
    compile_s = time.perf_counter() - began

    def learn(lane: Lane, last: int) -> Lane:
        while int(lane.step) < last:  # a chunk also ends when its episode log is full
            lane = run(agent, environment, lane, np.int32(last), no_limit)
            if int(lane.fault):
                raise RuntimeError(f"{name}: fault in {FAULTS[int(lane.fault)]}")
        return lane

    def answer(**fields: object) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    last = WARM_UP
    lane = learn(lane, last)
    answer(compile_s=compile_s)
    for line in sys.stdin:
        steps = int(line.split()[1])
        last += steps
        cpu, began = time.process_time(), time.perf_counter()
        lane = learn(lane, last)
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        answer(steps=steps, seconds=seconds, cpu=cpu)


# The parent

# The tables' columns, by their names in the JSON.
COLUMNS = {
    "µs a step": ("median", "min", "¼", "¾", "cpu", "steps/s"),
    "ratios of medians": ("rate_over_sb3", "time_over_dqn", "rate_over_one_lane"),
    "each in its own process": ("compile_s", "startup_s", "peak_MB"),
}
# As rove sets them.
_XLA_FLAGS = "--xla_cpu_multi_thread_eigen=false --xla_cpu_experimental_ynn_fusion_type="
# Variables that would change how many threads run, or hide the time to compile.
_DROPPED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "JAX_COMPILATION_CACHE_DIR")


def proc(file: str, field: str) -> str | None:
    """A field of a file in /proc; None where there is no such thing."""
    path = Path("/proc") / file
    lines = path.read_text().splitlines() if path.exists() else []
    return next((x.split(":")[1].strip() for x in lines if x.startswith(field)), None)


class Contestant:
    """One process or more, side by side, that run slices when told to."""

    def __init__(self, label: str, commands: list[list[str]]) -> None:
        env = {k: v for k, v in os.environ.items() if k not in _DROPPED}
        env |= {"XLA_FLAGS": _XLA_FLAGS, "NPROC": "1"}
        self.label = label
        self.slices: dict[str, list[dict[str, float]]] = {}
        print(f"starting {label}", file=sys.stderr)
        began = time.perf_counter()
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.processes = [subprocess.Popen(c, text=True, env=env, **pipes) for c in commands]
        self.ready = self._read()[0]
        self.startup_s = time.perf_counter() - began

    def _read(self) -> list[dict[str, Any]]:
        lines = [process.stdout.readline() for process in self.processes]
        for line, process in zip(lines, self.processes, strict=True):
            if not line:
                raise SystemExit(f"{self.label}: its process ended with code {process.wait()}")
        return [json.loads(line) for line in lines]

    def run(self, what: str, steps: int) -> None:
        """A slice. Lanes do not wait for each other: their rates add up."""
        for process in self.processes:
            print(what, steps, file=process.stdin, flush=True)
        told = self._read()
        done = {field: sum(x[field] for x in told) for field in ("steps", "cpu")}
        done["seconds"] = done["steps"] / sum(x["steps"] / x["seconds"] for x in told)
        self.slices.setdefault(what, []).append(done)

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


def measure(rounds: int, peer: bool, agents: tuple[str, ...]) -> list[Contestant]:
    """Start everyone, one after the other, then take slices in an order shuffled every round."""
    commands = {
        f"sb3 dqn, threads: {threads}": [[peer_python(), str(HERE / "peer_sb3.py"), threads]]
        for threads in ("1", "default")
        if peer
    }
    this = [sys.executable, str(HERE / "throughput.py"), "--worker"]
    commands |= {f"rove {a}": [[*this, a]] for a in agents}
    commands |= {
        f"rove {a}, {LANES} lanes": [[*this, a, "--seed", str(i)] for i in range(LANES)]
        for a in SIDE_BY_SIDE
    }
    contestants = [Contestant(label, command) for label, command in commands.items()]
    lengths = {"sb3": PEER_STEPS, "lanes": LANE_STEPS}
    steps_of = lambda label: next((n for k, n in lengths.items() if k in label), STEPS)  # noqa: E731
    orders = [(x, "learn", steps_of(x.label)) for x in contestants]
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
        peak = proc(f"{x.processes[0].pid}/status", "VmHWM")
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
    rate = rows["rove dqn"].get("rate_over_sb3")
    two = min(rows[f"rove {a}, {LANES} lanes"]["rate_over_one_lane"] for a in SIDE_BY_SIDE)
    found = [
        ("dqn's steps/s, at least 12× SB3 DQN's", rate, rate is not None and rate >= 12),
        (f"{LANES} lanes' steps/s, at least 1.8× one lane's (lowest agent)", two, two >= 1.8),
    ]
    for most, agents in AT_MOST.items():
        for agent in agents:
            if row := rows.get(f"rove {agent}"):
                times = row["time_over_dqn"]
                found.append((f"{agent}'s time, at most {most:g}× dqn's", times, times <= most))
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
    parser.add_argument("--main", action="store_true", help="only " + ", ".join(SIDE_BY_SIDE))
    parser.add_argument("--no-peer", action="store_true", help="leave stable-baselines3 out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    parser.add_argument("--worker", choices=AGENTS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker, options.seed)

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
    agents = SIDE_BY_SIDE if options.main else AGENTS
    results = about | report(measure(rounds, not options.no_peer, agents))
    show(results)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
