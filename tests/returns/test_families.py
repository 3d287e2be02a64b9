"""What every family of returns promises, alone and in an agent."""

import itertools

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import special, stats

import rove
from helpers import draw, in_buffer, in_numpy, targets
from helpers import objective as objective_at
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.replay import Transition
from rove.posteriors import Phi
from rove.returns import (
    Bernoulli,
    Categorical,
    Gaussian,
    Laplace,
    LearnedGaussian,
    Mixture,
    Quantile,
    Return,
    SkewedLaplace,
)

FAMILIES = {
    "gaussian": Gaussian(0.3),
    "learned": LearnedGaussian(),
    "learned-mean": LearnedGaussian(draw="mean"),
    "categorical": Categorical(),
    "quantile": Quantile(),
    "pinball": Quantile(8, kappa=0.0),
    "mixture": Mixture(),
    "mixture-mean": Mixture(2, draw="mean"),
    "learned-law": LearnedGaussian(draw="distribution"),
    "natural": LearnedGaussian(draw="distribution", natural=True),
    "laplace": Laplace(),
    "laplace-natural": Laplace(natural=True),
    "skewed": SkewedLaplace(),
    "skewed-natural": SkewedLaplace(natural=True),
    "bernoulli": Bernoulli(),
}
DRAWS = 20_000
every_family = pytest.mark.parametrize("returns", FAMILIES.values(), ids=FAMILIES)


target_of = jax.jit(lambda returns, *arguments: returns.target(*arguments))


@jax.jit
def shown(returns, z):
    """What a picture shows of a return: its density, mean and standard deviation."""
    return returns.density(z), returns.mean(z), returns.std(z)


@jax.jit
def slopes(returns, z, x):
    """The loss of an output for a target, its slope, and that of the mean."""
    return *jax.value_and_grad(returns.loss)(z, x), jax.grad(returns.mean)(z)


def number(x: float):
    return jnp.asarray(x, jnp.float32)


def outputs(returns, seed: int = 0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=returns.outputs), jnp.float32)


@every_family
def test_picture_has_the_mass_mean_and_standard_deviation(returns):
    """Sums over atoms; for a density sums over its grid, which ends at 4 standard deviations:
    a normal law has 6e-5 of its mass and 1e-3 of its variance beyond, a mixture can have more, and
    a Laplace law has 0.0035 of its mass and 0.08 of its variance."""
    density, returned_mean, returned_std = shown(returns, outputs(returns))
    points, heights = (np.asarray(a, np.float64) for a in density)
    assert np.all(np.diff(points) > 0)
    assert np.all(heights >= 0)
    atoms = 2 if returns.binary else returns.outputs
    assert len(points) == len(heights) == (atoms if returns.discrete else 101)
    masses = heights if returns.discrete else heights * np.gradient(points)
    heavy = isinstance(returns, Laplace | SkewedLaplace)
    close = 1e-5 if returns.discrete else 7e-2 if heavy else 2e-2
    mean = np.sum(masses * points)
    std = np.sqrt(np.sum(masses * (points - mean) ** 2))
    assert masses.sum() == pytest.approx(1.0, abs=close)
    assert float(returned_mean) == pytest.approx(mean, abs=close)
    assert float(returned_std) == pytest.approx(std, rel=close)


@every_family
def test_target_at_discount_0_is_the_reward(returns):
    """A draw, or all of the law, at r: drawn or projected on an atom, 0.4."""
    z, reward = outputs(returns), number(0.4)
    x = target_of(returns, z, reward, number(0.0), noise.root(0))
    if isinstance(returns, Categorical):
        assert float(x[26]) == pytest.approx(1.0, abs=1e-5)  # −10 + 0.4·26
    elif isinstance(returns, Quantile):
        assert np.all(np.asarray(x) == np.asarray(reward))
    else:  # a number, or a location with scales of 0
        location, *scales = np.ravel(x)
        assert location == np.asarray(reward)
        assert not any(scales)


@every_family
def test_targets_of_a_minibatch_are_independent_draws_or_all_the_same(returns):
    """Drawn with the keys of a minibatch's rows, targets have the law of 0.1 + 0.9·Z, to within
    5 standard errors of its mean and variance and of the share below any point, and neighbouring
    rows are uncorrelated. A family that does not draw does not depend on the key."""
    z = outputs(returns)
    target = jax.vmap(lambda key: returns.target(z, number(0.1), number(0.9), key))
    x = np.asarray(jax.jit(target)(noise.folds(noise.root(6), DRAWS)), np.float64)
    density, mean, std = shown(returns, z)
    mean, std = 0.1 + 0.9 * float(mean), 0.9 * float(std)
    draw = getattr(returns, "draw", None)
    if draw != "sample":
        assert np.all(x == x[0])
        assert draw != "mean" or x[0] == pytest.approx(mean, rel=1e-6)
        return
    assert x.shape == (DRAWS,)
    standard = (x - mean) / std
    assert abs(standard.mean()) < 5 / np.sqrt(DRAWS)
    assert abs(standard.var() - 1) < 5 * np.std(standard**2) / np.sqrt(DRAWS)
    assert abs(np.mean(standard[1:] * standard[:-1])) < 5 / np.sqrt(DRAWS)
    points, heights = (np.asarray(a, np.float64) for a in density)
    below = np.cumsum(heights * np.gradient(points))
    shares = np.searchsorted(np.sort(x), 0.1 + 0.9 * (points + np.gradient(points) / 2)) / DRAWS
    np.testing.assert_allclose(shares, below, atol=5 * 0.5 / np.sqrt(DRAWS) + 2e-3)


@every_family
@pytest.mark.parametrize("size", [50.0, 1e3])
@pytest.mark.parametrize("sign", ["+", "-", "±"])
def test_extreme_outputs_have_finite_losses_and_slopes(returns, size, sign):
    n = returns.outputs
    signs = {"+": np.ones(n), "-": -np.ones(n), "±": np.where(np.arange(n) % 2, -1.0, 1.0)}
    z = jnp.asarray(size * signs[sign], jnp.float32)
    found = [shown(returns, z)]
    for reward, discount, z_next in ((0.5, 0.9, outputs(returns)), (0.0, 1.0, z)):
        x = target_of(returns, z_next, number(reward), number(discount), noise.root(0))
        found += [x, slopes(returns, z, x)]
    for value in jax.tree.leaves(found):
        assert np.all(np.isfinite(value))


def cross_entropy(z, x):
    return special.logsumexp(z) - x @ z


def quantile_huber(z, x):
    """Equation (10) of Dabney et al. 2018 with κ = 1, term by term."""
    total, n = 0.0, len(z)
    for i, j in itertools.product(range(n), range(n)):
        u = x[j] - z[i]
        huber = u**2 / 2 if abs(u) <= 1.0 else abs(u) - 0.5
        total += abs((i + 0.5) / n - (u < 0)) * huber / n
    return total


def scale(raw):
    return np.logaddexp(0.0, raw) + 0.01


def learned_gaussian(z, x):
    return -stats.norm.logpdf(x, z[0], scale(z[1]))


def mixture(z, x):
    logits, means, raw = z.reshape(3, 3)
    return -np.log(special.softmax(logits) @ stats.norm.pdf(x, means, scale(raw)))


def laplace(z, x):
    """E[−log Z_θ(X)] of X ~ Laplace(x), by quadrature."""
    if x[1] == 0.0:  # the task ends: X is the reward
        return -stats.laplace.logpdf(x[0], z[0], scale(z[1]))
    points = np.linspace(*stats.laplace.ppf([1e-9, 1 - 1e-9], *x), 20_001)
    terms = stats.laplace.pdf(points, *x) * stats.laplace.logpdf(points, z[0], scale(z[1]))
    return -np.trapezoid(terms, points)


@pytest.mark.fast_cases("LearnedGaussian")
@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        pytest.param(kind, loss, id=kind.__name__)
        for kind, loss in {
            LearnedGaussian: learned_gaussian,
            Laplace: laplace,
            Categorical: cross_entropy,
            Quantile: quantile_huber,
            Mixture: mixture,
        }.items()
    ],
)
def test_objective_is_the_loss_less_the_weighted_entropy(kind, loss):
    """mean(loss) − (c/N)·Σ log σ_θ, with the network, the loss and the entropy in NumPy, for the
    same targets and the same samples of θ; and its slope is finite."""
    returns, posterior = kind(weight=0.3), rove.MeanField(-2.0)
    n, rng = 4, np.random.default_rng(1)
    agent = Agent(returns, posterior, hidden=(5,), batch_size=n)
    phi = posterior.init(networks.mlp(3, 5, 2 * returns.outputs), noise.root(2))
    moved = lambda x: x + jnp.asarray(0.5 * rng.normal(size=x.shape), x.dtype)  # noqa: E731
    phi = phi._replace(learned=jax.tree.map(moved, phi.learned))
    law = posterior.law(phi)
    batch = Transition(
        jnp.asarray(rng.normal(size=(n, 3)), jnp.float32),
        jnp.array([0, 1, 1, 0], jnp.int32),
        jnp.asarray(rng.normal(size=n), jnp.float32),
        jnp.asarray(rng.normal(size=(n, 3)), jnp.float32),
        jnp.array([False, True, False, False]),
    )
    batch, key = in_buffer(batch), noise.root(5)
    x = targets(agent, law, law, batch, noise.root(3), noise.root(4))

    def objective(learned):
        return objective_at(agent, Phi(learned), batch, x, key)

    (value, _), slope = jax.jit(jax.value_and_grad(objective, has_aux=True))(phi.learned)
    z = in_numpy(phi.learned, batch.observation, draw(posterior, law, n, key).epsilon)
    z = z.reshape(n, 2, -1)[np.arange(n), np.asarray(batch.action_index)]
    losses = [loss(*row) for row in zip(z, np.asarray(x[0], np.float64), strict=True)]
    entropy = sum(np.sum(np.log(np.logaddexp(0, r))) for r in jax.tree.leaves(phi.learned.rho))
    assert float(value) == pytest.approx(np.mean(losses) - 0.3 / n * entropy, rel=1e-4)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(slope))


@pytest.mark.parametrize(
    ("kind", "field", "settings"),
    [
        (LearnedGaussian, "floor", {"floor": 0.0}),
        (LearnedGaussian, "draw", {"draw": "median"}),
        *((kind, "floor", {"floor": 0.0}) for kind in (Laplace, SkewedLaplace)),
        *((kind, "natural", {"natural": 1}) for kind in (LearnedGaussian, Laplace, SkewedLaplace)),
        (Categorical, "atoms", {"atoms": 1}),
        (Categorical, "atoms", {"atoms": 5.5}),
        (Categorical, "low", {"low": float("nan")}),
        (Categorical, "high", {"low": 1.0, "high": 1.0}),
        (Categorical, "high", {"low": 2.0, "high": 1.0}),
        (Categorical, "high", {"high": float("inf")}),
        (Quantile, "quantiles", {"quantiles": 0}),
        (Quantile, "kappa", {"kappa": -0.1}),
        (Quantile, "kappa", {"kappa": float("nan")}),
        (Mixture, "components", {"components": 0}),
        (Mixture, "floor", {"floor": -1.0}),
        (Mixture, "draw", {"draw": "mode"}),
        *(
            (kind, "weight", {"weight": weight})
            for kind in (LearnedGaussian, Categorical, Quantile, Mixture, Laplace, Bernoulli)
            for weight in (-1e-9, float("nan"), "much")
        ),
    ],
)
def test_bad_values_are_refused_by_name(kind, field, settings, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        kind(**settings)
    assert caught.value.field == field


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [LearnedGaussian, Categorical, Quantile, Mixture, Laplace, SkewedLaplace]
)
def test_learns_a_short_chain(kind, tmp_path):
    """From random actions alone, which reach the far end in one episode of four, so that only
    learning is at stake; actions are swapped by state, so that fewer untrained networks are right
    by luck. Greedy evaluation earns 11 on every seed with learning, and not without; a run folder
    rebuilds the agent."""

    def trained(learning_starts):
        agent = Agent(kind(), rove.Dirac(), epsilon=1.0, learning_starts=learning_starts)
        return rove.train(agent, "permuted-chain-5", seeds=3, episodes=60)

    assert np.any(trained(10**6).evaluate() < 11.0)
    run = trained(50)
    assert np.all(run.evaluate() == 11.0)
    again = rove.load(run.save(tmp_path / "run"))
    assert type(again.config.compose().returns) is kind
    assert np.all(again.evaluate() == 11.0)


def test_a_return_has_six_required_members():
    """What a newcomer has to write; densities have a default."""
    required = {"outputs", "scale", "mean", "std", "target", "loss"}
    assert Return.__abstractmethods__ == required


@pytest.mark.fast_cases("posterior0")
@pytest.mark.parametrize("posterior", [rove.Dirac(), rove.Ensemble(2)])
def test_without_an_entropy_its_weight_has_no_effect(posterior):
    """Not even on Adam's ε: the same numbers are learned, to the bit."""
    small = {"hidden": (8,), "batch_size": 8, "buffer_size": 64, "learning_starts": 8}
    runs = [
        rove.train(
            rove.Agent(rove.Categorical(low=0.0, high=11.0, weight=weight), posterior, **small),
            "chain-4",
            episodes=5,
        )
        for weight in (0.0, 1e-4)
    ]
    a, b = (jax.tree.leaves(run.outcomes[0].lane.agent.phi) for run in runs)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)
