"""Counts: visits by hand on a chain, hashes against NumPy, and a task that DQN alone misses."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import rove
from rove.bonuses.counts import Visits, simhash
from rove.parts import noise, replay
from rove.parts.normalising import Statistics
from rove.parts.onehot import Form, OneHot
from rove.parts.replay import Transition
from rove.training.lane import start
from rove.training.stepping import complete_step

AGENT = rove.Agent(
    rove.Gaussian(0.0), rove.Dirac(), bonus=rove.Counts(0.5, bits=4, power=0.5, centred=False),
    hidden=(4,), batch_size=4, buffer_size=8,
)  # fmt: skip


init = jax.jit(rove.Agent.init, static_argnums=(1, 2, 4))
observe = jax.jit(rove.Agent.observe)


@jax.jit
def transitions(agent, state):
    """All stored transitions, with the rewards that an update sees, and which slots hold one."""
    law = agent.posterior.law(state.phi)
    reward = partial(agent.reward, state, (), law, noise.root(0))
    return replay.everything(state.replay, 0.99, reward)


def rewards(agent, state) -> np.ndarray:
    batch, stored = transitions(agent, state)
    return np.asarray(batch.reward)[np.asarray(stored)]


def test_visits_on_a_chain_by_hand():
    """From s₂, right, right, left, right and four times left visit s₃, s₄, s₃, s₄, s₃, s₂, s₁ and
    s₁, where the last step pays 0.001. An update sees 0.5/√n of the state that a step reached, for
    all n visits so far."""
    chain = rove.Chain(5, features="one-hot")
    lane = jax.jit(lambda: start(AGENT, chain, jnp.int32(0)))()
    step = jax.jit(
        lambda lane, action: complete_step(
            AGENT, chain, lane, action, chain.step(lane.environment, action, noise.root(0)), False
        )[0]
    )
    for action in (1, 1, 0, 1, 0, 0, 0, 0):
        lane = step(lane, jnp.int32(action))
    np.testing.assert_array_equal(lane.agent.bonus.count, [2, 1, 3, 2, 0])
    visits, paid = np.array([3, 2, 3, 2, 3, 1, 2, 2]), np.array([0.0] * 7 + [0.001])
    expected = paid + 0.5 / np.sqrt(visits)
    np.testing.assert_allclose(rewards(AGENT, lane.agent), expected, rtol=1e-6)


def step_to(x, reward=0.0, terminated=False) -> Transition:
    return Transition(x, jnp.int32(0), jnp.float32(reward), x, jnp.asarray(terminated))


def code(index: int) -> OneHot:
    return OneHot(jnp.int32(index), 40)


CODES = Form(coded=True)


def test_a_return_of_several_steps_has_the_bonus_of_each():
    """Visits to cells 5, 6, 5, 7, the third of which terminates; n = 3, γ = 0.99, η = ½:
    i = ½/√2, ½, ½/√2, ½."""
    learner = dataclasses.replace(AGENT, n_step=3)
    state = init(learner, 40, 2, noise.root(0), CODES)
    for cell, reward, ends in ((5, 1.0, False), (6, 0.0, False), (5, 2.0, True), (7, 0.0, False)):
        state = observe(learner, state, step_to(code(cell), reward, ends))
    a, b, c, d = np.array([1.0, 0.0, 2.0, 0.0]) + 0.5 / np.sqrt([2.0, 1.0, 2.0, 1.0])
    expected = [a + 0.99 * b + 0.99**2 * c, b + 0.99 * c, c, d]
    np.testing.assert_allclose(rewards(learner, state), expected, rtol=1e-6)


def test_the_mean_of_a_batch_is_subtracted():
    """Visits to 5, 6, 5: i = 1/√2, 1, 1/√2, so that i − ī sums to 0 and the new state gains."""
    bonus = rove.Counts(2.0, bits=4, power=0.5)
    state, cells = bonus.init(40, True, noise.root(0)), []
    for cell in (5, 6, 5):
        state, step = bonus.observe(state, step_to(code(cell)))
        cells.append(step.cell)
    steps = step_to(code(0))._replace(reward=jnp.array([1.0, 0.0, 0.0]), cell=jnp.stack(cells))
    novelty = np.array([0.5**0.5, 1.0, 0.5**0.5])
    expected = [1.0, 0.0, 0.0] + 2.0 * (novelty - novelty.mean())
    np.testing.assert_allclose(
        bonus.reward(state, steps, lambda: jnp.zeros(3)), expected, rtol=1e-6
    )


def test_every_code_has_a_count_of_its_own():
    """Also if there are more codes than the hash has cells."""
    state = init(AGENT, 40, 2, noise.root(0), CODES)
    for cell in (3, 19, 35, 19):
        state = observe(AGENT, state, step_to(code(cell)))
    expected = np.bincount([3, 19, 35, 19], minlength=40)
    np.testing.assert_array_equal(state.bonus.count, expected)


def test_a_hash_is_that_of_numpy():
    """Observations of very different scales are normalised by what was seen so far; the j-th bit
    of the hash says on which side of the j-th plane one lies."""
    bonus = rove.Counts(bits=10)
    state = bonus.init(3, False, noise.root(1))
    rng = np.random.default_rng(0)
    seen = np.float32(rng.normal(size=(40, 3)) * [1.0, 0.01, 50.0] + [0.0, 5.0, 0.0])
    observe = jax.jit(bonus.observe)
    for i, x in enumerate(seen):
        state, stored = observe(state, step_to(jnp.asarray(x)))
        past = seen[: i + 1].astype(np.float64)
        scaled = (x - past.mean(0)) / np.sqrt(past.var(0) + 1e-8)
        sides = scaled @ np.asarray(state.normals, np.float64) + np.asarray(state.offsets)
        if np.abs(sides).min() > 1e-3:  # not on a plane
            assert int(stored.cell) == (sides > 0) @ (1 << np.arange(10))
    assert int(state.count.sum()) == 40
    cells = simhash(state, jnp.asarray(seen))
    assert len(set(cells.tolist())) > 20
    assert 0 <= int(cells.min()) < int(cells.max()) < 2**10


def test_planes_are_drawn_at_random_and_near_observations_share_a_cell():
    """The angle φ of two vectors decides: a plane through 0 separates them with chance φ/π. With
    offsets of standard deviation 1 this holds for vectors with a 1 appended."""
    bonus = rove.Counts(bits=24)
    x = jnp.array([[1.0, 0.5], [1.2, 0.4], [-2.0, 1.0]])
    planes = jax.jit(jax.vmap(lambda key: bonus.init(2, False, key)._replace(count=())))
    unit_scale = Statistics(jnp.ones(()), jnp.zeros(2), jnp.ones(2))
    drawn = planes(noise.folds(noise.root(0), 200))
    hashes = np.asarray(
        jax.jit(jax.vmap(lambda *planes: simhash(Visits((), *planes, unit_scale), x)))(
            drawn.normals, drawn.offsets
        )
    )
    apart = np.array([[bin(a ^ row[0]).count("1") for a in row] for row in hashes])
    extended = np.c_[x, np.ones(3)]
    unit = extended / np.linalg.norm(extended, axis=1, keepdims=True)
    expected = np.arccos(np.clip(unit @ unit[0], -1, 1)) / np.pi
    np.testing.assert_allclose(apart.mean(axis=0) / 24, expected, atol=4 * 0.5 / np.sqrt(200 * 24))
