"""Agents that divide rewards by a scale: plots and reports show the unit of the task."""

import numpy as np
import pytest
from made import group_of

import rove
from rove.analysis import run_plots
from rove.reporting import report

SCALE = 8.0


@pytest.fixture(scope="module")
def run():
    small = {"hidden": (4,), "learning_starts": 20, "batch_size": 4, "buffer_size": 100}
    scale = rove.ConstantScale(SCALE)
    agent = rove.Agent(rove.Gaussian(0.1), rove.Dirac(), **small, reward_scale=scale)
    return rove.train(agent, "chain-5", seeds=1, episodes=4)


@pytest.fixture
def values(run) -> np.ndarray:
    """Q(s, a), [snapshot, probe, action]: for a point estimate of θ, also the mean of Z(s, a)."""
    snapshots = run.outcomes[0].lane.snapshots
    np.testing.assert_array_equal(snapshots.reward_scale[:3], SCALE)
    q = np.asarray(snapshots.values)[:3, 0]
    np.testing.assert_allclose(q, SCALE * snapshots.outputs[:3], rtol=1e-6)
    return q


@pytest.mark.slow
def test_reports(run, values, tmp_path):
    page = report([run.save(tmp_path / "run")], tmp_path / "r.html")
    (shown,) = group_of(page, "chain-5")["runs"]
    means = np.array([probe["means"] for probe in shown["beliefs"]["returns"]])
    np.testing.assert_allclose(means.swapaxes(0, 1), values, rtol=1e-3, atol=1e-4)


def test_plots(run, values):
    """The dots on the axes of Z(s, a) are its means."""
    figure = run_plots.diagnostics(run)
    panels = [axes for axes in figure.axes if axes.get_xlabel().startswith("return")]
    dots = [[x.get_xdata()[0] for x in axes.lines if x.get_marker() == "o"] for axes in panels]
    np.testing.assert_allclose(dots, values[-1], rtol=1e-3, atol=1e-3)
