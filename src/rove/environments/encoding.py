"""Encoding of Gymnasium observations as columns of numbers."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from rove.environments.faults import BadEnvironment, brief
from rove.parts.architectures import LEAST_SIDE
from rove.parts.images import Image
from rove.parts.integers import Integers

Encode = Callable[[Any], np.ndarray]
"""Converts an environment's observation to columns: a vector of float32, or the index of a code."""
MOST_ENTRIES = 10_000_000
"""Maximum number of entries of an observation."""


def encoder(space: Any, left_out: str | None = None) -> Encode:
    """Return a function that converts the observations of a space to columns.

    Those of a Discrete space are their index. Boxes are flattened, images with their channels last;
    bytes of an image are scaled to [0, 1] (see `integers_of`). Discrete parts are one-hot encoded,
    and parts concatenated. Parts of a dictionary without a fixed size, such as text, are left out,
    and so is the part that is named.
    """
    entries = spaces.flatdim(space) if _fixed(space) else 0
    if entries > MOST_ENTRIES:
        problem = f"has {entries:,} entries, more than {MOST_ENTRIES:,}"
        raise BadEnvironment("observation_space", problem)
    if isinstance(space, spaces.Box):
        shape, first = space.shape, channels_first(space)
        kinds = "fiub" if space.dtype.kind == "f" else "iub"
        integers = integers_of(space)

        def of_box(observation: Any) -> np.ndarray:
            try:
                x = np.asarray(observation)
            except ValueError as error:  # a ragged list
                raise BadEnvironment("observation", f"is not an array: {error}") from None
            if x.shape != shape:
                problem = f"has shape {x.shape}, but its space has shape {shape}"
                raise BadEnvironment("observation", problem)
            if x.dtype.kind not in kinds:
                problem = f"has dtype {x.dtype}, but its space has dtype {space.dtype}"
                raise BadEnvironment("observation", problem)
            if first:
                x = np.moveaxis(x, 0, -1)
            if integers:
                return _of_integers(x, integers)
            with np.errstate(over="ignore"):  # overflow gives infinity, which `_finite` reports
                return _finite(x.astype(np.float32).ravel())

        return of_box
    used = without_unsized_parts(space, left_out)
    if used is not space:
        encode = encoder(used)

        def of_sized(observation: Any) -> np.ndarray:
            if not isinstance(observation, Mapping):
                problem = f"must be a dictionary, got {brief(observation)}"
                raise BadEnvironment("observation", problem)
            return encode({key: x for key, x in observation.items() if key in used.spaces})

        return of_sized
    if not _fixed(space):
        problem = f"is {brief(space)}, but must have a fixed size: convert it with a "
        problem += "gymnasium.ObservationWrapper"
        raise BadEnvironment("observation_space", problem)

    def of_parts(observation: Any) -> np.ndarray:
        if not space.contains(observation):
            problem = f"is {brief(observation)}, which is not in its space {space}"
            raise BadEnvironment("observation", problem)
        if isinstance(space, spaces.Discrete):
            return np.array([observation - space.start], np.float32)
        return _finite(np.asarray(spaces.flatten(space, observation), np.float32))

    return of_parts


def image_of(space: Any) -> Image | None:
    """Return the form of a space of images: a Box of three dimensions, or one of bytes or flags
    with two, which has one channel. None for other spaces."""
    if not isinstance(space, spaces.Box):
        return None
    if len(space.shape) == 2 and space.dtype in (np.uint8, np.bool_):
        return Image(*space.shape, 1)
    if len(space.shape) != 3:
        return None
    *sides, channels = np.roll(space.shape, -1) if channels_first(space) else space.shape
    return Image(int(sides[0]), int(sides[1]), int(channels))


def integers_of(space: Any) -> Integers | None:
    """Return the form of a space whose observations are encoded as integers from 0 to 255: a Box of
    integers with such bounds, or flags. None for other spaces.

    Images whose sides have at least LEAST_SIDE pixels are divided by their upper bound. In smaller
    ones, such as the views of MiniGrid, numbers are categories rather than brightnesses.
    """
    if isinstance(space, spaces.MultiBinary | spaces.MultiDiscrete):
        return Integers(flags=True)
    if not isinstance(space, spaces.Box) or space.dtype.kind not in "iub":
        return None
    low, high = int(np.min(space.low)), int(np.max(space.high))
    if low < 0 or not 0 < high < 256:
        return None
    image = image_of(space)
    brightness = image is not None and min(image.height, image.width) >= LEAST_SIDE
    return Integers(1.0 / high if brightness else 1.0, flags=high == 1)


def _of_integers(x: np.ndarray, integers: Integers) -> np.ndarray:
    """Return an observation of integers as columns; raise `BadEnvironment` if they cannot be stored
    as bytes."""
    most = 1 if integers.flags else 255
    if (x.dtype != np.uint8 or integers.flags) and not 0 <= x.min() <= x.max() <= most:
        problem = f"has entries from {x.min()} to {x.max()}, outside of its space"
        raise BadEnvironment("observation", problem)
    return x.astype(np.float32).ravel() * np.float32(integers.scale)


def channels_first(space: spaces.Box) -> bool:
    """Whether the channels of an image are its first dimension: the smallest of three."""
    return len(space.shape) == 3 and space.shape[0] < min(space.shape[1:])


def without_unsized_parts(space: Any, left_out: str | None = None) -> Any:
    """Return a space without the parts of a dictionary that have no fixed size, and without the
    part that is named."""
    if not isinstance(space, spaces.Dict):
        return space
    parts = {key: part for key, part in space.items() if _fixed(part) and key != left_out}
    return spaces.Dict(parts) if 0 < len(parts) < len(space.spaces) else space


def _fixed(space: Any) -> bool:
    """Whether all observations of a space can be encoded as vectors of the same length."""
    try:
        return bool(space.is_np_flattenable and spaces.flatdim(space) > 0)
    except NotImplementedError:  # a custom space
        return False


def _finite(x: np.ndarray) -> np.ndarray:
    """Return an observation unchanged; raise `BadEnvironment` if it is not finite."""
    if not np.isfinite(x).all():
        i = int(np.flatnonzero(~np.isfinite(x))[0])
        raise BadEnvironment("observation", f"is not finite in float32: {x[i]} at index {i}")
    return x
