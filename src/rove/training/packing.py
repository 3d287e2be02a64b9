"""Pack a pytree into few arrays, since a compiled call has a cost per argument and result."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LARGE = 2**12
"""Minimum number of elements of an array that is passed separately, rather than copied at every
call: replay buffers and weight matrices."""


class Packed(NamedTuple):
    """All small arrays concatenated, one array per dtype, and the large arrays."""

    small: dict[str, Array]
    large: list[Array]


def pack(tree: Any) -> Packed:
    """Pack the arrays of a pytree."""
    small: dict[str, list[Array]] = {}
    large = []
    for leaf in map(jnp.asarray, jax.tree.leaves(tree)):
        if leaf.size >= LARGE:
            large.append(leaf)
        elif leaf.size:
            small.setdefault(leaf.dtype.name, []).append(leaf.ravel())
    return Packed({kind: jnp.concatenate(parts) for kind, parts in small.items()}, large)


def unpack(packed: Packed, template: Any) -> Any:
    """Unpack a pytree that has the structure and shapes of `template`."""
    leaves, structure = jax.tree.flatten(template)
    large, offsets = iter(packed.large), dict.fromkeys(packed.small, 0)
    arrays = []
    for leaf in leaves:
        if (size := int(np.prod(leaf.shape))) >= LARGE:
            arrays.append(next(large))
            continue
        if not size:
            arrays.append(jnp.zeros(leaf.shape, leaf.dtype))
            continue
        kind = np.dtype(leaf.dtype).name
        part = packed.small[kind][offsets[kind] : offsets[kind] + size]
        arrays.append(part.reshape(leaf.shape))
        offsets[kind] += size
    return jax.tree.unflatten(structure, arrays)


def divided(tree: Any) -> tuple[list[Array], list[Array], Any]:
    """Return the large arrays of a pytree, all others, and how to merge them again.

    A compiled call can take over the large arrays alone; the others would not fit its results.
    """
    leaves, structure = jax.tree.flatten(tree)
    is_large = tuple(leaf.size >= LARGE for leaf in leaves)
    pairs = list(zip(leaves, is_large, strict=True))
    large, small = ([x for x, chosen in pairs if chosen == kind] for kind in (True, False))
    return large, small, (structure, is_large)


def merged(large: list[Array], small: list[Array], structure: Any) -> Any:
    """Return the pytree that was divided."""
    structure, is_large = structure
    parts = iter(small), iter(large)
    return jax.tree.unflatten(structure, [next(parts[k]) for k in is_large])
