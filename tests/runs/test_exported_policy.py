"""The file policy.py of an export, on arrays by hand: which observations and masks it refuses."""

import json

import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.errors import ConfigError, LaneError
from rove.runs.configure import configure
from rove.runs.exporting.policy import ExportedPolicy
from rove.runs.result import Run

VECTORS = {"kind": "box", "channels_first": False}
STATES = {"kind": "one-hot", "first": [1], "sizes": [3]}
STACKS = {"kind": "frames", "each": {"kind": "dict", "parts": [["x", VECTORS]]}, "channels": 2}


def policy(folder, space, size, masked=False):
    """A policy of one layer, whose value of action i is entry i of the observation; the actions are
    numbered from 10."""
    about = {"observation": space, "masked": masked, "clip": 10.0, "depths": [1]}
    (folder / "policy.json").write_text(json.dumps(about))
    layer = {"0.scale": np.ones(1), "0.weight.0": np.eye(size)[None], "0.bias.0": np.zeros((1, 1))}
    np.savez(folder / "policy.npz", actions=10 + np.arange(size), unit=np.ones(size), **layer)
    return ExportedPolicy(folder)


@pytest.mark.parametrize("given", [None, [0.1], 0.1, [0, 0, 0, 0], [0, np.nan, 0], [0, np.inf, 0]])
def test_a_vector_of_another_size_is_refused(given, tmp_path):
    act = policy(tmp_path, VECTORS, 3)
    assert act([0, 2, 1]) == 11
    with pytest.raises(ValueError, match="an observation needs 3 finite entries, got"):
        act(given)


@pytest.mark.parametrize("given", [0, 4, -1, 1.5])
def test_a_state_outside_of_its_space_is_refused(given, tmp_path):
    act = policy(tmp_path, STATES, 3)
    assert [int(act(state)) for state in (1, 2, 3)] == [10, 11, 12]
    with pytest.raises(ValueError, match="not in its discrete space"):
        act(given)


def test_a_mask_of_another_size_is_refused(tmp_path):
    act = policy(tmp_path, VECTORS, 3, masked=True)
    assert act([0, 2, 1], [1, 0, 1]) == 12
    for mask in ([1, 0], [1], [0, 0, 0]):
        with pytest.raises(ValueError, match="a mask needs 3 entries"):
            act([0, 2, 1], mask)


def test_stacks_of_dictionaries(tmp_path):
    """A sequence of dictionaries, or a dictionary of stacks."""
    act = policy(tmp_path, STACKS, 4)
    stack = np.array([[0.0, 1.0], [2.0, 0.0]])
    assert act([{"x": frame} for frame in stack]) == act({"x": stack}) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"out": ""}, "out must be the path of a folder"),
        ({"out": None}, "out must be the path of a folder"),
        ({"formats": "numpy"}, "formats must be one or more formats"),
        ({"formats": ()}, "formats must be one or more formats"),
        ({"formats": ["torch"]}, "formats must be one of numpy, onnx, stablehlo"),
    ],
)
def test_wrong_arguments_of_an_export_are_refused(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(configure(rove.DQN(**SMALL), "chain-4", episodes=1), [])
    with pytest.raises(ConfigError, match=message):
        rove.export(run, **{"out": "exported"} | arguments)
    with pytest.raises(LaneError, match="no seed has been saved yet"):
        rove.export(run, "exported")
    assert not list(tmp_path.iterdir())
