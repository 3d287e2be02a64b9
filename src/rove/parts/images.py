"""Observations that are images."""

from typing import NamedTuple


class Image(NamedTuple):
    """The form of an observation that is an image, flattened row by row with its channels last."""

    height: int
    width: int
    channels: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels
