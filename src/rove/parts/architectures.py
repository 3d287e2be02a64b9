"""Network architectures: the values of an agent's setting `network`."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import equinox as eqx

from rove.errors import ConfigError, check_integer
from rove.parts.functions import Function, Make, check_function
from rove.parts.images import Image
from rove.parts.layers import Window
from rove.parts.networks import Network, mlp


def _tuple(value: Any) -> Any:
    """Return an integer or a list as a tuple; other values are returned unchanged."""
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, int) else value


class ConvNet(eqx.Module):
    """A convolutional network for images: convolutions, then fully connected layers of the widths
    `hidden` of the agent, with ReLU between layers.

    **Example**
    >>> net = rove.ConvNet(channels=(32, 64), kernel=(5, 3), stride=2)
    >>> agent = rove.DQN(network=net, hidden=(128,))
    """

    channels: tuple[int, ...] = eqx.field(default=(16,), converter=_tuple, static=True)
    """Number of channels of each convolution; with none, images are flattened."""
    kernel: tuple[int, ...] = eqx.field(default=(3,), converter=_tuple, static=True)
    """Height and width of the window of each convolution; a single number applies to all."""
    stride: tuple[int, ...] = eqx.field(default=(1,), converter=_tuple, static=True)
    """Number of pixels by which the window moves, for each convolution; a single number applies to
    all."""

    def __check_init__(self) -> None:
        for field in ("channels", "kernel", "stride"):
            values = getattr(self, field)
            if not isinstance(values, tuple):
                raise ConfigError.must_be(field, values, "integers, one for each convolution")
            for value in values:
                check_integer(field, value, at_least=1, at_most=2**12, part="every entry of ")
            one_each = len(values) in (1, len(self.channels))
            if field != "channels" and self.channels and not one_each:
                allowed = f"one integer, or one for each of the {len(self.channels)} convolutions"
                raise ConfigError.must_be(field, values, allowed)

    def windows(self, image: Image) -> list[Window]:
        """Return the convolutions for images of the given size."""
        count = len(self.channels)
        kernels, strides = (v * count if len(v) == 1 else v for v in (self.kernel, self.stride))
        height, width, channels = image.shape
        windows = []
        for filters, kernel, stride in zip(self.channels, kernels, strides, strict=False):
            if kernel > min(height, width):
                allowed = f"at most {min(height, width)}, the size of its input"
                message = f"kernel of convolution {len(windows) + 1} must be {allowed} ({height} "
                message += f"by {width} pixels), got {kernel}"
                raise ConfigError("kernel", self.kernel, allowed, message)
            window = Window(height, width, channels, kernel, stride, filters)
            windows.append(window)
            height, width, channels = window.rows, window.columns, filters
        return windows


Architecture: TypeAlias = ConvNet | Make | None
"""A network architecture. None: fully connected layers or, for images, `default_for`."""

LEAST_SIDE, LARGE_SIDE = 8, 36
"""Minimum side of an image that gets a small, and a large, convolutional network by default."""


def default_for(image: Image) -> ConvNet:
    """Return the default network for images.

    If both sides have at least 36 pixels, it has the three convolutions of DQN on Atari (Mnih et
    al. 2015); if they have at least 8, the single one of MinAtar's DQN (Young and Tian 2019).
    Smaller images are flattened.
    """
    side = min(image.height, image.width)
    if side < LEAST_SIDE:
        return ConvNet(())
    if side < LARGE_SIDE:
        return ConvNet((16,))
    return ConvNet((32, 64, 64), (8, 4, 3), (4, 2, 1))


def is_function(network: Architecture) -> bool:
    """Whether a network is a custom function, whose layers rove does not know."""
    return not isinstance(network, ConvNet | None)


def check_architecture(network: Any) -> None:
    """Raise `ConfigError` unless a value can be the setting `network`."""
    if isinstance(network, ConvNet | None) or (callable(network) and network is not ConvNet):
        return
    hint = ". Did you mean rove.ConvNet()?" if network is ConvNet else ""
    allowed = "rove.ConvNet(…), or a function of (shape, outputs, key)"
    raise ConfigError.must_be("network", network, allowed, hint)


def build(
    network: Architecture, inputs: int, hidden: Sequence[int], outputs: int, image: Image | None
) -> Network:
    """Return a network for observations of the given size.

    **Arguments**
    - `network`: its architecture.
    - `inputs`: the number of entries of an observation.
    - `hidden`: the widths of the fully connected hidden layers.
    - `outputs`: the number of outputs.
    - `image`: the form of observations that are images, or None.
    """
    if network is None:
        return mlp(inputs, *hidden, outputs)
    if not isinstance(network, ConvNet):
        function = Function(network, image.shape if image else (inputs,), outputs)
        check_function(function)
        return Network((function,))
    if image is None:
        reason = f"needs images, but observations are vectors of {inputs} numbers. An image is a "
        reason += "Box of three dimensions; for vectors, leave network out"
        raise ConfigError("network", network, reason)
    windows = network.windows(image)
    inputs = windows[-1].outputs if windows else inputs
    return Network((*windows, *mlp(inputs, *hidden, outputs).layers))
