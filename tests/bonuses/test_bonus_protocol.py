"""Every named agent with every intrinsic reward: shapes, training, run folders, the command."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from rove.cli import main as cli
from rove.errors import ConfigError
from rove.parts import noise
from rove.training import outcomes
from rove.training.lane import start

KINDS = ("disagreement", "counts", "rnd")
AGENTS = [name for name, kind in rove.AGENTS.items() if "bonus" in kind.__dataclass_fields__]
POINTS = ("auto", "dqn", "c51", "qr_dqn", "return_density", "ddpg", "td3", "adam_lmc")
"""Agents with one network at a time, with which disagreement is refused."""
PAIRS = [(a, b) for a in AGENTS for b in KINDS if a not in POINTS or b != "disagreement"]
TRAINED = (("dqn", "counts"), ("bayesian_dqn", "rnd"), ("ddpg_ge", "disagreement"))
"""Pairs that `make test` trains; `make test-slow` trains all."""


def settings(name: str, bonus: str) -> rove.Settings:
    small = {"batch_size": 8, "buffer_size": 64, "learning_starts": 8, "bonus": bonus}
    own = rove.AGENTS[name]
    options = {"period": 20, "size": 3, "draws": 2, "quantiles": 4, "atoms": 5, "hidden": (8,)}
    if own.hidden == ():
        del options["hidden"]
    if own.__dataclass_fields__.get("draws") and not isinstance(own().draws, int):
        del options["draws"]
    return own(**small, **{k: v for k, v in options.items() if k in own.__dataclass_fields__})


def task(agent: rove.Settings) -> rove.Environment:
    if agent.compose().continuous:
        return rove.LinearQuadratic(1)
    return rove.Bandit(3) if agent.name in ("thompson", "thompson_beta") else rove.Chain(4)


def test_every_agent_with_a_network_has_a_bonus():
    assert set(rove.AGENTS) - set(AGENTS) == {"psrl", "bayesian_q_learning", "particles"}


@pytest.mark.parametrize("name", POINTS)
def test_disagreement_of_a_point_is_refused(name):
    with pytest.raises(ConfigError, match="Disagreement has no effect"):
        settings(name, "disagreement")


@pytest.mark.fast_cases("ge", "auto", "ddpg_ge", "thompson")
@pytest.mark.parametrize("name", AGENTS)
def test_a_step_keeps_the_shapes_of_the_state(name):
    """What `init` returns is what a step and an update take and return, for every bonus."""
    for bonus in (b for a, b in PAIRS if a == name):
        agent = settings(name, bonus)
        learner, environment = agent.compose(), task(agent)

        def step(learner=learner, environment=environment):
            lane = start(learner, environment, jnp.int32(0))
            action = learner.act(lane.agent, lane.observation, noise.root(0))
            after = environment.step(lane.environment, action, noise.root(1))
            transition = rove.parts.replay.Transition(
                lane.observation, action, after.reward, after.observation, after.terminated,
                cell=environment.bin(after.state),
            )  # fmt: skip
            observed = learner.observe(lane.agent, transition)
            return lane.agent, learner.learn(observed, noise.root(2))[0]

        before, after = jax.eval_shape(step)
        assert jax.tree.structure(before) == jax.tree.structure(after)
        for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "bonus"),
    [pytest.param(*pair, marks=[pytest.mark.slow] * (pair not in TRAINED)) for pair in PAIRS],
)
def test_a_pair_trains_and_is_saved(tmp_path, name, bonus):
    """Training changes φ, and differently from training without the bonus; the folder gives the
    same run back."""
    agent = settings(name, bonus)
    environment, plain = task(agent), dataclasses.replace(agent, bonus="none")
    budget = {"steps": 60}
    run = rove.train(agent, environment, out=tmp_path / "run", **budget)
    lane = run.outcomes[0].lane
    assert np.isfinite(float(lane.loss))
    first = outcomes.fresh(run.config.jobs(None)[0]).lane
    without = rove.train(plain, environment, **budget).outcomes[0].lane
    for other in (first, without):
        pairs = zip(jax.tree.leaves(lane.agent.phi), jax.tree.leaves(other.agent.phi), strict=True)
        assert any(not np.array_equal(a, b) for a, b in pairs)
    again = rove.load(tmp_path / "run")
    assert again.config.agent == agent
    assert np.array_equal(again.returns, run.returns, equal_nan=True)


def test_the_command_line_has_both_settings(tmp_path, capsys):
    out = tmp_path / "run"
    words = "--agent.bonus counts --agent.bonus-weight 0.5 --agent.hidden 8 --episodes 2"
    options = [*words.split(), "--quiet", "--on", "threads", "--out", str(out)]
    cli.main(["train", "dqn", "chain-4", *options])
    agent = json.loads((out / "config.json").read_text())["agent"]["settings"]
    assert (agent["bonus"], agent["bonus_weight"]) == ("counts", 0.5)
    loaded = rove.load(out).config.compose()
    assert loaded.bonus == rove.Counts(0.5)
    with pytest.raises(SystemExit):
        cli.main(
            ["train", "dqn", "chain-4", "--agent.bonus", "count", "--out", str(tmp_path / "b")]
        )
    assert "Did you mean 'counts'?" in capsys.readouterr().err


@pytest.mark.slow
def test_a_composed_agent_with_a_bonus_comes_back(tmp_path):
    agent = rove.Agent(
        rove.Gaussian(0.0), rove.Dirac(), bonus=rove.RND(0.2, hidden=(4,), outputs=2),
        hidden=(4,), batch_size=4, buffer_size=16, learning_starts=4,
    )  # fmt: skip
    rove.train(agent, "chain-4", steps=20, out=tmp_path / "run")
    again = rove.load(tmp_path / "run").config.compose()
    assert again == agent
    assert again.name == "Gaussian × Dirac + RND"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: rove.DQN(bonus_weight=0.5), r"bonus_weight=0\.5 has no effect"),
        (lambda: rove.DQN(bonus="count"), "bonus must be one of none, disagreement, counts, rnd"),
        (lambda: rove.DDPG(bonus="rnd", bonus_weight=-1.0), "bonus_weight must be .*at least 0"),
        (lambda: rove.BBQ(bonus=0.1), r"bonus must be one of .*got 0\.1"),
        (lambda: rove.Counts(bits=25), "bits must be an integer between 1 and 24"),
        (lambda: rove.RND(lr=0.0), "lr must be a finite number above 0"),
        (lambda: rove.RND(hidden=(0,)), "every width in hidden must be an integer"),
    ],
)
def test_bad_values_are_refused(build, words):
    with pytest.raises(ConfigError, match=words):
        build()


class Growing(rove.Bonus):
    """Returns another state than it was given."""

    def init(self, features, coded, key):
        return jnp.zeros(2)

    def observe(self, state, transition):
        return jnp.zeros(3), transition

    def reward(self, state, steps, spread):
        return steps.reward


class Scalar(rove.Bonus):
    """One reward for all steps."""

    def reward(self, state, steps, spread):
        return jnp.mean(steps.reward)


@pytest.mark.parametrize(
    ("bonus", "words"),
    [
        (Growing(), "Growing.observe returned a state with another structure"),
        (Scalar(), r"Scalar.reward returned an array of shape \(\) instead of \(3,\)"),
    ],
)
def test_a_custom_bonus_is_checked(bonus, words):
    with pytest.raises(ConfigError, match=words):
        rove.check_bonus(bonus)
