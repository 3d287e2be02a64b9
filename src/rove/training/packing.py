"""A pytree as few arrays: a compiled call on the host pays for each array it takes and gives."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

LARGE = 2**12
"""Numbers from which on an array (a replay, a matrix of weights) is left as it is, rather than
copied at every call."""


class Packed(NamedTuple):
    """All small arrays end to end, by the kind of their numbers; and the large ones."""

    small: dict[str, Array]
    large: list[Array]


def pack(tree: Any) -> Packed:
    """Lay a tree's arrays end to end."""
    small: dict[str, list[Array]] = {}
    large = []
    for leaf in map(jnp.asarray, jax.tree.leaves(tree)):
        if leaf.size >= LARGE:
            large.append(leaf)
        else:
            small.setdefault(leaf.dtype.name, []).append(leaf.ravel())
    return Packed({kind: jnp.concatenate(parts) for kind, parts in small.items()}, large)


def unpack(packed: Packed, shape: Any) -> Any:
    """The tree of which `shape` has the shapes."""
    leaves, structure = jax.tree.flatten(shape)
    large, at = iter(packed.large), dict.fromkeys(packed.small, 0)
    found = []
    for leaf in leaves:
        if (size := int(np.prod(leaf.shape))) >= LARGE:
            found.append(next(large))
            continue
        kind = np.dtype(leaf.dtype).name
        part = packed.small[kind][at[kind] : at[kind] + size]
        found.append(part.reshape(leaf.shape))
        at[kind] += size
    return jax.tree.unflatten(structure, found)
