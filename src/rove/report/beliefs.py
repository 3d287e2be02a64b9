"""Where lanes went, and what the first of them believed over training."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.report.folders import RunData
from rove.report.numbers import number, numbers
from rove.statistics import BAND_DRAWS, mean_interval
from rove.training.lane import SNAPSHOTS

ACTIONS = 10
"""The most that are drawn, as in diagnostics.png."""
EVERY = 5
"""Of a density's 101 points, every fifth is kept: the one in the middle is."""
HIGHEST = 999
"""Heights are whole numbers up to this one."""


def visits(run: RunData) -> dict[str, Any] | None:
    """In what fraction of its episodes a lane visited each cell, mean over seeds."""
    place = run.config.environment if run.config is not None else None
    if place is None or not place.bins:
        return None
    rows = []
    for seed, columns in run.columns.items():
        found = run.arrays(seed, ".visits").get(".visits")
        if found is not None and found.shape == (place.bins,):
            rows.append(found / max(len(columns["score"]), 1))
    if not rows:
        return None
    share = np.clip(np.array(rows, float), 0.0, 1.0)
    board = len(place.cells) == 2
    band = None
    if not board and len(rows) > 1:
        sides = mean_interval(share, (0.0, 1.0), draws=BAND_DRAWS)
        band = [numbers(side, 3) for side in sides]
    return {
        "cells": list(place.cells),
        "sides": [list(side) for side in place.coordinates],
        "mean": numbers(share.mean(axis=0), 3),
        "band": band,
        "n": len(rows),
    }


def beliefs(run: RunData) -> dict[str, Any] | None:
    """Draws of Q_θ(s, ·), θ ~ q_φ, and Z(s, ·), after episodes 1, 2, 4, … of the first lane."""
    if run.config is None:
        return None
    seed, columns = next(iter(run.columns.items()))
    arrays = run.arrays(seed, ".snapshots")
    values, outputs = arrays.get(".snapshots.values"), arrays.get(".snapshots.outputs")
    if values is None or outputs is None:
        return None
    agent = run.config.compose()
    probes = list(run.config.environment.probes()) or ["start"]
    taken = min(len(columns["score"]).bit_length(), SNAPSHOTS)
    actions = min(values.shape[-1], ACTIONS)
    flat = outputs.reshape(-1, outputs.shape[-1])
    pictures = [
        tuple(map(np.asarray, pair)) for pair in jax.vmap(agent.pictures)(jnp.asarray(flat))
    ][:actions]
    return {
        "seed": seed,
        "episodes": [2**k for k in range(taken)],
        "probes": probes,
        "discrete": agent.discrete,
        # [snapshot][probe][action][draw]
        "values": numbers(values[:taken, ..., :actions].transpose(0, 2, 3, 1), 3),
        # [snapshot][probe][action]
        "returns": [
            [
                [_picture(x[at], y[at], agent.discrete) for x, y in pictures]
                for at in range(k * len(probes), (k + 1) * len(probes))
            ]
            for k in range(taken)
        ],
    }


def _picture(points: np.ndarray, heights: np.ndarray, discrete: bool) -> dict[str, Any]:
    """Where (its ends, if evenly spaced) and how high, of the highest."""
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
