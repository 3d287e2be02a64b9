"""Cheap random numbers for the hot path: a counter-based hash, and a normal from its bits.

JAX's own generator costs tens of nanoseconds a normal inside a CPU loop, more than the
learning itself; this one costs under two. A *key* is two 32-bit words. `fold` derives a new
key from a key and some integers, so that a step's draws need nothing stored: the key of step
t is `fold(root(seed), t)`. The same key always gives the same draw.

The mixer is the public-domain 32-bit finaliser found by the hash-prospector search. The
generator is for simulation: it is not for cryptography.
"""

import math
from typing import TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, UInt32

Key: TypeAlias = UInt32[Array, "2"]

_GOLDEN = np.uint32(0x9E3779B9)
# u/z for z the normal quantile at (1 + u)/2, as a polynomial in √(−log(1 − u²)) − 2, highest power
# first: fitted at Chebyshev nodes, relative error below 2e-6 (tests/test_noise.py).
_QUANTILE = (
    2.24642929e-06, -1.54631955e-06, -4.39887057e-05, 5.80972525e-05, 0.000366606122,
    -0.000924573248, -0.000930373691, 0.00694961464, -0.010187397, -0.00795055487,
    0.0687856639, -0.186939596, 0.380414227,
)  # fmt: skip


def _mix(x: Array) -> Array:
    """A bijection of 32-bit words in which every input bit moves every output bit."""
    x = x ^ (x >> 16)
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ (x >> 15)
    x = x * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def root(seed: int | Array) -> Key:
    """The key of a lane, from its seed."""
    return fold(jnp.array([0x243F6A88, 0x85A308D3], jnp.uint32), seed)


def fold(key: Key, *data: int | Array) -> Key:
    """A new key from a key and integers; different integers give different keys. A key is
    either folded or drawn from, never both."""
    k0, k1 = key[0], key[1]
    for item in data:
        d = jnp.asarray(item % 2**32 if isinstance(item, int) else item).astype(jnp.uint32)
        k0, k1 = _mix(_mix(d * _GOLDEN + k0) ^ k1), _mix(_mix(d ^ (k1 * _GOLDEN)) + k0)
    return jnp.stack([k0, k1])


def rows(key: Key, count: int) -> UInt32[Array, "count 2"]:
    """Keys for the rows of a batch: consecutive blocks, of 2¹⁶ numbers each, of one key's stream.
    Cheaper than folding inside a loop over rows. Draw from such a key; do not fold it."""
    if count > 2**16:
        raise ValueError(f"{count} rows: their blocks would overlap beyond {2**16}")
    starts = lax.iota(jnp.uint32, count) * np.uint32((0x9E3779B9 << 16) % 2**32) + key[0]
    return jnp.stack([starts, jnp.broadcast_to(key[1], (count,))], axis=1)


def bits(key: Key, shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """Uniform 32-bit words: two rounds of the mixer over a counter, a key word in each."""
    counter = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return _mix(_mix(counter * _GOLDEN + key[0]) ^ key[1])


def _unit(key: Key, shape: tuple[int, ...]) -> Float[Array, "..."]:
    """Uniform on 2²³ points, symmetric about 1 in the open interval (0, 2)."""
    whole = (bits(key, shape) >> 9).astype(jnp.int32).astype(jnp.float32)
    return (whole + 0.5) * np.float32(2.0**-22)


def uniform(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Uniform in the open interval (0, 1), in steps of 2⁻²³."""
    return 0.5 * _unit(key, shape)


def normal(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Standard normal, by inversion; |x| is at most about 5.3."""
    u = _unit(key, shape) - 1.0
    x = jnp.sqrt(-jnp.log((1.0 - u) * (1.0 + u))) - 2.0
    ratio = jnp.full_like(x, _QUANTILE[0])
    for coefficient in _QUANTILE[1:]:
        ratio = ratio * x + np.float32(coefficient)
    return u / ratio  # a division last: XLA then computes a draw once, not once a use


def integers(key: Key, shape: tuple[int, ...], bound: int | Array) -> Int[Array, "..."]:
    """Uniform on 0 … bound−1 (its bias, bound·2⁻³², is far below what a run can see)."""
    return (bits(key, shape) % jnp.asarray(bound).astype(jnp.uint32)).astype(jnp.int32)
