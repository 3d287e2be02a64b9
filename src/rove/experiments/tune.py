"""The search behind the tuned settings: one budget for every agent, on seeds of its own.

For each environment and agent, the 24 points of the agent's grid are tried on two seeds; the best
four go on to three more seeds; the winner has the highest mean over all five. The score is the
mean return of all episodes. No seed here is one that a figure reports.

The learning rate stays at 1e-3: in an unfinished first search (docs/tuning/README.md says how far
it got) 1e-3 came out ahead of 1e-4 for each agent.
"""

import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rove import runner
from rove.agents import settings_of
from rove.environments import make
from rove.errors import RunFolderError
from rove.training.checkpoint import publish

FINALISTS = 4
FIRST_SEEDS, FURTHER_SEEDS = (1000, 1001), (1002, 1003, 1004)
ENVIRONMENTS = {"chain-10": 100, "chain-50": 200, "chain-100": 200}
"""Episodes for each."""

PERIODS = (25, 50, 100)
GRIDS: dict[str, dict[str, tuple]] = {
    "dqn": {
        "target_period": PERIODS,
        "epsilon": (0.01, 0.03, 0.1, 0.3),
        "epsilon_steps": (0, 5000),
    },
    "noisynet": {
        "target_period": PERIODS,
        "rho": (-7.0, -6.0, -5.0, -4.5, -4.0, -3.5, -3.0, -2.0),
    },
    "ge": {
        "target_period": PERIODS,
        "rho": (-6.0, -5.0, -4.0, -3.0),
        "sigma": (1e-3, 1e-2),
    },
}
COLUMNS = ("environment", "agent", "settings", "seed", "score")


def points(agent: str) -> list[dict[str, Any]]:
    """Every point of the agent's grid."""
    grid = GRIDS[agent]
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def tune(out: Path, say: Callable[[str], None] = print, workers: int | None = None) -> None:
    """Search all of it; `out` gets record.csv, which a second call goes on from, and tuned.json."""
    record = _read(out / "record.csv")
    _write(out / "record.csv", record)  # so that a folder that cannot be written is found out now
    tuned: dict[str, dict[str, Any]] = {}
    for environment in ENVIRONMENTS:
        for agent in GRIDS:
            candidates = points(agent)
            _try(record, out, environment, agent, candidates, FIRST_SEEDS, workers)
            best = sorted(
                candidates, key=lambda p: -_mean(record, environment, agent, p, FIRST_SEEDS)
            )[:FINALISTS]
            _try(record, out, environment, agent, best, FURTHER_SEEDS, workers)
            seeds = FIRST_SEEDS + FURTHER_SEEDS
            winner = max(best, key=lambda p: _mean(record, environment, agent, p, seeds))
            score = _mean(record, environment, agent, winner, seeds)
            tuned.setdefault(environment, {})[agent] = {"settings": winner, "score": score}
            say(f"{environment} {agent}: {winner} scores {score:.3f} over {len(seeds)} seeds")
    publish(out / "tuned.json", (json.dumps(tuned, indent=2) + "\n").encode())


Record = dict[tuple[str, str, str, int], float]


def _try(
    record: Record,
    out: Path,
    environment: str,
    agent: str,
    candidates: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    workers: int | None,
) -> None:
    """Train what the record does not have yet, all at once, and add it."""
    plan = []
    for point in candidates:
        missing = [s for s in seeds if (environment, agent, json.dumps(point), s) not in record]
        if missing:
            # Only the point is set here: what an earlier search found must not leak in.
            settings = settings_of(agent)(**point)
            episodes = ENVIRONMENTS[environment]
            config = runner.configure(settings, make(environment), seeds=missing, episodes=episodes)
            plan.append((point, config))
    if not plan:
        return
    runs = runner.run_all([(config, None) for _, config in plan], workers=workers, on="processes")
    for (point, config), run in zip(plan, runs, strict=True):
        scores = {o.job.seed: float(np.mean(o.episodes.returns)) for o in run.outcomes}
        for seed in config.seeds:  # a lane that diverged has no score
            record[environment, agent, json.dumps(point), seed] = scores.get(seed, -math.inf)
    _write(out / "record.csv", record)


def _mean(
    record: Record, environment: str, agent: str, point: dict[str, Any], seeds: Sequence[int]
) -> float:
    return float(np.mean([record[environment, agent, json.dumps(point), s] for s in seeds]))


def _read(path: Path) -> Record:
    if not path.exists():
        return {}
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        return {(r["environment"], r["agent"], r["settings"], int(r["seed"])): float(r["score"])
                for r in rows}  # fmt: skip
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise RunFolderError(f"{path} is not a record of this search: {error!r}") from None


def _write(path: Path, record: Record) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((*key, f"{score:.6g}") for key, score in record.items())
    publish(path, text.getvalue().encode())
