"""The searches behind the tuned settings: one budget for every agent, on seeds of its own.

For each environment and agent, the points of the agent's grid are tried on the first seeds; the
best go on to further seeds; the winner has the highest mean over all of them. The score of a lane
is the mean score of its episodes, those after it was solved, if it stopped there, counted as
optimal; where the budget is in steps, the mean over steps of the score of their episode; on a
bandit, less what the arms that were pulled lose. No seed here is one that is
reported.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rove import runner
from rove.agents import settings_of
from rove.environments import Bandit, make
from rove.errors import Diverged, LaneError, RunFolderError
from rove.experiments.searches import Search, variant
from rove.runner import Run
from rove.runs import Config
from rove.training.checkpoint import publish
from rove.training.outcomes import Outcome

COLUMNS = ("environment", "agent", "settings", "seed", "score")


def tune(
    search: Search, out: Path, say: Callable[[str], None] = print, workers: int | None = None
) -> None:
    """Search all of it; `out` gets record.csv, which a second call goes on from, and tuned.json."""
    record = _read(out / "record.csv")
    _write(out / "record.csv", record)  # so that a folder that cannot be written is found out now
    tuned: dict[str, dict[str, Any]] = {}
    for environment in search.environments:
        for agent in search.grids:
            candidates, seeds = search.points(agent), search.first_seeds
            _try(search, record, out, environment, agent, candidates, seeds, workers)
            candidates.sort(key=lambda p: -_mean(record, environment, agent, p, seeds))
            if search.further_seeds:
                candidates = candidates[: search.finalists]
                further = search.further_seeds
                _try(search, record, out, environment, agent, candidates, further, workers)
                seeds += further
            winner = max(candidates, key=lambda p: _mean(record, environment, agent, p, seeds))
            score = _mean(record, environment, agent, winner, seeds)
            settings = search.base(environment, agent) | winner
            entry = {"settings": settings, "score": score}
            found = tuned.setdefault(environment, {})
            found[agent] = entry
            name = variant(agent)[0]  # which has the settings of its best variant
            found[name] = max(entry, found.get(name, entry), key=lambda e: e["score"])
            say(f"{environment} {agent}: {winner} scores {score:.3f} over {len(seeds)} seeds")
    publish(out / "tuned.json", (json.dumps(tuned, indent=2) + "\n").encode())


Record = dict[tuple[str, str, str, int], float]


def _try(
    search: Search,
    record: Record,
    out: Path,
    environment: str,
    agent: str,
    candidates: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    workers: int | None,
) -> None:
    """Train what the record does not have yet, all at once, and add it."""
    plan: list[tuple[dict[str, Any], Config]] = []
    base, budget = search.base(environment, agent), search.environments[environment]
    for point in candidates:
        missing = [s for s in seeds if (environment, agent, json.dumps(point), s) not in record]
        if missing:
            # Only base and point are set: what an earlier search found must not leak in.
            settings, place = settings_of(variant(agent)[0])(**(base | point)), make(environment)
            until = search.until_solved and place.optimum is not None
            config = runner.configure(
                settings, place, seeds=missing, until_solved=until, **{search.unit: budget}
            )
            plan.append((point, config))
    if not plan:
        return
    runs = runner.run_all([(config, None) for _, config in plan], workers=workers, on="processes")
    if failed := [e for run in runs for e in run.errors if not isinstance(e, Diverged)]:
        raise LaneError("\n".join(map(str, failed)))
    for (point, config), run in zip(plan, runs, strict=True):
        scores = {o.job.seed: _score(run, o, budget, search.unit) for o in run.outcomes}
        for seed in config.seeds:  # a lane that diverged has no score
            record[environment, agent, json.dumps(point), seed] = scores.get(seed, -math.inf)
    _write(out / "record.csv", record)


def _score(run: Run, outcome: Outcome, budget: int, unit: str) -> float:
    environment, scores = run.config.environment, outcome.scores
    if unit == "steps":
        return float(np.sum(scores * outcome.episodes.length)) / budget
    if isinstance(environment, Bandit):
        return -float(environment.regret(outcome.visits)) / budget
    rest = budget - len(scores)
    return float(np.sum(scores) + rest * (environment.optimum or 0.0)) / budget


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
    writer.writerows((*key, repr(score)) for key, score in record.items())
    publish(path, text.getvalue().encode())
