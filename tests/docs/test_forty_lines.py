"""The page for students: its forty lines are Algorithm 2, and give the numbers of `ge`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pages import DOCS, blocks

import rove
from rove.core import algorithm
from rove.core.algorithm import Agent
from rove.parts import noise
from rove.parts.replay import Transition

PAGE = DOCS / "paper" / "forty-lines.md"
CODE, EXAMPLE = (block.text for block in blocks(PAGE, "python"))
HIDDEN, N, START, EPISODES = (6, 5), 8, 10, 6
UNITS = sum(HIDDEN) + 2
SETTINGS = {"lr": 2e-3, "gamma": 0.9, "target_period": 5}
SMALL = {"hidden": HIDDEN, "batch_size": N, "buffer_size": 200, "learning_starts": START}

VARIATIONAL = {" + sigma * rng.normal(size=n)": ""}
NOISY = {
    "jnp.sum(errors**2) / (2 * sigma**2) - entropy": "jnp.mean(errors**2) / 2",
    "eps=1e-16": "eps=1e-8",
}
CASES = {
    "ge": (rove.GE(rho=-2.0, sigma=0.3, prior_std=None, **SMALL, **SETTINGS), {}),
    "ge, small sigma": (rove.GE(rho=-2.0, sigma=1e-3, prior_std=None, **SMALL, **SETTINGS), {}),
    "vdqn": (rove.VDQN(rho=-2.0, sigma=0.3, prior_std=None, **SMALL, **SETTINGS), VARIATIONAL),
    "noisynet": (rove.NoisyNet(rho=-2.0, **SMALL, **SETTINGS), VARIATIONAL | NOISY),
}

init = jax.jit(Agent.init, static_argnums=(1, 2))
act, observe, learn = (jax.jit(method) for method in (Agent.act, Agent.observe, Agent.learn))
normal = jax.jit(noise.normal, static_argnums=1)


class Task:
    """rove's chain of four states, as the page's `train` takes a task, except that every other
    episode terminates after seven steps. It notes the actions."""

    def __init__(self) -> None:
        self.chain, self.actions, self.episodes = rove.Chain(4), [], -1

    def reset(self):
        self.episodes += 1
        self.state, observation = self.chain.reset(noise.root(0))
        return jnp.asarray(observation)

    def step(self, a: int):
        self.actions.append(a)
        step = self.chain.step(self.state, jnp.int32(a), noise.root(0))
        self.state = step.state
        terminated = self.episodes % 2 == 0 and int(step.state.time) == 7
        over = terminated or bool(step.truncated)
        return jnp.asarray(step.observation), float(step.reward), terminated, over


class Recorded:
    """A generator whose random numbers are given, in order."""

    def __init__(self, numbers: list) -> None:
        self.numbers = numbers

    def normal(self, size):
        numbers = self.numbers.pop(0)
        assert numbers.shape == np.empty(size).shape
        return numbers

    def integers(self, bound, size):
        numbers = self.normal(size)
        assert np.max(numbers) < bound
        return numbers


def played(agent: Agent, noise_in_targets: bool):
    """What rove does: the actions, φ before and after, and the random numbers it used."""
    task, numbers = Task(), []
    state = init(agent, task.chain.observation_size, 2, noise.root(1))
    before = as_pairs(state.phi.learned)
    for _ in range(EPISODES):
        s, over = task.reset(), False
        while not over:
            key = noise.root(1000 + len(task.actions))
            of = lambda name, key=key: noise.fold(key, getattr(algorithm, name))  # noqa: E731
            numbers.append(normal(of("_RESAMPLE"), (1, UNITS))[0])
            a = act(agent, state, s, key)
            s_next, r, terminated, over = task.step(int(a))
            step = Transition(s, a, jnp.float32(r), s_next, jnp.asarray(terminated))
            state, s = observe(agent, state, step), s_next
            if int(state.counter) < START:
                continue
            numbers.append(noise.integers(of("_MINIBATCH"), (N,), state.counter))
            numbers.append(normal(of("_TARGET_THETA"), (N, UNITS)))
            if noise_in_targets:
                numbers.append(jax.vmap(noise.normal)(noise.folds(of("_TARGET"), N)))
            numbers.append(normal(of("_THETA"), (N, UNITS)))
            state, _ = learn(agent, state, key)
    return task.actions, before, as_pairs(state.phi.learned), numbers


def as_pairs(learned) -> list:
    """μ and ρ of each layer as the page has them: the biases are the last row of the weights."""
    joined = lambda layer: jnp.concatenate([layer.weight, layer.bias[None]])  # noqa: E731
    return [tuple(map(joined, layer)) for layer in zip(learned.mu, learned.rho, strict=True)]


@pytest.mark.parametrize(("settings", "changes"), CASES.values(), ids=CASES)
def test_the_code_of_the_page_gives_the_actions_and_the_phi_of_ge(settings, changes):
    """All random numbers of `ge` are given to the page's code. In six episodes the actions are the
    same, and so is φ up to the rounding of float32. With the changes that the page names, it gives
    those of `vdqn` and `noisynet`."""
    code, page = CODE, {}
    for old, new in changes.items():
        assert code.count(old) == 1
        code = code.replace(old, new)
        assert f"`{new or old.strip()}`" in PAGE.read_text("utf-8").partition("## Change it")[2]
    exec(code, page)
    actions, before, after, numbers = played(settings.compose(), not changes)
    task, rng, sigma = Task(), Recorded(numbers), getattr(settings, "sigma", 0.0)
    found = page["train"](before, task, rng, EPISODES, 5, 2e-3, sigma, 0.9, N, START)
    assert not rng.numbers
    assert task.actions == actions
    assert len(actions) > START + 30
    assert 0 < np.mean(actions) < 1
    for ours, theirs, first in zip(*map(jax.tree.leaves, (found, after, before)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-6)
        assert np.abs(theirs - first).max() > 1e-2


def test_it_is_as_long_as_it_says():
    lines = [line for line in CODE.splitlines() if line.strip()]
    assert 35 <= len(lines) <= 45


def test_the_chain_of_the_page_is_roves():
    page = {"rng": np.random.default_rng(0)}
    exec(EXAMPLE.split("def layer")[0], page)
    chain = page["Chain"](5, page["rng"])
    for right in (0, 1):
        state, first = rove.Chain(5).reset(noise.root(0))
        np.testing.assert_array_equal(chain.reset(), first)
        for _ in range(14):
            step = rove.Chain(5).step(state, jnp.int32(right), noise.root(0))
            action = chain.right[chain.i] if right else 1 - chain.right[chain.i]
            features, r, terminated, over = chain.step(action)
            np.testing.assert_array_equal(features, step.observation)
            assert r == pytest.approx(float(step.reward))
            assert (terminated, over) == (False, bool(step.truncated))
            state = step.state
        assert over
    assert chain.returns == [pytest.approx(0.001 * 13), pytest.approx(11.0)]


@pytest.mark.slow
def test_it_learns_a_chain_as_the_page_says(capsys):
    page = {}
    exec(CODE, page)
    exec(EXAMPLE, page)
    printed = capsys.readouterr().out.strip()
    assert printed == blocks(PAGE, "text")[0].text.strip()
    means = np.reshape(page["chain"].returns, (6, 10)).mean(axis=1)
    assert means[0] < 1.0
    assert means[-1] > 10.0
