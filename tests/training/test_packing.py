"""What is unpacked is what was packed, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.training.lane import start
from rove.training.packing import LARGE, divided, merged, pack, unpack


@pytest.mark.fast_cases("ge", "psrl")
@pytest.mark.parametrize("name", ["dqn", "ge", "bootstrapped_dqn", "psrl"])
def test_a_lane_is_the_same_after_packing(name):
    agent, environment = rove.AGENTS[name]().compose(), rove.Chain(5)
    lane = jax.jit(start)(agent, environment, jnp.int32(3))
    lane = jax.tree.map(lambda x: (jnp.arange(x.size) % 97).reshape(x.shape).astype(x.dtype), lane)
    packed = jax.jit(pack)(lane)
    back = jax.jit(lambda p: unpack(p, jax.eval_shape(lambda: lane)))(packed)
    assert jax.tree.structure(back) == jax.tree.structure(lane)
    for mine, theirs in zip(jax.tree.leaves(back), jax.tree.leaves(lane), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    assert len(jax.tree.leaves(packed)) < len(jax.tree.leaves(lane)) / 3


def test_what_is_large_is_left_alone():
    tree = {"a": jnp.ones(LARGE), "b": jnp.ones(LARGE - 1), "c": jnp.array(True)}
    packed = pack(tree)
    assert [x.shape for x in packed.large] == [(LARGE,)]
    assert {kind: x.shape for kind, x in packed.small.items()} == {
        "float32": (LARGE - 1,), "bool": (1,)
    }  # fmt: skip


def test_what_is_divided_is_merged_again():
    tree = {"a": jnp.ones(LARGE), "b": jnp.arange(3), "c": (jnp.zeros((2, LARGE)), jnp.array(True))}
    large, small, structure = divided(tree)
    assert [x.shape for x in large] == [(LARGE,), (2, LARGE)]
    assert [x.shape for x in small] == [(3,), ()]
    back = merged(large, small, structure)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert all(a is b for a, b in zip(*map(jax.tree.leaves, (back, tree)), strict=True))


def test_empty_arrays_are_not_passed():
    packed = pack((jnp.zeros((0, 3)), jnp.ones(2)))
    assert {kind: x.shape for kind, x in packed.small.items()} == {"float32": (2,)}
    none, ones = unpack(packed, (jnp.zeros((0, 3)), jnp.ones(2)))
    assert (none.shape, ones.shape) == ((0, 3), (2,))
