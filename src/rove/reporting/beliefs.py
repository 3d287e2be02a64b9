"""State visits, coverage and spreads of a run, and the posterior of its first seed."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rove.analysis import densities
from rove.analysis.boards import merged
from rove.analysis.curves import learning_start, moving_average
from rove.analysis.seed_scores import common_episodes
from rove.analysis.sentences import note_above_optimum
from rove.core.diagnostics import density_curves
from rove.errors import RoveError
from rove.reporting import summaries
from rove.reporting.binning import FEW_POINTS
from rove.reporting.numbers import number, numbers
from rove.reporting.run_data import RunData
from rove.returns.base import Return
from rove.runs.config import agent_from
from rove.training.lane import SNAPSHOTS
from rove.training.solving import LAST

ACTIONS = 10
"""Maximum number of actions that are drawn, as in diagnostics.png."""
POINTS = 61
"""Number of points of a picture of Z."""
POLICY = ["action of the policy"]
HIGHEST = 99
"""Heights are scaled to integers up to this one."""
MORE = ("coverage", "spread", "return_spread")
"""Columns of episodes.csv that are shown in addition to the score."""


def more(run: RunData) -> dict[str, Any]:
    """Return coverage and spreads over episodes, except those that are 0 throughout."""
    curves = {}
    for column in MORE:
        window = 1 if column == "coverage" else LAST
        smooth = moving_average(common_episodes(run.table(column)), window)
        step = max(1, -(-smooth.shape[1] // FEW_POINTS))
        thin = smooth[:, step - 1 :: step]
        if np.any(thin != 0):
            curves[column] = {"step": step} | summaries.curve(thin)
    return curves


def visits(run: RunData) -> dict[str, Any] | None:
    """Return the fraction of episodes in which each cell was visited, averaged over seeds."""
    task = run.task
    if not task.bins:
        return None
    rows = []
    for seed, columns in run.columns.items():
        counts = run.arrays(seed, ".visits").get(".visits")
        if counts is not None and counts.shape == (task.bins,):
            rows.append(counts / max(len(columns["score"]), 1))
    if not rows:
        return None
    fraction = np.clip(np.array(rows, float), 0.0, 1.0)
    row = {} if len(task.cells) == 2 else summaries.curve(fraction)
    mean, sides = fraction.mean(axis=0).reshape(task.cells), task.coordinates
    if sides:
        mean, sides = merged(mean, sides)
    return {
        "cells": list(mean.shape),
        "first": task.first_cell,
        "sides": [list(side) for side in sides],
        "mean": numbers(mean.ravel(), 3),
        "n": len(rows),
    } | row


def beliefs(run: RunData, optimum: float | None) -> dict[str, Any] | None:
    """Return draws of Q_θ(s, ·), θ ~ q_φ, and Z(s, ·), after episodes 1, 2, 4, … of the first seed.
    `optimum` is the best possible score, if it is known. Z is None if its family is custom."""
    seed, columns = next(iter(run.columns.items()))
    arrays = run.arrays(seed, ".snapshots")
    values, outputs = arrays.get(".snapshots.values"), arrays.get(".snapshots.outputs")
    if values is None or outputs is None:
        return None
    scales = arrays.get(".snapshots.reward_scale", np.ones(len(outputs)))
    task = run.task
    probes = _names(list(task.probes()) or ["start"], values.shape[2], "state")
    count = min(len(columns["score"]).bit_length(), SNAPSHOTS)
    actions = min(values.shape[-1], ACTIONS)
    values = values[:count, ..., :actions]
    rows = columns["score"], columns["terminated"]
    return {
        "seed": seed,
        "actions": POLICY if actions == 1 else _names(task.action_names, actions, "action"),
        "starts": learning_start([columns["step"]], run.learning_starts),
        "optimum": optimum and number(optimum),
        "note": note_above_optimum(values, optimum, *rows, task.score_label, run.intrinsic),
        "episodes": [2**k for k in range(count)],
        "probes": probes,
        # [snapshot][probe][action][draw]
        "values": numbers(values.transpose(0, 2, 3, 1), 3),
        "returns": _returns(run, outputs[:count], scales[:count], actions),
    }


def _returns(
    run: RunData, outputs: np.ndarray, scales: np.ndarray, actions: int
) -> list[dict[str, Any]] | None:
    """Return pictures of Z(s, ·) over training in each probe state, given the network's outputs,
    [snapshots, probes, outputs], and their units; None if the return family is custom."""
    densities_of = _densities(run)
    if densities_of is None:
        return None
    count, probes, size = outputs.shape
    flat = jnp.asarray(outputs.reshape(-1, size))
    drawn = [tuple(map(np.asarray, pair)) for pair in jax.vmap(densities_of)(flat)][:actions]
    drawn = [(x * np.repeat(scales, probes)[:, None], y) for x, y in drawn]
    return [
        _pictures([[(x[k], y[k]) for x, y in drawn] for k in range(probe, count * probes, probes)])
        for probe in range(probes)
    ]


def _densities(run: RunData) -> Callable[[Array], list[tuple[Array, Array]]] | None:
    """Return a function that draws Z(s, ·) from outputs of the network; None if the return family
    is custom. The posterior may be custom."""
    if run.config is not None:
        return run.config.compose().densities
    try:
        returns = agent_from({"composition": run.composition["returns"]})
    except (RoveError, KeyError, TypeError, ValueError):
        return None
    return partial(density_curves, returns) if isinstance(returns, Return) else None


def _names(known: Sequence[str], count: int, kind: str) -> list[str]:
    """Return the names of actions or states; those without a name have a number."""
    return [known[i] if i < len(known) else f"{kind} {i}" for i in range(count)]


def _pictures(snapshots: Sequence[Sequence[densities.Distribution]]) -> dict[str, Any]:
    """Return pictures of Z(s, ·) over training: their common range and, for each snapshot and
    action, the mean and the heights at evenly spaced points."""
    low, high = densities.drawn_range([z for actions in snapshots for z in actions])
    return {
        "x": numbers(np.array([low, high]), 6),
        "y": [[_heights(z, low, high) for z in actions] for actions in snapshots],
        "means": [numbers(np.array([*map(densities.mean, actions)]), 6) for actions in snapshots],
    }


def _heights(distribution: densities.Distribution, low: float, high: float) -> list[int]:
    """Return the index of the first height that is not 0, and the heights from there to the last
    one that is not 0."""
    heights = np.round(HIGHEST * densities.smoothed(distribution, low, high, POINTS)).astype(int)
    nonzero = np.flatnonzero(heights)
    if not len(nonzero):
        return [0]
    return [int(nonzero[0]), *heights[nonzero[0] : nonzero[-1] + 1].tolist()]
