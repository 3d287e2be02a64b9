"""The cells in which visits to the observations of a Gymnasium environment are counted."""

from typing import Any

import gymnasium
import numpy as np

from rove.environments.base import Coordinate
from rove.environments.encoding import channels_first
from rove.errors import ConfigError

EDGE, HUGE = 3.0, 1e6
"""The cells of an entry of the observation range from −EDGE to EDGE if the bounds of that entry are
infinite or beyond ±HUGE."""
MOST_STATES = 10_000
"""Maximum number of states of a discrete space whose visits are counted state by state."""


def grid_of(space: Any, axes: Any) -> tuple[tuple[int, int] | None, tuple[Coordinate, ...]]:
    """Return the entries of an observation whose cells count visits, and the grid's coordinates.

    By default, these are both entries of a bounded box or a multi-discrete space with two entries.
    """
    low, high = _bounds(space)
    bounded = (low >= -HUGE) & (high <= HUGE) & (low < high)
    if axes is None and len(low) == 2 and bounded.all():
        axes = (0, 1)
    if axes is None:
        return None, ()
    valid = isinstance(axes, list | tuple) and all(
        isinstance(i, int | np.integer) and not isinstance(i, bool) and i in range(len(low))
        for i in axes
    )
    if not valid or not len(axes) == len(set(axes)) == 2:
        if not len(low):
            message = "axes needs a Box or MultiDiscrete observation space, which this environment "
            message += "does not have; flatten a Dict or Tuple with gymnasium.wrappers."
            message += "FlattenObservation first"
            raise ConfigError("axes", axes, "None", message)
        allowed = f"two distinct indices below {len(low)}, for example 0 1"
        raise ConfigError.must_be("axes", axes, allowed)
    ends = np.where(bounded, (low, high), [[-EDGE], [EDGE]])
    integers = space.dtype.kind in "iub"

    def coordinate(i: int) -> Coordinate:
        name, (least, most) = f"observation {i}", ends[:, i].tolist()
        if integers and bounded[i]:
            return Coordinate.of_integers(name, int(least), int(most))
        return Coordinate(name, least, most)

    return (int(axes[0]), int(axes[1])), (coordinate(axes[1]), coordinate(axes[0]))


def _bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of each entry of a box or a multi-discrete space;
    nothing for other spaces."""
    if isinstance(space, gymnasium.spaces.Box):
        ends = (space.low, space.high)
        if channels_first(space):
            ends = [np.moveaxis(end, 0, -1) for end in ends]
        return ends[0].ravel().astype(float), ends[1].ravel().astype(float)
    codes = np.array(one_hot_of(space), float).reshape(-1, 3)
    return codes[:, 0], codes[:, 0] + codes[:, 1] - 1


def one_hot_of(space: Any) -> tuple[tuple[int, int, int], ...]:
    """Return `HostEnvironment.one_hot` of a space."""
    if not isinstance(space, gymnasium.spaces.MultiDiscrete):
        return ()
    counts, first = space.nvec.ravel().tolist(), space.start.ravel().tolist()
    return tuple(zip(first, counts, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
