"""What a run delivers: the policy that is chosen, by which episodes, and how to ask for another."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, hypergeom

import rove
from rove.cli.main import main
from rove.environments.base import Step
from rove.errors import ConfigError
from rove.posteriors.base import Phi, Posterior
from rove.training import checkpoint
from rove.training.delivering import paired_p, preferred, unpaired_p
from rove.training.lane import EVALUATION, SELECTION
from rove.training.playing import play

SMALL = {"hidden": (8,), "buffer_size": 64, "batch_size": 8}


class Blind(rove.Environment):
    """Two states that look alike: action 0 leads from the first to the second, and action 1 from
    there to the goal. Every other action leads back, so that a policy which is a function of the
    observation walks in a circle."""

    name = "blind"
    observation_size, num_actions, bins = 2, 2, 2
    optimum, score_range = 1.0, (0.0, 1.0)

    def bin(self, state):
        return state[0]

    def reset(self, key):
        return (jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32)), jnp.ones(2)

    def step(self, state, action, key):
        at, time = state
        reached = (at == 1) & (action == 1)
        after = jnp.where((at == 0) & (action == 0), 1, 0), time + 1
        reward = reached.astype(jnp.float32)
        return Step(after, jnp.ones(2), reward, reached, after[1] >= 30)


class Choice(Blind):
    """A single step, in which action 0 is right."""

    name = "choice"

    def step(self, state, action, key):
        right = action == 0
        return Step(
            state, jnp.ones(2), right.astype(jnp.float32), jnp.ones((), bool), right & ~right
        )


class Three(Posterior):
    """Three values of θ with equal chance. Two of them prefer action 0 by 1, the third action 1 by
    9, and so does their mean."""

    def init(self, sizes, key):
        return Phi((jnp.zeros(1),))

    def law(self, phi):
        return phi.learned

    def sample(self, law, key):
        return rove.parts.noise.integers(key, (), 3)

    def apply(self, law, draw, x):
        table = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]])
        return table[draw] + 0.0 * law[0]

    def mean(self, law, x):
        return jnp.array([2.0, 9.0]) / 3 + 0.0 * law[0]


def untrained(posterior, environment, resample, seeds=1, **changes):
    agent = rove.Agent(
        rove.Gaussian(0.1), posterior, resample=resample, learning_starts=10**6, **SMALL, **changes
    )
    with pytest.warns(rove.RoveWarning, match="nothing was learned"):
        return rove.train(agent, environment, seeds=seeds, episodes=60)


def test_a_behaviour_that_breaks_a_cycle_is_delivered():
    """With a θ for each step both actions are tried; greedy on the mean walks in a circle."""
    run = untrained(rove.MeanField(1.0), Blind(), "step")
    (delivered,) = run.delivered
    assert run.scores[0, -50:].mean() > 0.9
    assert delivered.candidates["mean"] == 0.0
    assert delivered.policy in ("sample", "vote")
    assert np.mean(run.evaluated[0]) > 0.9
    assert run.policy().name == delivered.policy
    np.testing.assert_array_equal(run.evaluate(20)[0], run.evaluated[0])
    np.testing.assert_array_equal(run.evaluate(3, policy="mean"), np.zeros((1, 3)))
    acted = run.policy(kind="mean")
    assert len({acted(np.ones(2)) for _ in range(30)}) == 1
    act = run.policy()
    assert {act(np.ones(2)) for _ in range(30)} == {0, 1}


def test_random_actions_break_a_cycle_too():
    """DQN has no posterior: what is left is its behaviour, with ε."""
    run = untrained(rove.Dirac(), Blind(), "step", epsilon=0.5)
    (delivered,) = run.delivered
    assert delivered.policy == "behaviour"
    assert delivered.candidates.keys() == {"mean", "behaviour"}
    assert np.mean(run.evaluated[0]) > 0.9


@pytest.mark.slow
def test_a_vote_that_outvotes_the_mean_is_delivered():
    """Two samples of three are right: a vote of 15 is with a chance of 91%, the mean never."""
    run = untrained(Three(), Choice(), "episode")
    (delivered,) = run.delivered
    assert delivered.candidates["mean"] == 0.0
    assert delivered.candidates["sample"] < delivered.candidates["vote"]
    assert delivered.policy == "vote"
    votes = run.evaluate(400, policy="vote").mean()
    right = binom.sf(7, 15, 2 / 3)
    assert abs(votes - right) < 4 * np.sqrt(right * (1 - right) / 400)
    assert abs(run.evaluate(400, policy="sample").mean() - 2 / 3) < 4 * np.sqrt(2 / 9 / 400)
    act = run.policy(kind="sample")
    held = []
    for _ in range(30):
        act.reset()
        held.append({act(np.ones(2)) for _ in range(3)})
    assert all(len(actions) == 1 for actions in held)  # θ is held for an episode
    assert {0} in held
    assert {1} in held


def test_the_posterior_mean_is_delivered_unless_it_is_clearly_worse():
    zeros, ones = np.zeros(20), np.ones(20)
    slightly = np.r_[np.ones(2), np.zeros(18)]  # p = 1/4
    clearly = np.r_[np.ones(3), np.zeros(17)]  # p = 1/8
    none = np.zeros(0)
    assert preferred({"mean": ones, "vote": ones}, ones) == "mean"
    assert preferred({"mean": zeros, "vote": ones}, zeros) == "vote"
    assert preferred({"mean": zeros, "sample": slightly, "vote": zeros}, zeros) == "mean"
    assert preferred({"mean": zeros, "sample": clearly, "vote": zeros}, zeros) == "sample"
    assert preferred({"mean": zeros, "sample": slightly}, none) == "mean"
    assert preferred({"mean": zeros, "sample": slightly}, np.ones(50)) == "sample"
    assert preferred({"mean": zeros, "sample": zeros}, np.ones(50)) == "mean"  # none is better
    high = np.full(20, 100.0)
    assert preferred({"mean": high, "vote": high - np.tile([0.0, 1.0], 10)}, high[:5]) == "mean"
    assert preferred({"mean": ones, "vote": 2 * ones[:2]}, zeros) == "mean"  # p = 1/4


def test_the_p_values_are_those_of_exact_tests():
    """Signs: 2⁻ⁿ for n positive differences. Successes and failures: Fisher's exact test."""
    for n in (3, 5, 8):
        assert paired_p(np.full(n, 0.3)) == pytest.approx(2.0**-n, abs=0.01)
    for good, of_mean in ((30, 3), (20, 8), (25, 10)):
        recent = np.r_[np.ones(good), np.zeros(50 - good)]
        mean = np.r_[np.ones(of_mean), np.zeros(20 - of_mean)]
        exact = hypergeom.sf(good - 1, 70, good + of_mean, 50)
        assert unpaired_p(recent, mean) == pytest.approx(exact, abs=0.015)


@pytest.mark.slow
def test_the_policy_is_chosen_by_other_episodes_than_it_is_evaluated_in():
    """On Mountain Car, whose start is random, the two kinds of episodes differ."""
    run = rove.train("dqn", "mountain-car", episodes=1, learning_starts=5, **SMALL)
    lane, task = run.outcomes[0].lane, (run.config.compose(), run.config.environment)
    starts = []
    for stream in (SELECTION, EVALUATION):
        key = rove.parts.noise.fold(rove.parts.noise.root(0), stream, 0)
        starts.append(task[1].reset(rove.parts.noise.fold(key, 0))[1])
    assert not np.array_equal(*starts)
    (selection,) = run.delivered
    expected = play("mean", *task, lane, 20, SELECTION).mean()
    assert selection.candidates["mean"] == expected
    np.testing.assert_array_equal(run.evaluated[0], play(selection.policy, *task, lane, 20))


class Endless(Blind):
    """An episode that never ends."""

    name = "endless"

    def step(self, state, action, key):
        no = jnp.zeros((), bool)
        return Step(state, jnp.ones(2), jnp.ones(()), no, no)


def test_long_episodes_are_cut_off_and_fewer_are_played():
    agent = rove.DQN(**SMALL)
    with pytest.warns(rove.RoveWarning, match="no episode has ended: train for more steps\n"):
        run = rove.train(agent, Endless(), steps=10)
    task = run.config.compose(), run.config.environment, run.outcomes[0].lane
    assert play("mean", *task, 5, most_steps=70).tolist() == [70.0]
    run = rove.train(agent, Blind(), episodes=10)
    task = run.config.compose(), run.config.environment, run.outcomes[0].lane
    assert len(play("mean", *task, 5, most_steps=70)) == 3  # 30 + 30 + 10


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ge"
    agent = rove.GE(**SMALL, learning_starts=10)
    return folder, rove.train(agent, "chain-4", seeds=2, episodes=6, out=folder)


def test_a_conclusion_is_in_the_checkpoint_and_another_step_or_a_bad_one_is_made_again(trained):
    folder, run = trained
    (job, _) = rove.load(folder).config.jobs(folder)
    arrays, metadata = checkpoint.load_arrays(job.path)
    mine = metadata["conclusion"]
    assert rove.load(folder).outcomes[0].conclusion == run.outcomes[0].conclusion
    bad = [mine | {"step": 1}, mine | {"policy": "worst"}, mine | {"scores": []}, 3, None]
    bad.append(mine | {"network": {**mine["network"], "value_range": float("nan")}})
    bad += [mine | {"step": float("inf")}, mine | {"scores": [10**400]}]
    try:
        for entry in bad:
            checkpoint.save_arrays(job.path, arrays, metadata | {"conclusion": entry})
            again = rove.load(folder)
            assert again.outcomes[0].conclusion is None
            assert again.delivered == run.delivered
            assert again.networks == run.networks  # from the replay buffer in the checkpoint
        other = mine | {"policy": "behaviour"}
        checkpoint.save_arrays(job.path, arrays, metadata | {"conclusion": other})
        assert rove.load(folder).delivered[0].policy == "behaviour"  # as recorded
    finally:
        checkpoint.save_arrays(job.path, arrays, metadata)


@pytest.mark.slow
def test_a_policy_is_asked_for_by_name(trained, capsys):
    folder, run = trained
    for name in ("mean", "sample", "vote", "behaviour"):
        main(["eval", str(folder), "--episodes", "2", "--policy", name, "--json"])
        told = json.loads(capsys.readouterr().out)
        assert told["policy"] == [name, name]
        assert told["scores"] == run.evaluate(2, policy=name).tolist()
    main(["eval", str(folder), "--episodes", "2", "--policy", "vote"])
    shown = capsys.readouterr().out
    assert (
        "policies: the majority of 15 samples of θ, drawn as in training (vote): 2 seeds" in shown
    )
    with pytest.raises(SystemExit):
        main(["eval", str(folder), "--policy", "worst"])
    message = capsys.readouterr().err
    assert "--policy must be one of mean, sample, vote, behaviour, settled, best" in message
    with pytest.raises(SystemExit):
        main(["eval", str(folder), "--policy", "best"])
    assert "needs a run that was trained with eval_every" in capsys.readouterr().err
    assert repr(run.policy(1, "mean")) == "<TrainedPolicy: greedy on the posterior mean, seed 1>"
    with pytest.raises(
        ConfigError, match=r"kind must be one of mean, sample, vote, behaviour, settled, best"
    ):
        run.policy(kind="greedy")
    dqn = rove.train("dqn", "chain-4", episodes=2, **SMALL)
    with pytest.raises(
        ConfigError, match=r"policy must be one of mean, behaviour, settled, best, got 'vote'"
    ):
        dqn.evaluate(policy="vote")
