"""Every family by its name, through one protocol."""

import jax.numpy as jnp
import numpy as np
import pytest

from rove import environments, noise
from rove.environments import ENVIRONMENTS
from rove.errors import ConfigError
from rove.runner import check_environment
from rove.tuned import tuned


@pytest.mark.parametrize("family", ENVIRONMENTS)
def test_a_family_keeps_the_interface(family):
    environment = environments.make(f"{family}-6")
    assert environment.name == f"{family}-6"
    assert environments.make(environment.name, **environments.options(environment)) == environment
    assert ENVIRONMENTS[family].doc.strip()
    check_environment(environment)
    key, (low, high) = noise.root(0), environment.observation_bounds
    state, observation = environment.reset(key)
    shown = [observation, *environment.probes().values()]
    for action in range(environment.num_actions):
        step = environment.step(state, jnp.int32(action), key)
        shown.append(step.observation)
        assert 0 <= environment.bin(step.state) < environment.bins
        assert jnp.isfinite(step.reward)
    for x in shown:
        assert x.shape == (environment.observation_size,)
        assert x.dtype == jnp.float32
        assert jnp.all((low <= x) & (x <= high))
    np.testing.assert_array_equal(environment.probes()["start"], observation)


@pytest.mark.parametrize("name", ["", "deep-sea", "chain", "chain-", "bandit-ten", "x-5", "5"])
def test_a_wrong_name_is_told_every_family(name):
    with pytest.raises(ConfigError) as caught:
        environments.make(name)
    assert caught.value.field == "environment"
    for family in ENVIRONMENTS:
        assert f"{family}-N" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("deepsea-5", "deep-sea-5"), ("deep-sea", "deep-sea-N"), ("bandits-12", "bandit-12")],
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
    ],
)
def test_wrong_sizes_and_options_are_refused(name, options, field):
    with pytest.raises(ConfigError) as caught:
        environments.make(name, **options)
    assert caught.value.field == field


@pytest.mark.parametrize("name", ["deep-sea-5", "bandit-10"])
def test_a_family_that_was_not_tuned_has_no_tuned_settings(name):
    assert tuned("dqn", name) == {}
