"""State visits of a run, and the posterior of its first seed over training."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.analysis.curves import learning_start
from rove.analysis.sentences import note_above_optimum
from rove.reporting import summaries
from rove.reporting.folders import RunData
from rove.reporting.numbers import number, numbers
from rove.training.lane import SNAPSHOTS

ACTIONS = 10
"""Maximum number of actions that are drawn, as in diagnostics.png."""
EVERY = 5
"""Keep every fifth of the 101 points of a density, which includes the middle one."""
POLICY = ["action of the policy"]
HIGHEST = 999
"""Heights are scaled to integers up to this one."""


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
    row = {} if len(task.cells) == 2 else summaries.curve(fraction, (0.0, 1.0))
    return {
        "cells": list(task.cells),
        "sides": [list(side) for side in task.coordinates],
        "mean": numbers(fraction.mean(axis=0), 3),
        "n": len(rows),
    } | row


def beliefs(run: RunData, optimum: float | None) -> dict[str, Any] | None:
    """Return draws of Q_θ(s, ·), θ ~ q_φ, and Z(s, ·), after episodes 1, 2, 4, … of the first seed.
    `optimum` is the best possible score, if it is known."""
    if run.config is None:
        return None
    seed, columns = next(iter(run.columns.items()))
    arrays = run.arrays(seed, ".snapshots")
    values, outputs = arrays.get(".snapshots.values"), arrays.get(".snapshots.outputs")
    if values is None or outputs is None:
        return None
    agent, task = run.config.compose(), run.task
    probes = _names(list(task.probes()) or ["start"], values.shape[2], "state")
    taken = min(len(columns["score"]).bit_length(), SNAPSHOTS)
    actions = min(values.shape[-1], ACTIONS)
    flat = outputs.reshape(-1, outputs.shape[-1])
    densities = [
        tuple(map(np.asarray, pair)) for pair in jax.vmap(agent.densities)(jnp.asarray(flat))
    ][:actions]
    values = values[:taken, ..., :actions]
    ended = columns["terminated"]
    return {
        "seed": seed,
        "actions": POLICY if actions == 1 else _names(task.action_names, actions, "action"),
        "starts": learning_start([columns["step"]], run.learning_starts),
        "optimum": optimum and number(optimum),
        "note": note_above_optimum(values, optimum, ended, task.score_label),
        "episodes": [2**k for k in range(taken)],
        "probes": probes,
        "discrete": agent.discrete,
        # [snapshot][probe][action][draw]
        "values": numbers(values.transpose(0, 2, 3, 1), 3),
        # [snapshot][probe][action]
        "returns": [
            [
                [_picture(x[at], y[at], agent.discrete) for x, y in densities]
                for at in range(k * len(probes), (k + 1) * len(probes))
            ]
            for k in range(taken)
        ],
    }


def _names(known: Sequence[str], count: int, kind: str) -> list[str]:
    """Return the names of actions or states; those without a name have a number."""
    return [known[i] if i < len(known) else f"{kind} {i}" for i in range(count)]


def _picture(points: np.ndarray, heights: np.ndarray, discrete: bool) -> dict[str, Any]:
    """Return the points of a picture (only its ends if evenly spaced), and heights relative to the
    highest."""
    if not discrete:
        points, heights = points[::EVERY], heights[::EVERY]
    top = max(float(heights.max()), 1e-30)
    even = np.linspace(points[0], points[-1], len(points))
    spaced = len(points) > 2 and np.allclose(points, even, atol=1e-4 * np.ptp(points) + 1e-30)
    return {
        "x": numbers(points[[0, -1]] if spaced else points),
        "y": np.round(HIGHEST * heights / top).astype(int).tolist(),
        "top": number(top, 3),
    }
