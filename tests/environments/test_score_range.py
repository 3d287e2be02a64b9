"""The range of scores that intervals rely on: by hand, and kept by agents that act at random."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.analysis.intervals import within
from rove.environments import Sparse, make
from rove.parts import noise

RANGES = {
    "chain-10": (0.0, 11.0), "permuted-chain-10": (0.0, 11.0), "deep-sea-5": (-0.01, 0.99),
    "cartpole": (1.0, 500.0), "mountain-car": (0.0, 1.0), "acrobot": (-500.0, -1.0),
    "sparse-cartpole": (1.0, 500.0), "sparse-mountain-car": (0.0, 1.0),
    "sparse-acrobot": (-500.0, -1.0), "bandit-5": None, "linear-quadratic-1": None,
    "bernoulli-bandit-5": (0.0, 1.0), "linear-bandit-5": None, "cliff": (-12.0, -0.1),
    "point-rooms": (0.0, 1.0), "swing-up": (0.0, 1.0),
    "minigrid-empty-5": (0.0, 1.0), "minigrid-doorkey-5": (0.0, 1.0),
    "minigrid-fourrooms": (0.0, 1.0), "minigrid-multiroom": (0.0, 1.0),
    "minigrid-unlock": (0.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_ranges_by_hand(name):
    assert make(name).score_range == pytest.approx(RANGES[name])


def test_the_return_of_a_task_made_sparse_is_0_or_its_reward():
    assert Sparse(rove.Chain(5), reward=-2.0).score_range == (-2.0, 0.0)
    assert Sparse(rove.Chain(5), reward=3.0).score_range == (0.0, 3.0)


@pytest.mark.parametrize("name", ["chain-5", "deep-sea-5", "sparse-cartpole", "sparse-acrobot"])
def test_scores_of_random_actions_are_in_range(name):
    """A bias towards each action in turn, and none."""
    place = make(name)

    def episode(bias, key):
        def step(carry, i):
            state, total, length, over, terminated = carry
            k_action, k_step = noise.fold(noise.fold(key, i), 0), noise.fold(noise.fold(key, i), 1)
            action = jnp.where(noise.uniform(k_action) < bias, 1, 0).astype(jnp.int32)
            after = place.step(state, action, k_step)
            carry = (
                after.state,
                total + jnp.where(over, 0.0, after.reward),
                length + jnp.where(over, 0, 1),
                over | after.terminated | after.truncated,
                terminated | (after.terminated & ~over),
            )
            return carry, None

        state, _ = place.reset(noise.fold(key, 10_000))
        start = (state, jnp.zeros(()), jnp.zeros((), jnp.int32), jnp.zeros((), bool))
        carry, _ = jax.lax.scan(step, (*start, jnp.zeros((), bool)), jnp.arange(500))
        _, total, length, over, terminated = carry
        return total, length, over, terminated

    keys = jnp.stack([noise.fold(noise.root(0), i) for i in range(30)])
    total, length, over, terminated = jax.jit(jax.vmap(episode))(
        jnp.resize(jnp.array([0.0, 0.5, 1.0]), 30), keys
    )
    assert np.all(over)
    scores = np.asarray(place.score(np.asarray(total), np.asarray(length), np.asarray(terminated)))
    assert within(scores.astype(float), place.score_range)
    assert len(np.unique(scores)) > 1 or name == "sparse-acrobot"
