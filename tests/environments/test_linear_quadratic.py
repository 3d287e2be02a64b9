"""The point mass: its dynamics by hand, and as a Gymnasium environment."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.environments.linear_quadratic import LinearQuadratic, PointMass
from rove.errors import ConfigError
from rove.parts import noise


def test_a_step_is_the_formula_and_the_matrices():
    mass = LinearQuadratic(2, step_length=0.2, control_cost=0.5)
    x, u = np.array([0.5, -1.0, 0.3, 0.0]), np.array([0.7, -0.2])
    after = mass.step(PointMass(jnp.float32(x), jnp.int32(0)), jnp.float32(u), noise.root(0))
    np.testing.assert_allclose(after.observation, [0.56, -1.0, 0.44, -0.04], rtol=1e-6)
    np.testing.assert_allclose(after.reward, -0.2 * (0.25 + 1.0 + 0.5 * (0.49 + 0.04)), rtol=1e-6)
    a, b, q, r = mass.matrices
    np.testing.assert_allclose(after.observation, a @ x + b @ u, rtol=1e-6)
    np.testing.assert_allclose(after.reward, -(x @ q @ x + u @ r @ u), rtol=1e-6)
    too_much = mass.step(PointMass(jnp.float32(x), jnp.int32(0)), jnp.full(2, 9.0), noise.root(0))
    np.testing.assert_allclose(too_much.observation[2:], [0.5, 0.2], rtol=1e-6)


def test_an_episode_is_cut_and_never_ends():
    mass = LinearQuadratic(1, horizon=3)
    state, _ = mass.reset(noise.root(1))
    cut = []
    for _ in range(3):
        step = mass.step(state, jnp.zeros(1), noise.root(0))
        state = step.state
        cut.append(bool(step.truncated))
        assert not step.terminated
    assert cut == [False, False, True]


def test_it_is_an_environment_of_gymnasium_with_a_box():
    env = gymnasium.make("rove/LinearQuadratic-v0", n=2)
    assert env.action_space == gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    observation, _ = env.reset(seed=3)
    after, *_ = env.step(np.array([1.0, -1.0], np.float32))
    np.testing.assert_allclose(after[2:], [0.1, -0.1], rtol=1e-6)
    np.testing.assert_allclose(after[:2], observation[:2])


@pytest.mark.parametrize("options", [{"horizon": 0}, {"step_length": 0.0}, {"control_cost": -1.0}])
def test_bad_options_are_refused(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        rove.environments.make("linear-quadratic-1", **options)


def test_cells_are_of_the_first_position_and_its_velocity():
    place = LinearQuadratic(2)
    x = jnp.array([1.05, 0.0, -9.0, 0.0])  # far too fast for the board: at its edge
    cell = int(place.bin(PointMass(x, jnp.zeros((), jnp.int32))))
    assert divmod(cell, place.cells[1]) == (0, 30)
    assert [side.name for side in place.coordinates] == ["velocity", "position"]
