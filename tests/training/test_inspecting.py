"""What is said about networks, against NumPy's own computation from the saved weights."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import rove
from helpers import SMALL
from rove.environments.base import Step
from rove.training import inspecting, storage
from rove.training.conclusion import FIELDS, Inspection
from rove.training.delivering import concluded
from rove.training.inspecting import STATES, visited_numbers

GAMMA = 0.9
AGENT = rove.DQN(**SMALL | {"hidden": (8, 6)}, gamma=GAMMA, lr=0.003, epsilon=0.3)


def network(lane):
    """The layers of a network, as NumPy arrays."""
    return [(np.asarray(x.weight), np.asarray(x.bias)) for x in lane.agent.phi.learned]


def said(layers, x):
    """The values of all actions, and the outputs of the hidden layers."""
    hidden = []
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0.0)
        hidden.append(x)
    weight, bias = layers[-1]
    return x @ weight + bias, hidden


def in_states(layers, xs):
    """What a network says in some states, as `Inspection` names it."""
    q, hidden = said(layers, xs)
    ordered = np.sort(q, axis=1)
    return {
        "units_off": [np.mean(np.ptp(h, axis=0) < 1e-6) for h in hidden],
        "value_range": np.ptp(q.max(axis=1)),
        "largest_value": np.abs(q.max(axis=1)).max(),
        "gap_range": np.ptp(ordered[:, -1] - ordered[:, -2]),
        "actions": len(np.unique(q.argmax(axis=1))),
        "policy_constant": len(np.unique(q.argmax(axis=1))) == 1,
    }


def walked(layers, n, steps=200):
    """The learned value of s₂ of a chain, and the discounted return of walking on from there."""
    position, earned = 1, 0.0
    feature = lambda i: (np.arange(n) <= i).astype(np.float32)  # noqa: E731
    for t in range(steps):
        earned += GAMMA**t * {0: 0.001, n - 1: 1.0}.get(position, 0.0)
        action = said(layers, feature(position))[0].argmax()
        position += 0 if position in (0, n - 1) else 2 * int(action) - 1
    return said(layers, feature(1))[0].max(), earned


def check(inspection, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(inspection, name), value, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "dqn"
    return rove.train(AGENT, "chain-7", seeds=2, episodes=60, out=out, eval_every=20)


def test_an_inspection_is_what_numpy_computes_from_the_saved_network(run):
    for outcome, inspection in zip(run.outcomes, run.networks, strict=True):
        lane, layers = storage.load_whole(outcome.job), network(outcome.lane)
        rows = np.asarray(lane.agent.replay.rows)[np.array(inspection.numbers) % 64]
        check(inspection, in_states(layers, rows[:, :7]))
        value, earned = walked(layers, 7)
        # Rewards are left out from γᵗ < 0.001 on.
        assert inspection.value_at_start == pytest.approx(value, abs=1e-5)
        assert inspection.return_from_start == pytest.approx(earned, abs=0.001 / (1 - GAMMA))
        assert not inspection.bootstrapped


def test_the_last_evaluation_says_the_same_as_the_end(run):
    for outcome, inspection in zip(run.outcomes, run.networks, strict=True):
        row = outcome.evaluations.network[-1].tolist()
        assert Inspection.of_row(row) == inspection._replace(numbers=())
        assert len(outcome.evaluations.network) == 3


def test_states_are_drawn_evenly_from_the_buffer():
    assert visited_numbers(0, 64, 0).tolist() == []
    assert visited_numbers(10, 64, 0).tolist() == list(range(10))
    assert visited_numbers(100, 64, 0).tolist() == list(range(36, 100))
    many = [visited_numbers(30_000, 10_000, seed) for seed in range(40)]
    assert all(len(set(numbers)) == STATES for numbers in many)
    assert min(x.min() for x in many) >= 20_000
    counts = np.histogram(np.concatenate(many), bins=10, range=(20_000, 30_000))[0]
    assert np.all(abs(counts - 4_000) < 300)  # five standard deviations


def test_a_network_that_says_the_same_everywhere_is_seen_and_others_are_not(run):
    outcome = run.outcomes[0]
    assert not any("do not depend on the state" in alarm for alarm in run.alarms)
    assert not run.networks[0].values_constant
    first, last, head = outcome.lane.agent.phi.learned
    dead = last._replace(bias=last.bias - 100.0)
    phi = outcome.lane.agent.phi._replace(learned=(first, dead, head))
    lane = outcome.lane._replace(agent=outcome.lane.agent._replace(phi=phi))
    ended = concluded(outcome._replace(lane=lane, conclusion=None, kept={}))
    inspection = ended.conclusion.inspection
    assert inspection.units_off[1] == 1.0
    assert inspection.values_constant
    assert inspection.policy_constant
    assert inspection.value_range == 0.0
    assert inspection.value_at_start == pytest.approx(float(head.bias.max()), abs=1e-6)
    sick = rove.runs.result.Run(run.config, [ended])
    constant = [alarm for alarm in sick.alarms if "do not depend on the state" in alarm]
    assert len(constant) == 1
    assert constant[0].startswith("seed 0: ")
    assert "switched off" in constant[0]


class Walk(gymnasium.Env):
    """Five places in a row, from the first one; 1 for each step at the right end, for 9 steps."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (5,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = 1, 0
        return self.seen(), {}

    def seen(self):
        return np.eye(5, dtype=np.float32)[self.at]

    def step(self, action):
        self.at = min(max(self.at + 2 * int(action) - 1, 0), 4)
        self.time += 1
        return self.seen(), float(self.at == 4), False, self.time == 9, {}


def test_where_the_limit_cannot_be_lifted_the_return_contains_the_learned_value():
    run = rove.train(AGENT, Walk(), episodes=40)
    (inspection,), layers = run.networks, network(run.outcomes[0].lane)
    at, earned = 1, 0.0
    for t in range(9):
        action = said(layers, np.eye(5)[at])[0].argmax()
        at = min(max(at + 2 * int(action) - 1, 0), 4)
        earned += GAMMA**t * (at == 4)
    value = [said(layers, np.eye(5)[i])[0].max() for i in (1, at)]
    assert inspection.bootstrapped
    assert inspection.value_at_start == pytest.approx(value[0], abs=1e-5)
    assert inspection.return_from_start == pytest.approx(earned + GAMMA**9 * value[1], abs=1e-5)


@pytest.mark.parametrize("name", ["ge", "qr_dqn", "c51", "bootstrapped_dqn", "ige", "bayesian_dqn"])
@pytest.mark.fast_cases("c51", "ige")
def test_the_layers_of_every_kind_of_network_are_known(name):
    run = rove.train(name, "chain-4", episodes=3, **SMALL | {"hidden": (8, 6)})
    (inspection,) = run.networks
    assert len(inspection.units_off) == 2
    assert np.isfinite(inspection.row).all()
    assert len(inspection.row) == len(FIELDS) + 2


def test_agents_without_a_value_network_have_no_inspection():
    run = rove.train("psrl", "chain-4", episodes=3)
    assert run.networks == [None]
    assert run.delivered[0].policy == "mean"


def test_a_critic_is_inspected_at_the_actions_of_the_policy(tmp_path):
    sizes = {"hidden": (8,), "buffer_size": 64, "batch_size": 8}
    options = {"steps": 100, "random_steps": 10, "out": tmp_path / "r"}
    run = rove.train("ddpg", "linear-quadratic-1", **options, **sizes)
    (x,), (outcome,) = run.networks, run.outcomes
    lane = storage.load_whole(outcome.job)
    states = np.asarray(lane.agent.replay.rows)[np.array(x.numbers) % 64, :2]
    layers = [
        [(np.asarray(y.weight), np.asarray(y.bias)) for y in theta]
        for theta in (lane.agent.actor.psi, lane.agent.phi[0].learned)
    ]
    actions = np.tanh(said(layers[0], states)[0])
    q, hidden = said(layers[1], np.hstack([states, actions]))
    assert x.actions == 0
    assert x.gap_range == 0.0
    assert x.value_range == pytest.approx(np.ptp(q), abs=1e-5)
    assert x.largest_value == pytest.approx(np.abs(q).max(), abs=1e-5)
    assert x.units_off == (np.mean(np.ptp(hidden[0], axis=0) < 1e-6),)
    assert x.policy_constant == (np.ptp(actions) < 1e-3)


def test_a_bandit_has_one_state_and_no_alarm():
    run = rove.train("dqn", "bandit-3", episodes=100, **SMALL)
    (x,) = run.networks
    assert x.one_state
    assert x.value_range == 0.0
    assert not x.values_constant


class MaskedWalk(gymnasium.Env):
    """Four places in a row; 1 at the right end, which ends the episode. Action 2 stays, and is not
    allowed at the left end."""

    observation_space = gymnasium.spaces.Box(0.0, 1.0, (4,))
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.time = 0, 0
        return self.seen()

    def seen(self):
        mask = np.array([self.at < 3, self.at < 3, 0 < self.at < 3], np.int8)
        return np.eye(4, dtype=np.float32)[self.at], {"action_mask": mask}

    def step(self, action):
        self.at, self.time = max(self.at + (-1, 1, 0)[int(action)], 0), self.time + 1
        observation, info = self.seen()
        return observation, float(self.at == 3), self.at == 3, self.time == 20, info


def test_with_action_masks_terminal_states_do_not_count():
    """Their values are never learned, and no action is allowed there."""
    run = rove.train(AGENT, MaskedWalk(), episodes=60)
    q = said(network(run.outcomes[0].lane), np.eye(4))[0]
    q[0, 2] = -np.inf
    (inspection,) = run.networks
    assert inspection.value_range == pytest.approx(np.ptp(q[:3].max(axis=1)), abs=1e-5)
    assert inspection.policy_constant == (len(set(q[:3].argmax(axis=1))) == 1)
    assert abs(np.ptp(np.append(q[:3].max(axis=1), q[3, 0])) - inspection.value_range) > 0.01


def test_values_of_zero_everywhere_do_not_depend_on_the_state(run):
    zero = run.networks[0]._replace(value_range=0.0, largest_value=0.0)
    assert zero.values_constant
    assert not zero._replace(one_state=True).values_constant


def test_states_are_evaluated_a_few_at_a_time(run, monkeypatch):
    """What a network computes for 1,000 images at once would need gigabytes."""
    (outcome, _), (inspection, _) = run.outcomes, run.networks
    agent, state = outcome.job.agent, storage.load_whole(outcome.job).agent
    sizes, whole = [], type(agent).inspect

    def counted(self, state, xs):
        sizes.append(len(xs))
        return whole(self, state, xs)

    monkeypatch.setattr(type(agent), "inspect", counted)
    numbers = jnp.asarray(np.resize(inspection.numbers, STATES), jnp.int32)
    found, one_state = inspecting._inspected.__wrapped__(agent, state, numbers)
    assert set(sizes) == {STATES // inspecting.PARTS}
    assert found.values.shape == found.gaps.shape == found.actions.shape == (STATES,)
    assert not one_state
    assert np.ptp(found.values) == pytest.approx(inspection.value_range, abs=1e-5)


class Growing(rove.Environment):
    """Each step pays 1 and, beyond the time limit, 100,000 times what the last one paid."""

    name = "growing"
    observation_size, num_actions, bins = 1, 2, 1

    def bin(self, state):
        return jnp.zeros((), jnp.int32)

    def reset(self, key):
        return (jnp.ones(()), jnp.zeros((), jnp.int32)), jnp.ones(1)

    def step(self, state, action, key):
        time = state[1] + 1
        paid = jnp.where(time <= 10, 1.0, 1e5 * state[0])
        no = jnp.zeros((), bool)
        return Step((paid, time), jnp.ones(1) * time / 10, paid, no, time >= 10)


def test_a_return_that_overflows_beyond_the_limit_is_not_kept(tmp_path):
    run = rove.train(AGENT, Growing(), episodes=30, out=tmp_path / "r", eval_every=10)
    assert run.networks == [None]
    assert np.isnan(run.evaluations[0].network).all()
    again = rove.load(tmp_path / "r", environment=Growing())
    assert again.outcomes[0].conclusion == run.outcomes[0].conclusion is not None


@pytest.mark.parametrize("gamma", [1.0, 0.99])
def test_infinite_returns_are_not_compared_with_values(gamma):
    """With γ = 1, a chain that never ends pays without a bound."""
    agent = rove.DQN(**SMALL | {"hidden": (8,)}, gamma=gamma, epsilon=0.3)
    (inspection,) = rove.train(agent, "chain-4", episodes=30).networks
    assert inspection.bootstrapped == (gamma == 1.0)
    assert inspection.expected == (gamma < 1.0)
