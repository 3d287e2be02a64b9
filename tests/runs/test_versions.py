"""Run folders of other versions of rove: their settings had other fields."""

import json

import pytest

import rove
from helpers import SMALL
from rove.errors import RunFolderError
from rove.posteriors import MeanField
from rove.returns import Gaussian
from rove.training import checkpoint


def train(folder, agent):
    rove.train(agent, "chain-4", episodes=2, out=folder)
    return json.loads((folder / "config.json").read_text())


@pytest.mark.fast_cases(
    "False-missing-has no setting", "False-new-has the setting", "True-new-has the setting"
)
@pytest.mark.parametrize(
    ("change", "words"), [("missing", "has no setting"), ("new", "has the setting")]
)
@pytest.mark.parametrize("composed", [False, True])
def test_a_run_whose_settings_had_other_fields_is_refused_in_one_sentence(
    tmp_path, change, words, composed
):
    """A field that is missing would silently take today's default, which may mean another agent."""
    agent = rove.Agent(Gaussian(0.1), MeanField(-4.0), **SMALL) if composed else rove.GE(**SMALL)
    config = train(tmp_path, agent)
    settings = (
        config["agent"]["composition"]["posterior"] if composed else config["agent"]["settings"]
    )
    if change == "missing":
        del settings["prior_std"]
    else:
        settings["max_std"] = 1.0
    (tmp_path / "config.json").write_text(json.dumps(config))
    field = "prior_std" if change == "missing" else "max_std"
    with pytest.raises(
        RunFolderError, match=f"another version of rove, in which .* {words} '{field}'"
    ) as error:
        rove.load(tmp_path)
    assert "\n" not in str(error.value)


def test_a_run_without_a_setting_of_today_is_not_resumed(tmp_path):
    config = train(tmp_path, rove.GE(**SMALL))
    del config["agent"]["settings"]["prior_std"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    words = "another version of rove, without the setting prior_std. Choose another"
    with pytest.raises(RunFolderError, match=words):
        rove.train(rove.GE(**SMALL), "chain-4", episodes=2, out=tmp_path)


def test_a_checkpoint_without_an_array_of_today_is_refused_in_one_sentence(tmp_path):
    train(tmp_path, rove.PSRL())
    file = tmp_path / "lanes" / "seed-0.safetensors"
    arrays, metadata = checkpoint.load_arrays(file)
    del arrays[".snapshots.reward_scale"]
    checkpoint.save_arrays(file, arrays, metadata)
    with pytest.raises(RunFolderError, match=r"does not contain snapshots\.reward_scale") as error:
        rove.load(tmp_path)
    assert "\n" not in str(error.value)
