"""Parameter noise: Gaussian about one network for control, none in learning, a scale that adapts.

Statistical limits: a chance of 1e-4 for all values of a test together; seeds are fixed.
"""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from jax import lax
from scipy import stats

from helpers import refit as refitted
from helpers import rows as rows_of
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.replay import Layout, Replay
from rove.posteriors import ParameterNoise, Phi
from rove.posteriors.priors import Input

DRAWS = 50_000
NETWORK = networks.mlp(3, 6, 2)

init = jax.jit(ParameterNoise.init, static_argnums=1)


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def filled(n: int = 64) -> tuple[Replay, np.ndarray]:
    """A buffer of n states drawn from N(0, I), and those."""
    states = np.random.default_rng(0).normal(size=(n, 3)).astype(np.float32)
    rows = np.concatenate([states, states, np.zeros((n, 3), np.float32)], axis=1)
    return Replay(jnp.asarray(rows), jnp.int32(n), Layout(3)), states


def refit(posterior, phi, counter, memory, key):
    """σ after a refit."""
    return refitted(posterior, phi, 0.0, counter, memory, key).fitted


def test_a_draw_is_the_network_and_noise_of_one_scale():
    """(θ − μ)/σ over all 38 parameters: means 0 and covariance I."""
    posterior = ParameterNoise(0.3)
    law = posterior.law(init(posterior, NETWORK, noise.root(0)))

    @jax.jit
    def draw(law):
        keys = jax.vmap(lambda i: noise.fold(noise.root(1), i))(jnp.arange(DRAWS))
        return jax.vmap(lambda key: posterior.sample(law, key))(keys)

    drawn, means = (jax.tree.leaves(tree) for tree in (draw(law), law.mean))
    parts = [np.asarray(t, np.float64) - np.asarray(m) for t, m in zip(drawn, means, strict=True)]
    z = np.concatenate([p.reshape(DRAWS, -1) for p in parts], axis=1) / 0.3
    d = z.shape[1]
    assert d == 3 * 6 + 6 + 6 * 2 + 2
    product = z.T @ z / DRAWS
    assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(d)
    assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(d)
    off = product[np.triu_indices(d, 1)]
    assert np.max(np.abs(off)) * np.sqrt(DRAWS) < limit(len(off))


def test_learning_is_without_noise():
    posterior = ParameterNoise(0.3)
    law = posterior.law(init(posterior, NETWORK, noise.root(0)))
    xs = jnp.asarray(np.random.default_rng(1).normal(size=(7, 3)), jnp.float32)
    exact = networks.forward(law.mean, xs)
    for seed in range(3):
        assert np.array_equal(rows_of(posterior, law, xs, noise.root(seed))[0], exact)
    np.testing.assert_allclose(posterior.mean(law, Input(xs[0])), exact[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("std", "factor"), [(1e-4, 1.01), (30.0, 1 / 1.01)])
def test_the_scale_grows_where_values_are_near_and_shrinks_where_far(std, factor):
    posterior, (memory, _) = ParameterNoise(std), filled()
    phi = init(posterior, NETWORK, noise.root(2))
    for seed in range(5):
        after = refit(posterior, phi, jnp.int32(10), memory, noise.root(seed))
        assert float(after) == pytest.approx(std * factor, rel=1e-6)


def test_the_scale_changes_every_period_steps_and_only_then():
    posterior, (memory, _) = ParameterNoise(period=4), filled()
    phi = init(posterior, NETWORK, noise.root(2))
    for counter in range(1, 13):
        after = float(refit(posterior, phi, jnp.int32(counter), memory, noise.root(counter)))
        assert (after == float(phi.fitted)) == (counter % 4 != 0)


def test_only_states_that_are_held_count():
    """What lies in empty slots does not matter."""
    posterior, (memory, _) = ParameterNoise(0.05, 0.5, 1), filled(8)
    phi = init(posterior, NETWORK, noise.root(2))
    empty = jnp.zeros((56, memory.rows.shape[1]))
    for seed in range(10):
        stds = [
            refit(posterior, phi, jnp.int32(1), memory._replace(rows=rows), noise.root(seed))
            for rows in (jnp.concatenate([memory.rows, rest]) for rest in (empty, empty + jnp.nan))
        ]
        assert float(stds[0]) == float(stds[1])


@pytest.mark.parametrize("distance", [0.2, 1.0])
@pytest.mark.parametrize("start", [0.002, 5.0])
def test_the_scale_converges_to_the_distance_on_a_fixed_network(distance, start):
    """A linear network of 60 outputs: a perturbed value differs by σ·(x·ε + ε_b), a Gaussian of
    variance σ²·(|x|² + 1), so that σ* = distance·std(Q)/√(mean |x|² + 1). It is approached by
    steps of 1% and then kept, within what minibatches and draws of ε leave of luck."""
    posterior, (memory, states) = ParameterNoise(start, distance, 1), filled()
    phi = init(posterior, networks.mlp(3, 60), noise.root(3))

    @jax.jit
    def run(posterior, phi, memory):
        def step(std, i):
            key = noise.fold(noise.root(4), i)
            after = refit(posterior, Phi(phi.learned, std), i, memory, key)
            return after, after

        return lax.scan(step, phi.fitted, jnp.arange(3000))[1]

    stds = np.asarray(run(posterior, phi, memory), np.float64)
    q = states.astype(np.float64) @ np.asarray(phi.learned[0].weight, np.float64)
    exact = distance * q.std() / np.sqrt(np.mean(np.sum(states.astype(float) ** 2, 1)) + 1)
    assert np.exp(np.log(stds[1500:]).mean()) == pytest.approx(exact, rel=0.05)
    assert np.max(np.abs(np.log(stds[1500:] / exact))) < 0.25
    steps = np.abs(np.diff(np.log(stds)))
    np.testing.assert_allclose(steps, np.log(1.01), rtol=1e-3)


def test_the_gradient_does_not_move_the_scale():
    phi = init(ParameterNoise(0.3), NETWORK, noise.root(0))
    assert float(phi.fitted) == pytest.approx(0.3)
    assert len(jax.tree.leaves(phi.learned)) == 4


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("std", {"std": 0.0}),
        ("std", {"std": float("nan")}),
        ("distance", {"distance": -1.0}),
        ("period", {"period": 0}),
        ("period", {"period": 1.5}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        ParameterNoise(**settings)
    assert caught.value.field == field
