"""Fast random numbers from a counter-based hash.

JAX's own generator takes tens of nanoseconds per normal inside a CPU loop, more than the learning
itself; this one takes less than two. A *key* is two 32-bit words. `fold` derives a new key from a
key and integers, so that no generator state has to be stored: the key of step t is
`fold(root(seed), t)`. The same key always gives the same draw.

The mixing function is a public-domain 32-bit finaliser found by the hash-prospector project. The
generator is suitable for simulation, not for cryptography.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Int, UInt32

Key: TypeAlias = UInt32[Array, "2"]

_GOLDEN = np.uint32(0x9E3779B9)
# Polynomials, highest power first, fitted at Chebyshev nodes (errors: tests/parts/test_noise.py):
# log(1 + m)/m for −⅓ ≤ m ≤ ⅓, and sin(πt)/(t·(1 − t²)) in t² for −1 ≤ t ≤ 1.
_LOG = (0.17111227, -0.19407857, 0.1979503, -0.24841635, 0.33337989, -0.50002243, 0.99999984)
_SIN = (0.00589534, -0.07434302, 0.52373464, -2.02608178, 3.14159189)
_TWO_THIRDS = np.int32(0x3F2AAAAB)  # the bits of float32(2/3)
_QUARTER_TURN = np.uint32(1 << 30)


# `jax.jit` with `inline` does not change the compiled program; it saves tracing time.


@partial(jax.jit, inline=True)
def _mix(x: Array) -> Array:
    """Apply a bijection of 32-bit words in which every input bit affects every output bit."""
    x = x ^ (x >> 16)
    x = x * np.uint32(0x21F0AAAD)
    x = x ^ (x >> 15)
    x = x * np.uint32(0xD35A2D97)
    return x ^ (x >> 15)


def root(seed: int | Array) -> Key:
    """Return the key of a run, given its seed."""
    return fold(jnp.array([0x243F6A88, 0x85A308D3], jnp.uint32), seed)


def fold(key: Key, *data: int | Array) -> Key:
    """Derive a new key from a key and integers.

    Different integers give different keys. A key is either folded or drawn from, never both.
    """
    for item in data:
        key = _fold(key, np.uint32(item % 2**32) if isinstance(item, int) else item)
    return key


@partial(jax.jit, inline=True)
def _fold(key: Key, item: np.uint32 | Array) -> Key:
    (k0, k1), d = key, jnp.asarray(item).astype(jnp.uint32)
    words = [_mix(_mix(d * _GOLDEN + k0) ^ k1), _mix(_mix(d ^ (k1 * _GOLDEN)) + k0)]
    # The barrier computes each key once. Without it, XLA fuses nested keys into the draws and
    # recomputes them for every number, in code that takes LLVM up to 20 s to compile.
    return lax.optimization_barrier(jnp.stack(words))


def folds(key: Key, count: int) -> UInt32[Array, "count 2"]:
    """Return `count` keys, one per row of a batch: the key folded with 0, 1, …"""
    return jax.vmap(lambda i: fold(key, i))(lax.iota(jnp.uint32, count))


def bits(key: Key, shape: tuple[int, ...]) -> UInt32[Array, "..."]:
    """Draw uniform 32-bit words: two rounds of mixing a counter, each with one word of the key."""
    counter = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return _mix(_mix(counter * _GOLDEN + key[0]) ^ key[1])


def _unit(words: UInt32[Array, "*n"]) -> Float[Array, "*n"]:
    """Map words to 2²³ points in the open interval (0, 2), symmetric about 1."""
    return ((words >> 9).astype(jnp.int32).astype(jnp.float32) + 0.5) * np.float32(2.0**-22)


def uniform(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Draw uniformly from the open interval (0, 1), in steps of 2⁻²³."""
    return 0.5 * _unit(bits(key, shape))


@partial(jax.jit, static_argnums=1, inline=True)
def normal(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Draw standard normals (Box and Muller 1958). |x| is at most 5.8, and never 0."""
    count = math.prod(shape)
    half = (count + 1) // 2
    once = partial(_once, key) if count >= _MANY else lambda compute: compute()

    def polar() -> tuple[Array, Array]:
        radius, angle = bits(key, (2, half))
        return _distance(radius), angle

    def pairs() -> Array:
        return jnp.concatenate(_turned(*once(polar)))[:count].reshape(shape)

    return once(pairs)


_MANY = 1000
"""From so many numbers on, `_once` saves more time than a conditional takes."""


def _once(key: Key, compute: Callable[[], Any]) -> Any:
    """Return what `compute` does, computed once.

    XLA would merge it into every operation that uses it, and repeat it there. It does not merge the
    branch of a conditional. The condition always holds, which XLA does not find out.
    """
    none = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(compute))
    return lax.cond((key[0] | np.uint32(1)) != 0, compute, lambda: none)


def box_muller(
    radius: UInt32[Array, "*n"], angle: UInt32[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Return two standard normals for each pair of uniform words."""
    return _turned(_distance(radius), angle)


def _distance(words: UInt32[Array, "*n"]) -> Float[Array, "*n"]:
    """Map uniform words to distances from the origin of points with two normal coordinates."""
    return jnp.sqrt(-2.0 * _log(0.5 * _unit(words)))


def _turned(
    r: Float[Array, "*n"], angle: UInt32[Array, "*n"]
) -> tuple[Float[Array, "*n"], Float[Array, "*n"]]:
    """Return the coordinates of points, given their distances and, as words, their angles."""
    sine, cosine = (_sin_pi(_unit(turn) - 1.0) for turn in (angle, angle + _QUARTER_TURN))
    return r * sine, r * cosine


def normals(key: Key, shapes: Sequence[tuple[int, ...]]) -> list[Float[Array, "..."]]:
    """Draw several arrays of standard normals together."""
    sizes = [math.prod(shape) for shape in shapes]
    # Without the barrier, XLA would fuse the draws of a network's biases into the layers, and
    # repeat them for every row of a minibatch.
    numbers = lax.optimization_barrier(normal(key, (sum(sizes),)))
    parts = jnp.split(numbers, list(accumulate(sizes))[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _log(u: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return log u of a positive, normal float32, at half the cost of `jnp.log`.

    u is written as 2ᵏ·(1 + m), with 1 + m between ⅔ and 4/3.
    """
    above = lax.bitcast_convert_type(u, jnp.int32) - _TWO_THIRDS
    m = lax.bitcast_convert_type((above & 0x7FFFFF) + _TWO_THIRDS, jnp.float32) - 1.0
    return m * _polynomial(_LOG, m) + (above >> 23).astype(jnp.float32) * np.float32(math.log(2.0))


def _sin_pi(t: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return sin(πt) for −1 ≤ t ≤ 1."""
    return t * ((1.0 - t) * (1.0 + t)) * _polynomial(_SIN, t**2)


def _polynomial(coefficients: tuple[float, ...], x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    value = jnp.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * x + np.float32(coefficient)
    return value


def integers(key: Key, shape: tuple[int, ...], bound: int | Array) -> Int[Array, "..."]:
    """Draw uniformly from 0 … bound−1, with a negligible bias of bound·2⁻³²."""
    return (bits(key, shape) % jnp.asarray(bound).astype(jnp.uint32)).astype(jnp.int32)


def log_gamma(key: Key, shape: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Draw log g with g ~ Gamma(shape, 1), one for each shape (Marsaglia and Tsang 2000).

    The logarithm does not underflow for small shapes: Gamma(a) is Gamma(a + 1)·U^(1/a).
    """
    d = shape + np.float32(2 / 3)
    k_boost, k_rounds = fold(key, 0), fold(key, 1)

    def propose(carry: tuple) -> tuple:
        i, log_v, accepted = carry
        x, u = normal(fold(k_rounds, i, 0), shape.shape), uniform(fold(k_rounds, i, 1), shape.shape)
        y = x / jnp.sqrt(9.0 * d)
        fits = y > -1.0
        y = jnp.where(fits, y, 0.0)
        log_one = 3.0 * jnp.log1p(y)  # log v of v = (1 + y)³; v − 1 = 3y + 3y² + y³
        fits &= jnp.log(u) < 0.5 * x**2 + d * (log_one - y * (3.0 + y * (3.0 + y)))
        return i + 1, jnp.where(accepted, log_v, log_one), accepted | fits

    none = jnp.zeros(shape.shape, bool)
    start = (jnp.zeros((), jnp.int32), jnp.zeros_like(shape), none)
    log_v = lax.while_loop(lambda carry: ~jnp.all(carry[2]), propose, start)[1]
    return jnp.log(d) + log_v + jnp.log(uniform(k_boost, shape.shape)) / shape
