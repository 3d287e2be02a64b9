"""Every family by its name, through one protocol."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from rove import environments
from rove.agents.tuned import tuned
from rove.environments import ENVIRONMENTS
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.onehot import OneHot
from rove.runs.configure import check_environment


@pytest.mark.fast_cases(
    "chain-chain-6",
    "permuted-chain-permuted-chain-6",
    "deep-sea-deep-sea-6",
    "bandit-bandit-6",
    "bernoulli-bandit-bernoulli-bandit-6",
    "linear-bandit-linear-bandit-6",
    "cliff-cliff",
    "cartpole-cartpole",
    "mountain-car-mountain-car",
    "acrobot-acrobot",
    "sparse-cartpole-sparse-cartpole",
    "sparse-mountain-car-sparse-mountain-car",
    "sparse-acrobot-sparse-acrobot",
    "linear-quadratic-linear-quadratic-6",
    "point-rooms-point-rooms",
    "swing-up-swing-up",
    "minigrid-empty-minigrid-empty-6",
)
@pytest.mark.parametrize(
    ("family", "name"), list(zip(ENVIRONMENTS, environments.names("6"), strict=True))
)
def test_a_family_keeps_the_interface(family, name):
    environment = environments.make(name)
    assert environment.name == name
    assert environments.make(environment.name, **environments.options(environment)) == environment
    told = json.loads(json.dumps(environments.options(environment)))
    assert environments.make(name, **told) == environment
    assert ENVIRONMENTS[family].doc.strip()
    check_environment(environment)
    key, (low, high) = noise.root(0), map(np.float32, environment.observation_bounds)
    state, observation = environment.reset(key)
    shown = [observation, *environment.probes().values()]
    actions = [jnp.int32(action) for action in range(environment.num_actions)]
    if environment.continuous:
        actions = [jnp.full(environment.num_actions, u) for u in (-1.0, 0.0, 1.0)]
    for action in actions:
        step = environment.step(state, action, key)
        shown.append(step.observation)
        assert 0 <= environment.bin(step.state) < environment.bins
        assert jnp.isfinite(step.reward)
    for x in shown:
        assert x.shape == (environment.observation_size,)
        assert isinstance(x, OneHot) == environment.coded
        x = jnp.asarray(x)
        assert x.dtype == jnp.float32
        assert jnp.all((low <= x) & (x <= high))
    # Exactly, or the middle of where an episode may start.
    np.testing.assert_allclose(environment.probes()["start"], observation, atol=0.1)


@pytest.mark.parametrize("name", ["", "x-5", "5"])
def test_a_wrong_name_is_told_every_family(name):
    with pytest.raises(ConfigError) as caught:
        environments.make(name)
    assert caught.value.field == "environment"
    for known in environments.names():
        assert known in str(caught.value)


@pytest.mark.parametrize("name", ["deep-sea", "chain", "chain-", "bandit-ten"])
def test_a_missing_size_is_asked_for(name):
    with pytest.raises(ConfigError, match=r"needs a size, as in [a-z-]+-10"):
        environments.make(name)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("deepsea-5", "deep-sea-5"),
        ("cartpole-5", "cartpole"),
        ("bandits-12", "bandit-12"),
        ("cart-pole", "cartpole"),
        ("cartpole-1", "cartpole"),
        ("cartpole1", "cartpole"),
        ("chain10", "chain-10"),
        ("deep_sea20", "deep-sea-20"),
        ("sparse-mountaincar", "sparse-mountain-car"),
    ],
)
def test_a_near_name_is_guessed(name, meant):
    with pytest.raises(ConfigError, match=f"Did you mean '{meant}'"):
        environments.make(name)


@pytest.mark.parametrize(
    ("name", "options", "field"),
    [
        ("deep-sea-1", {}, "environment"),
        ("bandit-1", {}, "environment"),
        ("deep-sea-5", {"randomized": True}, "randomized"),
        ("bandit-5", {"noise_std": -1.0}, "noise_std"),
        ("cartpole", {"n": 5}, "n"),
        ("acrobot", {"horizon": 0}, "horizon"),
        ("sparse-acrobot", {"horizon": 100}, "horizon"),
    ],
)
def test_wrong_sizes_and_options_are_refused(name, options, field):
    with pytest.raises(ConfigError) as caught:
        environments.make(name, **options)
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["linear-quadratic-2", "mountain-car", "gym/CartPole-v1"])
def test_a_family_that_was_not_tuned_has_no_tuned_settings(name):
    assert tuned("dqn", name) == {}
