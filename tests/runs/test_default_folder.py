"""The folder of a run for which the user names none."""

import pytest

import rove
from helpers import SMALL
from rove.cli import main as cli
from rove.runs.configure import configure
from rove.runs.default_folder import folder_name

NAMES = {
    "ge-chain-100": configure("ge", "chain-100"),
    "ge-chain-100-resample=episode": configure("ge", "chain-100", resample="episode"),
    "dqn-chain-10-hidden=8x8-double": configure("dqn", "chain-10", double=True, hidden=[8, 8]),
    "ge-chain-10-prior_std=None": configure("ge", "chain-10", prior_std=None),
    "dqn-chain-10-lr=1e-05-until_solved-eval_every=5-eval_episodes=3-stop_at=2": configure(
        "dqn", "chain-10", lr=1e-5, until_solved=True, eval_every=5, eval_episodes=3, stop_at=2
    ),
    "dqn-chain-10-eval_every=5": configure("dqn", "chain-10", eval_every=5),
    "dqn-chain-10-features=one-hot": configure("dqn", rove.make("chain-10", features="one-hot")),
    "dqn-gym-CartPole-v1-time_limit=50": configure(
        "dqn", rove.make("gym/CartPole-v1", time_limit=50, score_range=(0.0, 50.0))
    ),
    "dqn-gym-FrozenLake-v1-no-is_slippery": configure(
        "dqn", rove.make("gym/FrozenLake-v1", is_slippery=False, optimum=1.0)
    ),
}
LONG = {"lr": 0.01, "batch_size": 8, "buffer_size": 500, "learning_starts": 20, "hidden": [8, 6]}
NAMES[
    "dqn-permuted-chain-10-lr=0.01-batch_size=8-buffer_size=500-learning_starts=20-hidden=8x6"
] = configure("dqn", "permuted-chain-10", **LONG, eval_every=10, eval_episodes=1)  # cut at a word
OPTIONS = [f"--agent.{key.replace('_', '-')}={value}" for key, value in SMALL.items()]
OPTIONS = [word.replace("(8,)", "8") for word in OPTIONS]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_says_which_options_are_not_at_their_defaults(name):
    assert folder_name(NAMES[name]) == name


def folder(capsys, *words) -> str:
    """Run a command in this process; the folder that it names in the end."""
    cli.main([*map(str, words), *OPTIONS, "--on", "threads"])
    printed = capsys.readouterr().out.replace("\n", " ")
    return printed.rpartition("written to ")[2].partition(":")[0]


def test_the_obvious_next_command_works(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run = ("train", "dqn", "chain-5")
    first = folder(capsys, *run, "--seeds", 2, "--episodes", 3)
    assert first == f"runs/{folder_name(configure('dqn', 'chain-5', **SMALL))}"
    assert folder(capsys, *run, "--seeds", 2, "--episodes", 3) == first
    # Fewer seeds or episodes have a folder of their own, which the same command finds again.
    fewer = [folder(capsys, *run, "--seeds", 1, "--episodes", 3) for _ in range(2)]
    assert fewer == [f"{first}-2"] * 2
    assert rove.load(fewer[0]).seeds == (0,)
    assert folder(capsys, *run, "--seeds", 2, "--episodes", 2) == f"{first}-3"
    # So have another unit of the budget, and another setting.
    assert folder(capsys, *run, "--seeds", 2, "--steps", 20) == f"{first}-4"
    double = folder(capsys, *run, "--seeds", 2, "--episodes", 3, "--agent.double")
    assert double == f"{first}-double"
    # More seeds and episodes extend the first run.
    assert folder(capsys, *run, "--seeds", 3, "--episodes", 4) == first
    assert rove.load(first).returns.shape == (3, 4)
    # `Run.save` without a folder follows the same rule.
    saved = rove.train("dqn", "chain-5", seeds=[7], episodes=3, **SMALL).save()
    assert str(saved) == f"{first}-5"
    assert rove.load(saved).config.delivers


def test_another_sweep_has_a_folder_of_its_own(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run = ("sweep", "dqn", "chain-5", "--episodes", 2, "--seeds", 1, "--agent.gamma=0.9,0.8")
    first = folder(capsys, *run)
    assert first == f"sweeps/{folder_name(configure('dqn', 'chain-5', **SMALL))}"
    assert folder(capsys, *run) == first
    assert folder(capsys, *run[:-1], "--agent.gamma=0.9,0.7") == f"{first}-2"
    assert folder(capsys, *run, "--agent.double") == f"{first}-double"


def test_a_folder_that_cannot_be_read_is_not_passed_over(capsys, monkeypatch, tmp_path):
    """A damaged run is reported, instead of being trained again elsewhere."""
    monkeypatch.chdir(tmp_path)
    name = folder_name(configure("dqn", "chain-5", **SMALL))
    (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / name / "config.json").write_text("{")
    with pytest.raises(SystemExit):
        folder(capsys, "train", "dqn", "chain-5", "--episodes", 3)
    assert "config.json cannot be read" in capsys.readouterr().err.replace("\n", " ")
