"""The low-rank posterior: its index, its formula, its covariance and entropy in closed form.

Statistical limits: a chance of 1e-4 for all values of a test together; seeds are fixed.
"""

from typing import Any

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats

from helpers import draw, in_buffer, objective, rows, targets
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.networks import Linear
from rove.parts.replay import Transition
from rove.posteriors import LowRank
from rove.posteriors.low_rank import Draw, LowRankLaw
from rove.posteriors.priors import inputs
from rove.returns import Gaussian

DRAWS, M, BETA = 50_000, 3, 2.5
NETWORK = networks.mlp(3, 6, 2)
X = jnp.array([0.8, -1.5, 0.3])
FULL, PLAIN = LowRank(M, prior=BETA, rho=-1.0), LowRank(M)


init = jax.jit(LowRank.init, static_argnums=1)
law_of = jax.jit(LowRank.law)
apply = jax.jit(LowRank.apply)
entropy = jax.jit(LowRank.entropy)


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def some_law(posterior: LowRank, seed: int, network=NETWORK) -> tuple[LowRankLaw, Any]:
    """Biases too, and variances that differ from weight to weight; and its prior functions."""
    rng = np.random.default_rng(seed)
    phi = init(posterior, network, noise.root(seed))
    move = lambda x: jnp.asarray(x + 0.4 * rng.normal(size=x.shape), jnp.float32)  # noqa: E731
    moved = jax.tree.map(move, jax.tree.map(np.asarray, phi.learned))
    return law_of(posterior, phi._replace(learned=moved)), phi.priors


def f64(tree):
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def np_relu_layers(layers, x) -> np.ndarray:
    for weight, bias in layers:
        x = np.maximum(x @ weight + bias, 0.0)
    return x


def np_directions(
    law: LowRankLaw, priors: Any, x, beta: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """h(x), W₀ᵀh(x), and the M rows W_mᵀh(x) + β·g_m(x) that the index multiplies."""
    (law, priors), x = f64((law, priors)), np.asarray(x, np.float64)
    h = np_relu_layers(law.body, x)
    rows = []
    for m in range(len(law.factors.bias)):
        row = h @ law.factors.weight[m] + law.factors.bias[m]
        if beta is not None:
            *body, last = [Linear(layer.weight[m], layer.bias[m]) for layer in priors]
            row = row + beta * (np_relu_layers(body, x) @ last.weight + last.bias)
        rows.append(row)
    return h, h @ law.head.weight + law.head.bias, np.array(rows)


def np_law(posterior: LowRank, law: LowRankLaw, priors: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the outputs at X: of a row c_m for each direction, Σ_m c_m·c_mᵀ/M,
    and diag(h²·v_W + v_b)."""
    h, centre, rows = np_directions(law, priors, X, posterior.prior)
    covariance = rows.T @ rows / M
    if posterior.rho is not None:
        v = f64(law.variance)
        covariance += np.diag(h**2 @ v.weight + v.bias)
    return centre, covariance


@jax.jit
def draws(posterior, law, seed):
    keys = jax.vmap(lambda i: noise.fold(noise.root(seed), i))(jnp.arange(DRAWS))
    return jax.vmap(lambda key: posterior.sample(law, key))(keys)


rows_of = jax.jit(lambda posterior, law, xs, key: rows(posterior, law, xs, key)[0])


# The index


@pytest.mark.parametrize("rank", [1, 3, 8])
def test_the_index_has_covariance_identity_over_m(rank):
    posterior = LowRank(rank)
    z = np.asarray(draws(posterior, some_law(posterior, 0)[0], 1).index, np.float64)
    assert z.shape == (DRAWS, rank)
    z *= np.sqrt(rank)
    assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(rank)
    product = z.T @ z / DRAWS
    assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(rank)
    off = product[np.triu_indices(rank, 1)]
    assert np.max(np.abs(off), initial=0.0) * np.sqrt(DRAWS) < limit(max(1, len(off)))


def test_the_diagonal_part_has_its_variance_and_is_independent_of_the_index():
    law, _ = some_law(FULL, 2)
    index, diagonal = f64(draws(FULL, law, 2))
    parts = [d / np.sqrt(v) for d, v in zip(diagonal, f64(law.variance), strict=True)]
    z = np.concatenate([x.reshape(DRAWS, -1) for x in (index * np.sqrt(M), *parts)], axis=1)
    d = z.shape[1]
    assert d == M + 6 * 2 + 2
    product = z.T @ z / DRAWS
    assert np.max(np.abs(z.mean(0))) * np.sqrt(DRAWS) < limit(d)
    assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(d)
    off = product[np.triu_indices(d, 1)]
    assert np.max(np.abs(off)) * np.sqrt(DRAWS) < limit(len(off))


# The formula


@pytest.mark.parametrize("beta", [None, 0.0, BETA])
def test_the_output_at_an_index_is_the_formula(beta):
    """W₀ᵀh + Σ_m z_m·(W_mᵀh + β·g_m), written out."""
    posterior = LowRank(M, prior=beta)
    law, priors = some_law(posterior, 3)
    z = np.random.default_rng(3).normal(size=M)
    _, centre, rows = np_directions(law, priors, X, beta)
    x = inputs(priors, X)
    got = apply(posterior, law, Draw(jnp.asarray(z, jnp.float32), ()), x)
    np.testing.assert_allclose(got, centre + z @ rows, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(posterior.mean(law, x), centre, rtol=1e-4, atol=1e-5)


def test_the_diagonal_part_adds_to_the_last_layer():
    (law, priors), rng = some_law(FULL, 4), np.random.default_rng(4)
    z, dw, db = (rng.normal(size=shape) for shape in (M, (6, 2), 2))
    h, centre, rows = np_directions(law, priors, X, BETA)
    draw = Draw(*jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), (z, Linear(dw, db))))
    exact = centre + z @ rows + h @ dw + db
    got = apply(FULL, law, draw, inputs(priors, X))
    np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("posterior", [PLAIN, FULL, LowRank(M, rho=-1.0)])
def test_rows_have_the_closed_form_covariance(posterior):
    law, priors = some_law(posterior, 5)
    centre, covariance = np_law(posterior, law, priors)
    xs = inputs(priors, jnp.tile(X, (DRAWS, 1)))
    ys = np.asarray(rows_of(posterior, law, xs, noise.root(6)), np.float64)
    whitened = (ys - centre) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    product = whitened.T @ whitened / DRAWS
    assert np.max(np.abs(whitened.mean(0))) * np.sqrt(DRAWS) < limit(2)
    assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(2)
    assert abs(product[0, 1]) * np.sqrt(DRAWS) < limit(1)


@pytest.mark.parametrize("posterior", [LowRank(M, draws=2), LowRank(M, BETA, -1.0, draws=2)])
def test_several_draws_for_a_row_are_independent_and_of_one_law(posterior):
    """Of four values, two outputs of each draw: the closed form in each block, nothing between."""
    law, priors = some_law(posterior, 7)
    centre, covariance = np_law(posterior, law, priors)
    xs = inputs(priors, jnp.tile(X, (DRAWS, 1)))
    ys = np.asarray(jax.jit(rows)(posterior, law, xs, noise.root(8)), np.float64)
    assert ys.shape == (2, DRAWS, 2)
    whitened = (ys - centre) @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    whitened = np.concatenate(list(whitened), axis=1)
    product = whitened.T @ whitened / DRAWS
    assert np.max(np.abs(np.diag(product) - 1)) * np.sqrt(DRAWS / 2) < limit(4)
    assert np.max(np.abs(product[np.triu_indices(4, 1)])) * np.sqrt(DRAWS) < limit(6)


@pytest.mark.slow
def test_more_draws_are_the_same_objective_with_less_noise():
    """Over many keys: gradients of the same mean, and of a sixteenth of the variance, where the
    index is all that is drawn."""
    batch = in_buffer(
        Transition(
            jnp.tile(X, (4, 1)) + jnp.arange(4.0)[:, None],
            jnp.array([0, 1, 1, 0]),
            jnp.array([1.0, -1.0, 0.5, 2.0]),
            jnp.tile(X, (4, 1)),
            jnp.ones(4, bool),
        )
    )

    def gradients(count: int) -> np.ndarray:
        agent = Agent(Gaussian(0.0), LowRank(M, BETA, draws=count), hidden=(6,))
        phi = init(agent.posterior, NETWORK, noise.root(9))

        def of(learned, key):
            law = agent.posterior.law(phi)
            x = targets(agent, law, law, batch, key, key, phi.priors)
            return objective(agent, phi._replace(learned=learned), batch, x, key)[0]

        keys = noise.folds(noise.root(10), 4000)
        each = jax.jit(jax.vmap(jax.grad(of), (None, 0)))(phi.learned, keys)
        return np.asarray(each.head.weight, np.float64).reshape(4000, -1)

    one, many = gradients(1), gradients(16)
    error = np.sqrt((one.var(0) + many.var(0)) / 4000)
    moves = error > 0
    assert moves.sum() >= 8
    assert np.max(np.abs(one.mean(0) - many.mean(0))[moves] / error[moves]) < limit(12)
    np.testing.assert_allclose(one.var(0)[moves] / many.var(0)[moves], 16.0, rtol=0.25)


def index_behind(posterior, law, priors, xs, key) -> np.ndarray:
    """z of every row, solved for from its outputs: three outputs, an index of 2."""
    found = []
    ys = rows_of(posterior, law, inputs(priors, xs), key)
    for x, y in zip(np.asarray(xs), np.asarray(ys, np.float64), strict=True):
        _, centre, rows = np_directions(law, priors, x, BETA)
        z, residual, *_ = np.linalg.lstsq(rows.T, y - centre, rcond=None)
        assert residual < 1e-8
        found.append(z)
    return np.array(found)


def test_the_same_key_shares_the_index_between_values_and_targets():
    """Row by row, at other states and under other weights: what `paired` rests on. Rows differ."""
    posterior = LowRank(2, prior=BETA)
    network, rng = networks.mlp(3, 6, 3), np.random.default_rng(7)
    one, other = (some_law(posterior, seed, network) for seed in (7, 8))
    xs, xs_next = jnp.asarray(rng.normal(size=(2, 10, 3)), jnp.float32)
    key = noise.root(9)
    z = index_behind(posterior, *one, xs, key)
    z_next = index_behind(posterior, *other, xs_next, key)
    np.testing.assert_allclose(z, z_next, atol=1e-4)
    assert len(np.unique(z.round(4))) == 20
    assert np.min(np.abs(z - index_behind(posterior, *other, xs_next, noise.root(10)))) > 1e-4
    theta = draw(posterior, one[0], 10, key)
    assert theta.for_target(draw(posterior, one[0], 10, noise.root(10))) is theta


# The entropy


@pytest.mark.parametrize(("rank", "rho"), [(1, -1.0), (3, -1.0), (8, 0.5), (20, -2.0)])
def test_entropy_is_scipys_up_to_the_known_constant(rank, rho):
    """The last layer's 14 weights ~ N(W₀, D + F·Fᵀ/M), written out; ½·log 2πe for each apart.
    The order of the weights does not matter, as long as D and F have the same."""
    posterior = LowRank(rank, rho=rho)
    law, _ = some_law(posterior, 11)
    v, factors = f64(law.variance), f64(law.factors)
    diagonal = np.concatenate([v.weight.ravel(), v.bias])
    f = np.array(
        [np.concatenate([factors.weight[m].ravel(), factors.bias[m]]) for m in range(rank)]
    )
    covariance = np.diag(diagonal) + f.T @ f / rank
    exact = stats.multivariate_normal(np.zeros(14), covariance).entropy()
    constant = 14 * 0.5 * np.log(2 * np.pi * np.e)
    assert float(entropy(posterior, law)) == pytest.approx(exact - constant, rel=1e-4, abs=1e-4)


def test_without_a_diagonal_the_entropy_is_on_the_plane_of_the_factors():
    """Against SciPy, of the coordinates along an orthonormal basis of that plane."""
    law, _ = some_law(PLAIN, 12)
    f = np.concatenate([np.asarray(w, np.float64).reshape(PLAIN.rank, -1) for w in law.factors], 1)
    basis = np.linalg.qr(f.T)[0]
    along = f @ basis / np.sqrt(PLAIN.rank)
    exact = stats.multivariate_normal(np.zeros(PLAIN.rank), along.T @ along).entropy()
    constant = 0.5 * PLAIN.rank * (1.0 + np.log(2.0 * np.pi))
    assert float(entropy(PLAIN, law)) == pytest.approx(exact - constant, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("rho", [None, -1.0])
def test_with_a_bound_the_variances_are_taken_off_the_entropy(rho):
    """tr(D + F·Fᵀ/M)/2s², with s = prior_std/√inputs of the last layer."""
    law, _ = some_law(LowRank(3, rho=rho), 11)
    inputs = law.head.weight.shape[0]
    trace = sum(np.sum(np.asarray(f, np.float64) ** 2) for f in law.factors) / 3
    if rho is not None:
        trace += sum(np.sum(np.asarray(v, np.float64)) for v in law.variance)
    apart = float(entropy(LowRank(3, rho=rho), law)) - float(
        entropy(LowRank(3, rho=rho, prior_std=0.7), law)
    )
    directions = 1.0 if rho is not None else 3 / sum(part.size for part in law.head)
    assert apart == pytest.approx(directions * trace * inputs / (2 * 0.7**2), rel=1e-4)


def test_without_data_a_weight_has_the_standard_deviation_of_its_prior():
    """Where the entropy alone decides: its gradient is 0 at factors F = s·√(weights)·Qᵀ with
    orthonormal rows, whose mean variance of a weight is s² = prior_std²/inputs."""
    posterior = LowRank(2, prior_std=0.7)
    law, _ = some_law(posterior, 11)
    inputs, outputs = law.head.weight.shape
    weights, s = inputs * outputs + outputs, 0.7 / np.sqrt(inputs)
    rows = np.linalg.qr(np.random.default_rng(0).normal(size=(weights, 2)))[0].T
    rows = jnp.asarray(rows * s * np.sqrt(weights), jnp.float32)
    factors = Linear(
        rows[:, : inputs * outputs].reshape(2, inputs, outputs), rows[:, inputs * outputs :]
    )
    variance = np.sum(np.asarray(rows) ** 2, axis=0) / 2
    assert np.mean(variance) == pytest.approx(s**2, rel=1e-5)
    slope = jax.grad(lambda f: posterior.entropy(law._replace(factors=f)))(factors)
    for leaf in slope:
        np.testing.assert_allclose(leaf, 0.0, atol=1e-4)


@pytest.mark.parametrize("rho", [None, -8.0])
def test_the_entropys_gradient_is_right_where_factors_are_nearly_dependent(rho):
    """Against the closed form in float64: ∂/∂F of ½·log det(FᵀF) is F·(FᵀF)⁻¹, and with a diagonal
    of ½·log det(D + FFᵀ) it is (D + FFᵀ)⁻¹·F. The condition number of F is about 5e3."""
    rng = np.random.default_rng(0)
    posterior = LowRank(4, rho=rho)
    law, _ = some_law(posterior, 11)
    base = rng.normal(size=(1, 14))
    f = np.float32(base + 1e-3 * rng.normal(size=(4, 14)))
    assert 1e3 < np.linalg.cond(f) < 2e4
    parts = Linear(jnp.asarray(f[:, :12]).reshape(law.factors.weight.shape), jnp.asarray(f[:, 12:]))
    slope = jax.grad(lambda factors: posterior.entropy(law._replace(factors=factors)))(parts)
    found = np.concatenate([np.asarray(s, np.float64).reshape(4, -1) for s in slope], axis=1)
    columns = f.astype(np.float64).T / 2.0  # F over √M
    if rho is None:
        exact = columns @ np.linalg.inv(columns.T @ columns)
    else:
        diagonal = np.concatenate([np.asarray(v, np.float64).ravel() for v in law.variance])
        exact = np.linalg.solve(np.diag(diagonal) + columns @ columns.T, columns)
    exact = exact.T / 2.0
    assert np.max(np.abs(found - exact)) < 1e-2 * np.max(np.abs(exact))


def test_the_variance_is_softplus_of_rho_squared():
    phi = LowRank(M, rho=-2.0).init(NETWORK, noise.root(0))
    for v in LowRank(M, rho=-2.0).law(phi).variance:
        np.testing.assert_allclose(v, np.log1p(np.exp(-2.0)) ** 2, rtol=1e-6)


@pytest.mark.fast_cases("5-sizes0")
@pytest.mark.parametrize(("rank", "sizes"), [(5, (1, 4)), (9, (3, 4, 2))])
def test_more_directions_than_weights_have_no_density(rank, sizes):
    """The factors span no plane of so many dimensions: refused, unless there is a diagonal."""
    network = networks.mlp(*sizes)
    LowRank(rank - 1).init(network, noise.root(0))
    LowRank(rank, rho=-1.0).init(network, noise.root(0))
    with pytest.raises(ConfigError, match=f"at most {rank - 1}") as caught:
        LowRank(rank).init(network, noise.root(0))
    assert caught.value.field == "rank"


# In training


@pytest.mark.slow
def test_prior_functions_never_change_while_the_rest_learns():
    agent = Agent(Gaussian(0.1), FULL, hidden=(6,), batch_size=4, buffer_size=16, lr=0.01)
    state = jax.jit(Agent.init, static_argnums=(1, 2))(agent, 3, 2, noise.root(0))
    learn, observe = jax.jit(agent.learn), jax.jit(agent.observe)
    rng = np.random.default_rng(0)
    for i in range(8):
        s, s_next = jnp.asarray(rng.normal(size=(2, 3)), jnp.float32)
        state = observe(state, Transition(s, jnp.int32(i % 2), s[0], s_next, jnp.asarray(False)))
    before = state.phi
    for step in range(5):
        state, loss = learn(state, noise.fold(noise.root(1), step))
        assert np.isfinite(loss)
    for a, b in zip(*(jax.tree.leaves(p.priors) for p in (before, state.phi)), strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(*(jax.tree.leaves(p.learned) for p in (before, state.phi)), strict=True):
        assert not np.array_equal(a, b)


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("rank", {"rank": 0}),
        ("rank", {"rank": 1.5}),
        ("draws", {"draws": 0}),
        ("prior", {"prior": -0.1}),
        ("prior", {"prior": float("nan")}),
        ("prior_std", {"prior_std": 0.0}),
        ("rho", {"rho": -31.0}),
        ("rho", {"rho": float("inf")}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        LowRank(**settings)
    assert caught.value.field == field
