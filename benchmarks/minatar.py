"""MinAtar's Breakout with image observations: scores of a long run, every agent for a short time,
and the time of a step beside rejax.

    python benchmarks/minatar.py score RUN        # RUN: the folder of a run of `rove train`
    python benchmarks/minatar.py agents           # --steps N; resumable
    python benchmarks/minatar.py speed            # two minutes, after rejax has been installed
    python benchmarks/minatar.py page             # the tables alone

Each part is written to docs/data/minatar.json, and the tables to docs/how-to/images.md.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import numpy as np

import rove
from contestants import ONE_THREAD, spread
from peers import folder, python_of
from rove.agents import AGENTS, settings_of
from rove.analysis.intervals import mean_interval
from rove.errors import RoveError
from rove.runs.configure import configure
from rove.runs.execution import run_all

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
DATA, PAGE = DOCS / "data" / "minatar.json", DOCS / "how-to" / "images.md"
TASK = "gymnax/Breakout-MinAtar"
RECENT = 100
"""Number of last training episodes in the score of a run: that of MinAtar's own curves."""
ROUNDS, SLICE = 40, 1_000
"""Number of slices of each contestant in turn, and their steps."""
_BLOCK = re.compile(r"(<!-- minatar: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def score(folder: Path) -> dict[str, Any]:
    """Return the scores of a run: the mean of its last training episodes, seed by seed, and of the
    greedy policy at its last evaluation."""
    run = rove.load(folder)
    if run.config.environment.name != TASK or run.config.agent_name != "dqn":
        raise SystemExit(f"{folder} is not a run of dqn on {TASK}")
    steps = run.config.steps
    recent = [float(np.mean(o.scores[-RECENT:])) for o in run.outcomes]
    low, high = mean_interval(np.array(recent), None)
    greedy = [float(e.mean[-1]) for e in run.evaluations if len(e.step)]
    return {
        "steps": steps,
        "seeds": [int(seed) for seed in run.seeds],
        "recent": recent,
        "mean": float(np.mean(recent)),
        "interval": [float(low), float(high)],
        "greedy": greedy,
        "delivered": [d.policy for d in run.delivered],
        "delivered_scores": [float(np.mean(scores)) for scores in run.evaluated],
    }


def agents(steps: int, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Train every agent for a short time; yield, after each, what became of them: the mean score of
    the last training episodes, or why an agent is refused. Agents that are `known` for the same
    number of steps are not trained again."""
    rows = known.get("agents", {}) if known.get("steps") == steps else {}
    for name in AGENTS:
        if name not in rows:
            rows[name] = _short_run(name, steps)
            print(name, rows[name], flush=True)
            yield {"steps": steps, "agents": rows}


def _short_run(name: str, steps: int) -> dict[str, Any]:
    try:
        config = configure(settings_of(name)(), rove.make(TASK), seeds=[0], steps=steps)
        (run,) = run_all([(config, None)])
    except RoveError as error:
        return {"refused": str(error)}
    if not run.outcomes:
        return {"failed": str(run.errors[0])}
    (outcome,) = run.outcomes
    leaves = [np.asarray(x) for x in jax.tree.leaves(outcome.lane.agent.phi)]
    floats = [x for x in leaves if np.issubdtype(x.dtype, np.floating)]
    return {
        "finite": bool(all(np.isfinite(x).all() for x in floats)),
        "updates": max(int(outcome.lane.step) - int(outcome.job.agent.learning_starts), 0),
        "episodes": len(outcome.scores),
        "score": float(np.mean(outcome.scores[-50:])),
    }


def speed() -> dict[str, Any]:
    """Let rove and rejax take slices in turn; return the microseconds of a step of each."""
    script = {"rove": (sys.executable, "minatar_rove.py")}
    script["rejax"] = (python_of("rejax"), "minatar_rejax.py")
    base = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"JAX_PLATFORMS": "cpu"}
    base |= {"XLA_FLAGS": ONE_THREAD, "NPROC": "1", "OMP_NUM_THREADS": "1"}
    base |= {"JAX_COMPILATION_CACHE_DIR": str(folder() / "cache")}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": base}
    running = {
        name: subprocess.Popen([python, str(HERE / file), "{}"], **pipes)
        for name, (python, file) in script.items()
    }

    def read(name: str) -> dict[str, Any]:
        line = running[name].stdout.readline()
        if not line:
            raise SystemExit(f"{name} ended with code {running[name].wait()}")
        return json.loads(line)

    versions = {name: read(name)["versions"] for name in running}
    micros: dict[str, list[float]] = {name: [] for name in running}
    cpu: dict[str, list[float]] = {name: [] for name in running}
    for _ in range(ROUNDS):
        for name, process in running.items():
            print(SLICE, file=process.stdin, flush=True)
            answer = read(name)
            micros[name].append(1e6 * answer["seconds"] / answer["steps"])
            cpu[name].append(1e6 * answer["cpu"] / answer["steps"])
    for process in running.values():
        process.stdin.close()
        process.wait()
    ratio = statistics.median(b / a for a, b in zip(micros["rove"], micros["rejax"], strict=True))
    load = os.getloadavg()[0]
    return {n: spread(x) | {"cpu": statistics.median(cpu[n])} for n, x in micros.items()} | {
        "ratio": ratio, "versions": versions, "load": load, "cores": os.cpu_count(),
    }  # fmt: skip


def tables(data: dict[str, Any]) -> dict[str, str]:
    """Return the tables that there are data for."""
    made = {}
    if "score" in data:
        made["score"] = _score_table(data["score"])
    if "agents" in data:
        made["agents"] = _agents_table(data["agents"])
    if "speed" in data:
        made["speed"] = _speed_table(data["speed"])
    return made


def _score_table(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    seeds = ", ".join(f"{x:.1f}" for x in found["recent"])
    text = "| | mean return | seeds |\n| --- | --- | --- |\n"
    text += f"| last {RECENT} training episodes | {found['mean']:.1f} (95% interval {low:.1f} to "
    text += f"{high:.1f}) | {seeds} |\n"
    if found["greedy"]:
        row = ", ".join(f"{x:.1f}" for x in found["greedy"])
        text += f"| greedy policy, last evaluation | {np.mean(found['greedy']):.1f} | {row} |\n"
    row = ", ".join(f"{x:.1f}" for x in found["delivered_scores"])
    return text + f"| delivered policy | {np.mean(found['delivered_scores']):.1f} | {row} |\n"


def _agents_table(found: dict[str, Any]) -> str:
    rows = found["agents"]
    ran = [n for n, row in rows.items() if row.get("finite")]
    text = f"| after {found['steps']:,} steps | agents |\n| --- | --- |\n"
    text += f"| trained, all parameters finite | {', '.join(f'`{n}`' for n in ran)} |\n"
    reasons: dict[str, list[str]] = {}
    for name, row in rows.items():
        if name not in ran:
            reason = row.get("refused") or row.get("failed") or "its parameters are not finite"
            reason = re.split(r"\n|; |, such as", reason)[0].replace(name, "…", 1)
            reasons.setdefault(reason, []).append(f"`{name}`")
    for reason, names in reasons.items():
        text += f"| {reason} | {', '.join(names)} |\n"
    return text


def _speed_table(found: dict[str, Any]) -> str:
    text = "| | time of a step | quartiles | processor time |\n| --- | --- | --- | --- |\n"
    for name in ("rove", "rejax"):
        low, high = found[name]["quartiles"]
        text += f"| {name} {found['versions'][name][name]} | {found[name]['median']:,.0f} µs | "
        text += f"{low:,.0f} to {high:,.0f} µs | {found[name]['cpu']:,.0f} µs |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="MinAtar's Breakout with image observations.")
    parser.add_argument("part", choices=("score", "agents", "speed", "page"))
    parser.add_argument("run", nargs="?", type=Path, help="run folder, for the score")
    parser.add_argument("--steps", type=int, default=10_000, help="steps of each agent")
    given = parser.parse_args()
    data = json.loads(DATA.read_text("utf-8")) if DATA.exists() else {}
    if given.part == "score":
        if given.run is None:
            parser.error("score needs the folder of a run")
        _keep(data, "score", score(given.run))
    elif given.part == "agents":
        for found in agents(given.steps, data.get("agents", {})):
            _keep(data, "agents", found)
    elif given.part == "speed":
        _keep(data, "speed", speed())
    made, text = tables(data), PAGE.read_text("utf-8")
    filled = _BLOCK.sub(lambda m: m[1] + made[m[2]] + m[3] if m[2] in made else m[0], text)
    PAGE.write_text(filled, "utf-8")


def _keep(data: dict[str, Any], part: str, found: dict[str, Any]) -> None:
    """Add a part to the data, and write the file."""
    about = {"date": datetime.now(UTC).date().isoformat(), "machine": platform.machine()}
    data[part] = found | about
    DATA.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
