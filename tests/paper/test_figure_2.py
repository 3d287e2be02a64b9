"""Figure 2 on tiny runs: data, pictures, and claims that can come out either way."""

import csv
import gzip
import types

import numpy as np
import pytest

import rove
from rove.analysis import plots
from rove.paper import figure_2, published
from rove.paper.figure_2 import AGENTS, EPISODES, LEFT_OUT, VISITS, Figure2, claims


def test_the_plan_is_the_papers():
    plan = Figure2().configs()
    panels = {(e, a) for e in EPISODES for a in AGENTS}
    text = {("chain-100", "bootstrapped_dqn")}
    assert {key for key in plan if key[0] != VISITS} == panels | text
    few = {(e, a) for e, a in panels if a not in LEFT_OUT}
    assert {key for key in Figure2(quick=True).configs() if key[0] != VISITS} == few
    assert all(config.seeds == tuple(range(10)) for config in plan.values())
    assert plan["chain-128", "ge-step"].episodes == 20
    for (environment, agent), config in plan.items():
        assert config.agent_name == agent.partition("-")[0]
        assert config.environment.name == environment
        if agent == "dqn-paper":
            assert (config.agent.epsilon, config.agent.epsilon_steps) == (0.1, 0)
        if agent.startswith("ge-"):
            assert config.agent.resample == agent.removeprefix("ge-")


@pytest.mark.slow
def test_a_tiny_one_end_to_end(tmp_path, monkeypatch):
    for episodes in ("QUICK_EPISODES", "EPISODES"):
        monkeypatch.setattr(figure_2, episodes, {"chain-10": 4, "chain-50": 2, "chain-100": 2})
    monkeypatch.setattr(figure_2, "QUICK_SEEDS", 2)
    monkeypatch.setattr(figure_2, "SEEDS", 2)
    monkeypatch.setattr(figure_2, "EPISODES_PER_ITERATION", 2)
    found = Figure2(quick=True).run(tmp_path)
    assert found == published.claims("figure-2")  # the quick form only draws
    assert not (tmp_path / "claims.json").exists()
    with gzip.open(tmp_path / "figure-2.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 3 * (4 + 2 + 2) + 2 * 2 * 2
    assert {row["agent"] for row in rows} == {"dqn", "noisynet", "ge-step"}
    assert (tmp_path / "figure-2.png").read_bytes().startswith(b"\x89PNG")
    assert "Chain MDP, N = 100" in (tmp_path / "figure-2.svg").read_text()


def made_up(returns, greedy=11.0, visits=None):
    """A run with the given returns, where only what the claims read is there."""
    return types.SimpleNamespace(
        returns=np.asarray(returns, float),
        visits=visits,
        evaluate=lambda policy: np.broadcast_to(greedy, len(returns))[:, None],
    )


def world(solved=11.0, seen=(128, 3), wild=(0.0, 11.0), steady=(9.0, 9.0), **changes):
    """Verdicts where agents end with these greedy returns, and have them in all episodes; where
    GE and both DQNs visit so many states; and where of the seeds of GE and of Bootstrapped DQN at
    N = 100 every second has another return."""
    greedy = {"dqn-paper": 0.1, "dqn": 0.1, "noisynet": 0.1, "ge_step": 11.0} | changes
    runs = {}
    for environment in EPISODES:
        for name, level in greedy.items():
            end = solved if environment == "chain-10" else level
            returns = np.tile(level, (30, 40)) if np.isscalar(level) else np.tile(level, (40, 1)).T
            runs[environment, name.replace("_", "-")] = made_up(returns, end)
    judged = claims(runs | visited(seen))
    assert [i for i, claim in enumerate(judged) if claim.verdict == "not tested"] == [11]
    # GE cannot have the returns of `wild` and those of the other claims in one world.
    for agent, returns in (("ge-step", wild), ("bootstrapped_dqn", steady)):
        runs["chain-100", agent] = made_up(np.tile(np.resize(returns, 30)[:, None], (1, 40)))
    judged[11] = claims(runs | visited(seen))[11]
    return [claim.verdict for claim in judged]


def visited(seen):
    """Runs in which GE and both DQNs visit so many states."""
    runs = {}
    for agent, states in zip(
        ("ge-step", "dqn-paper", "dqn"), (seen[0], seen[1], seen[1]), strict=True
    ):
        visits = np.tile(np.arange(128) < states, (30, 1)).astype(float)
        runs[VISITS, agent] = made_up(np.zeros((30, 20)), visits=visits)
    return runs


def test_claims_hold_in_the_papers_world():
    assert world() == ["supported"] * 17


HALF = np.resize([0.1, 11.0], 30)


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({"solved": 0.018}, {0: "no", 1: "no"}),
        ({"solved": HALF}, {0: "open", 1: "open"}),
        ({"dqn": 5.0}, {3: "no", 7: "no"}),
        ({"dqn": HALF}, {3: "open", 7: "open"}),
        ({"dqn-paper": 11.0}, {2: "no", 6: "no", 9: "open"}),
        ({"noisynet": 11.0}, {4: "open", 5: "no", 8: "open"}),
        ({"ge_step": 0.1}, {4: "open", 8: "open", 9: "open", 10: "open"}),
        ({"ge_step": 0.1, "noisynet": 11.0}, {4: "no", 5: "no", 8: "no", 9: "open", 10: "open"}),
        ({"wild": (9.0, 9.0)}, {11: "open"}),
        ({"wild": (9.0, 9.0), "steady": (0.0, 11.0)}, {11: "no"}),
        ({"seen": (128, 30)}, {12: "no", 13: "no"}),
        ({"seen": (4, 5)}, {14: "open", 15: "open", 16: "no"}),
        ({"seen": (127, 3)}, {16: "no"}),
        ({"seen": (3, 128)}, {12: "no", 13: "no", 14: "no", 15: "no", 16: "no"}),
    ],
)
def test_claims_fail_in_others(changes, failing):
    words = {"not supported": "no", "inconclusive": "open"}
    found = {i: words[v] for i, v in enumerate(world(**changes)) if v != "supported"}
    assert found == failing


def stuck_claim(agent, run):
    """The claim that an agent gets stuck at N = 100, where this is its run; all others have
    returns of 0."""
    runs = {(e, a): made_up(np.zeros((10, 40)), 0.0) for e in EPISODES for a in AGENTS}
    runs["chain-100", agent] = run
    names = {"dqn-paper": "DQN, ε = 0.1", "dqn": "DQN"}
    judged = claims(runs | visited((128, 3)))
    (claim,) = [c for c in judged if c.text == f"N = 100: {names[agent]} gets stuck"]
    return claim


def test_what_dqn_earns_while_it_explores_does_not_make_it_stuck():
    """With ε = 0.1 the optimal policy itself earns 2.03 of 11 at N = 100, and less on bad days."""
    claim = stuck_claim("dqn-paper", made_up(np.full((10, 40), 0.5), greedy=11.0))
    assert claim.text == "N = 100: DQN, ε = 0.1 gets stuck"
    assert claim.verdict == "not supported"
    assert "tenth of the optimum: 0 of 10 seeds" in claim.evidence


def test_one_seed_that_is_lucky_does_not_refute_that_an_agent_is_stuck():
    def verdict(lucky):
        greedy = np.where(np.arange(10) < lucky, 11.0, 0.1)
        return stuck_claim("dqn", made_up(np.zeros((10, 40)), greedy)).verdict

    verdicts = [verdict(lucky) for lucky in (0, 1, 2, 8, 9)]
    assert verdicts == 2 * ["supported"] + 2 * ["inconclusive"] + ["not supported"]


def test_curves_of_unequal_length_can_be_drawn(tmp_path):
    """A run by steps has lanes of different lengths; the rest is NaN."""
    run = rove.train(rove.DQN(hidden=(8,), learning_starts=30), "chain-3", seeds=2, steps=100)
    plots.save(run.plot(), tmp_path / "curve.svg")
    assert "DQN does not solve chain-3" in (tmp_path / "curve.svg").read_text()
