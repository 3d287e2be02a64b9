"""The chain MDP against a chain written here in plain Python."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

from rove.environments.chain import LEFT, RIGHT, Chain
from rove.errors import ConfigError
from rove.parts import noise

STEPS = 10_000


class PlainChain:
    """States 1 … N as in the paper; `swapped[i − 1]` exchanges the actions in s_i."""

    def __init__(self, n, features, swapped):
        self.n, self.features, self.swapped = n, features, swapped
        self.reset()

    def reset(self):
        self.state, self.steps = 2, 0

    def observation(self):
        if self.features == "one-hot":
            return [float(i == self.state) for i in range(1, self.n + 1)]
        return [1.0] * self.state + [0.0] * (self.n - self.state)

    def step(self, action):
        reward = {1: 0.001, self.n: 1.0}.get(self.state, 0.0)
        goes_right = action == 1
        if self.swapped[self.state - 1]:
            goes_right = not goes_right
        if self.state not in (1, self.n):
            self.state += 1 if goes_right else -1
        self.steps += 1
        return reward, self.steps == self.n + 9


@jax.jit
def play(environment: Chain, actions):
    """Follow actions, resetting at the end of an episode; all that each step gives."""
    key = noise.root(0)

    def one(state, action):
        step = environment.step(state, action, key)
        fresh, _ = environment.reset(key)
        done = step.truncated | step.terminated
        after = jax.tree.map(lambda new, old: jnp.where(done, new, old), fresh, step.state)
        return after, step

    return jax.lax.scan(one, environment.reset(key)[0], actions)[1]


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("features", ["thermometer", "one-hot"])
@pytest.mark.parametrize("n", [3, 4, 11, 40])
def test_every_step_is_the_plain_chains(n, features, permuted):
    """10,000 random steps. Each episode leans its own way, so that both ends are reached."""
    environment = Chain(n, features, permuted, map_seed=1)
    plain = PlainChain(n, features, environment.swapped)
    rng = np.random.default_rng(n)
    lean = np.repeat(rng.choice([0.1, 0.5, 0.99], size=STEPS), n + 9)[:STEPS]
    actions = (rng.random(STEPS) < lean).astype(np.int32)
    # In the permuted chain, lean along the map for half of the run.
    played = actions.copy()
    expected = []
    for t in range(STEPS):
        if permuted and t < STEPS // 2:
            played[t] = actions[t] ^ plain.swapped[plain.state - 1]
        reward, truncated = plain.step(played[t])
        expected.append((plain.state, plain.steps, plain.observation(), reward, truncated))
        if truncated:
            plain.reset()
    states, times, observations, rewards, truncations = (
        np.array(x) for x in zip(*expected, strict=True)
    )
    assert {1, n} <= set(states.tolist())
    step = play(environment, jnp.asarray(played))
    assert np.array_equal(step.state.position, states - 1)
    assert np.array_equal(step.state.time, times)
    assert np.array_equal(step.observation, observations.astype(np.float32))
    assert np.array_equal(step.reward, rewards.astype(np.float32))
    assert np.array_equal(step.truncated, truncations)
    assert not np.any(step.terminated)
    assert np.array_equal(jax.vmap(environment.bin)(step.state), states - 1)


@pytest.mark.parametrize(
    ("features", "shown"), [("thermometer", [1, 1, 0]), ("one-hot", [0, 1, 0])]
)
def test_an_episode_starts_in_the_second_state(features, shown):
    state, observation = Chain(3, features).reset(noise.root(0))
    assert (int(state.position), int(state.time)) == (1, 0)
    assert np.asarray(observation).tolist() == shown
    assert jnp.asarray(observation).dtype == jnp.float32


@pytest.mark.parametrize("n", [3, 10, 50])
@pytest.mark.parametrize("permuted", [False, True])
def test_returns_of_always_right_and_always_left(n, permuted):
    """11 and 0.001·(N + 8), over one episode of N + 9 steps; along the map where permuted."""
    environment = Chain(n, permuted=permuted, map_seed=3)
    plain = PlainChain(n, "one-hot", environment.swapped)
    for way, total in ((RIGHT, 11.0), (LEFT, 0.001 * (n + 8))):
        plain.reset()
        actions = []
        for _ in range(n + 9):
            actions.append(way ^ int(plain.swapped[plain.state - 1]))
            plain.step(actions[-1])
        step = play(environment, jnp.asarray(actions, jnp.int32))
        assert float(np.sum(np.asarray(step.reward, np.float64))) == pytest.approx(total, rel=1e-6)
        assert np.flatnonzero(step.truncated).tolist() == [n + 8]
    assert environment.optimum == 11.0
    assert environment.horizon == n + 9


def test_one_action_throughout_does_not_solve_the_permuted_chain():
    environment = Chain(10, permuted=True)
    for action in (LEFT, RIGHT):
        step = play(environment, jnp.full(19, action, jnp.int32))
        assert float(step.reward.sum()) < 1.0


def test_the_map_is_pinned_and_its_seed_chooses_it():
    assert not np.any(Chain(10).swapped)
    pinned = [False, True, True, True, False, False, False, False, False, False]
    assert Chain(10, permuted=True).swapped.tolist() == pinned
    maps = {Chain(50, permuted=True, map_seed=s).swapped.tobytes() for s in range(20)}
    assert len(maps) == 20
    # Swaps over 10,000 states: half, within the two-sided normal quantile at 1e-4 (3.89).
    swaps = Chain(10_000, permuted=True, map_seed=5).swapped.sum()
    assert abs(swaps - 5000) < 3.89 * 50


@pytest.mark.parametrize(("n", "places"), [(3, [2, 2, 2]), (10, [2, 6, 9]), (11, [2, 6, 10])])
def test_probes_are_the_start_the_middle_and_the_last_before_the_goal(n, places):
    """As the paper numbers states; a thermometer has as many ones."""
    probes = Chain(n).probes()
    assert list(probes) == ["start", "middle", "last"]
    assert [int(x.sum()) for x in probes.values()] == places


def test_sizes_and_name():
    environment = Chain(12)
    assert environment.name == "chain-12"
    assert (environment.observation_size, environment.num_actions, environment.bins) == (12, 2, 12)


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("n", {"n": 1}),
        ("n", {"n": 2}),
        ("n", {"n": 10.0}),
        ("n", {"n": True}),
        ("features", {"n": 10, "features": "x"}),
        ("permuted", {"n": 10, "permuted": "yes"}),
        ("map_seed", {"n": 10, "map_seed": -1}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    """With the run-time check of annotations off, as it is outside tests: it would come first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        Chain(**settings)
    assert caught.value.field == field
    assert repr(settings[field]) in str(caught.value)


@pytest.mark.parametrize("n", [3, 100, 10_992, 10_993, 20_000])
def test_the_optimum_is_the_better_of_the_two_ends(n):
    right = [0.0] * (n - 2) + [1.0] * 11
    left = [0.0] + [0.001] * (n + 8)
    assert len(right) == len(left) == Chain(n).horizon
    assert Chain(n).optimum == pytest.approx(max(sum(right), sum(left)))
