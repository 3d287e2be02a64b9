"""Where the microseconds of a step go, by XLA's own profile.

python benchmarks/parts.py [AGENT ...] [--width 100] [--batch 64] [--json FILE]

Every operation of the compiled program is timed and assigned to a part by the function it comes
from. The times of operations are medians over the steps of a slice. "matrix products" is the floor:
the same products at the highest rate of a core, which is measured.
"""

import argparse
import glob
import gzip
import json
import re
import statistics
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.core import critic
from rove.core.algorithm import Agent
from rove.environments.cartpole import CartPole
from rove.parts import noise, platform, replay
from rove.training import compiled
from rove.training.lane import start
from rove_side import settings_for

AGENTS = ("dqn", "ge", "ge-minibatch", "c51", "qr_dqn", "bootstrapped_dqn", "ige", "bayesian_dqn")
STEPS, SLICES = 300, 20
# Parts, and the functions whose operations belong to them. The last one that applies counts, and
# what none applies to is bookkeeping.
SCOPES = {
    "environment": [(CartPole, "step"), (CartPole, "reset")],
    "replay": [(replay, name) for name in ("add", "sample", "reprioritised")],
    "acting": [(Agent, "act"), (Agent, "resample_theta")],
    "target": [(Agent, "lookahead")],
    "optimiser": [(critic, "posterior_step")],
    "random numbers": [(noise, name) for name in ("bits", "uniform", "normal", "integers")],
}
PARTS = (*SCOPES, "forward", "backward", "bookkeeping")


def part_of(name: str) -> str:
    """Return the part of an operation, given the name that JAX gives it."""
    scopes = [part for part in SCOPES if f"/{part}/" in name]
    if scopes:
        return scopes[-1]
    return "backward" if "transpose(" in name else "forward" if "jvp(" in name else "bookkeeping"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agents", nargs="*", default=list(AGENTS))
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {name: profile(name, options.width, options.batch) for name in options.agents}
    columns = [*PARTS, "sum of parts", "a step", "matrix products"]
    print("| µs | " + " | ".join(found) + " |\n|---|" + "---|" * len(found))
    for column in columns:
        print(f"| {column} | " + " | ".join(f"{f[column]:.0f}" for f in found.values()) + " |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), "utf-8")


def profile(name: str, width: int, batch: int) -> dict[str, float]:
    """Return the microseconds of each part of a step."""
    agent, environment = settings_for(name, width, batch).compose(), CartPole()
    lane = jax.jit(start)(agent, environment, np.int32(0))
    no_limit = np.int32(2**30)
    program = jax.jit(compiled.run, donate_argnums=2)
    program = program.lower(agent, environment, lane, np.int32(0), no_limit).compile()

    def learn(lane: Any, last: int) -> Any:
        while int(lane.step) < last:
            lane = program(agent, environment, lane, np.int32(last), no_limit)
        return jax.block_until_ready(lane)

    lane, times = learn(lane, 1000), []
    for i in range(SLICES):
        began = time.perf_counter()
        lane = learn(lane, 1000 + (i + 1) * STEPS)
        times.append((time.perf_counter() - began) / STEPS * 1e6)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            lane = learn(lane, int(lane.step) + STEPS)
        (file,) = glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True)
        with gzip.open(file) as trace:
            events = json.load(trace)["traceEvents"]
    text = program.as_text()
    durations = defaultdict(list)
    for event in events:
        if event.get("ph") == "X" and "hlo_op" in event.get("args", {}):
            durations[event["args"]["hlo_op"]].append(event["dur"])
    names = dict(re.findall(r'%([\w.\-]+) = .*metadata=\{op_name="([^"]*)"', text))
    parts = dict.fromkeys(PARTS, 0.0)
    for operation, each in durations.items():
        # Loops and conditions contain other operations.
        if len(each) > STEPS // 2 and not operation.startswith(("while", "cond", "call")):
            total = statistics.median(each) * len(each) / STEPS
            parts[part_of(names.get(operation, ""))] += total
    floor = sum(product_time(*shapes) for shapes in products(text, durations))
    total = {"sum of parts": sum(parts.values()), "a step": statistics.median(times)}
    return parts | total | {"matrix products": floor}


def products(text: str, run: dict) -> list[tuple[tuple[int, ...], ...]]:
    """Return the shapes of the operands and the result of every matrix product of a step."""
    shapes = dict(re.findall(r"%([\w.\-]+) = f32\[([\d,]*)\]", text))
    found = []
    for operation, result, operands in re.findall(
        r"%([\w.\-]+) = f32\[([\d,]*)\]\S* dot\(([^)]*)\)", text
    ):
        if len(run.get(operation, ())) > STEPS // 2:
            names = re.findall(r"%([\w.\-]+)", operands)
            sizes = [shapes[name] for name in names] + [result]
            found.append(tuple(tuple(map(int, size.split(","))) for size in sizes if size))
    return found


def product_time(*shapes: tuple[int, ...]) -> float:
    """Return the microseconds of a product of n × k by k × m, given all shapes, at the best rate
    of a core for these sizes."""
    left, right, result = (int(np.prod(shape)) for shape in shapes)
    operations = (left * right * result) ** 0.5  # n·k·m
    return 2 * operations / peak() / 1e3


@partial(jax.jit, static_argnums=2)
def _many(x: jax.Array, w: jax.Array, count: int) -> jax.Array:
    return jax.lax.fori_loop(0, count, lambda i, x: jnp.tanh(x[:1, :1]) * 1e-3 + x @ w, x)


def peak(size: int = 256, count: int = 200) -> float:
    """Return the highest rate of a matrix product on a core, in floating-point operations a ns."""
    if not _PEAK:
        x = jnp.eye(size)
        jax.block_until_ready(_many(x, x, count))
        times = []
        for _ in range(15):
            began = time.perf_counter()
            jax.block_until_ready(_many(x, x, count))
            times.append(time.perf_counter() - began)
        _PEAK.append(2 * size**3 * count / min(times) / 1e9)
    return _PEAK[0]


_PEAK: list[float] = []

if __name__ == "__main__":
    platform.prepare(lanes=1)
    jax.config.update("jax_enable_compilation_cache", False)  # it keeps other names
    for part, functions in SCOPES.items():
        for owner, name in functions:
            setattr(owner, name, jax.named_scope(part)(getattr(owner, name)))
    main()
