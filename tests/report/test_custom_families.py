"""Runs of custom families, whose classes the report does not import."""

from made import group_of, told

import rove
from rove.reporting import report


class OwnPosterior(rove.Dirac):
    """A posterior that the report does not know."""


class OwnReturn(rove.Quantile):
    """A return family that the report does not know."""


def page_of(tmp_path, returns, posterior):
    agent = rove.Agent(returns, posterior, hidden=(4,), learning_starts=20, batch_size=4)
    rove.train(agent, "chain-5", seeds=1, episodes=6, out=tmp_path / "run")
    return report([tmp_path / "run"], tmp_path / "r.html")


def test_a_custom_posterior_has_its_name_its_beliefs_and_its_start(tmp_path):
    page = page_of(tmp_path, rove.Quantile(), OwnPosterior())
    assert told(page)["title"].startswith("Quantile × OwnPosterior does not solve chain-5")
    (run,) = group_of(page, "chain-5")["runs"]
    assert run["starts"] is not None
    assert len(run["beliefs"]["values"]) == 3  # after episodes 1, 2 and 4
    assert len(run["beliefs"]["returns"]) == 3  # in the three probe states


def test_a_custom_return_family_has_draws_of_q_only(tmp_path):
    (run,) = group_of(page_of(tmp_path, OwnReturn(), rove.Dirac()), "chain-5")["runs"]
    assert run["label"] == "OwnReturn × Dirac"
    assert len(run["beliefs"]["values"]) == 3
    assert run["beliefs"]["returns"] is None
