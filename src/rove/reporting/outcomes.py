"""The outcomes of a run's seeds: when they solved their task, and what went wrong."""

from typing import Any

import numpy as np

from rove.analysis import findings
from rove.analysis.alarms import alarms, remedies, start_value
from rove.analysis.networks import Seed, scale_of, worth_judging
from rove.reporting import summaries
from rove.reporting.run_data import RunData
from rove.training import solving


def when(run: RunData, optimum: float | None) -> list[int | None]:
    """Return the episode at which each seed had solved its task; None if it did not, or if the
    optimum is not known."""
    rows = [columns["score"] for columns in run.columns.values()]
    return [None if optimum is None else solving.episodes_to_solve(x, optimum) for x in rows]


def lost(run: RunData, optimum: float | None) -> list[bool]:
    """Return whether each seed solved its task and lost it again."""
    rows = [columns["score"] for columns in run.columns.values()]
    pairs = zip(rows, run.evaluated or [None] * len(rows), strict=True)
    return [optimum is not None and solving.is_lost(row, optimum, x) for row, x in pairs]


def solved(run: RunData, optimum: float | None) -> dict[str, Any] | None:
    """Return how soon seeds solved their task; None if its optimum is unknown. A diverged seed
    counts as unsolved to the end."""
    if optimum is None:
        return None
    watched = np.array([len(columns["score"]) for columns in run.columns.values()])
    end = max(int(watched.max()), run.raw.get("episodes") or 0)
    summary = summaries.solved(when(run, optimum), np.where(run.diverged, end, watched))
    return summary | {"lost": sum(lost(run, optimum)), "networks": _networks(run, optimum)}


def _networks(run: RunData, optimum: float | None) -> dict[str, Any] | None:
    """Return of how many seeds that solved the task the values of the network, and its greedy
    actions, depend on the state, and the mean score of the greedy policies of all seeds; None if
    that is not known."""
    ends = run.policies
    if not ends or any(end.inspection is None or not end.greedy for end in ends):
        return None
    solved = zip(when(run, optimum), ends, strict=True)
    known = [end.inspection for at, end in solved if at is not None and end.inspection is not None]
    return {
        "values": sum(not x.values_constant for x in known),
        "policies": sum(not x.policy_constant for x in known),
        "greedy": float(np.mean([np.mean(end.greedy) for end in ends])),
    }


def warnings(run: RunData, optimum: float | None) -> list[str]:
    """Return a sentence for each sign that the training of a seed went wrong."""
    return [sentence for seed in _seeds(run, optimum) for sentence in alarms(seed)]


def finding(run: RunData, optimum: float | None) -> str | None:
    """Say in one line what the warnings are about; None if there are none."""
    return findings.finding(_seeds(run, optimum))


def advice(run: RunData, optimum: float | None) -> list[str]:
    """Return advice on the warnings."""
    return remedies(_seeds(run, optimum), run.name)


def _seeds(run: RunData, optimum: float | None) -> list[Seed]:
    """Return the results that alarms are computed from."""
    ends = run.policies or [None] * len(run.columns)
    known = run.task.score_range
    return [
        Seed(
            seed=seed,
            scores=x["score"],
            spread=x["spread"],
            optimum=optimum,
            evaluated=None if end is None else end.scores,
            value=_value(run, seed, x),
            network=None if end is None else worth_judging(end.inspection, _learned(run, x)),
            scale=scale_of(x["return"], known if run.task.score_label == "return" else None),
            policy="mean" if end is None else end.delivered.policy,
            score_scale=scale_of(x["score"], known),
        )
        for (seed, x), end in zip(run.columns.items(), ends, strict=True)
    ]


def _learned(run: RunData, columns: dict[str, np.ndarray]) -> int:
    """Return the number of episodes that have ended since learning started."""
    return int(np.sum(columns["step"] >= run.learning_starts))


def _value(run: RunData, seed: int, columns: dict[str, np.ndarray]) -> float | None:
    values = run.arrays(seed, ".snapshots.values").get(".snapshots.values")
    if values is None:
        return None
    rows = columns["score"], columns["terminated"]
    return start_value(values, *rows, run.task.score_label, _learned(run, columns))
