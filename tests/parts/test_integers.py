"""rove.parts.integers: the bytes and bits of observations, and the buffer that stores them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.parts import noise, replay
from rove.parts.integers import Integers
from rove.parts.masks import Masked, unmasked
from rove.parts.replay import Transition

FEATURES, CAPACITY = 11, 7
FORMS = [Integers(1.0 / 255.0), Integers(), Integers(flags=True), Integers(0.25, flags=True)]


def observations(form: Integers, count: int) -> np.ndarray:
    """Random observations of a form, as an environment computes them."""
    levels = np.random.default_rng(0).integers(0, 2 if form.flags else 256, (count, FEATURES))
    return levels.astype(np.float32) * np.float32(form.scale)


@pytest.mark.parametrize("form", FORMS)
def test_bytes_are_those_of_numpy_and_come_back_exactly(form):
    x = observations(form, 300)
    integers = np.rint(x / form.scale).astype(np.uint8)
    stored = np.asarray(form.to_bytes(jnp.asarray(x)))
    np.testing.assert_array_equal(
        stored, np.packbits(integers, axis=-1) if form.flags else integers
    )
    assert stored.shape == (300, form.width(FEATURES))
    assert form.width(FEATURES) == (2 if form.flags else FEATURES)
    np.testing.assert_array_equal(form.from_bytes(jnp.asarray(stored), FEATURES), x)


def test_all_bytes_come_back():
    levels = np.arange(256, dtype=np.float32) * np.float32(1 / 255)
    form = Integers(1 / 255)
    np.testing.assert_array_equal(form.from_bytes(form.to_bytes(jnp.asarray(levels)), 256), levels)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "n_step", "masked", "prioritised"),
    [(FORMS[0], 3, 5, True), (FORMS[2], 1, 0, False), (FORMS[2], 3, 5, True)],
)
def test_a_buffer_of_bytes_returns_what_a_buffer_of_floats_returns(
    form, n_step, masked, prioritised
):
    """Around the ring, with returns of several steps, masks and priorities: bit by bit."""
    options = {"n_step": n_step, "masked": masked, "prioritised": prioritised, "cached": 2}
    buffers = [replay.init(CAPACITY, FEATURES, **options, integers=kind) for kind in (None, form)]
    x, chance, add = observations(form, 12), np.random.default_rng(1), jax.jit(replay.add)
    for i in range(11):
        s, s_next = jnp.asarray(x[i]), jnp.asarray(x[i + 1])
        if masked:
            s, s_next = (Masked(o, jnp.asarray(chance.random(masked) < 0.5)) for o in (s, s_next))
        step = Transition(
            s, jnp.int32(i % 3), jnp.float32(i), s_next, jnp.asarray(i % 4 == 3), jnp.ones(2),
            jnp.zeros(2), jnp.asarray(i % 5 == 4),
        )  # fmt: skip
        buffers = [add(buffer, step) for buffer in buffers]
    floats, stored = (replay.sample(b, noise.root(3), 32, 0.9) for b in buffers)
    jax.tree.map(np.testing.assert_array_equal, floats, stored)
    jax.tree.map(np.testing.assert_array_equal, *(replay.everything(b, 0.9) for b in buffers))
    jax.tree.map(np.testing.assert_array_equal, *(replay.last(b) for b in buffers))
    assert np.asarray(unmasked(stored.observation)).dtype == np.float32
    kept = buffers[1]
    assert kept.bytes.dtype == jnp.uint8
    assert kept.bytes.shape == (CAPACITY, 2 * form.width(FEATURES))
    assert kept.rows.shape[1] == buffers[0].rows.shape[1] - 2 * FEATURES


def test_a_step_that_is_not_taken_changes_no_bytes():
    buffer = replay.init(3, FEATURES, integers=Integers())
    x = jnp.asarray(observations(Integers(), 2))
    step = Transition(x[0], jnp.int32(0), jnp.float32(1), x[1], jnp.asarray(False))
    buffer = replay.add(buffer, step)._replace(added=jnp.int32(0))
    other = step._replace(observation=x[1], reward=jnp.float32(5))
    after = replay.add(buffer, other, where=jnp.asarray(False))
    np.testing.assert_array_equal(after.bytes, buffer.bytes)
    np.testing.assert_array_equal(after.rows, buffer.rows)
    assert np.any(replay.add(buffer, other, where=jnp.asarray(True)).bytes != buffer.bytes)
