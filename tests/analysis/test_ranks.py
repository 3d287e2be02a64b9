"""The rank test of times, by hand, by enumeration and against SciPy's."""

import itertools

import numpy as np
import pytest

from rove.analysis import ranks
from rove.analysis.intervals import counts_test
from rove.analysis.ranks import rank_test

INF = np.inf


def by_enumeration(a, b):
    """Twice the smaller fraction of assignments whose rank sum is as extreme."""
    pooled = np.append(a, b)
    rank = np.array([np.sum(pooled < x) + 0.5 * (np.sum(pooled == x) + 1) for x in pooled])
    sums = np.array([sum(c) for c in itertools.combinations(rank, len(a))])
    own = rank[: len(a)].sum()
    return min(1.0, 2 * min(np.mean(sums <= own + 1e-9), np.mean(sums >= own - 1e-9)))


@pytest.mark.parametrize("seed", range(8))
def test_p_values_are_those_of_all_assignments(seed):
    random = np.random.default_rng(seed)
    times = np.array([3.0, 3.0, 5.0, 8.0, 13.0, INF, INF])
    a, b = (random.choice(times, size) for size in (4, 6))
    assert rank_test(a, b).p == pytest.approx(by_enumeration(a, b))
    assert rank_test(b, a).p == pytest.approx(by_enumeration(a, b))


def test_sooner_on_every_seed():
    a, b = np.arange(20.0, 25.0), np.arange(80.0, 85.0)
    test = rank_test(a, b)
    assert (test.value, test.p) == (-60.0, pytest.approx(2 / 252))
    assert -64 <= test.low < -60 < test.high <= -56
    opposite = rank_test(b, a)
    assert (opposite.value, opposite.low, opposite.high) == (60.0, -test.high, -test.low)


def test_the_interval_has_the_shifts_that_are_not_rejected():
    random = np.random.default_rng(0)
    a, b = random.normal(0, 9, 7), random.normal(4, 9, 8)
    test = rank_test(a, b)
    for limit, inside in ((test.low, 1e-6), (test.high, -1e-6)):
        assert by_enumeration(a - limit - inside, b) > 0.05
        assert by_enumeration(a - limit + inside, b) <= 0.05


def test_unsolved_seeds_are_later_than_all_others():
    solved, unsolved = np.full(5, 30.0), np.full(5, INF)
    assert rank_test(solved, unsolved).p == pytest.approx(counts_test(5, 5, 0, 5))
    assert rank_test(solved, unsolved)[:3] == (-INF, -INF, -INF)
    assert rank_test(unsolved, unsolved) == (0.0, -INF, INF, 1.0, "difference")
    some = np.array([30.0, 30.0, INF, INF, INF])
    assert rank_test(solved, some).p == pytest.approx(counts_test(5, 5, 2, 5))
    with pytest.raises(ValueError, match="at least one seed"):
        rank_test(solved, solved[:0])


def test_many_seeds_are_approximated(monkeypatch):
    random = np.random.default_rng(1)
    a, b = random.integers(0, 60, 40), random.integers(10, 70, 50)
    exact = rank_test(a, b).p
    monkeypatch.setattr(ranks, "EXACT", 50)
    assert rank_test(a, b).p == pytest.approx(exact, rel=0.1)
