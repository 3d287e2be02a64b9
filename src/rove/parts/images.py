"""Observations that are images, and stacks of frames."""

from typing import Any, NamedTuple


class Image(NamedTuple):
    """The form of an observation that is an image, flattened row by row with its channels last."""

    height: int
    width: int
    channels: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels."""
        return self.height, self.width, self.channels


def joined(frames: Any, image: Image | None) -> Any:
    """Return the frames [K, features] of a stack as one observation, the oldest first.

    Images are joined along their channels, other vectors are concatenated.
    """
    count, features = frames.shape
    channels = image.channels if image else features
    return frames.reshape(count, -1, channels).swapaxes(0, 1).reshape(-1)


def joined_image(image: Image | None, count: int) -> Image | None:
    """Return the form of stacks of `count` images."""
    return image and image._replace(channels=count * image.channels)
