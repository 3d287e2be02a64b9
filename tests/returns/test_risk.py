"""Risk measures: against closed forms, scipy, and sorted samples."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import integrate, stats

import rove
from helpers import targets
from rove.core.algorithm import Agent
from rove.core.folding import folded_values
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.replay import Transition
from rove.posteriors import Dirac, Phi
from rove.posteriors.priors import Input
from rove.returns import (
    Bernoulli,
    Categorical,
    CVaR,
    Gaussian,
    Laplace,
    LearnedGaussian,
    Mixture,
    Quantile,
    Return,
    SkewedLaplace,
    ValueAtRisk,
)

LEVELS = (0.02, 0.1, 0.5, 0.9)


def outputs(returns: Return, seed: int = 0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=returns.outputs), jnp.float32)


def softplus(x) -> np.ndarray:
    return np.logaddexp(0.0, np.asarray(x, float))


def scipys(returns: Return, z):
    """The same law by scipy."""
    z = np.asarray(z, float)
    if isinstance(returns, Gaussian):
        return stats.norm(z[0], returns.sigma)
    scales = softplus(z[1:]) + returns.floor
    if isinstance(returns, LearnedGaussian):
        return stats.norm(z[0], scales[0])
    if isinstance(returns, Laplace):
        return stats.laplace(z[0], scales[0])
    left, right = scales
    return stats.laplace_asymmetric(np.sqrt(left / right), z[0], np.sqrt(left * right))


CLOSED = (Gaussian(0.6), LearnedGaussian(), Laplace(), SkewedLaplace())


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("returns", CLOSED, ids=lambda r: type(r).__name__)
def test_closed_forms_are_scipys(returns, level):
    """The quantile function, and its mean below the level by numerical integration."""
    for seed in range(3):
        z = outputs(returns, seed)
        law = scipys(returns, z)
        tail = integrate.quad(law.ppf, 0.0, level)[0] / level
        assert float(returns.quantile(z, level)) == pytest.approx(law.ppf(level), abs=2e-5)
        assert float(at(returns, CVaR(level)).value(z)) == pytest.approx(tail, abs=1e-4)
        assert float(at(returns, ValueAtRisk(level)).value(z)) == float(returns.quantile(z, level))
        for x in (-1.5, 0.2, 2.0):
            expected = integrate.quad(law.cdf, -60.0, x, points=[z[0]], limit=200)[0]
            assert float(returns.shortfall(z, jnp.float32(x))) == pytest.approx(expected, abs=2e-5)


def at(returns: Return, risk) -> Return:
    """The same family with a risk measure."""
    fields = {name: getattr(returns, name) for name in returns.__dataclass_fields__}
    return type(returns)(**fields | {"risk": risk})


@pytest.mark.parametrize("level", LEVELS)
def test_gaussian_by_hand(level):
    """CVaR = m − s·φ(Φ⁻¹(α))/α."""
    expected = 1.5 - 0.6 * stats.norm.pdf(stats.norm.ppf(level)) / level
    returns = Gaussian(0.6, risk=CVaR(level))
    assert float(returns.value(jnp.array([1.5]))) == pytest.approx(expected, abs=1e-5)


def test_a_point_mass_has_no_risk():
    for risk in (CVaR(0.1), ValueAtRisk(0.1)):
        assert float(Gaussian(0.0, risk=risk).value(jnp.array([1.5]))) == 1.5


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [7, 20, 300])
def test_quantiles_are_averaged_from_below(n, level):
    """Sorted in float64: whole values below the level, and a fraction of the next one."""
    z = np.random.default_rng(n).normal(size=n).astype(np.float32)
    count = level * n
    weights = np.clip(count - np.arange(n), 0.0, 1.0)
    expected = np.sum(weights * np.sort(z.astype(float))) / count
    outputs, at_level = jnp.asarray(z), np.sort(z)[int(np.ceil(count - 1e-9)) - 1]
    assert float(Quantile(n, risk=CVaR(level)).value(outputs)) == pytest.approx(expected, abs=1e-5)
    assert float(Quantile(n, risk=ValueAtRisk(level)).value(outputs)) == at_level


@pytest.mark.parametrize("level", LEVELS)
def test_categorical_by_hand(level):
    """Atoms in ascending order until their probabilities add up to the level."""
    returns = Categorical(11, low=-2.0, high=3.0, risk=CVaR(level))
    z, atoms = np.asarray(outputs(returns), float), np.linspace(-2.0, 3.0, 11)
    p, left, total = np.exp(z) / np.exp(z).sum(), level, 0.0
    for x, mass in zip(atoms, p, strict=True):
        total, left = total + min(mass, left) * x, max(left - mass, 0.0)
    assert float(returns.value(jnp.asarray(z, jnp.float32))) == pytest.approx(
        total / level, abs=1e-5
    )


def test_bernoulli_by_hand():
    """P(1) = 0.8: the lowest 0.5 hold all of the zeros, 0.2, and 0.3 of the ones."""
    z = jnp.array([np.log(4.0)], jnp.float32)
    assert float(Bernoulli(risk=CVaR(0.5)).value(z)) == pytest.approx(0.6, abs=1e-6)
    assert float(Bernoulli(risk=CVaR(0.1)).value(z)) == pytest.approx(0.0, abs=1e-6)
    assert float(Bernoulli(risk=ValueAtRisk(0.5)).value(z)) == 1.0


@pytest.mark.parametrize("level", LEVELS)
def test_mixture_is_a_million_samples(level):
    """To within five standard errors of the tail's mean, and of the share below the quantile."""
    returns = Mixture(3, risk=CVaR(level))
    z = jnp.asarray([0.4, -1.0, 0.2, -3.0, 0.5, 2.0, 0.3, -1.0, 1.0])
    log_weights, means, stds = (np.asarray(part, float) for part in returns.parts(z))
    rng = np.random.default_rng(0)
    k = rng.choice(3, 1_000_000, p=np.exp(log_weights) / np.exp(log_weights).sum())
    x = np.sort(means[k] + stds[k] * rng.normal(size=len(k)))
    tail = x[: int(level * len(x))]
    q = float(returns.quantile(z, level))
    below = np.mean(x < q)
    assert below == pytest.approx(level, abs=5 * np.sqrt(level * (1 - level) / len(x)))
    error = np.sqrt((tail.var() + (1 - level) * (q - tail.mean()) ** 2) / len(tail))
    assert abs(float(returns.value(z)) - tail.mean()) < 5 * error + 1e-5


class Logistic(Return):
    """A family that has only what is required and its density: risk measures by the defaults."""

    outputs = 2
    scale = 1e-4

    def mean(self, z):
        return z[0]

    def std(self, z):
        return jnp.exp(z[1]) * np.float32(np.pi / np.sqrt(3))

    def density(self, z):
        points = z[0] + self.std(z) * jnp.linspace(-4.0, 4.0, 101)
        return points, jax.scipy.stats.logistic.pdf(points, z[0], jnp.exp(z[1]))

    def target(self, z, reward, discount, key):
        return reward + discount * z[0]

    def loss(self, z, target):
        return -jax.scipy.stats.logistic.logpdf(target, z[0], jnp.exp(z[1]))


@pytest.mark.parametrize("level", [0.1, 0.5])
def test_other_families_have_it_from_their_density(level):
    """To a twentieth of a standard deviation: the grid ends at four."""
    z, law = jnp.array([0.5, -0.3]), stats.logistic(0.5, np.exp(-0.3))
    tail = integrate.quad(law.ppf, 0.0, level)[0] / level
    close = 0.05 * law.std()
    assert float(Logistic(risk=CVaR(level)).value(z)) == pytest.approx(tail, abs=close)
    assert float(Logistic().quantile(z, level)) == pytest.approx(law.ppf(level), abs=close)


EVERY = (*CLOSED, Categorical(), Quantile(), Mixture(), Bernoulli())
every_family = pytest.mark.parametrize("returns", EVERY, ids=lambda r: type(r).__name__)


@every_family
def test_cvar_tends_to_the_mean_and_lies_below_the_quantile(returns):
    z = outputs(returns, 3)
    values = [float(at(returns, CVaR(level)).value(z)) for level in (0.05, 0.3, 0.7, 0.9999)]
    assert np.all(np.diff(values) >= -1e-5)
    assert values[-1] == pytest.approx(float(returns.mean(z)), abs=5e-3)
    assert values[1] <= float(returns.quantile(z, 0.3)) + 1e-5
    assert float(returns.value(z)) == float(returns.mean(z))


@pytest.mark.fast_cases(
    "Gaussian-CVaR",
    "Gaussian-ValueAtRisk",
    "LearnedGaussian-CVaR",
    "LearnedGaussian-ValueAtRisk",
    "Laplace-CVaR",
    "Laplace-ValueAtRisk",
    "SkewedLaplace-CVaR",
    "SkewedLaplace-ValueAtRisk",
    "Mixture-ValueAtRisk",
    "Categorical-CVaR",
    "Categorical-ValueAtRisk",
)
@pytest.mark.parametrize("risk", [CVaR(0.2), ValueAtRisk(0.2)], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize(
    "returns", [*CLOSED, Mixture(), Categorical()], ids=lambda r: type(r).__name__
)
def test_gradients_are_differences(returns, risk):
    """Which policies of actor–critics follow. (The quantile of atoms is a step function.)"""
    if isinstance(returns, Categorical) and isinstance(risk, ValueAtRisk):
        pytest.skip("a step function")
    returns, z = at(returns, risk), outputs(returns, 1)
    step = 1e-2 * outputs(returns, 2) / jnp.linalg.norm(outputs(returns, 2))
    difference = returns.value(z + step) - returns.value(z - step)
    slope = 2 * jax.grad(returns.value)(z) @ step
    assert float(difference) == pytest.approx(float(slope), rel=0.02, abs=3e-5)


@pytest.mark.parametrize(
    ("risk", "best"), [(None, 0), (CVaR(0.3), 1), (ValueAtRisk(0.3), 1)], ids=str
)
def test_actions_targets_and_evaluation_use_the_risk_measure(risk, best):
    """One action returns −3 or 2 with equal chance, the other −1: means of −0.5 and −1. The target
    is the law of r + γZ of the action that is best for the measure, on atoms at −5, −4, …, 3."""
    logits = np.full((2, 9), -50.0, np.float32)
    logits[0, [2, 7]], logits[1, 4] = 0.0, 0.0
    returns = Categorical(9, low=-5.0, high=3.0, risk=risk)
    agent = Agent(returns, Dirac(), hidden=(), batch_size=1, buffer_size=2, gamma=1.0)
    state = agent.init(1, 2, noise.root(0))
    phi = Phi((networks.Linear(jnp.zeros((1, 18)), jnp.asarray(logits.ravel())),))
    state, law, x = state._replace(phi=phi), agent.posterior.law(phi), jnp.ones(1)
    assert int(agent.act(state, x, noise.root(1))) == best
    assert int(agent.greedy(state, x)) == best
    np.testing.assert_allclose(agent.means(agent.posterior.mean(law, Input(x))), [-0.5, -1.0])
    step = Transition(x[None], jnp.zeros((1, 1)), jnp.ones(1), x[None], jnp.zeros(1, bool))
    target = targets(agent, law, law, step, noise.root(2), noise.root(3))[0, 0]
    expected = [0, 0, 0, 0.5, 0, 0, 0, 0, 0.5] if best == 0 else [0, 0, 0, 0, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(target, expected, atol=1e-6)


@pytest.mark.slow
def test_a_policy_with_risk_is_not_exported_as_one_without():
    """Its values are not the means that a sum of networks would have."""
    for risk, exported in ((None, True), (CVaR(0.1), False)):
        for returns in (Categorical(risk=risk), Quantile(risk=risk)):
            agent = Agent(returns, Dirac(), hidden=(4,))
            phi = agent.init(2, 2, noise.root(0)).phi
            folded = folded_values(returns, agent.posterior, phi, jnp.ones(()))
            assert (folded is not None) == exported


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1e-40, 1.0 - 1e-12, float("nan"), "low"])
def test_bad_levels_are_refused(level, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match="level"):
        CVaR(level)


def test_bad_risk_is_refused(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=r"risk must be .*rove\.CVaR"):
        Quantile(risk="cvar")
    with pytest.raises(ConfigError, match="risk_level"):
        rove.QRDQN(risk_level=0.2)
    with pytest.raises(ConfigError, match="risk_level"):
        rove.C51(risk="cvar", risk_level=1.0)


@pytest.mark.slow
def test_settings_and_folders_keep_it(tmp_path):
    agent = rove.C51(risk="cvar", risk_level=0.2, hidden=(4,), batch_size=4, learning_starts=4)
    assert agent.compose().returns.risk.level == pytest.approx(0.2)
    composed = Agent(Quantile(4, risk=ValueAtRisk(0.3)), Dirac(), hidden=(4,), batch_size=4)
    for given in (agent, composed):
        run = rove.train(given, "chain-4", episodes=2, out=tmp_path / type(given).__name__)
        again = rove.load(tmp_path / type(given).__name__).config.compose()
        assert again.returns.risk == run.config.compose().returns.risk
