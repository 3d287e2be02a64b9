"""q_φ(θ): a network with dropout (Gal and Ghahramani 2016)."""

from itertools import accumulate

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.errors import check_number
from rove.parts import networks, noise
from rove.parts.networks import Network, Theta
from rove.parts.noise import Key
from rove.parts.onehot import Features
from rove.posteriors.base import (
    Foldable,
    Paired,
    Phi,
    Rows,
    Spec,
    Stack,
    check_layers,
    row_count,
    single,
)
from rove.posteriors.priors import Input


class MaskRows(Rows[Theta]):
    """Samples that consist of dropout masks for all hidden units."""

    masks: Float[Array, "n units"]

    def __call__(self, law: Theta, x: Input) -> Float[Array, "1 n outputs"]:
        return _masked(law, self.masks, x.features)[None]


class Dropout(Foldable[Theta, Array]):
    """Dropout: a sample θ is the network with a random subset of its hidden units set to zero.

    The remaining units are scaled by 1/(1 − rate). A unit of a convolution is one channel at one
    position. q_φ has no density; its entropy is defined as 0.
    """

    rate: float | Array = 0.1
    """Probability that a hidden unit is dropped."""
    paired: bool = eqx.field(default=False, static=True, kw_only=True)
    """Whether the target of a transition uses the same masks for θ⁻ as for θ."""

    def __check_init__(self) -> None:
        check_number("rate", self.rate, at_least=0.0, below=1.0)

    def init(self, network: Network, key: Key) -> Phi:
        return Phi(network.init(key))

    def law(self, phi: Phi) -> Theta:
        return phi.learned

    def sample(self, law: Theta, key: Key) -> Float[Array, " units"]:
        """Sample masks. The network that they are applied to continues to learn."""
        return self._masks(law, 1, key)[0]

    def apply(self, law: Theta, draw: Float[Array, " units"], x: Input) -> Float[Array, " outputs"]:
        return _masked(law, draw[None], x.features[None])[0]

    def mean(self, law: Theta, x: Input) -> Float[Array, " outputs"]:
        return networks.forward(law, x.features)

    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        return single(phi.learned)

    def sample_rows(self, law: Theta, ids: Int[Array, " n"] | None, key: Key) -> Rows[Theta]:
        rows = MaskRows(self._masks(law, row_count(ids), key))
        return Paired(rows) if self.paired else rows

    def validate(self, spec: Spec) -> None:
        check_layers(self, spec, "whose units are dropped")

    def _masks(self, law: Theta, n: int, key: Key) -> Float[Array, "n units"]:
        """Return n rows of masks, with entries 0 or 1/(1 − rate)."""
        units = sum(layer.outputs for layer in law[:-1])
        kept = noise.uniform(key, (n, units)) >= self.rate
        return kept / (1.0 - self.rate)


def _masked(law: Theta, masks: Float[Array, "n units"], xs: Features) -> Float[Array, "n outputs"]:
    """Return the outputs of the network with masked hidden units."""
    widths = [layer.outputs for layer in law[:-1]]
    layer_masks = jnp.split(masks, list(accumulate(widths[:-1])), axis=1)
    for layer, mask in zip(law[:-1], layer_masks, strict=False):
        xs = jax.nn.relu(networks.affine(layer, xs)) * mask
    return networks.affine(law[-1], xs)
