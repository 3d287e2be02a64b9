"""`rove reproduce tuning`: search settings with the same budget for every agent.

For each environment and agent, points of the agent's grid are tried on the first seeds, and then,
in a refined search, neighbours of the best. The finalists are tried on further seeds, and the one
with the highest mean over all seeds wins. Reported results never use these seeds.
"""

import csv
import json
import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rove.agents import settings_of
from rove.environments import make
from rove.errors import RunFolderError
from rove.parts.files import publish
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.tables import as_csv, publish_text
from rove.search import trials
from rove.search.grids import Search, Values, variant
from rove.search.trials import race, ranking

COLUMNS = ("environment", "agent", "settings", "seed", "score")


def tune(
    search: Search, out: Path, say: Callable[[str], None] = print, workers: int | None = None
) -> None:
    """Run a search. Writes tuned.json and record.csv to `out`; a second call resumes from the
    latter."""
    record = _read(out / "record.csv")
    _write(out / "record.csv", record)  # fail early if the folder is not writable
    tuned: dict[str, dict[str, Any]] = {}
    for environment in search.environments:
        for agent in search.grids:
            points = search.points(agent)
            try_points = partial(_try, search, record, out, environment, agent, workers, points)
            if search.refined:
                first = try_points(range(len(points)), search.first_seeds)
                best = [points[i] for i in ranking(first)[: search.finalists]]
                points += search.neighbours(agent, best, points)
            scores = race(len(points), search.rungs(len(points)), try_points)
            best = ranking(scores)[0]
            mean = float(np.mean(scores[best]))
            settings = search.base(environment, agent) | points[best]
            entry = {"settings": settings, "score": mean}
            by_agent = tuned.setdefault(environment, {})
            by_agent[agent] = entry
            by_agent.setdefault(variant(agent)[0], entry)  # the first variant sets the default
            seeds = len(scores[best])
            say(f"{environment} {agent}: {points[best]} scores {mean:.3f} over {seeds} seeds")
    publish(out / "tuned.json", (json.dumps(tuned, indent=2) + "\n").encode())


Record = dict[tuple[str, str, str, int], float]
"""Scores by environment, agent, settings as JSON, and seed."""


def _try(
    search: Search,
    record: Record,
    out: Path,
    environment: str,
    agent: str,
    workers: int | None,
    points: Sequence[Values],
    chosen: Sequence[int],
    seeds: Sequence[int],
) -> list[list[float]]:
    """Return the scores of points on seeds. Scores that are missing from the record are trained
    for, all at once, and added to it."""
    keys = [json.dumps(points[i]) for i in chosen]
    plan: list[tuple[str, Config]] = []
    base, budget = search.base(environment, agent), search.environments[environment]
    for key, i in zip(keys, chosen, strict=True):
        missing = [s for s in seeds if (environment, agent, key, s) not in record]
        if missing:
            # Set only the base and the point: results of earlier searches must not leak in.
            settings = settings_of(variant(agent)[0])(**(base | points[i]))
            task = make(environment)
            until = search.until_solved and task.optimum is not None
            config = configure(
                settings, task, seeds=missing, until_solved=until, **{search.unit: budget}
            )
            plan.append((key, config))
    if plan:
        table = trials.train([(config, None) for _, config in plan], workers=workers)
        for (key, config), scores in zip(plan, table, strict=True):
            for seed, score in zip(config.seeds, scores, strict=True):
                record[environment, agent, key, seed] = score
        _write(out / "record.csv", record)
    return [[record[environment, agent, key, s] for s in seeds] for key in keys]


def _read(path: Path) -> Record:
    """Read record.csv; an empty record if there is none."""
    if not path.exists():
        return {}
    try:
        with open(path, newline="") as file:
            rows = list(csv.DictReader(file))
        record: Record = {}
        for r in rows:
            key, score = (r["environment"], r["agent"], r["settings"], int(r["seed"])), r["score"]
            if key in record or not float(score) < math.inf:  # −∞ is a run that diverged
                raise ValueError(f"score {score} of {key} is invalid or occurs twice")
            record[key] = float(score)
        return record
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise RunFolderError(f"{path} is not a record of this search: {error!r}") from None


def _write(path: Path, record: Record) -> None:
    publish_text(path, as_csv(COLUMNS, [(*key, repr(score)) for key, score in record.items()]))
