"""Boards with few values have a cell for each of them."""

import jax.numpy as jnp
import numpy as np
import pytest

from rove.analysis.boards import merged
from rove.environments import Coordinate
from rove.environments.base import cell


def visited(side: Coordinate, values: np.ndarray) -> np.ndarray:
    """Return a board on which every pair of the values was visited, numbered from 1 on."""
    board = np.zeros((side.cells, side.cells), int)
    for i, up in enumerate(values):
        for j, across in enumerate(values):
            at = cell((side, side), (jnp.float32(up), jnp.float32(across)))
            board.flat[int(at)] = 1 + i * len(values) + j
    return board


@pytest.mark.parametrize("count", [3, 5, 7, 8, 11, 17, 20])
@pytest.mark.parametrize("high", [1.0, 6.0, -0.3])
def test_the_positions_of_a_grid_world_are_cells(count, high):
    side = Coordinate("x", high - 5.0, high)
    values = np.linspace(side.low, side.high, count)
    board, sides = merged(visited(side, values), (side, side))
    assert np.array_equal(board, 1 + np.arange(count**2).reshape(count, count))
    for merged_side in sides:
        edges = np.linspace(merged_side.low, merged_side.high, count + 1)
        assert np.allclose((edges[1:] + edges[:-1]) / 2, values)


def test_values_that_were_not_visited_are_blank():
    side = Coordinate("x", 0.0, 6.0)
    full = visited(side, np.arange(7.0))
    full[full % 7 == 2] = 0  # the second column was never visited
    board, _ = merged(full, (side, side))
    assert board.shape == (7, 7)
    assert not board[:, 1].any()
    assert board[:, [0, 2, 3, 4, 5, 6]].all()


def test_other_boards_stay_as_they_are():
    side = Coordinate("x", 0.0, 1.0)
    walk = np.zeros((40, 40))
    walk[18:22, 5:30] = 1.0  # neighbouring cells
    one = np.zeros((40, 40))
    one[20, 20] = 1.0
    for board in (walk, one, np.zeros((40, 40)), np.ones((40, 40))):
        same, sides = merged(board, (side, side))
        assert same is board
        assert sides == (side, side)
