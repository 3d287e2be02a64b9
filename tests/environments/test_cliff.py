"""The cliff walk: its rules, and the policies that maximise the mean and the CVaR, exactly."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.environments import Cliff
from rove.environments.cliff import CliffState
from rove.errors import ConfigError
from rove.parts import noise

CELLS = [(row, column) for row in range(4) for column in range(7)]
DIRECTIONS = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}


def walked(cell: tuple[int, int], *names: str) -> tuple[int, int]:
    """Moves in plain Python."""
    row, column = cell
    for name in names:
        row, column = row + DIRECTIONS[name][0], column + DIRECTIONS[name][1]
        row, column = min(max(row, 0), 3), min(max(column, 0), 6)
    return row, column


@pytest.mark.parametrize("wind", [0.0, 1.0])
def test_every_step_by_a_second_implementation(wind):
    """All cells and actions, without wind and with a gust in every step."""
    cliff = Cliff(wind=wind, fall=5.0)
    cells, actions = np.divmod(np.arange(28 * 4), 4)
    states = CliffState(jnp.asarray(cells), jnp.zeros(112, jnp.int32))
    keys = noise.folds(noise.root(0), 112)
    step = jax.jit(jax.vmap(cliff.step))(states, jnp.asarray(actions), keys)
    for i, (cell, action) in enumerate(zip(cells, actions, strict=True)):
        gust = ["down"] * 2 * int(wind)
        row, column = walked(CELLS[cell], list(DIRECTIONS)[action], *gust)
        fell = row == 3 and 0 < column < 6
        assert int(step.state.cell[i]) == 7 * row + column
        assert float(step.reward[i]) == pytest.approx(-0.1 - 5.0 * fell)
        assert bool(step.terminated[i]) == (fell or (row, column) == (3, 6))
        assert not step.truncated[i]


def test_gusts_are_as_frequent_as_stated():
    cliff, n = Cliff(wind=0.3), 20_000
    state = CliffState(jnp.int32(0), jnp.int32(0))
    step = jax.jit(jax.vmap(lambda key: cliff.step(state, jnp.int32(1), key)))
    down = np.mean(np.asarray(step(noise.folds(noise.root(3), n)).state.cell) == 15)
    assert abs(down - 0.3) < 4.5 * np.sqrt(0.3 * 0.7 / n)


def test_the_table_is_what_steps_do():
    cliff = Cliff(wind=0.25)
    assert cliff.transitions.sum(axis=2) == pytest.approx(1.0)
    assert cliff.transitions[8, 1, 9] == 0.75
    assert cliff.transitions[8, 1, 23] == 0.25
    assert cliff.transitions[21, 3, 21] == pytest.approx(1.0)  # a corner, and the ground
    np.testing.assert_allclose(cliff.rewards[[0, 21, 22, 26, 27]], [-0.1, -0.1, -2.1, -2.1, -0.1])


def test_time_limit():
    cliff = Cliff(wind=0.0, horizon=3)
    state, x = cliff.reset(noise.root(0))
    assert int(state.cell) == 21
    assert np.flatnonzero(np.asarray(x)) == [21]
    for last in (False, False, True):
        step = cliff.step(state, jnp.int32(0), noise.root(0))
        state = step.state
        assert bool(step.truncated) == last


def test_bad_values_are_refused():
    for settings in ({"wind": 1.1}, {"fall": -1.0}, {"horizon": 0}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            Cliff(**settings)


# The exact laws of returns: costs are multiples of 0.1


@functools.cache
def planned(level: float | None, steps: int = 60) -> tuple[tuple[int, ...], np.ndarray]:
    """The greedy policy after distributional value iteration with γ = 1, for the mean or the CVaR
    at a level, and the law of the cost from the start in units of 0.1."""
    cliff, size = Cliff(), 100
    fall, ends = round(10 * cliff.fall), (cliff.falls > 0) | (np.arange(28) == 27)
    laws = np.zeros((28, size))
    laws[:, 0] = 1.0
    policy = np.zeros(28, int)
    for _ in range(steps):
        after = np.where(ends[:, None], np.eye(size)[0], laws)
        after = np.where(cliff.falls[:, None] > 0, np.roll(after, fall, axis=1), after)
        q = cliff.transitions @ np.roll(after, 1, axis=1)
        policy = np.argmax(values(q, level), axis=1)
        laws = q[np.arange(28), policy]
    return tuple(policy), laws[21]


def values(laws: np.ndarray, level: float | None) -> np.ndarray:
    """Minus the mean cost, or minus its mean over the highest costs."""
    costs = np.arange(laws.shape[-1])
    if level is None:
        return -laws @ costs
    above = np.cumsum(laws[..., ::-1], axis=-1)[..., ::-1]
    return -np.sum(costs * np.clip(level - (above - laws), 0.0, laws), axis=-1) / level


def way(policy: tuple[int, ...]) -> list[tuple[int, int]]:
    """The cells on the way from the start to the end, without wind."""
    cells = [(3, 0)]
    while cells[-1] != (3, 6) and len(cells) < 30:
        row, column = cells[-1]
        cells.append(walked((row, column), list(DIRECTIONS)[policy[7 * row + column]]))
    return cells


def test_the_risk_sensitive_policy_takes_a_detour():
    """Exactly: along the edge in 8 steps for the mean, on the top row in 12 for the CVaR."""
    (short, costs), (safe, safer) = planned(None), planned(0.1)
    assert len(way(short)) == 9
    assert min(row for row, _ in way(short)) == 2
    assert len(way(safe)) == 13
    assert min(row for row, _ in way(safe)) == 0
    for law, mean, cvar in ((costs, -9.54, -23.40), (safer, -12.01, -14.00)):
        assert law.sum() == pytest.approx(1.0)
        assert values(law, None) == pytest.approx(mean, abs=0.01)
        assert values(law, 0.1) == pytest.approx(cvar, abs=0.01)
