"""Run folders: written, read back, refused."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.agents.settings import with_settings
from rove.errors import ConfigError, RunFolderError
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.runs.folder import RunFolder
from rove.runs.tables import episodes_csv


def train(out=None, agent=None, **changes):
    told = {"seeds": 2, "episodes": 12, "out": out, **changes}
    return rove.train(agent or rove.GE(**SMALL), "chain-5", **told)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "a"
    return folder, train(folder)


@pytest.mark.slow
def test_the_csv_holds_every_episode(made):
    folder, run = made
    with open(folder / "episodes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "agent", "environment", "seed", "episode", "step", "return", "length", "terminated",
        "score", "spread", "return_spread", "coverage",
    ]  # fmt: skip
    assert len(rows) == 24
    table = np.array([float(row["return"]) for row in rows], np.float32).reshape(2, 12)
    np.testing.assert_array_equal(table, run.returns.astype(np.float32))
    assert [row["score"] for row in rows] == [row["return"] for row in rows]
    assert {row["agent"] for row in rows} == {"ge"}
    assert [int(row["episode"]) for row in rows] == [*range(1, 13)] * 2
    assert [int(row["step"]) for row in rows] == [*range(14, 169, 14)] * 2


def test_the_config_is_enough_to_run_again(made, tmp_path):
    folder, run = made
    told = json.loads((folder / "config.json").read_text())
    assert told["versions"].keys() >= {"rove", "jax", "python"}
    again = run_all([(RunFolder(folder).config(), tmp_path / "again")])[0]
    np.testing.assert_array_equal(again.returns, run.returns)
    first, second = (f / "episodes.csv" for f in (folder, tmp_path / "again"))
    assert first.read_bytes() == second.read_bytes()


def test_load_gives_back_arrays_and_policies(made):
    folder, run = made
    back = rove.load(folder)
    np.testing.assert_array_equal(back.returns, run.returns)
    np.testing.assert_array_equal(back.lengths, run.lengths)
    np.testing.assert_array_equal(back.visits, run.visits)
    np.testing.assert_array_equal(back.evaluate(), run.evaluate())
    for position in range(5):
        observation = (np.arange(5) <= position).astype(np.float32)
        assert back.policy(1)(observation) == run.policy(1)(observation)


def test_a_policy_is_greedy_on_the_mean(made):
    _, run = made
    mean = run.outcomes[0].lane.agent.phi.learned.mu
    for position in range(5):
        x = (np.arange(5) <= position).astype(np.float32)
        hidden = np.maximum(x @ np.asarray(mean[0].weight) + np.asarray(mean[0].bias), 0)
        q = hidden @ np.asarray(mean[1].weight) + np.asarray(mean[1].bias)
        assert run.policy(0, kind="mean")(x) == int(np.argmax(q))


def test_save_without_a_folder(tmp_path):
    run = train()
    run.save(tmp_path / "b")
    back = rove.load(tmp_path / "b")
    np.testing.assert_array_equal(back.returns, run.returns)
    run.plot(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5000


def test_a_composed_agent_trains_and_loads(tmp_path):
    agent = rove.Agent(rove.Gaussian(1e-2), rove.Dirac(), **SMALL)
    run = train(tmp_path / "c", agent, seeds=1)
    back = rove.load(tmp_path / "c")
    assert back.config.agent == agent
    assert run.config.agent_name == "Gaussian × Dirac"
    np.testing.assert_array_equal(back.returns, run.returns)


@pytest.mark.slow
def test_every_choice_of_control_is_written_and_read_back(tmp_path):
    """A prior, pairing, double targets and a θ held for so many steps, by name or composed."""
    posterior = rove.MeanField(-3.0, 0.5, paired=True)
    composed = rove.Agent(rove.Gaussian(0.1), posterior, resample=3, double=True, **SMALL)
    for agent, folder in ((composed, "composed"), (rove.GE(**SMALL, resample=3), "named")):
        run = train(tmp_path / folder, agent, seeds=1, episodes=2)
        back = rove.load(tmp_path / folder)
        assert back.config == run.config
        assert back.config.agent == agent
        assert back.config.agent.resample == 3
        np.testing.assert_array_equal(back.evaluate(), run.evaluate())


def test_a_different_run_is_refused_not_overwritten(made):
    folder, _ = made
    before = (folder / "episodes.csv").read_bytes()
    for changes, word in [
        ({"episodes": 11}, "it has 12 episodes, more than 11, and cannot be shortened"),
        ({"seeds": 1}, "seeds"),
        ({"agent": rove.GE(**SMALL, rho=-2.0)}, "its rho is -4.0, not -2.0"),
        ({"agent": rove.DQN(**SMALL)}, 'its agent is "ge", not "dqn"'),
    ]:
        with pytest.raises(RunFolderError, match="different run") as caught:
            train(folder, **changes)
        assert word in str(caught.value)
    assert (folder / "episodes.csv").read_bytes() == before


def test_a_folder_with_something_else_is_refused_and_left_as_it_was(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for files in ({"thesis.tex"}, {"thesis.tex", ".lock"}):
        with pytest.raises(RunFolderError, match=r"not empty.*thesis"):
            train(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == files
        (tmp_path / ".lock").write_text("theirs")
    assert (tmp_path / ".lock").read_text() == "theirs"


def test_a_lock_that_leads_elsewhere_is_refused(tmp_path):
    (tmp_path / "theirs").write_text("years of work")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "theirs")
    with pytest.raises(RunFolderError, match="cannot write to"):
        train(tmp_path / "run")
    assert (tmp_path / "theirs").read_text() == "years of work"


def test_a_run_killed_before_its_first_file_starts_anew(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / "config.json.partial").write_text("{")
    assert train(tmp_path, seeds=1).returns.shape == (1, 12)


def test_numbers_of_other_libraries_are_numbers(tmp_path):
    settings = {**SMALL, "batch_size": np.int64(8), "lr": np.float32(1e-3), "rho": -4}
    agent = rove.GE(**settings)
    run = rove.train(agent, "chain-5", seeds=np.arange(2), episodes=np.int64(2), out=tmp_path / "n")
    assert run.seeds == (0, 1)
    assert rove.load(tmp_path / "n").config == run.config


@pytest.mark.parametrize(
    "settings",
    [
        lambda: rove.GE(rho=-4),
        lambda: with_settings(rove.GE(), {"rho": np.int64(-4)}),
        lambda: rove.BootstrappedDQN(prior=10),
        lambda: rove.IGE(rho=-4, resample=2),
        lambda: rove.BBQ(bonus="counts", bonus_weight=1),
    ],
)
def test_a_whole_number_where_a_fraction_belongs_is_a_fraction(settings, tmp_path):
    """And so what a folder gives back is the same run: it can be loaded, and go to a worker."""
    config, folder = configure(settings(), "chain-5", episodes=1), RunFolder(tmp_path)
    with folder.open(config):
        pass
    assert [job.run for job in folder.config().jobs(None)] == [j.run for j in config.jobs(None)]
    agent = config.agent
    told = {type(getattr(agent, f, None)) for f in ("rho", "prior", "bonus_weight")}
    assert told <= {float, type(None)}


def test_settings_that_vary_have_columns():
    runs = [train(agent=rove.GE(**SMALL, rho=rho), seeds=1, episodes=2) for rho in (-4.0, -3.0)]
    runs.append(train(agent=rove.DQN(**SMALL), seeds=1, episodes=2))
    text = episodes_csv([(r.config, 0, r.outcomes[0].episodes) for r in runs])
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["rho"] for row in rows] == ["-4.0", "-4.0", "-3.0", "-3.0", "", ""]
    assert [row["epsilon"] for row in rows] == ["0.0"] * 4 + ["0.1"] * 2
    assert "lr" not in rows[0]


def test_settings_of_composed_agents_that_vary_have_columns(made):
    _, run = made
    agents = [
        rove.Agent(rove.Gaussian(0.1), rove.MeanField(-4.0), **SMALL),
        rove.Agent(rove.Gaussian(0.1), rove.MeanField(-3.0), **SMALL),
        rove.Agent(rove.Quantile(8), rove.Dirac(), **SMALL),
    ]
    configs = [configure(agent, "chain-5", episodes=12) for agent in agents]
    rows = [
        list(csv.DictReader(episodes_csv(lanes).splitlines()))[::12]
        for episodes in [run.outcomes[0].episodes]
        for lanes in ([(config, 0, episodes) for config in configs], [(configs[0], 0, episodes)])
    ]
    assert [row["posterior.rho"] for row in rows[0]] == ["-4.0", "-3.0", ""]
    assert [row["returns.type"] for row in rows[0]] == ["Gaussian", "Gaussian", "Quantile"]
    assert list(rows[1][0]) == [name for name in rows[0][0] if "." not in name]


def test_the_csv_keeps_lanes_that_finished_before_a_resume(tmp_path):
    """Lane 1's file is taken away, as if the run had been killed before it was written."""
    train(tmp_path)
    whole = (tmp_path / "episodes.csv").read_bytes()
    (tmp_path / "lanes" / "seed-1.safetensors").unlink()
    (tmp_path / "episodes.csv").unlink()
    seen = []

    def look(told):
        if (tmp_path / "episodes.csv").exists():
            seen.append((tmp_path / "episodes.csv").read_text().count("ge,chain-5,0"))

    train(tmp_path, report=look)
    assert (tmp_path / "episodes.csv").read_bytes() == whole
    assert seen
    assert set(seen) == {12}


def test_a_corrupt_checkpoint_is_named(tmp_path):
    train(tmp_path)
    (tmp_path / "lanes" / "seed-1.safetensors").write_bytes(b"rubbish")
    with pytest.raises(RunFolderError, match=r"seed-1.*not a checkpoint"):
        train(tmp_path)


def test_a_checkpoint_of_another_lane_or_run_is_refused(tmp_path):
    train(tmp_path / "a")
    train(tmp_path / "b", rove.GE(**SMALL, rho=-2.0))
    files = [tmp_path / run / "lanes" for run in "ab"]
    kept = (files[0] / "seed-0.safetensors").read_bytes()
    for other in (files[0] / "seed-1.safetensors", files[1] / "seed-0.safetensors"):
        (files[0] / "seed-0.safetensors").write_bytes(other.read_bytes())
        with pytest.raises(RunFolderError, match=r"seed-0.*another run or seed.*Pass the same"):
            train(tmp_path / "a")
        with pytest.raises(RunFolderError, match="another run or seed"):
            rove.load(tmp_path / "a")
    (files[0] / "seed-0.safetensors").write_bytes(kept)
    assert len(rove.load(tmp_path / "a").seeds) == 2


def test_part_of_a_run_can_be_loaded_and_saved(tmp_path):
    train(tmp_path / "a")
    (tmp_path / "a" / "lanes" / "seed-0.safetensors").unlink()
    part = rove.load(tmp_path / "a")
    assert part.seeds == (1,)
    part.save(tmp_path / "b")
    np.testing.assert_array_equal(rove.load(tmp_path / "b").returns, part.returns)


def test_a_finished_run_is_not_trained_again(made):
    folder, _ = made
    reports = []
    before = (folder / "lanes" / "seed-0.safetensors").stat().st_mtime_ns
    train(folder, report=reports.append)
    assert [(told.finished, told.episode) for told in reports] == [(True, 12)] * 2
    assert (folder / "lanes" / "seed-0.safetensors").stat().st_mtime_ns == before


def test_two_processes_cannot_share_a_folder(tmp_path):
    config = configure(rove.GE(**SMALL), "chain-5", episodes=2)
    with (
        RunFolder(tmp_path).open(config),
        pytest.raises(RunFolderError, match="in use"),
        RunFolder(tmp_path).open(config),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("{", "cannot be read"), ("[]", "not written by rove"),
        ('{"schema": 99}', "another version"),
        pytest.param("[" * 200_000, "cannot be read", id="deep"),
    ],
)  # fmt: skip
def test_a_broken_config_is_refused(tmp_path, content, word):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunFolderError, match=word):
        rove.load(tmp_path)
    with pytest.raises(RunFolderError, match=word):
        train(tmp_path)


def test_no_run_here(tmp_path):
    with pytest.raises(RunFolderError, match=r"nothing does not exist"):
        rove.load(tmp_path / "nothing")
    with pytest.raises(RunFolderError, match=r"config\.json is missing; give a folder"):
        rove.load(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gamma", float("nan")), ("gamma", 1.5), ("gamma", -0.1), ("sigma", 0.0), ("sigma", -1.0),
        ("sigma", float("inf")), ("lr", 0.0), ("rho", float("nan")),
        ("rho", 1000.0), ("epsilon", 1.1), ("batch_size", 0), ("batch_size", 10**6),
        ("buffer_size", -1), ("learning_starts", -5), ("target_period", 0),
        ("hidden", (0,)), ("hidden", (2**40,)), ("rhoo", -4.0), ("lr", 10**400),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_by_name(field, value):
    with pytest.raises(ConfigError) as caught:
        configure("ge", "chain-5", episodes=1, **{field: value})
    assert caught.value.field == field
    shown = value[0] if field == "hidden" else field if field == "rhoo" else value
    assert repr(shown) in str(caught.value)


@pytest.mark.parametrize("kind", [rove.GE, rove.VDQN, rove.BBQ, rove.IGE, rove.DDPGGE])
def test_an_entropy_without_weight_is_refused(kind):
    with pytest.raises(ConfigError, match=r"sigma must be at least 1e-08, got 0\.0; .* noisynet"):
        kind(sigma=0.0).compose()


def test_values_of_a_wrong_type_are_refused_by_name():
    """In a process without the tests' own type checks, as a person would meet them."""
    program = """
from decimal import Decimal
from fractions import Fraction
import rove
from rove.runs.folder import RunFolder
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.agents.settings import with_settings
from rove.errors import ConfigError
wrong = {"lr": "fast", "batch_size": 2.5, "hidden": "100", "resample": "sometimes",
         "gamma": None, "epsilon": "0.1", "rho": True, "sigma": Decimal("0.001"),
         "epsilon_start": Fraction(1, 2)}
for field, value in wrong.items():
    try:
        configure("ge", "chain-5", episodes=1, **{field: value})
    except ConfigError as error:
        assert error.field == field and repr(value) in str(error), error
    else:
        raise SystemExit(f"{field} = {value!r} was taken")
chain = {"agent": "ge", "environment": "chain-5", "episodes": 1}
for field, call in (
    ("on", lambda: rove.train(**chain, on=None)),
    ("out", lambda: rove.train(**chain, out=5)),
    ("path", lambda: rove.load(None)),
    ("fields", lambda: rove.sweep(**chain, fields=None)),
    ("fields", lambda: rove.sweep(**chain, fields=[("lr", [1])])),
):
    try:
        call()
    except ConfigError as error:
        assert error.field == field, error
    else:
        raise SystemExit(f"{field} was taken")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"episodes": 0}, "episodes"), ({"episodes": -3}, "episodes"),
        ({"episodes": 1, "steps": 1}, "episodes"), ({"steps": 0}, "steps"),
        ({"episodes": 1, "seeds": 0}, "seeds"),
        ({"episodes": 1, "seeds": 2**31 - 1}, "seeds"), ({"episodes": 1, "seeds": [1, 1]}, "seeds"),
        ({"episodes": 1, "seeds": [-1]}, "seeds"), ({"episodes": 1, "seeds": []}, "seeds"),
        ({"episodes": 1, "seeds": np.array(2.5)}, "seeds"),
    ],
)  # fmt: skip
def test_bad_budgets_are_refused_by_name(changes, field):
    with pytest.raises(ConfigError) as caught:
        configure("ge", "chain-5", **changes)
    assert caught.value.field == field


@pytest.mark.slow
def test_when_seeds_solved_their_task():
    run = rove.train(rove.PSRL(), "chain-4", seeds=2, episodes=60)
    for when, returns in zip(run.solved_at, run.returns, strict=True):
        assert np.all(returns[when - 10 : when] > 10.99)
        assert returns[when - 11] < 10.99
    assert rove.train(rove.DQN(**SMALL), "cartpole", steps=3).solved_at == [None]


def test_without_a_budget_it_is_that_of_the_command():
    assert configure("ge", "chain-5").episodes == 250
    assert configure("ddpg", "linear-quadratic-1").steps == 50_000


def test_misspelt_arguments_and_settings_are_named():
    with pytest.raises(ConfigError, match="Did you mean 'episodes'"):
        rove.train("ge", "chain-5", episode=5)
    with pytest.raises(ConfigError, match="Did you mean 'rho'"):
        rove.GE(rhoo=-3.0)
    with pytest.raises(ConfigError, match="Did you mean 'lr'"):
        rove.GE(learning_rate=-3.0)
    with pytest.raises(ConfigError, match=r"agent must be a rove\.Agent"):
        rove.load("runs/a", agent="ge")
    for settings in ({"rho": "x"}, {"hidden": 64}, {"resample": "never"}, {"lr": -1.0}):
        with pytest.raises(ConfigError, match=next(iter(settings))):
            rove.GE(**settings)


@pytest.mark.parametrize(
    ("agent", "environment", "hint"),
    [
        ("gee", "chain-5", "Did you mean 'ge'"),
        ("ge", "chian-5", "Did you mean 'chain-5'"),
        ("ge", "chain-1", "between 3 and 100,000"),
        ("ge", "chain--5", "Did you mean 'chain-5'"),
        ("ge", "chain", "needs a size, as in chain-10"),
        ("ge", "", "chain-N"),
    ],
)
def test_wrong_names_suggest_the_nearest(agent, environment, hint):
    with pytest.raises(ConfigError, match=hint):
        configure(agent, environment, episodes=1)
