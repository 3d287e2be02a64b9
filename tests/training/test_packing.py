"""What is unpacked is what was packed, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.training.lane import start
from rove.training.packing import LARGE, pack, unpack


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
