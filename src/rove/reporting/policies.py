"""The trained policies of a run, and the evaluations of the greedy policy during training."""

from typing import Any

import numpy as np

from rove.analysis.curves import aligned
from rove.analysis.intervals import Support, within
from rove.core.policies import POLICIES
from rove.reporting import summaries
from rove.reporting.binning import POINTS
from rove.reporting.numbers import numbers
from rove.reporting.run_data import RunData


def about(run: RunData, unit: str, support: Support | None) -> dict[str, Any]:
    """Return the data about policies for the page. `unit` is that of curves, "step" or "episode",
    and `support` the range of scores, if it is known."""
    return {
        "evaluated": _evaluated(run, support),
        "policies": _policies(run),
        "evaluation": _evaluation(run, unit),
    }


def _evaluated(run: RunData, support: Support | None) -> summaries.Estimate | None:
    """Return the mean score of the trained policies; None if it is not known."""
    if run.evaluated is None:
        return None
    means = np.array([np.mean(scores) for scores in run.evaluated])
    return summaries.mean(means, support if support and within(means, support) else None)


def _policies(run: RunData) -> list[list[Any]] | None:
    """Return the policies that seeds deliver: name, description and number of seeds; None if they
    are not known."""
    if run.policies is None:
        return None
    names = [record.delivered.policy for record in run.policies]
    return [[n, p.description, names.count(n)] for n, p in POLICIES.items() if n in names]


def _evaluation(run: RunData, unit: str) -> dict[str, Any] | None:
    """Return the mean scores of the evaluations, and at which episodes or steps they were, up to
    the last one of a seed that has not finished; None if there are none."""
    if any(seed not in run.evaluations for seed in run.seeds):
        return None
    rows, ended = list(run.evaluations.values()), list(map(run.finished.get, run.evaluations))
    scores = aligned([row["score"] for row in rows], [over is True for over in ended])
    at = max((row[unit] for row in rows), key=len)
    every = -(-scores.shape[1] // POINTS)
    kept = slice((scores.shape[1] - 1) % every, None, every)  # the last one is kept
    return {"at": numbers(at[: scores.shape[1]][kept]), **summaries.curve(scores[:, kept])}
