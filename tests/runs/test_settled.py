"""The settled policy: which seeds have it, when it is delivered, and that training is unchanged."""

import jax
import numpy as np
import pytest
from tests.runs.test_delivery import SMALL, Choice

import rove
from rove.errors import ConfigError
from rove.runs.configure import configure
from rove.training import delivering, storage
from rove.training.evaluating import evaluated
from rove.training.outcomes import fresh

AGENT = rove.Agent(
    rove.Gaussian(0.1), rove.Dirac(), epsilon=0.1, lr=0.01, learning_starts=10, **SMALL
)


def trained(path, episodes=60, **options):
    return rove.train(AGENT, Choice(), episodes=episodes, out=path, **options)


@pytest.fixture
def disturbed(monkeypatch):
    """Seeds end with a φ that prefers the wrong action, as after an unlucky last update."""
    deliver = delivering.deliver

    def disturb(outcome):
        *body, head = outcome.lane.agent.phi.learned
        phi = outcome.lane.agent.phi._replace(learned=(*body, jax.tree.map(lambda x: -x, head)))
        lane = outcome.lane._replace(agent=outcome.lane.agent._replace(phi=phi))
        return deliver(outcome._replace(lane=lane))

    monkeypatch.setattr(delivering, "deliver", disturb)


@pytest.mark.parametrize("folder", [True, False])
def test_the_settled_policy_is_delivered_if_the_last_network_is_worse_than_training(
    disturbed, tmp_path, folder
):
    """With a run folder and without one alike."""
    run = trained(tmp_path / "run" if folder else None)
    (delivered,) = run.delivered
    assert run.scores[0, -50:].mean() > 0.9
    assert delivered.candidates["mean"] == 0.0
    assert delivered.candidates["behaviour"] < 0.5
    assert delivered.policy == "settled"
    assert np.mean(run.evaluated[0]) == 1.0
    assert run.policy()(np.ones(2)) == 0

    # A saved copy has no replay buffer, but it has the policy.
    copied = rove.load(run.save(tmp_path / "copy"), agent=AGENT, environment=Choice())
    assert copied.delivered == run.delivered
    np.testing.assert_array_equal(copied.evaluate(3), np.ones((1, 3)))


@pytest.mark.parametrize("folder", [True, False])
def test_with_evaluations_the_best_evaluated_policy_is_delivered(disturbed, tmp_path, folder):
    """The last network prefers the wrong action, that of the best evaluation the right one."""
    out = tmp_path / "run" if folder else None
    run = trained(out, eval_every=10, eval_episodes=2)
    (delivered,) = run.delivered
    assert run.evaluations[0].mean[-1] == 1.0
    assert delivered.policy == "best"
    assert delivered.candidates == {"best": 1.0}
    assert run.evaluated[0] == [1.0] * 20
    assert run.policy()(np.ones(2)) == 0
    if out is not None:
        again = rove.load(out, agent=AGENT, environment=Choice())
        assert again.delivered == run.delivered
        np.testing.assert_array_equal(again.evaluate(3), np.ones((1, 3)))


def test_the_latest_of_the_best_evaluations_is_kept():
    """Four networks one after the other: right, wrong, right and wrong."""
    config = configure(AGENT, Choice(), episodes=4, eval_every=1, eval_episodes=2)
    (job,) = config.jobs(None)
    outcome = fresh(job)
    *body, head = outcome.lane.agent.phi.learned
    kept = []
    for number, right in enumerate((1.0, -1.0, 2.0, -2.0), start=1):
        bias = jax.numpy.array([right, 0.0])
        learned = (*body, head._replace(weight=0.0 * head.weight, bias=bias))
        phi = outcome.lane.agent.phi._replace(learned=learned)
        count = jax.numpy.asarray(number, jax.numpy.int32)
        lane = outcome.lane._replace(
            agent=outcome.lane.agent._replace(phi=phi), step=count, episode=count
        )
        outcome = evaluated(outcome, lane)
        kept.append(outcome.kept["best"][0].learned[-1].bias[0])
    assert outcome.evaluations.mean.tolist() == [1.0, 0.0, 1.0, 0.0]
    assert kept == [1.0, 1.0, 2.0, 2.0]


def test_the_best_network_of_a_run_in_two_parts_is_that_of_a_run_at_once(tmp_path):
    options = {"eval_every": 10, "eval_episodes": 2}
    trained(tmp_path / "two", 30, **options)
    two, one = trained(tmp_path / "two", 60, **options), trained(tmp_path / "one", 60, **options)
    a, b = (run.outcomes[0].kept["best"][0].learned for run in (two, one))
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_policy_as_good_as_training_is_not_settled(tmp_path):
    run = trained(tmp_path / "run")
    assert run.delivered[0].candidates == {"mean": 1.0}
    assert not run.outcomes[0].kept


def test_a_run_in_memory_whose_seeds_did_not_settle_has_no_settled_policy():
    run = trained(None)
    with pytest.raises(ConfigError, match="replay buffer"):
        run.evaluate(policy="settled")


@pytest.mark.slow
def test_settling_does_not_change_training(tmp_path):
    """A run that is settled and then trained further ends with the same bits as one that was
    trained at once; the settled policy of before is not used for it."""
    one = trained(tmp_path / "one")
    one.evaluate(policy="settled")
    one, other = trained(tmp_path / "one", 120), trained(tmp_path / "other", 120)
    a, b = (run.outcomes[0].lane.agent.phi.learned for run in (one, other))
    jax.tree.map(np.testing.assert_array_equal, a, b)
    assert not one.outcomes[0].kept
    a, b = (delivering.with_settled(run.outcomes[0]).kept["settled"] for run in (one, other))
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_conclusion_without_its_network_is_not_used(tmp_path):
    run = trained(tmp_path / "run")
    (outcome,) = run.outcomes
    delivered = run.delivered[0]._replace(policy="settled")
    conclusion = outcome.conclusion._replace(delivered=delivered)
    storage.save(outcome._replace(conclusion=conclusion))
    again = rove.load(run.path, agent=AGENT, environment=Choice())
    assert again.delivered[0].policy == "mean"
    assert again.evaluated[0] == [1.0] * 20
