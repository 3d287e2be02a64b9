"""Boards of visits: grids of cells over two coordinates of an observation."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Shaped

from rove.environments import Coordinate

LEAST = 3
"""Minimum number of cells visited along an axis from which its spacing is inferred."""


def merged(
    visits: Shaped[np.ndarray, "*n rows columns"], coordinates: Sequence[Coordinate]
) -> tuple[Shaped[np.ndarray, "*n rows columns"], tuple[Coordinate, ...]]:
    """Return a board with one cell for each value of its coordinates, if they take few values.

    The positions of a 7 × 7 grid world, in a continuous space, are 49 cells of a board of 40 × 40.
    Where all cells visited along an axis are those of a few evenly spaced values, from the lowest
    to the highest, only these cells are kept, and the axis has a cell for each value.
    """
    sides = []
    for axis, side in zip((-2, -1), coordinates, strict=True):
        others = tuple(i for i in range(visits.ndim) if i != visits.ndim + axis)
        kept = _evenly_spaced(np.flatnonzero(np.any(visits, axis=others)), side.cells)
        if kept is None:
            sides.append(side)
        else:
            half = (side.high - side.low) / (len(kept) - 1) / 2
            sides.append(Coordinate(side.name, side.low - half, side.high + half, len(kept)))
            visits = np.take(visits, kept, axis=axis)
    return visits, tuple(sides)


def _evenly_spaced(visited: np.ndarray, cells: int) -> np.ndarray | None:
    """Return the cells of the fewest evenly spaced values that include all visited cells; None if
    there is no such number of values that leaves a cell between any two of them."""
    if len(visited) < LEAST:
        return None
    for count in range(2, cells // 2 + 1):
        centres, rest = np.divmod(np.arange(count) * cells, count - 1)
        below = (rest == 0) & ~np.isin(
            centres, visited
        )  # rounded down, or the end of the last cell
        centres = np.maximum(centres - below, 0)
        if np.all(np.isin(visited, centres)):
            return centres
    return None
