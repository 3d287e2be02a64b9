"""rove.parts.noise: the law of its draws, their independence, and that they are the same for ever.

Seeds are fixed, so a test here passes always or never. A threshold is the value that a right
generator passes on one seed in 10⁴; `several` is how many values share that chance.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from rove.parts import noise

CHANCE = 1e-4
CHUNK, CHUNKS = 1_000_000, 10  # 10⁷ draws, ten keys

normals = jax.jit(noise.normal, static_argnums=1)
uniforms = jax.jit(noise.uniform, static_argnums=1)
integers = jax.jit(noise.integers, static_argnums=1)
words = jax.jit(noise.bits, static_argnums=1)
folds = jax.jit(noise.folds, static_argnums=1)


def limit(several: int = 1) -> float:
    """The two-sided normal quantile for `several` values that share CHANCE."""
    return stats.norm.isf(CHANCE / 2 / several)


def draws(kind) -> np.ndarray:
    """10⁷ draws, the keys those of steps 0 … 9 of one lane."""
    keys = [noise.fold(noise.root(1), t) for t in range(CHUNKS)]
    return np.concatenate([np.asarray(kind(key, (CHUNK,))) for key in keys])


def kolmogorov_smirnov(x: np.ndarray, cdf) -> float:
    """The p-value, of the limit law; sorted in float32, for scipy's takes seconds."""
    n, f = x.size, cdf(np.sort(x).astype(np.float64))
    edges = np.arange(n + 1) / n
    distance = max(np.max(edges[1:] - f), np.max(f - edges[:-1]))
    return stats.kstwobign.sf(distance * np.sqrt(n))


# The law of a draw


def test_normal_is_standard_normal():
    """Kolmogorov–Smirnov, and moments one to six, over 10⁷ draws."""
    x = draws(normals)
    assert x.size == 10_000_000
    assert kolmogorov_smirnov(x, ndtr) > CHANCE
    x, power = x.astype(np.float64), 1.0
    for k, moment in enumerate((0, 1, 0, 3, 0, 15), start=1):
        # Var x^k = E x^2k − (E x^k)², and E x^2k = (2k − 1)!!
        variance = np.prod(np.arange(1.0, 2 * k, 2)) - moment**2
        power = power * x
        z = (np.mean(power) - moment) / np.sqrt(variance / x.size)
        assert abs(z) < limit(6), (k, z)


def test_uniform_is_uniform():
    """Kolmogorov–Smirnov, and moments one to four, over 10⁷ draws in the open interval."""
    x = draws(uniforms)
    assert x.min() > 0
    assert x.max() < 1
    assert kolmogorov_smirnov(x, lambda u: u) > CHANCE
    x, power = x.astype(np.float64), 1.0
    for k in range(1, 5):
        mean, variance = 1 / (k + 1), 1 / (2 * k + 1) - 1 / (k + 1) ** 2
        power = power * x
        z = (np.mean(power) - mean) / np.sqrt(variance / x.size)
        assert abs(z) < limit(4), (k, z)


EVERY = np.arange(2**23, dtype=np.uint32) << 9  # of a word, the upper 23 bits are used


def test_uniforms_are_the_upper_23_bits_of_words():
    key = noise.fold(noise.root(5), 0)
    upper = np.asarray(words(key, (CHUNK,))) >> 9
    assert np.array_equal(uniforms(key, (CHUNK,)), (2 * upper.astype(float) + 1) * 2.0**-24)


box_muller = jax.jit(noise.box_muller)


def test_normals_are_box_and_mullers_of_words():
    """Of an odd number, the last has no partner."""
    key = noise.fold(noise.root(5), 1)
    drawn = np.concatenate(box_muller(*words(key, (2, 4))))
    np.testing.assert_allclose(normals(key, (7,)), drawn[:7], rtol=5e-7)


def test_box_and_mullers_normals_for_every_radius():
    """And for every angle, each with one radius. The longest radius is √(2·24·log 2)."""
    angle = EVERY[::-1] * np.uint32(0x9E3779B1)
    x, y = map(np.asarray, box_muller(EVERY, angle))
    r = np.sqrt(-2 * np.log((2 * np.arange(2**23) + 1) * 2.0**-24))
    turn = (2 * (angle >> 9) + 1) * 2.0**-23 - 1
    for drawn, exact in ((x, np.sin(np.pi * turn)), (y, np.cos(np.pi * turn))):
        assert np.max(np.abs(drawn / r - exact)) < 1.3e-6  # also of the shortest radii
    radius = np.hypot(x, y)
    assert np.max(np.abs(radius / r - 1)) < 1.3e-6
    assert 5.76 < np.max(radius) < 5.77


def test_normals_are_symmetric_and_never_zero():
    """Over every angle, at the shortest radius."""
    sine = np.asarray(box_muller(np.full_like(EVERY, EVERY[-1]), EVERY)[0])
    assert np.array_equal(sine, -sine[::-1])
    assert np.min(np.abs(sine)) > 0


def test_every_bit_is_balanced_and_pairs_of_bits_are_independent():
    """Every bit, and every bit xor another: a turn by 1 … 16 places meets each pair."""
    x = np.asarray(words(noise.fold(noise.root(2), 0), (CHUNK,)))
    turned = [x] + [x ^ (x >> d | x << (32 - d)) for d in range(1, 17)]
    for y in turned:
        ones = np.unpackbits(y.view(np.uint8)).reshape(-1, 32).sum(0, dtype=np.int32)
        z = (ones - CHUNK / 2) / np.sqrt(CHUNK / 4)
        assert np.max(np.abs(z)) < limit(32 * len(turned))


@pytest.mark.parametrize("bound", [2, 3, 7, 64, 1000, 50_000])
def test_integers_are_uniform(bound):
    x = np.asarray(integers(noise.fold(noise.root(3), bound), (CHUNK,), bound))
    assert x.dtype == np.int32
    assert x.min() >= 0
    counts = np.bincount(x, minlength=bound)
    assert len(counts) == bound
    p = stats.chisquare(counts).pvalue
    assert CHANCE / 2 < p < 1 - CHANCE / 2, p


# Independence


rows = jax.jit(jax.vmap(lambda key: noise.normal(key, (500,))))


def grid(keys) -> np.ndarray:
    """One row of 500 normals for each key."""
    return np.asarray(rows(keys))


def over(fold_one, n: int = 2001):
    """Keys of n neighbours."""
    return jax.jit(jax.vmap(fold_one))(jnp.arange(n))


def neighbours() -> dict:
    """Pairs of samples, a million or so each, that ought to have nothing in common."""
    key = noise.fold(noise.root(4), 0)
    counters = np.asarray(normals(key, (CHUNK,)))
    pairs = {f"counters {lag} apart": (counters[:-lag], counters[lag:]) for lag in (1, 2, 3, 64)}
    families = {
        "seeds": over(noise.root),
        "steps": over(lambda t: noise.fold(key, t)),
        "late steps": over(lambda t: noise.fold(key, 10_000_000 + t)),
        "rows of a minibatch": folds(noise.fold(key, 4), 2001),
    }
    for name, keys in families.items():
        x = grid(keys)
        pairs[f"neighbouring {name}"] = (x[:-1], x[1:])
        pairs[f"neighbouring {name}, one counter on"] = (x[:-1, :-1], x[1:, 1:])
    layers = [grid(over(lambda t, i=i: noise.fold(key, t, i))) for i in range(3)]
    pairs["layers 0 and 1"] = layers[0], layers[1]
    pairs["layers 1 and 2"] = layers[1], layers[2]
    pairs["a key and its child"] = grid(families["steps"]), layers[0]
    one_way = over(lambda t: noise.fold(key, t % 40, 40 + t // 40))
    other_way = over(lambda t: noise.fold(key, 40 + t // 40, t % 40))
    pairs["two folds and the same in the other order"] = grid(one_way), grid(other_way)
    pairs["two folds and one of their sum"] = (
        grid(over(lambda t: noise.fold(key, t, 7))),
        grid(over(lambda t: noise.fold(key, t + 7))),
    )
    return {name: (a.ravel(), b.ravel()) for name, (a, b) in pairs.items()}


@pytest.fixture(scope="module")
def pairs():
    return neighbours()


@pytest.mark.slow
def test_neighbours_are_uncorrelated(pairs):
    """Of values, squares, sizes and signs, and of a value with its neighbour's square."""
    forms = {
        "x, y": (lambda x: x, lambda y: y),
        "x², y²": (np.square, np.square),
        "|x|, |y|": (np.abs, np.abs),
        "sign x, sign y": (np.sign, np.sign),
        "x, y²": (lambda x: x, np.square),
    }
    for name, (x, y) in pairs.items():
        x, y = x.astype(np.float64), y.astype(np.float64)
        for form, (f, g) in forms.items():
            a, b = (v - v.mean() for v in (f(x), g(y)))
            z = np.mean(a * b) / (a.std() * b.std()) * np.sqrt(x.size)
            assert abs(z) < limit(len(pairs) * len(forms)), (name, form, z)


def test_pairs_of_neighbours_fill_the_square(pairs):
    """χ² over 64 × 64 cells of equal probability; too even is as wrong as too uneven."""
    for name, (x, y) in pairs.items():
        i, j = ((64 * ndtr(v)).astype(np.int64) for v in (x, y))
        counts = np.bincount(64 * i + j, minlength=4096)
        p = stats.chisquare(counts).pvalue
        chance = CHANCE / 2 / len(pairs)
        assert chance < p < 1 - chance, (name, p)


def test_every_bit_of_a_fold_moves_every_bit_of_the_key():
    """Avalanche: flip one of 32 input bits, and each of 64 key bits flips half of the time."""
    n = 20_000

    def flips(bit):
        def one(i):
            key, d = noise.fold(noise.root(5), i), noise.bits(noise.fold(noise.root(6), i), ())
            return noise.fold(key, d) ^ noise.fold(key, d ^ (jnp.uint32(1) << bit))

        changed = jax.vmap(one)(jnp.arange(n))
        flipped = (changed[:, :, None] >> jnp.arange(32, dtype=jnp.uint32)) & 1
        return flipped.sum(0)

    counts = np.asarray(jax.jit(lambda: jax.lax.map(flips, jnp.arange(32, dtype=jnp.uint32)))())
    z = (counts - n / 2) / np.sqrt(n / 4)
    assert counts.shape == (32, 2, 32)
    assert np.max(np.abs(z)) < limit(z.size)


def test_folds_are_fold_one_by_one():
    for key in (noise.root(10), noise.fold(noise.root(10), 3, 4)):
        one_by_one = np.stack([np.asarray(noise.fold(key, i)) for i in range(70)])
        for count in (1, 2, 70):
            many = np.asarray(noise.folds(key, count))
            assert many.dtype == np.uint32
            assert np.array_equal(many, one_by_one[:count])
            assert np.array_equal(folds(key, count), many)


def as_64_bits(keys) -> np.ndarray:
    keys = np.asarray(keys).astype(np.uint64)
    return keys[:, 0] << np.uint64(32) | keys[:, 1]


def test_no_two_keys_are_equal():
    """500,000 keys of five families: 64-bit words at random would collide with chance 7e-9."""
    n = 100_000
    key = noise.fold(noise.root(7), 0)
    families = [
        over(noise.root, n),
        over(lambda t: noise.fold(key, t), n),
        over(lambda t: noise.fold(key, t // 317, t % 317), n),
        over(lambda t: noise.fold(key, t % 317, 1000 + t // 317), n),
        folds(noise.fold(noise.root(7), 1), n),
    ]
    keys = np.concatenate([as_64_bits(family) for family in families])
    assert len(np.unique(keys)) == 5 * n


# Reproducibility


def python_mix(x: int) -> int:
    x ^= x >> 16
    x = x * 0x21F0AAAD % 2**32
    x ^= x >> 15
    x = x * 0xD35A2D97 % 2**32
    return x ^ x >> 15


def python_fold(key: tuple[int, int], d: int) -> tuple[int, int]:
    a, b, golden = *key, 0x9E3779B9
    first = python_mix(python_mix((d * golden + a) % 2**32) ^ b)
    second = python_mix((python_mix(d ^ (b * golden % 2**32)) + a) % 2**32)
    return first, second


def python_bits(key: tuple[int, int], n: int) -> list[int]:
    return [python_mix(python_mix((c * 0x9E3779B9 + key[0]) % 2**32) ^ key[1]) for c in range(n)]


def test_bits_are_those_of_whole_number_arithmetic():
    key, expected = noise.root(11), python_fold((0x243F6A88, 0x85A308D3), 11)
    for d in (0, 1, 12345, 2**31 - 1):
        key, expected = noise.fold(key, d), python_fold(expected, d)
        assert tuple(np.asarray(key).tolist()) == expected
        assert np.asarray(noise.bits(key, (5,))).tolist() == python_bits(expected, 5)


def test_bits_are_what_they_were():
    """Pinned: a change here changes every published run."""
    assert np.asarray(noise.root(0)).tolist() == [0xBB97E6D9, 0xCBA009B2]
    drawn = np.asarray(noise.bits(noise.root(0), (4,))).tolist()
    assert drawn == [0xE33FA76C, 0x6CD890FB, 0x6452DBCC, 0x437A5077]
    drawn = np.asarray(noise.bits(noise.fold(noise.root(7), 5, 2), (3,))).tolist()
    assert drawn == [0x4D406603, 0xE4901A58, 0x6542B2A8]


def test_a_draw_is_the_same_however_it_is_compiled():
    """Bits exactly; a normal to two roundings of float32, for XLA may fuse its polynomial."""
    keys = jnp.stack([noise.fold(noise.root(8), t) for t in range(3)])
    for kind, exact in ((noise.bits, True), (noise.uniform, True), (noise.normal, False)):
        one_by_one = np.stack([np.asarray(kind(key, (3, 5))) for key in keys])
        mapped = np.asarray(jax.vmap(lambda key, kind=kind: kind(key, (3, 5)))(keys))
        jitted = jax.jit(kind, static_argnums=1)
        compiled = np.stack([np.asarray(jitted(key, (3, 5))) for key in keys])
        if exact:
            assert np.array_equal(one_by_one, mapped)
            assert np.array_equal(one_by_one, compiled)
        else:
            np.testing.assert_allclose(mapped, one_by_one, rtol=2.5e-7 * 2)
            np.testing.assert_allclose(compiled, one_by_one, rtol=2.5e-7 * 2)


def test_a_shape_only_reshapes():
    key = noise.root(9)
    flat = np.asarray(noise.bits(key, (12,)))
    assert np.array_equal(np.asarray(noise.bits(key, (3, 4))), flat.reshape(3, 4))
    assert np.asarray(noise.bits(key, ())) == flat[0]
    assert np.array_equal(np.asarray(noise.bits(key, (5,))), flat[:5])


@pytest.mark.parametrize("shape", [1e-3, 0.1, 0.5, 1.0, 3.7, 200.0, 1e5])
def test_log_gamma_has_the_law_of_its_shape(shape):
    n = 50_000
    drawn = np.asarray(jax.jit(noise.log_gamma)(noise.root(21), jnp.full(n, shape)), float)
    assert stats.kstest(drawn, stats.loggamma(shape).cdf).pvalue > CHANCE


def test_log_gamma_draws_each_shape_on_its_own():
    shapes = jnp.tile(jnp.array([0.01, 2.0, 50.0]), (20_000, 1))
    drawn = np.asarray(jax.jit(noise.log_gamma)(noise.root(22), shapes), float)
    for column, shape in zip(drawn.T, (0.01, 2.0, 50.0), strict=True):
        assert stats.kstest(column, stats.loggamma(shape).cdf).pvalue > CHANCE
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.04
