"""Observations of integers, stored as bytes: the same results as with floats, in less memory."""

import dataclasses

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.environments.encoding import encoder, integers_of
from rove.environments.faults import BadEnvironment
from rove.parts.integers import Integers

spaces = gymnasium.spaces


def box(low, high, shape, dtype):
    return spaces.Box(low, high, shape, dtype)


@pytest.mark.parametrize(
    ("space", "form"),
    [
        (box(0, 255, (8, 8, 3), np.uint8), Integers(1 / 255)),
        (box(0, 255, (84, 84), np.uint8), Integers(1 / 255)),
        (box(0, 255, (7, 7, 3), np.uint8), Integers()),  # as MiniGrid's: names, not brightnesses
        (box(0, 1, (10, 10, 4), np.bool_), Integers(flags=True)),
        (box(0, 255, (128,), np.uint8), Integers()),
        (box(0, 9, (3,), np.int64), Integers()),
        (spaces.MultiBinary(5), Integers(flags=True)),
        (spaces.MultiDiscrete([3, 4]), Integers(flags=True)),
        (box(-1, 9, (3,), np.int64), None),
        (box(0, 256, (3,), np.int64), None),
        (box(0, 1, (8, 8, 3), np.float32), None),
        (spaces.Discrete(5), None),
    ],
)
def test_forms_of_spaces(space, form):
    assert integers_of(space) == form
    if form is not None:
        x = space.sample()
        columns = encoder(space)(x)
        assert columns.dtype == np.float32
        stored = form.from_bytes(form.to_bytes(jnp.asarray(columns)), len(columns))
        np.testing.assert_array_equal(stored, columns)
        if isinstance(space, spaces.Box):
            np.testing.assert_array_equal(columns, x.ravel() * np.float32(form.scale))


def test_entries_that_bytes_cannot_store_are_refused():
    with pytest.raises(BadEnvironment, match="entries from 0 to 300"):
        encoder(box(0, 255, (2,), np.uint8))(np.array([0, 300]))
    with pytest.raises(BadEnvironment, match="entries from -1 to 2"):
        encoder(box(0, 9, (2,), np.int64))(np.array([-1, 2]))
    with pytest.raises(BadEnvironment, match="entries from 0 to 2"):
        encoder(box(0, 1, (2,), np.uint8))(np.array([0, 2], np.uint8))


@pytest.mark.parametrize("name", ["Breakout", "Asterix", "Freeway", "SpaceInvaders", "Seaquest"])
def test_flags_of_minatar_are_found(name):
    pytest.importorskip("gymnax")
    task = rove.make(f"gymnax/{name}-MinAtar")
    assert task.integers == (None if name == "Seaquest" else Integers(flags=True))
    assert rove.make("gymnax/CartPole-v1").integers is None


def in_floats(task):
    """The same task, whose observations are stored as floats."""
    return dataclasses.replace(task, source=dataclasses.replace(task.source, integers=None))


@pytest.mark.slow
def test_results_are_those_of_a_buffer_of_floats():
    pytest.importorskip("gymnax")
    task = rove.make("gymnax/Breakout-MinAtar")
    agent = rove.DQN(
        hidden=(8,), buffer_size=50, learning_starts=10, batch_size=8, n_step=2, prioritised=0.6
    )
    runs = [rove.train(agent, each, steps=80) for each in (task, in_floats(task))]
    np.testing.assert_array_equal(*(run.returns for run in runs))
    phis = [run.outcomes[0].lane.agent.phi for run in runs]
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), *phis)


def test_memory_is_that_of_the_bytes():
    pytest.importorskip("gymnax")
    task = rove.make("gymnax/Breakout-MinAtar")
    agent = rove.DQN(buffer_size=100_000).compose()
    needed = [agent.dry_run(400, 3, each.form).nbytes for each in (task, in_floats(task))]
    # s and s′: 400 bits each instead of 400 floats.
    assert needed[1] - needed[0] == 100_000 * 2 * (400 * 4 - 50)
