"""Networks that are a user's own function: what they compute, who takes them, what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from helpers import compilations
from rove.errors import ConfigError, RunFolderError
from rove.parts import networks, noise
from rove.parts.architectures import build, check_architecture
from rove.parts.images import Image
from rove.parts.onehot import OneHot

SMALL = {"batch_size": 4, "buffer_size": 64, "learning_starts": 20, "hidden": ()}


def skip(shape, outputs, key):
    """A hidden layer beside a direct path, as a function and a dictionary of its parameters."""

    def apply(theta, x):
        return jax.nn.tanh(x @ theta["in"]) @ theta["out"] + x @ theta["direct"]

    sizes = {"in": (*shape, 5), "out": (5, outputs), "direct": (*shape, outputs)}
    keys = dict(zip(sizes, jax.random.split(key, 3), strict=True))
    theta = {name: 0.3 * jax.random.normal(keys[name], size) for name, size in sizes.items()}
    return jax.tree_util.Partial(apply, theta)


def equinox(shape, outputs, key):
    return eqx.nn.MLP(shape[0], outputs, width_size=6, depth=1, key=key)


def test_a_function_is_called_with_its_parameters_at_every_row():
    network = build(skip, 3, (), 2, None)
    theta = jax.jit(network.init)(noise.root(0))
    xs = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    made = skip((3,), 2, jax.random.wrap_key_data(noise.fold(noise.root(0), 0)))
    expected = np.stack([made(x) for x in xs])
    assert expected.std() > 0.1
    np.testing.assert_allclose(networks.forward(theta, jnp.asarray(xs)), expected, rtol=1e-5)
    np.testing.assert_allclose(networks.forward(theta, jnp.asarray(xs[0])), expected[0], rtol=1e-5)
    codes = OneHot(jnp.array([2, 0]), 3)
    at_codes = np.stack([made(jnp.eye(3)[i]) for i in (2, 0)])
    np.testing.assert_allclose(networks.forward(theta, codes), at_codes, rtol=1e-5)


def test_an_image_has_its_shape():
    def rows(shape, outputs, key):
        return jax.tree_util.Partial(lambda w, x: jnp.sum(x, axis=(1, 2)) @ w, jnp.ones((4, 2)))

    network = build(rows, 24, (), 2, Image(4, 3, 2))
    assert (network.inputs, network.outputs) == (24, 2)
    x = jnp.arange(24.0)
    assert networks.forward(network.init(noise.root(0)), x).tolist() == [276.0, 276.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "posterior",
    [
        rove.Dirac(),
        rove.Ensemble(3, prior=1.0),
        rove.ParameterNoise(period=5),
        rove.Langevin(adam=1.0),
        rove.MeanField(-3.0),
        rove.MeanField(-3.0, prior=1.0, draws="minibatch"),
    ],
    ids=lambda posterior: type(posterior).__name__,
)
def test_families_that_need_no_layers_train_it(posterior):
    """With prior functions of the same kind, and on codes, where they are tabulated."""
    agent = rove.Agent(rove.Gaussian(0.1), posterior, network=equinox, **SMALL)
    run = rove.train(agent, rove.Chain(4, features="one-hot"), episodes=5)
    phi = run.outcomes[0].lane.agent.phi
    start = agent.init(4, 2, noise.fold(noise.root(0), 0), rove.Chain(4, features="one-hot").form)
    moved = [
        not np.array_equal(a, b)
        for a, b in zip(*map(jax.tree.leaves, (start.phi.learned, phi.learned)), strict=True)
    ]
    assert all(moved)
    assert all(np.all(np.isfinite(x)) for x in jax.tree.leaves(phi.learned))


def test_mean_field_samples_its_parameters_for_every_row():
    """Two rows with the same observation differ, and each is the function at some θ: with a σ of
    nearly 0, at μ."""
    for rho, same in ((-30.0, True), (-1.0, False)):
        posterior = rove.MeanField(rho)
        network = build(skip, 3, (), 2, None)
        law = posterior.law(posterior.init(network, noise.root(0)))
        x = jnp.tile(jnp.array([0.5, -1.0, 2.0]), (2, 1))
        rows = posterior.sample_rows(law, jnp.arange(2), noise.root(1))
        values = np.asarray(rows(law, rove.posteriors.priors.Input(x)))[0]
        mean = networks.forward(law.mean, x)
        assert np.allclose(values, mean, atol=1e-5) is same
        assert np.allclose(values[0], values[1], atol=1e-5) is same


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        (rove.LowRank(2), "LowRank needs a network of layers, of which the last one is linear"),
        (rove.FullCovariance(), "FullCovariance needs a network of layers"),
        (rove.LastLayer(), "LastLayer needs a network of layers"),
        (rove.Dropout(), "Dropout needs a network of layers, whose units are dropped"),
        (rove.Factorised(-3.0), "Factorised needs a network of layers, with noise for their"),
        (rove.MeanField(-3.0, prior_std=1.0), "prior_std must be None for a custom network"),
        (rove.Conjugate(), "network must be None for Conjugate"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_families_that_need_layers_say_so(posterior, message):
    with pytest.raises(ConfigError, match=message):
        rove.Agent(rove.Gaussian(0.1), posterior, network=equinox, **SMALL)


def of(result):
    return lambda shape, outputs, key: result


WRONG = {
    "failed: TypeError: ": lambda shape, outputs: None,
    "returned a dict, which cannot be called": of({}),
    "arrays are float32, got \\[\\]": of(lambda x: x[:2]),
    "arrays are float32, got \\['int32'\\]": of(
        jax.tree_util.Partial(lambda w, x: x[:2], np.arange(3, dtype=np.int32))
    ),
    "arrays are float32, got \\['float16'\\]": of(
        jax.tree_util.Partial(lambda w, x: x[:2] * w, np.ones(2, np.float16))
    ),
    "\\(x\\) must return an array of float32, got int32": of(
        jax.tree_util.Partial(lambda w, x: (x[:2] * w).astype(int), np.ones(2, np.float32))
    ),
    "must return an array of shape \\(2,\\), got \\(4,\\)": of(
        jax.tree_util.Partial(lambda w, x: x * w, np.ones(4, np.float32))
    ),
    "\\(x\\) failed for an x of shape \\(4,\\): TypeError": of(
        jax.tree_util.Partial(lambda w, x: x @ w, np.ones((3, 2), np.float32))
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_function_with_a_mistake_is_refused_before_anything_compiles(message):
    agent = rove.Agent(rove.Gaussian(0.1), rove.Dirac(), network=WRONG[message], **SMALL)
    with pytest.raises(ConfigError, match=f"network function .*{message}") as caught:
        rove.train(agent, rove.Chain(4), episodes=1)
    assert caught.value.field == "network"


@pytest.mark.parametrize("network", ["conv", rove.ConvNet, 3, np.zeros(2)])
def test_a_value_that_is_no_network_is_refused(network):
    with pytest.raises(ConfigError, match=r"network must be rove\.ConvNet") as caught:
        check_architecture(network)
    assert ("Did you mean rove.ConvNet()?" in str(caught.value)) == (network is rove.ConvNet)


def test_a_class_in_place_of_a_network_is_refused():
    with pytest.raises(ConfigError, match=r"Did you mean rove\.ConvNet\(\)"):
        rove.DQN(network=rove.ConvNet)


def test_actor_critics_have_fully_connected_layers():
    with pytest.raises(ConfigError, match="networks of an actor–critic are fully connected"):
        rove.ActorCritic(rove.Gaussian(0.1), rove.Dirac(), network=equinox)
    with pytest.raises(ConfigError, match="ddpg has no setting 'network'"):
        rove.train("ddpg", "linear-quadratic-1", network=equinox)


def test_a_function_that_is_defined_anew_in_each_call_is_compiled_once(tmp_path):
    """`skip` defines `apply` in every call. A run that is extended reads its checkpoint, with the
    program that it has."""
    agent = rove.DQN(network=skip, batch_size=4, buffer_size=77, learning_starts=20)
    with compilations("run") as programs:
        rove.train(agent, "chain-4", episodes=3, out=tmp_path, workers=1)
        run = rove.train(agent, "chain-4", seeds=2, episodes=5, out=tmp_path, workers=1)
    assert run.returns.shape == (2, 5)
    assert len(programs) == 1


def test_a_folder_records_the_name_of_the_function(tmp_path):
    agent = rove.DQN(network=skip, batch_size=4, buffer_size=64, learning_starts=20)
    run = rove.train(agent, "chain-4", episodes=5, out=tmp_path)
    with pytest.raises(RunFolderError, match=r"the run used skip, .*rove\.load\(folder, agent="):
        rove.load(tmp_path)
    again = rove.load(tmp_path, agent=agent)
    np.testing.assert_array_equal(again.evaluate(), run.evaluate())
    with pytest.raises(RunFolderError, match="a different run"):
        rove.load(tmp_path, agent=rove.DQN(batch_size=4, buffer_size=64, learning_starts=20))
