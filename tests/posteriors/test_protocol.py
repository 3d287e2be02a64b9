"""What every family of parameter distributions must do, whatever it is.

Statistical limits: a chance of 1e-4 for all values of a test together; seeds are fixed. Networks
are small, and moved off their start, so that nothing is 0 by accident.
"""

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from helpers import draw, rows, single, some_quick
from helpers import refit as refitted
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise, replay
from rove.parts.onehot import Form, OneHot
from rove.parts.replay import Layout, Replay, Transition
from rove.posteriors import (
    Conjugate,
    Dirac,
    Dropout,
    Ensemble,
    Factorised,
    FullCovariance,
    Langevin,
    LastLayer,
    LowRank,
    MeanField,
    ParameterNoise,
    Phi,
    Posterior,
    priors,
)
from rove.posteriors.conjugate import Table
from rove.posteriors.last_layer import Head
from rove.posteriors.priors import inputs
from rove.returns import Gaussian, Quantile

DRAWS, FEATURES, OUTPUTS, K = 20_000, 3, 2, 4
X = np.array([[0.8, -1.5, 0.3], [-0.4, 0.6, 1.2]], np.float32)


class Family(NamedTuple):
    make: Callable[..., Posterior]
    hidden: tuple[int, ...] = (6, 5)


FAMILIES = {
    "conjugate": Family(functools.partial(Conjugate, 1.3), ()),
    "dirac": Family(Dirac),
    "dropout": Family(functools.partial(Dropout, 0.3)),
    "ensemble": Family(functools.partial(Ensemble, K, mask=0.5, prior=2.0)),
    "ensemble, plain": Family(functools.partial(Ensemble, K)),
    "factorised": Family(functools.partial(Factorised, -1.0)),
    "full covariance": Family(functools.partial(FullCovariance, -1.0)),
    "langevin": Family(functools.partial(Langevin, 1.0)),
    "last layer": Family(functools.partial(LastLayer, 1.3, 1)),
    "low rank": Family(functools.partial(LowRank, 3, prior=2.0, rho=-1.0)),
    "low rank, plain": Family(functools.partial(LowRank, 3)),
    "mean field": Family(functools.partial(MeanField, -1.0)),
    "mean field, prior": Family(functools.partial(MeanField, -1.0, prior=0.5)),
    "parameter noise": Family(functools.partial(ParameterNoise, 0.3, period=1)),
}
PER_ROW = [
    "conjugate", "dropout", "factorised", "full covariance", "last layer", "low rank",
    "low rank, plain", "mean field",
]  # fmt: skip
"""Families that draw θ for each row of a minibatch. Dirac and Langevin draw nothing; ParameterNoise
nothing in learning; Ensemble takes its expectation whole, with every member at every row."""

all_families = pytest.mark.parametrize("name", FAMILIES)

init = jax.jit(lambda posterior, network, key: posterior.init(network, key), static_argnums=1)
law_of = jax.jit(lambda posterior, phi: posterior.law(phi))
rows_of = jax.jit(
    lambda posterior, phi, xs, key: rows(posterior, posterior.law(phi), inputs(phi.priors, xs), key)
)
entropy = jax.jit(
    jax.value_and_grad(
        lambda learned, posterior, held: posterior.entropy(posterior.law(Phi(learned, held)))
    )
)
mean_of = jax.jit(
    lambda posterior, phi, x: posterior.mean(posterior.law(phi), inputs(phi.priors, x))
)
init_agent = jax.jit(Agent.init, static_argnums=(1, 2))
learn, observe = jax.jit(Agent.learn), jax.jit(Agent.observe)
act, greedy, beliefs = (jax.jit(f) for f in (Agent.act, Agent.greedy, Agent.beliefs))


@jax.jit
def explicit(posterior, phi, xs, keys):
    """One θ a key, used on every row."""
    law, xs = posterior.law(phi), inputs(phi.priors, xs)

    def at(key):
        draw = posterior.sample(law, key)
        return jax.vmap(lambda x: posterior.apply(law, draw, x))(xs)

    return jax.vmap(at)(keys)


@jax.jit
def singles(posterior, phi, xs, key):
    """What one state, or a minibatch's numbers, give."""
    law, first = posterior.law(phi), inputs(phi.priors, xs[0])
    weights = draw(posterior, law, xs.shape[0], key).weights
    return single(posterior, law, first, key), posterior.mean(law, first), weights


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def keys(seed: int, n: int):
    return noise.folds(noise.root(seed), n)


def some_phi(posterior: Posterior, hidden: tuple[int, ...], outputs: int = OUTPUTS) -> Phi:
    return moved(posterior, networks.mlp(FEATURES, *hidden, outputs))


def moved(posterior: Posterior, network: networks.Network) -> Phi:
    """Everything moved off its start; a general Gaussian where the law is one."""
    rng = np.random.default_rng(0)
    phi = init(posterior, network, noise.root(0))

    def normal(shape, scale: float = 0.4):
        return np.float32(scale * rng.normal(size=shape))

    learned = jax.tree.map(lambda x: np.asarray(x) + normal(x.shape), phi.learned)
    held = phi.fitted
    if isinstance(held, Table):
        held = Table(normal(held.mean.shape), normal(held.mean.shape) ** 2 + 0.1)
    if isinstance(held, Head):
        held = Head(normal(held.mean.shape), normal(held.root.shape))
    return jax.tree.map(jnp.asarray, Phi(learned, held, phi.priors))


@functools.cache
def setting(name: str) -> tuple[Posterior, Phi]:
    posterior = FAMILIES[name].make()
    return posterior, some_phi(posterior, FAMILIES[name].hidden)


@functools.cache
def drawn(name: str) -> np.ndarray:
    """[DRAWS, 2, outputs]: one minibatch, two states in turn."""
    posterior, phi = setting(name)
    xs = jnp.tile(X, (DRAWS, 1))
    values = rows_of(posterior, phi, xs, noise.root(1))
    return np.asarray(values, np.float64).reshape(DRAWS, 2, OUTPUTS)


# (0) The interface


def test_a_posterior_is_nine_methods_of_which_five_are_required():
    public = [name for name in vars(Posterior) if not name.startswith("_")]
    methods = [name for name in public if inspect.isfunction(getattr(Posterior, name))]
    required = {"init", "law", "sample", "apply", "mean"}
    assert sorted(methods) == sorted(required | {"sample_rows", "entropy", "refit", "validate"})
    assert sorted(public) == sorted(methods)
    assert Posterior.__abstractmethods__ == required


# (1) The law of a row


@pytest.mark.fast_cases("mean field", "low rank", "dropout")
@pytest.mark.parametrize("name", PER_ROW)
def test_rows_have_the_law_of_draws_applied(name):
    """Means and covariances of the outputs, at two states; standard errors from the samples."""
    posterior, phi = setting(name)
    a = drawn(name)
    b = explicit(posterior, phi, jnp.asarray(X), keys(0, DRAWS))
    b = np.asarray(b, np.float64)
    check_same_moments(a, b)


def check_same_moments(a: np.ndarray, b: np.ndarray) -> None:
    """Of two samples of shape [draws, 2 states, outputs]."""
    i, j = np.triu_indices(OUTPUTS)
    for state in range(2):
        x, y = a[:, state], b[:, state]
        assert np.min(x.std(0)) > 0.05
        error = np.sqrt((x.var(0) + y.var(0)) / len(a))
        assert np.max(np.abs(x.mean(0) - y.mean(0)) / error) < limit(4)
        products = [(z - z.mean(0))[:, i] * (z - z.mean(0))[:, j] for z in (x, y)]
        error = np.sqrt((products[0].var(0) + products[1].var(0)) / len(a))
        difference = products[0].mean(0) - products[1].mean(0)
        assert np.max(np.abs(difference) / error) < limit(6)


@pytest.mark.parametrize("name", ["ensemble", "ensemble, plain"])
def test_an_ensemble_is_enumerated(name):
    """Every member once; control draws members, and no other function. (Members that are paired
    are computed only where they learn; see test_ensemble.py.)"""
    posterior, phi = FAMILIES[name].make(paired=False), setting(name)[1]
    rows = np.asarray(rows_of(posterior, phi, jnp.tile(X, (2, 1)), noise.root(1)))[:, :2]
    draws = np.asarray(explicit(posterior, phi, jnp.asarray(X), keys(0, DRAWS)))[:400]
    members = np.unique(draws.round(4), axis=0)
    assert len(members) == K
    np.testing.assert_allclose(np.unique(rows.round(4), axis=0), members, atol=2e-4)
    means = [mean_of(posterior, phi, x) for x in X]
    np.testing.assert_allclose(rows.mean(0), means, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["dirac", "langevin", "parameter noise"])
def test_the_exceptions_learn_without_noise(name):
    posterior, phi = setting(name)
    xs = jnp.tile(X, (2, 1))
    network = networks.forward(phi.learned, xs)
    for seed in range(3):
        rows = rows_of(posterior, phi, xs, noise.root(seed))
        np.testing.assert_allclose(rows[0], network, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["conjugate", "full covariance", "last layer", "low rank", "low rank, plain"]
)
def test_mean_is_the_mean_where_values_are_linear_in_what_is_drawn(name):
    posterior, phi = setting(name)
    rows = drawn(name)
    error = rows.std(0) / np.sqrt(DRAWS)
    exact = np.array([mean_of(posterior, phi, x) for x in X])
    assert np.max(np.abs(rows.mean(0) - exact) / error) < limit(4)


# (2) to (5) Keys, rows and shapes


@pytest.mark.fast_cases(
    "conjugate",
    "dirac",
    "ensemble",
    "factorised",
    "langevin",
    "last layer",
    "low rank",
    "mean field, prior",
    "parameter noise",
)
@all_families
def test_a_key_decides_all_that_is_drawn(name):
    """The same law, states and key give the same values; another key gives others, in a
    minibatch and in control, if the family draws anything there."""
    posterior, phi = setting(name)
    xs = jnp.tile(X, (2, 1))
    rows = [np.asarray(rows_of(posterior, phi, xs, noise.root(s))) for s in (0, 0, 1, 2, 3, 4)]
    control = [
        np.asarray(explicit(posterior, phi, jnp.asarray(X), keys(0, DRAWS))) for _ in range(2)
    ]
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(control[0], control[1])
    others = [not np.array_equal(rows[0], other) for other in rows[2:]]
    if name in ("dirac", "langevin", "parameter noise"):
        assert not any(others)
    elif name.startswith("ensemble"):
        assert any(others)  # some keys draw the same of four members
    else:
        assert all(others)
    distinct = len(np.unique(control[0][:50], axis=0))
    assert distinct == 1 if name in ("dirac", "langevin") else distinct > 1


@pytest.mark.parametrize("name", PER_ROW)
def test_rows_have_draws_of_their_own(name):
    """One state repeated: rows next to each other and half a batch apart are uncorrelated."""
    z = drawn(name)
    z = (z - z.mean(0)) / z.std(0)
    for apart in (1, 2, DRAWS // 2):
        for first, second in ((0, 0), (0, 1), (1, 1)):
            x, y = z[:-apart, first], z[apart:, second]
            assert np.max(np.abs(x.T @ y)) / np.sqrt(len(x)) < limit(3 * 3 * OUTPUTS**2)
    within = np.abs(z[:, 0].T @ z[:, 1]) / np.sqrt(DRAWS)  # the two states of one repetition
    assert np.max(within) < limit(OUTPUTS**2)


@all_families
def test_shapes(name):
    posterior, phi = setting(name)
    xs = jnp.asarray(X[[0, 1, 0, 1]])
    rows = rows_of(posterior, phi, xs, noise.root(3))
    assert rows.shape == (K if name.startswith("ensemble") else 1, 4, OUTPUTS)
    assert np.all(np.isfinite(rows))
    one, mean, weights = singles(posterior, phi, xs, noise.root(4))
    assert one.shape == mean.shape == (OUTPUTS,)
    assert jnp.broadcast_shapes(weights.shape, rows.shape[:2]) == rows.shape[:2]


# (6) Without hidden layers


@pytest.mark.fast_cases(
    "conjugate",
    "dirac",
    "ensemble",
    "factorised",
    "langevin",
    "last layer",
    "low rank",
    "mean field, prior",
    "parameter noise",
)
@all_families
def test_no_hidden_layer_is_a_linear_value(name):
    """f_θ(x) is affine in x for every θ: f(x + y) + f(0) = f(x) + f(y)."""
    posterior = FAMILIES[name].make()
    phi = some_phi(posterior, ())
    xs = jnp.asarray(np.stack([X[0] + X[1], np.zeros(FEATURES, np.float32), *X]))
    both, none, x, y = np.asarray(explicit(posterior, phi, xs, keys(5, 6))).swapaxes(0, 1)
    if name == "low rank":  # its prior functions have no hidden layer either
        assert len(phi.priors) == 1
    np.testing.assert_allclose(both + none, x + y, rtol=1e-4, atol=1e-5)
    rows = rows_of(posterior, phi, xs, noise.root(6))
    assert rows.shape[1:] == (4, OUTPUTS)
    assert np.all(np.isfinite(rows))


@all_families
def test_hidden_layers_work_or_are_refused(name):
    posterior = FAMILIES[name].make()
    if name == "conjugate":
        with pytest.raises(ConfigError, match="Conjugate") as caught:
            Agent(Gaussian(0.1), posterior, hidden=(4,))
        assert caught.value.field == "hidden"
    else:
        Agent(Gaussian(0.1), posterior, hidden=(4,))
    Agent(Gaussian(0.1), posterior, hidden=())


# (7) The entropy


@all_families
def test_the_entropy_has_a_finite_gradient(name):
    posterior, phi = setting(name)
    value, gradient = entropy(phi.learned, posterior, phi.fitted)
    assert value.shape == ()
    assert np.isfinite(value)
    assert all(np.all(np.isfinite(g)) for g in jax.tree.leaves(gradient))
    has_density = name.startswith(("full covariance", "mean field", "low rank"))
    assert (float(value) != 0.0) == has_density
    assert any(np.any(g != 0) for g in jax.tree.leaves(gradient)) == has_density


@pytest.mark.parametrize("rho", [-30.0, 10.0])
@pytest.mark.parametrize("make", [MeanField, FullCovariance, functools.partial(LowRank, 3, None)])
def test_the_entropy_is_finite_at_the_ends_of_rho(make, rho):
    posterior = make(rho)
    phi = init(posterior, networks.mlp(FEATURES, 6, OUTPUTS), noise.root(0))
    value, gradient = entropy(phi.learned, posterior, phi.fitted)
    assert np.isfinite(value)
    assert all(np.all(np.isfinite(g)) for g in jax.tree.leaves(gradient))


# (8) In an agent


def walk(posterior: Posterior, phi: Phi, n: int = 12) -> Replay:
    """Transitions to where they started, without reward: Q(s) = Q(s) is all there is to learn."""
    states = np.random.default_rng(7).normal(size=(n, FEATURES)).astype(np.float32)
    cached = priors.cache(phi.priors, jnp.asarray(states))
    rest = np.zeros((n, 3), np.float32)
    buffer = np.concatenate([states, states, rest, cached, cached], axis=1)
    return Replay(jnp.asarray(buffer), jnp.int32(n), Layout(FEATURES, 1, cached.shape[1]))


def np_networks(stack, x) -> np.ndarray:
    """[networks, outputs], in float64."""
    outputs = []
    for k in range(len(stack[0].bias)):
        layers = [[np.asarray(w[k], np.float64) for w in layer] for layer in stack]
        h = np.asarray(x, np.float64)
        for weight, bias in layers[:-1]:
            h = np.maximum(h @ weight + bias, 0.0)
        outputs.append(h @ layers[-1][0] + layers[-1][1])
    return np.array(outputs)


@all_families
def test_the_buffer_keeps_what_the_network_takes(name):
    """s and s′ as they are; and, where there are prior functions, their values at both, worked out
    by NumPy, network by network."""
    posterior, hidden = FAMILIES[name].make(), FAMILIES[name].hidden
    agent = Agent(Gaussian(0.5), posterior, hidden=hidden, batch_size=2, buffer_size=4)
    state = init_agent(agent, FEATURES, OUTPUTS, noise.root(0))
    seen = Transition(X[0], jnp.int32(1), jnp.float32(0.5), X[1], jnp.asarray(False))
    kept = replay.last(observe(agent, state, jax.tree.map(jnp.asarray, seen)).replay)
    assert (int(kept.action_index), float(kept.reward), bool(kept.terminated)) == (1, 0.5, False)
    stack = state.phi.priors
    assert bool(stack) == (name in ("ensemble", "low rank"))
    assert np.array_equal([kept.observation, kept.next_observation], X)
    for x, cached in zip(X, (kept.priors, kept.next_priors), strict=True):
        values = np_networks(stack, x).ravel() if stack else np.zeros(0)
        assert cached.shape == values.shape
        np.testing.assert_allclose(cached, values, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", some_quick(["low rank", "ensemble"], ["low rank"]))
def test_values_that_are_far_more_than_an_observation_are_not_kept(name, monkeypatch):
    """Of 20 quantiles for each action they would be; an update is the same as if they were."""
    posterior, learned = FAMILIES[name].make(), []
    for most in (priors.LEAST_CACHE, 10**6):
        monkeypatch.setattr(priors, "LEAST_CACHE", most)
        agent = Agent(Quantile(20), posterior, hidden=(6,), batch_size=4, buffer_size=8)
        state = jax.jit(lambda key, agent=agent: agent.init(FEATURES, OUTPUTS, key))(noise.root(0))
        seen = Transition(X[0], jnp.int32(1), jnp.float32(0.5), X[1], jnp.asarray(False))
        seen = jax.tree.map(jnp.asarray, seen)
        state = jax.jit(lambda s, agent=agent, seen=seen: agent.observe(s, seen))(state)
        more = 0 if most == 64 else OUTPUTS * 20 * (K if name == "ensemble" else 3)
        assert state.replay.rows.shape == (8, 2 * (FEATURES + more) + 3)
        state, _ = jax.jit(lambda s, key, agent=agent: agent.learn(s, key))(state, noise.root(1))
        learned.append(jax.tree.leaves(state.phi.learned))
    for a, b in zip(*learned, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["ensemble", "low rank"])
def test_prior_functions_are_in_control_evaluation_and_diagnostics(name):
    """Where β makes them nearly all there is: by NumPy, member by member, or along the index."""
    beta, states = 1e4, np.random.default_rng(3).normal(size=(40, FEATURES)).astype(np.float32)
    make = functools.partial(FAMILIES[name].make, prior=beta)
    posterior = make(rho=None) if name == "low rank" else make()
    agent = Agent(
        Gaussian(0.5), posterior, resample="episode", hidden=(6,), batch_size=2, buffer_size=4
    )
    state = init_agent(agent, FEATURES, OUTPUTS, noise.root(0))
    stack = state.phi.priors
    values = beta * np.array([np_networks(stack, x) for x in states])  # [states, networks, actions]
    if name == "low rank":
        shown, centre = (
            np.einsum("m,nmo->no", state.theta.index, values),
            np.zeros(values[:, 0].shape),
        )
    else:
        shown, centre = values[:, int(state.theta)], values.mean(axis=1)
    told = beliefs(agent, state, states, noise.root(1))
    np.testing.assert_allclose(told.outputs, centre, rtol=1e-2, atol=20.0)
    spread = values.std(axis=1) if name == "ensemble" else np.sqrt((values**2).mean(axis=1))
    found = np.asarray(told.values).std(axis=0)  # of 16 draws
    assert 0.6 < np.median(found / spread) < 1.4
    acted = np.array([act(agent, state, x, noise.root(2)) for x in states])
    best = np.array([greedy(agent, state, x) for x in states])
    for chosen, by in ((acted, shown), (best, centre)):
        clear = np.ptp(by, axis=1) > 200.0  # a prior function may be 0 for both actions
        assert np.array_equal(chosen[clear], by.argmax(axis=1)[clear])
        assert clear.sum() > 20 or not np.any(by)


@pytest.mark.fast_cases("ensemble")
@pytest.mark.parametrize("name", ["dropout", "ensemble", "full covariance", "low rank"])
def test_paired_targets_take_the_draws_of_their_values(name):
    """One action, γ = 1, no noise in a target, φ⁻ = φ, s′ = s: with the same θ⁻ = θ the target
    is the value, and the loss 0. With a θ⁻ of its own it is not, and φ ends elsewhere."""
    hidden = FAMILIES[name].hidden[:1]
    losses, learned = {}, {}
    for paired in (True, False):
        posterior = FAMILIES[name].make(paired=paired)
        agent = Agent(
            Gaussian(0.5, draw="mean"), posterior, gamma=1.0,
            hidden=hidden, batch_size=6, buffer_size=12,
        )  # fmt: skip
        state = init_agent(agent, FEATURES, 1, noise.root(0))
        phi = some_phi(posterior, hidden, outputs=1)
        law = law_of(posterior, phi)
        memory = walk(posterior, phi)
        state = state._replace(phi=phi, phi_target=law, replay=memory, counter=jnp.int32(1))
        updates = [learn(agent, state, noise.root(seed)) for seed in range(4)]
        losses[paired] = [float(loss) for _, loss in updates]
        learned[paired] = [jax.tree.leaves(after.phi.learned) for after, _ in updates]
    assert max(losses[True]) < 1e-12
    own = [loss > 0.01 for loss in losses[False]]  # but an ensemble's may be the same by luck
    assert any(own) if name == "ensemble" else all(own)
    moved = [
        any(not np.array_equal(x, y) for x, y in zip(*pair, strict=True))
        for pair in zip(*learned.values(), strict=True)
    ]
    assert moved == own


@pytest.mark.parametrize(
    "name", ["conjugate", "dirac", "langevin", "last layer", "parameter noise"]
)
def test_pairing_is_no_setting_of_a_family_whose_law_it_could_not_change(name):
    """Three draw nothing in learning, and two find their law in closed form, by one θ⁻ for all."""
    posterior, phi = setting(name)
    theta, other = (draw(posterior, law_of(posterior, phi), 3, noise.root(k)) for k in range(2))
    assert theta.for_target(other) is other
    with pytest.raises(TypeError, match="paired"):
        FAMILIES[name].make(paired=True)


def refit(posterior, phi, counter, memory) -> Phi:
    return refitted(posterior, phi, 0.25, counter, memory, noise.root(0))


@all_families
def test_refit_holds_what_has_no_closed_form(name):
    """Only these three have something to refit, to the same form; the others' held part stays
    bit for bit."""
    posterior, phi = setting(name)
    fitted = refit(posterior, phi, jnp.int32(1), walk(posterior, phi))
    assert jax.tree.structure(fitted) == jax.tree.structure(phi)
    fixed = ((part.learned, part.priors) for part in (phi, fitted))
    for before, after in zip(*map(jax.tree.leaves, fixed), strict=True):
        assert np.array_equal(before, after)
    same = []
    for before, after in zip(*map(jax.tree.leaves, (phi.fitted, fitted.fitted)), strict=True):
        assert (before.shape, before.dtype) == (after.shape, after.dtype)
        assert np.all(np.isfinite(after))
        same.append(np.array_equal(before, after))
    assert all(same) == (name not in ("conjugate", "last layer", "parameter noise"))


@pytest.mark.parametrize("name", ["last layer", "parameter noise"])
def test_refit_leaves_what_is_learned_alone(name):
    """The same update with a refit and without: what the gradient moves ends the same."""
    made = FAMILIES[name].make
    learned = []
    for period in (1, 1000):
        posterior = type(made())(1.3, period=period)
        agent = Agent(Gaussian(0.5), posterior, hidden=(6,), batch_size=6, buffer_size=12)
        state = init_agent(agent, FEATURES, OUTPUTS, noise.root(0))
        state = state._replace(replay=walk(posterior, state.phi), counter=jnp.int32(1))
        after, _ = learn(agent, state, noise.root(1))
        same = [
            np.array_equal(a, b)
            for a, b in zip(
                *map(jax.tree.leaves, (state.phi.fitted, after.phi.fitted)), strict=True
            )
        ]
        assert all(same) == (period == 1000)
        learned.append(jax.tree.leaves(after.phi.learned))
    for a, b in zip(*learned, strict=True):
        assert np.array_equal(a, b)


# (9) Codes


CODES = np.array([2, 0, 1, 3, 2])  # 3 stands for zeros
ON_CODES = ("conjugate", "ensemble", "factorised", "last layer", "low rank", "mean field")
"""Families whose values at codes are computed in different ways."""


@jax.jit
def values_and_gradient(posterior, phi, xs, key):
    """f_θ as an update, control and evaluation compute it, and a gradient of all of them."""
    xs = inputs(priors.tabulated(phi.priors, isinstance(xs, OneHot)), xs)

    def values(learned):
        law = posterior.law(phi._replace(learned=learned))
        n = xs.features.shape[0]
        theta = posterior.sample(law, key)
        over = jax.vmap(lambda x: (posterior.apply(law, theta, x), posterior.mean(law, x)))
        first = jax.tree.map(lambda leaf: leaf[0], xs)
        weighed = draw(posterior, law, n, key)
        rows = jnp.where((weighed.weights != 0)[..., None], weighed(law, xs), 0.0)
        return rows, *over(xs), single(posterior, law, first, key)

    def total(learned):
        found = values(learned)
        return sum(jnp.sum(jnp.sin(x)) for x in found), found

    return jax.grad(total, has_aux=True)(phi.learned)


@pytest.mark.fast_cases("last layer-False", "mean field-False")
@pytest.mark.parametrize("linear", some_quick([False, True], [False]))
@pytest.mark.parametrize("name", some_quick(FAMILIES, ON_CODES))
def test_codes_are_one_hot_vectors(name, linear):
    """The same values and gradients as of the vectors, to rounding, with hidden layers and
    without; also at the zero vector."""
    posterior, phi = setting(name)
    if linear:
        phi = some_phi(posterior, ())
    vectors = (CODES[:, None] == np.arange(FEATURES)).astype(np.float32)
    codes = OneHot(jnp.asarray(CODES, jnp.int32), FEATURES)
    both = [values_and_gradient(posterior, phi, x, noise.root(2)) for x in (vectors, codes)]
    leaves = [jax.tree.leaves(each) for each in both]
    assert len(leaves[0]) > 3
    for expected, actual in zip(*leaves, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.fast_cases("conjugate")
@pytest.mark.parametrize("name", some_quick(FAMILIES, ["conjugate", "low rank"]))
def test_an_agent_learns_from_codes_as_from_vectors(name):
    """Two updates from the same transitions, which end in a zero vector."""
    hidden = FAMILIES[name].hidden
    agent = Agent(Gaussian(0.5), FAMILIES[name].make(), hidden=hidden, batch_size=6, buffer_size=12)
    states = []
    for coded in (False, True):
        state = jax.jit(Agent.init, static_argnums=(1, 2, 4))(
            agent, FEATURES, OUTPUTS, noise.root(0), Form(coded)
        )
        for i in range(9):
            s, s_next = (
                OneHot(jnp.int32(code), FEATURES) for code in (i % FEATURES, (i * i + i) % 4)
            )
            seen = Transition(
                s, jnp.int32(i % 2), jnp.float32(i % 5), s_next, jnp.asarray(i % 4 == 3)
            )
            if not coded:
                seen = seen._replace(
                    observation=jnp.asarray(s), next_observation=jnp.asarray(s_next)
                )
            state = observe(agent, state, seen)
        for i in range(2):
            state, _ = learn(agent, state, noise.root(3 + i))
        states.append(state)
    for expected, actual in zip(
        *(jax.tree.leaves((s.phi.learned, s.phi.fitted, s.phi_target)) for s in states),
        strict=True,
    ):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=2e-5)
    assert states[1].replay.rows.shape == (12, 5)


# Pairing

PAIRED = {
    "dropout": Dropout(0.3, paired=True), "factorised": Factorised(-1.0, paired=True),
    "full covariance": FullCovariance(-1.0, paired=True), "low rank": LowRank(3),
    "mean field": MeanField(-1.0, paired=True),
    "mean field, one": MeanField(-1.0, paired=True, draws="minibatch"),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRED)
def test_paired_rows_are_one_theta_in_every_state(name):
    """Without hidden layers f_θ is linear, so that f(x) + f(y) = f(x + y) + f(0) under one θ. Noise
    that is drawn for the outputs does not satisfy it."""
    posterior = PAIRED[name]
    phi = some_phi(posterior, ())
    law = law_of(posterior, phi)
    theta = posterior.sample_rows(law, jnp.arange(5), noise.root(7))
    assert theta.for_target(posterior.sample_rows(law, jnp.arange(5), noise.root(9))) is theta
    rng = np.random.default_rng(8)
    x, y = jnp.asarray(rng.normal(size=(2, 5, FEATURES)), jnp.float32)
    f = {
        which: np.asarray(theta(law, inputs(phi.priors, at)))
        for which, at in {"x": x, "y": y, "sum": x + y, "zero": 0.0 * x}.items()
    }
    assert np.ptp(f["x"], axis=1).max() > 0.1
    np.testing.assert_allclose(f["x"] + f["y"], f["sum"] + f["zero"], rtol=1e-4, atol=1e-4)
