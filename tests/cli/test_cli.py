"""The command as a person uses it: help, errors, exit codes, files."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from rove import AGENTS, Chain, load
from rove.analysis.intervals import episodes_interval
from rove.cli import main as cli
from rove.environments import make
from rove.runs.configure import configure
from rove.runs.folder import RunFolder

SMALL = ["--agent.hidden=8", "--agent.batch-size=8", "--agent.buffer-size=64"]
SMALL += ["--agent.learning-starts=50"]


def rove(*arguments, cwd=None):
    """A real process, as from a shell."""
    command = [sys.executable, "-m", "rove", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=cwd)


def refused(capsys, *arguments):
    """Run in this process; the error text, after checking for exit code 2 and no traceback."""
    with pytest.raises(SystemExit) as stopped:
        cli.main([str(a) for a in arguments])
    printed = capsys.readouterr()
    assert stopped.value.code == 2
    assert "Traceback" not in printed.err
    return " ".join((printed.err + printed.out).split())


def test_help_and_list(capsys):
    cli.main([])
    assert "rove train AGENT ENVIRONMENT" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        cli.main(["train", "--help"])
    shown = capsys.readouterr().out
    assert "--seeds" in shown
    assert "rove train ge chain-100 --help" in " ".join(shown.split())
    cli.main(["list"])
    shown = capsys.readouterr().out
    names = ("dqn", "ge", "chain-N", "bandit-N", "cartpole", "sparse-acrobot", "gym/ID", "figure-2")
    for name in names:
        assert name in shown
    cli.main(["--version"])
    assert capsys.readouterr().out.startswith("rove 0.")


def test_a_terminal_without_the_letters_shows_something_in_their_place():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "rove", "list"]
    shown = subprocess.run(
        command, capture_output=True, timeout=300, env=os.environ | plain, check=True
    )
    assert b"chain-N" in shown.stdout
    assert b"?" in shown.stdout
    assert shown.stdout.isascii()


def test_help_of_an_agent_shows_its_fields(capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", "ge", "chain-10", "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    fields = "rho sigma lr gamma epsilon resample batch-size buffer-size learning-starts hidden"
    for field in fields.split():
        assert f"--agent.{field}" in shown
    assert "--env.permuted" in shown
    assert "Default settings: tuned on chain-10." in shown
    assert "None" not in shown.partition("agent options")[0]
    with pytest.raises(SystemExit):
        cli.main(["train", "c51", "sparse-acrobot", "--help"])
    shown = capsys.readouterr().out
    assert "Default settings: generic, not tuned for this environment." in shown
    for field in ("--env.reward", "--env.environment.horizon"):
        assert field in shown
    with pytest.raises(SystemExit):
        cli.main(["train", "auto", "sparse-acrobot", "--help"])
    shown = capsys.readouterr().out
    assert "Default settings: the same for all tasks, chosen on the development half" in shown


@pytest.mark.parametrize(("budget", "default"), [("episodes", "7)"), ("steps", "1,200 steps)")])
def test_help_of_a_repeated_run_shows_its_budget(budget, default, capsys, tmp_path):
    config = configure("ge", "chain-5", **{budget: 7 if budget == "episodes" else 1200})
    with RunFolder(tmp_path / "a").open(config, task=config.environment):
        pass
    with pytest.raises(SystemExit, match="0"):
        cli.main(["train", "--config", str(tmp_path / "a"), "--help"])
    assert f"(default: {default}" in " ".join(capsys.readouterr().out.replace("│", "").split())


def test_train_writes_a_run_and_goes_on_from_it(capsys, tmp_path):
    words = ["train", "ge", "chain-5", "--seeds", 2, "--episodes", 15, "--out", tmp_path / "a"]
    words += ["--on", "threads"]
    done = rove(*words, *SMALL)
    assert done.returncode == 0, done.stderr
    assert "15 of 15 episodes" in done.stdout
    assert ", n = 2 seeds" in done.stdout
    written = {p.name for p in (tmp_path / "a").iterdir() if not p.name.startswith(".")}
    pictures = {"learning-curve.png", "diagnostics.png", "diagnostics.json"}
    written -= {"settled"}  # written if the last episodes score more than the trained policy
    assert written == {"config.json", "episodes.csv", "lanes", *pictures}
    before = (tmp_path / "a" / "episodes.csv").read_bytes()
    cli.main([str(word) for word in (*words, *SMALL)])
    assert (tmp_path / "a" / "episodes.csv").read_bytes() == before
    assert "different run" in refused(capsys, *words[:4], 1, *words[5:], *SMALL)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["bandit-5", "deep-sea-5", "sparse-cartpole"])
def test_train_on_other_environments_and_load(environment, tmp_path):
    done = rove("train", "dqn", environment, "--episodes", 20, "--out", tmp_path / "e", *SMALL)
    assert done.returncode == 0, done.stderr
    assert load(tmp_path / "e").config.environment == make(environment)


@pytest.mark.slow
def test_underscores_and_hyphens_are_one(tmp_path):
    words = ["train", "dqn", "chain-5", "--steps", 60, "--out", tmp_path / "b", "--env.permuted"]
    done = rove(*words, "--agent.hidden", 16, 16, "--agent.learning_starts", 30)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "unknown command 'trian'. Did you mean rove train? Commands: list, train"),
        (["tune", "ge", "chain-10"], "use rove sweep rove reproduce tuning"),
        (["train", "chain-10", "ge"], "'ge' is an agent: write rove train ge chain-10"),
        (["train", "ge", "chain-10", "more"], "unexpected argument 'more'"),
        (["train", "ge", "chain-10", "--env.n", "5"], "the size is part of the environment's name"),
        (["train", "ge", "chain-x"], "environment 'chain-x' needs a size, as in chain-10"),
        (["train", "ge", "chain-10", "--agent.lr", "-1"], "error: --agent.lr must be above 0"),
        (["eval"], "rove eval needs a run folder: rove eval RUN"),
        (["completion", "tcsh"], "SHELL must be one of bash, zsh, fish, got 'tcsh'"),
        (["resume", "runs/a"], "repeat the rove train command"),
        (["train", "ge", "chain-10", "--resume"], "repeat the command"),
        (
            ["train", "ge", "chain-10", "--seed", "3"],
            "unknown option --seed. Did you mean --seeds?",
        ),
        (["train", "ge", "chain-10", "--learning-rate", "1"], "Did you mean --agent.lr?"),
        (["train", "ge", "chain-10", "--agent.learning_rate=1"], "Did you mean --agent.lr?"),
        (["train", "ge", "chain-10", "--agent.rh", "1"], "Did you mean --agent.rho?"),
        (["train", "ge", "chain-10", "--agent.lr", "fast"], "--agent.lr must be a number 'fast'"),
        (["train", "ge", "chain-10", "--agent.hidden", "8,x"], "a list of integers, got '8 x'"),
        (["train", "ge", "chain-10", "--agent.resample", "epsode"], "Did you mean 'episode'?"),
        (["train", "ge", "chain-10", "--episodes"], "--episodes needs a value: an integer"),
        (["train", "ge", "chain-10", "--env.permuted=1"], "--env.permuted takes no value"),
        (["train", "ge", "chain"], "environment 'chain' needs a size, as in chain-10"),
        (["train", "dqn", "Cartpole-v1"], "not registered Did you mean 'gym/CartPole-v1'?"),
        (["train", "ge", "chain-10", "--seeds", "1,x"], "--seeds a list such as 0,3,7, got '1,x'"),
        (["train", "ge", "chain-10", "--config", "a"], "replaces the agent and the environment"),
        (["train", "--config", "nowhere"], "the folder nowhere does not exist"),
        (["eval", "nowhere"], "the folder nowhere does not exist"),
        (["train"], "needs an agent and an environment first usage: rove train"),
        (["sweep", "ge"], "needs an agent and an environment first, got: ge usage: rove sweep"),
        (["report"], "needs at least one folder"),
        (
            ["train", "gee", "chain-10"],
            "unknown agent 'gee'. Did you mean 'ge'? (rove list",
        ),
        (["train", "ge", "chian-10"], "unknown environment 'chian-10'. Did you mean 'chain-10'?"),
        (["train", "ge", "chain10"], "unknown environment 'chain10'. Did you mean 'chain-10'?"),
        (
            ["train", "ge", "chain-1"],
            "environment 'chain-1': the size must be an integer between 3",
        ),
        (["train", "ge", "chain-10", "--agent.gamma", "nan"], "gamma must be got nan"),
        (
            ["train", "ge", "chain-10", "--agent.sigma", "0"],
            "must be at least 1e-08, got 0.0; the limit σ → 0 is the agent noisynet",
        ),
        (["train", "ge", "chain-10", "--agent.sigma=-1"], "sigma must be got -1.0"),
        (
            ["train", "ge", "chain-10", "--agent.batch-size", "60000"],
            "buffer_size (50000) must be at least batch_size (60000)",
        ),
        (
            ["train", "ge", "chain-10", "--env.n", "50"],
            "the size is part of the environment's name",
        ),
        (
            ["train", "ge", "bandit-10", "--env.n", "50"],
            "the size is part of the environment's name",
        ),
        (
            ["train", "ge", "bandit-10", "--env.noise-std=-1"],
            "--env.noise-std must be a number between 0 and got -1.0",
        ),
        (["train", "ge", "deap-sea-10"], "Did you mean 'deep-sea-10'? (rove list shows all.)"),
        (["train", "ge", "cartpole-1"], "Did you mean 'cartpole'?"),
        (["train", "ge", "cartpole", "--env.horizon", "0"], "horizon must be at least 1, got 0"),
        (["train", "ge", "chain-10", "--agent.gama", "0.9"], "--agent.gama"),
        (["train", "dqn", "chain-10", "--agent.rho", "1"], "--agent.rho"),
        (["train", "ge", "chain-10", "--agent.resample", "never"], "resample never step episode"),
        (
            ["train", "ge", "chain-10", "--agent.resample", "0"],
            "resample must be step, episode, or a number of steps, got 0",
        ),
        (
            ["train", "ige", "chain-10", "--agent.prior", "1e39"],
            "prior must be a finite number got 1e+39",
        ),
        (["train", "ge", "chain-10", "--episodes", "0"], "episodes must be got 0"),
        (
            ["train", "ge", "chain-10", "--episodes", "5", "--steps", "5"],
            "--episodes and --steps cannot be combined",
        ),
        (["train", "ge", "chain-10", "--seeds", "0"], "seeds must be got 0"),
        (["train", "ge", "chain-10", "--seeds", "many"], "seeds many"),
        (["train", "ge", "chain-10", "--workers", "0"], "workers must be got 0"),
        (["reproduce"], "takes hours in full: name an experiment (figure-2, --quick"),
        (["reproduce", "figure-9"], "unknown experiment 'figure-9' figure-2"),
        (["reproduce", "tuning", "figure-9"], "unknown search 'figure-9' figure-2"),
    ],
)
def test_mistakes_are_named(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    message = refused(capsys, *arguments)
    for word in words.split():
        assert word in message
    assert not list(tmp_path.iterdir())  # refused before anything was made


def test_a_buffer_that_does_not_fit_is_refused(capsys, tmp_path):
    message = refused(
        capsys, "train", "ge", "chain-100", "--agent.buffer-size", 2**30, "--out", tmp_path / "c"
    )
    assert "buffer_size=1073741824" in message
    assert "GB, mostly for the replay" in message


@pytest.mark.parametrize(("steps", "warned"), [(49, True), (50, False)])
def test_a_run_that_ends_before_learning_starts_says_so(steps, warned, capsys, tmp_path):
    words = ["train", "dqn", "chain-5", "--steps", str(steps), "--out", str(tmp_path / "run")]
    cli.main([*words, *SMALL, "--on", "threads"])
    printed = " ".join(capsys.readouterr().err.split())
    assert ("nothing was learned" in printed) == warned
    assert ("learning starts at step 50, but the run ended after 49 steps" in printed) == warned


@pytest.mark.parametrize(
    ("agent", "environment", "words", "budget"),
    [
        ("ge", "chain-10", [], {"episodes": 250}),
        ("ge", "chain-10", ["--steps", "3"], {"steps": 3}),
        ("ddpg", "linear-quadratic-1", [], {"steps": 50_000}),
        ("ddpg", "linear-quadratic-1", ["--episodes", "3"], {"episodes": 3}),
    ],
)
def test_the_budget_is_by_default_episodes_or_with_continuous_actions_steps(
    agent, environment, words, budget, capsys, tmp_path
):
    """The command finds the same run in a folder that another process has locked: a different run
    would be refused for another reason."""
    with RunFolder(tmp_path / "run").open(configure(agent, environment, **budget)):
        message = refused(capsys, "train", agent, environment, *words, "--out", tmp_path / "run")
    assert "is in use by another process" in message


def test_a_folder_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    message = refused(capsys, "train", "ge", "chain-5", "--out", tmp_path / "file" / "x")
    assert "cannot write" in message


@pytest.mark.slow
def test_a_lane_that_diverges_ends_with_1(tmp_path):
    done = rove("train", "dqn", "chain-5", "--agent.lr", 1e30, "--out", tmp_path / "d", *SMALL)
    assert done.returncode == 1
    assert "loss" in done.stderr
    assert "Traceback" not in done.stderr


FITTING = {
    "thompson": ("bandit-10", "--episodes", "1000"),
    "bayesian_q_learning": ("bandit-10", "--episodes", "1000"),
    "thompson_beta": ("bernoulli-bandit-10", "--episodes", "1000"),
    "thompson_linear": ("linear-bandit-5", "--episodes", "500"),
    "particles": ("cliff", "--episodes", "2000"),
    "psrl": ("deep-sea-10", "--episodes", "200"),
    **dict.fromkeys(
        ("ddpg", "ddpg_noisynet", "ddpg_ge", "ddpg_dropout", "td3"),
        ("linear-quadratic-1", "--steps", "6000"),
    ),
}
"""Where an agent learns within a minute; the others, on chain-10."""


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_trains_from_the_command_line(name, tmp_path, capsys):
    """And learns: its last episodes, in which it may still explore, are better than its first, and
    without exploration it is as good as can be."""
    environment, *budget = FITTING.get(name, ("chain-10", "--episodes", "200"))
    cli.main(["train", name, environment, *budget, "--seeds", "2", "--out", str(tmp_path / "run")])
    run = load(tmp_path / "run")
    scores = run.scores
    scores = scores[:, ~np.isnan(scores).any(axis=0)]
    tenth = scores.shape[1] // 10
    first, last = scores[:, :tenth].mean(), scores[:, -tenth:].mean()
    if "bandit" in environment:  # random pulls earn about 0, or 0.53 of Bernoulli arms
        assert last > 0.8 * make(environment).means.max(axis=-1).mean()
    elif environment == "cliff":  # random actions end with a fall, at −2.1 or less
        assert last > -1.8
    elif environment == "linear-quadratic-1":
        assert last > 0.5 * first  # costs, which are below 0
    else:
        assert last > first
        assert np.allclose(run.evaluate(), make(environment).optimum)
    assert "written to" in capsys.readouterr().out


def outputs(capsys, *arguments) -> str:
    """Run in this process; what it prints."""
    cli.main([str(a) for a in arguments])
    return capsys.readouterr().out


def test_a_run_is_trained_evaluated_repeated_and_extended_from_the_command_line(capsys, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    threads = ("--on", "threads", *SMALL)
    words = ("train", "dqn", "chain-5", "--seeds", "0,3", "--out", a)
    told = json.loads(outputs(capsys, *words, "--episodes", 6, "--json", *threads))
    assert (told["seeds"], told["episodes"], told["folder"]) == ([0, 3], [6, 6], str(a))
    assert told["last_20"] == load(a).returns.mean(axis=1).tolist()
    assert outputs(capsys, *words, "--episodes", 9, "--quiet", *threads) == ""
    assert load(a).returns.shape == (2, 9)
    outputs(capsys, "train", "--config", a / "config.json", "--out", b, "--on", "threads")
    np.testing.assert_array_equal(load(b).returns, load(a).returns)
    assert load(b).config == load(a).config
    played = json.loads(outputs(capsys, "eval", a, "--episodes", 2, "--json"))
    assert played["scores"] == load(a).evaluate(2).tolist()
    exact = [episodes_interval(np.array(row), (0.0, 11.0)) for row in played["scores"]]
    np.testing.assert_allclose(played["intervals"], exact)
    shown = outputs(capsys, "eval", a, "--episodes", 1, "--seed", 3)
    assert "dqn on chain-5: return of the trained policy, 1 episode" in shown
    assert len([line for line in shown.splitlines() if line.startswith("│")]) == 1
    message = refused(capsys, "eval", a, "--seed", 7)
    assert "seed must be one of [0, 3], got 7" in message
    changes = ("--steps", 30, "--agent.learning-starts", 3, "--on", "threads")
    outputs(capsys, "train", "--config", b, *changes, "--out", tmp_path / "c")
    config = load(tmp_path / "c").config
    assert (config.episodes, config.steps, config.agent.learning_starts) == (None, 30, 3)


@pytest.mark.slow
def test_a_run_with_one_seed_and_with_options_of_gymnasium_is_repeated(capsys, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    words = (
        "train",
        "dqn",
        "FrozenLake-v1",
        "--env.no-is-slippery",
        "--seeds",
        "3,",
        "--steps",
        20,
    )
    outputs(capsys, *words, "--out", a, *SMALL)
    outputs(capsys, "train", "--config", a, "--out", b)
    assert load(b).seeds == (3,)
    assert load(b).config == load(a).config
    np.testing.assert_array_equal(load(b).returns, load(a).returns)
    outputs(capsys, "eval", "--episodes", 1, a)  # the folder may come last


def test_a_gymnasium_id_needs_no_prefix():
    assert make("CartPole-v1") == make("gym/CartPole-v1")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_what_there_is(capsys, shell):
    script = outputs(capsys, "completion", shell)
    for word in ("train", "bootstrapped_dqn", "chain-100", "figure-2", "--episodes", "--agent.rho"):
        assert word in script


def test_bash_completes_agents_and_options(capsys, tmp_path):
    (tmp_path / "rove.sh").write_text(outputs(capsys, "completion", "bash"))
    for words, completed in [
        ("rove tra", ["train"]),
        ("rove train bayesian_d", ["bayesian_dqn"]),
        ("rove train ge sparse-mount", ["sparse-mountain-car"]),
        ("rove train ge chain-10 --agent.rh", ["--agent.rho"]),
    ]:
        typed = words.split()
        script = (
            f"source {tmp_path / 'rove.sh'}; COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; "
            'COMPREPLY=(); _rove; echo "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.split() == completed


def test_a_range_of_scores_may_have_fractions(tmp_path):
    command = ["train", "dqn", "CartPole-v1", "--steps", "30", "--quiet", "--env.score-range"]
    cli.main([*command, "-0.5", "500", "--out", str(tmp_path / "run"), "--agent.hidden", "4"])
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["score_range"] == [-0.5, 500.0]


@pytest.mark.parametrize(
    ("words", "permuted"),
    [
        ("--env.permuted", True),
        ("--env.permuted True", True),
        ("--env.permuted=false", False),
        ("--env.no-permuted false", True),
    ],
)
def test_a_flag_may_be_given_true_or_false(words, permuted, capsys, tmp_path):
    """The command finds its own run in a folder that another process has locked; any other run is
    refused as a different one."""
    command = ["train", "dqn", "chain-5", "--episodes", "1", *words.split()]
    for own in (permuted, not permuted):
        folder = tmp_path / str(own)
        with RunFolder(folder).open(configure("dqn", Chain(5, permuted=own), episodes=1)):
            message = refused(capsys, *command, "--out", folder)
        assert ("is in use by another process" in message) is (own is permuted)
        assert ("different run" in message) is (own is not permuted)


def test_a_folder_of_runs_names_the_runs_inside(capsys, tmp_path):
    for name in "abcd":
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    message = refused(capsys, "eval", tmp_path / "runs")
    assert f"give one of the folders inside: {tmp_path / 'runs' / 'a'}" in message
    assert message.endswith("or 1 more")


@pytest.mark.parametrize(
    ("flags", "trusted"),
    [
        (["--trust"], True),
        (["--trust=true"], True),
        (["--trust", "True"], True),
        (["--trust=false"], False),
        (["--trust", "--no-trust"], False),
        ([], False),
    ],
)
def test_every_spelling_of_trust_is_understood(capsys, tmp_path, monkeypatch, flags, trusted):
    (tmp_path / "trusted_package.py").write_text("open('executed', 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "trusted_package", raising=False)
    monkeypatch.chdir(tmp_path)
    RunFolder("run").path.mkdir()
    config = configure("dqn", "chain-4", episodes=2).identity()
    config |= {"schema": 3, "extendable": True}
    config["environment"] = {"name": "gym/trusted_package:Thing-v0", "options": {}}
    (tmp_path / "run" / "config.json").write_text(json.dumps(config))
    message = refused(capsys, "train", "--config", "run", *flags, "--episodes", 3)
    assert (tmp_path / "executed").exists() == trusted
    assert ("not registered" if trusted else "if you trust the folder") in message


def test_a_closed_pipe_ends_a_command_silently():
    command = f"{sys.executable} -m rove train ge chain-5 --help | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr == ""


def test_compare_is_answered_with_report(capsys):
    with pytest.raises(SystemExit):
        cli.main(["compare", "runs"])
    assert "rove report FOLDER" in capsys.readouterr().err
