"""Updates at learning rates that decrease to 0: what they are, by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rove
from rove.core import settling
from rove.core.policies import policies_of
from rove.parts import noise
from rove.training.lane import start


def test_updates_are_those_of_learn_with_a_rate_that_decreases_to_0(monkeypatch):
    """Compared with a loop in Python over `learn`. φ⁻ follows φ every `target_period` updates."""
    monkeypatch.setattr(settling, "UPDATES", 5)
    agent = rove.Agent(
        rove.Gaussian(0.1), rove.Dirac(), hidden=(4,), buffer_size=8, batch_size=4, target_period=2
    )
    state = start(agent, rove.make("chain-5"), jnp.zeros((), jnp.int32)).agent
    key = noise.root(3)
    expected, learn = state, jax.jit(type(agent).learn)  # an empty buffer will do
    for i in range(5):
        slower = eqx.tree_at(lambda x: x.lr, agent, agent.lr * (1 - i / 5))
        expected, _ = learn(slower, expected, noise.fold(key, i))
        expected = expected._replace(counter=expected.counter + 1)
    settled = jax.jit(settling.settled.__wrapped__)(agent, state, key)
    for a, b in zip(jax.tree.leaves(settled), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-6)
    assert int(settled.counter) == 5
    before, after = (jax.tree.leaves(x.phi.learned) for x in (state, settled))
    assert max(float(np.abs(a - b).max()) for a, b in zip(before, after, strict=True)) > 1e-3


def test_only_agents_with_a_learning_rate_can_settle():
    assert settling.can_settle(rove.Agent(rove.Gaussian(0.1), rove.Dirac()))
    assert settling.can_settle(rove.ActorCritic(rove.Gaussian(0.1), rove.Dirac()))
    planner = rove.PSRL().compose()
    assert not settling.can_settle(planner)
    assert "settled" not in policies_of(planner)
