"""Slices of rove's side, and what becomes of a contestant that fails."""

import pytest

import entries
import peers
from contestants import Entry, measure, spread
from rove_side import settings_for, trainer

SMALL = {"width": 8, "batch": 4}


@pytest.mark.slow
def test_slices_of_processes_and_a_failure():
    """Two seeds in two processes if there are two cores, and a contestant that cannot start."""
    chosen = [Entry("rove", seeds=2, **SMALL), Entry("rove", environment="nowhere", **SMALL)]
    (row,), errors, versions = measure(chosen, rounds=2)
    assert (row["library"], row["seeds"], row["slices"]) == ("rove", 2, 2)
    low, high = row["quartiles"]
    assert 0 < row["min"] <= low <= row["median"] <= high
    assert row["steps"] >= 20
    assert versions["rove"]["jax"]
    (error,) = errors
    assert "nowhere" in error


@pytest.mark.fast_cases("gym/CartPole-v1")
@pytest.mark.parametrize("environment", ["cartpole", "gym/CartPole-v1", "gym/wide:Wide-v0"])
def test_every_seed_takes_every_step(environment):
    learn = trainer("dqn", environment, seeds=[3, 4], **SMALL)
    assert learn(7) == [7, 7]
    assert learn(5) == [12, 12]


def test_shared_settings():
    settings = settings_for("ge-minibatch", 32, 16)
    assert (settings.hidden, settings.batch_size, settings.draws) == ((32, 32), 16, "minibatch")
    assert (settings.buffer_size, settings.target_period) == (50_000, 100)
    assert settings_for("rlsvi", 32, 16).target_period == 100


@pytest.mark.parametrize("scale", entries.ROUNDS)
def test_entries_name_agents_and_libraries(scale):
    parts = ("peers", "agents", "seeds", "width", "batch", "size", "gymnasium")
    for part in parts:
        chosen = getattr(entries, part)(scale)
        assert len(set(chosen)) == len(chosen)
        for entry in chosen:
            assert entry.library in ("rove", *peers.PEERS)
            if entry.library == "rove":
                settings_for(entry.agent, entry.width, entry.batch)


def test_growth_has_the_stated_values():
    assert {entry.width for entry in entries.width("full")} == {32, 64, 128, 256, 512}
    assert {entry.batch for entry in entries.batch("full")} == {32, 64, 128, 256, 512}
    assert {entry.seeds for entry in entries.seeds("full")} == {1, 2, 4, 8}


def test_versions_are_fixed():
    for peer in peers.PEERS.values():
        assert all("==" in package for package in peer.packages)


def test_spread():
    assert spread([3.0, 1.0, 2.0]) == {"median": 2.0, "quartiles": [1.5, 2.5], "min": 1.0}
    assert spread([4.0])["quartiles"] == [4.0, 4.0]
