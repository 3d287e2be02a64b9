"""The examples in docstrings run and print what they say."""

import doctest
import inspect

import gymnasium
import numpy as np
import pytest

import rove
from rove.agents.settings import NetworkSettings, Settings
from rove.runs.result import Run

OBJECTS = [
    rove.train, rove.load, rove.make, rove.sweep, rove.report, rove.difference, rove.SparseReward,
    Run.policy, Run.evaluate, Settings,
]  # fmt: skip
NAMES = {"rove": rove, "gymnasium": gymnasium, "np": np}
NAMES |= {
    "NetworkSettings": NetworkSettings,
    **{name: getattr(rove, name) for name in rove.__all__},
}


@pytest.mark.fast_cases("SparseReward", "Settings", "make", "Run.evaluate", "load")
@pytest.mark.parametrize("thing", OBJECTS, ids=lambda thing: thing.__qualname__)
def test_examples_run(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(thing)
    example = doctest.DocTestParser().get_doctest(text, dict(NAMES), thing.__qualname__, None, 0)
    assert example.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    said = []
    assert runner.run(example, out=said.append).failed == 0, "".join(said)
