"""rove.parts.onehot: codes that act as the one-hot vectors they stand for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.parts import networks, noise
from rove.parts.onehot import OneHot, from_columns, to_columns, width

K, OUTPUTS = 6, 4
INDEX = np.array([[3, 0, 5], [6, 3, 100]])  # 6 and 100 stand for zeros
MATRIX = jnp.asarray(np.random.default_rng(0).normal(size=(K, OUTPUTS)), jnp.float32)


def codes() -> OneHot:
    return OneHot(jnp.asarray(INDEX, jnp.int32), K)


def vectors() -> np.ndarray:
    return (INDEX[..., None] == np.arange(K)).astype(np.float32)


def test_the_array_is_one_hot_and_zero_beyond_the_last_code():
    assert codes().shape == (2, 3, K)
    for array in (jnp.asarray(codes()), np.asarray(codes())):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, vectors())
    assert vectors().sum() == 4


def test_a_product_is_a_lookup():
    np.testing.assert_array_equal(codes() @ MATRIX, vectors() @ MATRIX)
    np.testing.assert_array_equal((codes() ** 2) @ MATRIX, vectors() ** 2 @ MATRIX)
    np.testing.assert_array_equal(codes()[1, :2] @ MATRIX, vectors()[1, :2] @ MATRIX)
    each = jax.vmap(jax.vmap(lambda x: x @ MATRIX))(codes())
    np.testing.assert_array_equal(each, vectors() @ MATRIX)


def test_factors_are_picked():
    factors = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3, K)), jnp.float32)
    np.testing.assert_allclose(
        (codes() * factors) @ MATRIX, (vectors() * factors) @ MATRIX, rtol=1e-6
    )


def test_the_gradient_touches_the_rows_that_were_seen():
    def loss(matrix, x):
        return jnp.sum(jnp.cos(x @ matrix))

    gradient = np.asarray(jax.grad(loss)(MATRIX, codes()))
    expected = jax.grad(loss)(MATRIX, jnp.asarray(vectors()))
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    assert sorted(np.flatnonzero(np.any(gradient != 0, axis=1))) == [0, 3, 5]


def test_a_lookup_is_no_product():
    """Without a product of a matrix in the compiled program."""
    layer = networks.Linear(MATRIX, jnp.zeros(OUTPUTS))
    programs = [
        jax.jit(jax.grad(lambda layer, x: jnp.sum(networks.affine(layer, x) ** 2)))
        .lower(layer, x)
        .as_text()
        for x in (codes(), jnp.asarray(vectors()))
    ]
    assert ["dot_general" in text for text in programs] == [False, True]


@pytest.mark.parametrize("size", [3, 2**24])
def test_columns_keep_an_index_exactly(size):
    x = OneHot(jnp.array([0, size - 1, size], jnp.int32), size)
    columns = to_columns(x)
    assert columns.shape == (3, width(size, coded=True)) == (3, 1)
    again = from_columns(columns, size, coded=True)
    assert isinstance(again, OneHot)
    assert again.size == size
    np.testing.assert_array_equal(again.index, x.index)
    assert again.index.dtype == jnp.int32


def test_columns_of_a_vector_are_the_vector():
    x = noise.normal(noise.root(0), (2, 5))
    assert to_columns(x) is x
    assert from_columns(x, 5, coded=False) is x
    assert width(5, coded=False) == 5
