"""The settled policy: which runs have it, when it is delivered, and that training is unchanged."""

import jax
import numpy as np
import pytest
from tests.runs.test_delivery import SMALL, Choice

import rove
from rove.errors import ConfigError
from rove.runs import settled
from rove.runs.delivery import Record
from rove.training import storage

AGENT = rove.Agent(
    rove.Gaussian(0.1), rove.Dirac(), epsilon=0.1, lr=0.01, learning_starts=10, **SMALL
)


def trained(path, episodes=60):
    return rove.train(AGENT, Choice(), episodes=episodes, out=path)


def disturbed(run):
    """The run with a φ that prefers the wrong action, as after an unlucky last update."""
    (outcome,) = run.outcomes
    lane = storage.load_whole(outcome.job)
    *body, head = lane.agent.phi.learned
    phi = lane.agent.phi._replace(learned=(*body, jax.tree.map(lambda x: -x, head)))
    lane = lane._replace(agent=lane.agent._replace(phi=phi))
    storage.save(outcome._replace(lane=lane))
    (run.path / "diagnostics.json").unlink()
    return rove.load(run.path, agent=AGENT, environment=Choice())


@pytest.mark.slow
def test_the_settled_policy_is_delivered_if_the_last_network_is_worse_than_the_behaviour(tmp_path):
    run = disturbed(trained(tmp_path / "run"))
    (delivered,) = run.delivered
    assert run.scores[0, -50:].mean() > 0.9
    assert delivered.candidates["mean"] == 0.0
    assert delivered.candidates["behaviour"] < 0.5
    assert delivered.policy == "settled"
    assert np.mean(run.evaluated[0]) == 1.0
    assert run.policy()(np.ones(2)) == 0
    assert run.policy(kind="mean")(np.ones(2)) == 1

    # It is a function of the checkpoint: removed, it is computed again, to the bit.
    path = settled.path_of(run.outcomes[0])
    before = path.read_bytes()
    path.unlink()
    run.evaluate(1, policy="settled")
    assert path.read_bytes() == before

    # A saved copy of the run has no replay buffer, but it has the policy.
    copied = rove.load(run.save(tmp_path / "copy"), agent=AGENT, environment=Choice())
    assert copied.delivered == run.delivered
    np.testing.assert_array_equal(copied.evaluate(3), np.ones((1, 3)))


def test_a_policy_as_good_as_the_behaviour_is_not_settled(tmp_path):
    run = trained(tmp_path / "run")
    assert run.delivered[0].candidates == {"mean": 1.0}
    assert not settled.path_of(run.outcomes[0]).exists()


def test_a_run_in_memory_has_no_settled_policy():
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
    assert not settled.is_known(one.outcomes[0])
    a, b = (settled.settled_lane(run.outcomes[0]).agent.phi.learned for run in (one, other))
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_record_without_its_file_is_not_used(tmp_path):
    run = trained(tmp_path / "run")
    (outcome,) = run.outcomes
    record = Record(run.delivered[0]._replace(policy="settled"), [1.0], int(outcome.lane.step))
    text = str({"policies": {"0": record.as_json()}}).replace("'", '"')
    (run.path / "diagnostics.json").write_text(text)
    again = rove.load(run.path, agent=AGENT, environment=Choice())
    assert again.delivered[0].policy == "mean"
    assert again.evaluated[0] == [1.0] * 20
