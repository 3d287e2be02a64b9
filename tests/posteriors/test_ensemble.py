"""The ensemble: members, prior functions, bootstrap masks, and whose target is whose.

Which member a row of draws belongs to is found from its values, not from the code's roll.
Statistical limits: a chance of 1e-4 for all values of a test together; seeds are fixed.
"""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest
from scipy import stats

from helpers import draw, in_buffer
from rove.core.algorithm import Agent
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.replay import Transition
from rove.posteriors import Ensemble
from rove.posteriors.ensemble import MemberRows, OwnMemberRows
from rove.posteriors.priors import cache, inputs
from rove.returns import Gaussian

K, FEATURES, ACTIONS, N = 5, 3, 2, 8
NETWORK = networks.mlp(FEATURES, 6, ACTIONS)
POSTERIOR = Ensemble(K, mask=0.5, prior=2.0)
init = jax.jit(Ensemble.init, static_argnums=1)
PHI = init(POSTERIOR, NETWORK, noise.root(0))
LAW = POSTERIOR.law(PHI)
AGENT = Agent(
    Gaussian(0.0), POSTERIOR, hidden=(6,), batch_size=N, buffer_size=32, gamma=0.9, lr=0.01
)
KEYS = [noise.root(s) for s in range(20)]

gradient = jax.jit(jax.grad(lambda *args: AGENT.objective(*args)[0], allow_int=True))
learn, observe = jax.jit(AGENT.learn), jax.jit(AGENT.observe)
sample_rows = jax.jit(Ensemble.sample_rows)


def rows_of(key, ids=None) -> OwnMemberRows:
    """What the members learn from in a minibatch of some transitions."""
    return sample_rows(POSTERIOR, LAW, jnp.arange(N) if ids is None else ids, key).rows


def all_rows(theta: OwnMemberRows) -> MemberRows:
    """The same members in the same order, at every row."""
    return MemberRows(theta.first, theta.learned, theta.prior)


@jax.jit
def values(theta, xs):
    return theta(LAW, inputs(PHI.priors, xs))


@jax.jit
def at_rows(posterior, phi, k, xs):
    law, xs = posterior.law(phi), inputs(phi.priors, xs)
    return jax.vmap(posterior.apply, (None, None, 0))(law, k, xs)


any_masks = jax.jit(Ensemble.masks)


def limit(several: int) -> float:
    return stats.norm.isf(0.5e-4 / several)


def np_network(stack, k: int, x) -> np.ndarray:
    """Network k of a stack, in float64."""
    layers = [[np.asarray(part[k], np.float64) for part in layer] for layer in stack]
    x = np.asarray(x, np.float64)
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0.0)
    return x @ layers[-1][0] + layers[-1][1]


def np_member(phi, k: int, x, beta: float = 2.0) -> np.ndarray:
    return np_network(phi.learned, k, x) + beta * np_network(phi.priors, k, x)


def batch(seed: int, n: int = N) -> Transition:
    rng = np.random.default_rng(seed)
    s, s_next = jnp.asarray(rng.normal(size=(2, n, FEATURES)), jnp.float32)
    action = jnp.asarray(rng.integers(ACTIONS, size=n), jnp.int32)
    reward = jnp.asarray(rng.normal(size=n), jnp.float32)
    return Transition(s, action, reward, s_next, jnp.arange(n) % 3 == 0)


def taken(of: Transition) -> Transition:
    """Transitions as the buffer keeps them."""
    s, s_next = (cache(PHI.priors, x) for x in (of.observation, of.next_observation))
    return in_buffer(of)._replace(priors=s, next_priors=s_next)


def members_of(key) -> list[int]:
    """The member behind each draw of a key."""
    xs = batch(0).observation
    exact = np.array([np_member(PHI, k, xs) for k in range(K)])
    rows = np.asarray(values(all_rows(rows_of(key)), xs), np.float64)
    distance = np.abs(rows[:, None] - exact[None]).max(axis=(2, 3))
    assert np.all(distance.min(1) < 1e-5)
    return distance.argmin(1).tolist()


def masks_of(ids) -> np.ndarray:
    return np.asarray(any_masks(POSTERIOR, LAW, jnp.asarray(ids, jnp.int32)))


def learned_by(masks: np.ndarray) -> np.ndarray:
    """What each member learns from, in plain Python: the first half (POSTERIOR's share) of a
    minibatch's rows at the most."""
    out = np.zeros_like(masks)
    for k, held in enumerate(masks):
        rows = [i for i, mask in enumerate(held) if mask]
        out[k, rows[: -(-masks.shape[1] // 2)]] = True
    return out


# Members


def test_a_member_is_its_network_and_beta_times_its_prior():
    xs = batch(1).observation
    for k in range(K):
        exact = np_member(PHI, k, xs)
        got = at_rows(POSTERIOR, PHI, k, xs)
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-5)
    plain = Ensemble(K)
    phi = init(plain, NETWORK, noise.root(0))
    assert phi.priors == ()
    exact = [np_network(phi.learned, k, xs[0]) for k in range(K)]
    got = [at_rows(plain, phi, k, xs[:1])[0] for k in range(K)]
    np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-5)


def test_members_and_priors_all_differ_at_the_start():
    for stack in (PHI.learned, PHI.priors):
        first = np.asarray(stack[0].weight).reshape(K, -1)
        assert len(np.unique(first)) == first.size
    assert not np.any(np.asarray(PHI.learned[0].weight) == np.asarray(PHI.priors[0].weight))


def test_mean_is_the_mean_of_all_members():
    x = batch(2).observation[0]
    exact = np.mean([np_member(PHI, k, x) for k in range(K)], axis=0)
    got = POSTERIOR.mean(LAW, inputs(PHI.priors, x))
    np.testing.assert_allclose(got, exact, rtol=1e-4, atol=1e-5)


def test_the_draws_are_every_member_once_in_an_order_the_key_draws():
    orders = [members_of(key) for key in KEYS]
    assert all(sorted(order) == list(range(K)) for order in orders)
    # Five equally likely: 20 keys miss one of them with chance below 5·0.8²⁰ = 0.06.
    assert {order[0] for order in orders} == set(range(K))


def test_control_draws_members_evenly():
    keys = jax.vmap(lambda i: noise.fold(noise.root(1), i))(jnp.arange(50_000))
    counts = np.bincount(jax.jit(jax.vmap(lambda k: POSTERIOR.sample(LAW, k)))(keys), minlength=K)
    assert len(counts) == K
    assert stats.chisquare(counts).pvalue > 1e-4


def test_entropy_is_0():
    assert float(POSTERIOR.entropy(LAW)) == 0.0


# Masks


def test_a_transition_has_the_same_mask_each_time_it_is_met():
    """In another minibatch, at another place, after learning."""
    ids = np.arange(40)
    masks = masks_of(ids)
    assert np.array_equal(masks_of(ids[::-1]), masks[:, ::-1])
    assert np.array_equal(masks_of([7, 3, 7, 7]), masks[:, [7, 3, 7, 7]])
    moved = LAW._replace(members=jax.tree.map(lambda x: x + 1.0, LAW.members))
    assert np.array_equal(any_masks(POSTERIOR, moved, jnp.asarray(ids, jnp.int32)), masks)


def test_a_draw_learns_from_its_members_share_of_the_rows():
    assert masks_of(np.arange(6 * N)).reshape(K, 6, N).sum(2).max() > N // 2  # some hold more
    for start in range(6):
        ids = np.arange(N * start, N * (start + 1))
        exact = learned_by(masks_of(ids))
        for key in KEYS[:3]:
            found = np.asarray(rows_of(key, jnp.asarray(ids, jnp.int32)).weights)
            assert np.array_equal(found, exact[members_of(key)])


def test_what_is_learned_from_is_computed_as_if_all_were():
    xs = batch(7).observation
    for start, key in enumerate(KEYS[:6]):
        theta = rows_of(key, jnp.arange(N * start, N * (start + 1)))
        assert isinstance(theta, OwnMemberRows)
        every, found = (np.asarray(values(rows, xs)) for rows in (all_rows(theta), theta))
        learned = np.asarray(theta.weights) > 0
        assert 0 < learned.sum() < learned.size
        np.testing.assert_allclose(found[learned], every[learned], rtol=1e-5, atol=1e-6)


def test_members_that_are_not_paired_are_computed_for_every_row():
    """A target of any member's is needed at the rows that another learns from."""
    apart = Ensemble(K, mask=0.5, prior=2.0, paired=False)
    xs = batch(7).observation
    for key in KEYS[:3]:
        theta, own = (sample_rows(p, LAW, jnp.arange(N), key) for p in (apart, POSTERIOR))
        assert theta.for_target(own) is own
        assert own.for_target(theta) is own
        assert np.array_equal(theta.weights, own.weights)
        exact = np.array([np_member(PHI, k, xs) for k in members_of(key)])
        np.testing.assert_allclose(values(theta, xs), exact, rtol=1e-4, atol=1e-5)


def test_a_member_without_a_row_costs_the_others_nothing():
    """Weights by hand: none, one, and a whole share that ends with the last row."""
    xs, theta = batch(7).observation, rows_of(KEYS[0])
    w = np.zeros((K, N), np.float32)
    w[1, 3] = 1.0
    w[2, -(N // 2) :] = 1.0
    theta = OwnMemberRows(theta.first, jnp.asarray(w), theta.prior, theta.share)
    found = np.asarray(values(theta, xs))
    assert np.isfinite(found).all()
    every = np.asarray(values(all_rows(theta), xs))
    np.testing.assert_allclose(found[w > 0], every[w > 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
def test_masks_have_their_rate_and_are_independent(rate):
    """Between members, and between a transition and the next."""
    n = 50_000
    masks = np.asarray(any_masks(Ensemble(K, mask=rate), LAW, jnp.arange(n)), np.float64)
    assert masks.shape == (K, n)
    z = (masks - rate) / np.sqrt(rate * (1 - rate))
    assert np.max(np.abs(z.mean(1))) * np.sqrt(n) < limit(K)
    between = (z @ z.T / n)[np.triu_indices(K, 1)]
    assert np.max(np.abs(between)) * np.sqrt(n) < limit(len(between))
    after = z[:, :-1] @ z[:, 1:].T / n
    assert np.max(np.abs(after)) * np.sqrt(n) < limit(K * K)


def test_two_seeds_have_masks_of_their_own():
    other = POSTERIOR.law(init(POSTERIOR, NETWORK, noise.root(1)))
    ids = np.arange(40)
    assert np.any(np.asarray(any_masks(POSTERIOR, other, jnp.asarray(ids))) != masks_of(ids))


def test_mask_1_holds_every_transition():
    assert np.all(np.asarray(draw(Ensemble(K), LAW, 1000, KEYS[0]).weights) == 1.0)


def test_a_member_learns_nothing_from_a_transition_its_sample_does_not_hold():
    """One transition at a time: the gradient is exactly 0 for just the members whose mask is 0,
    whatever the key; by hand in float64 for the others: (f_k − x)·∇f_k over K, of the last bias."""
    one = batch(3, 1)
    ids = np.arange(12)
    masks = masks_of(ids)
    assert 0 < masks.sum() < masks.size
    action = int(one.action[0])
    for i in ids:
        for key in KEYS[:4]:
            order = members_of(key)
            x = jnp.arange(K, dtype=jnp.float32)[:, None]  # a target of its own for each row
            theta = rows_of(key, jnp.array([i], jnp.int32))
            grad = gradient(PHI, theta, taken(one), x).learned
            for row, k in enumerate(order):
                own = [np.asarray(leaf[k]) for leaf in jax.tree.leaves(grad)]
                assert any(np.any(leaf != 0.0) for leaf in own) == bool(masks[k, i])
                error = np_member(PHI, k, one.observation[0])[action] - row
                assert grad[-1].bias[k, action] == pytest.approx(masks[k, i] * error / K, abs=1e-5)


# Targets


def np_targets(k: int, of: Transition) -> np.ndarray:
    best = np_member(PHI, k, of.next_observation).max(axis=1)
    return np.asarray(of.reward, np.float64) + 0.9 * np.where(of.terminated, 0.0, best)


lookahead = jax.jit(lambda *args: AGENT.lookahead(PHI.priors, LAW, LAW, *args))


def test_a_members_target_is_its_own():
    """Row by row, target and value are of one member, whichever the key puts there."""
    of = batch(4)._replace(number=jnp.arange(N))
    for key in KEYS[:6]:
        theta, theta_minus = AGENT.draw(LAW, LAW, of, key, KEYS[11])
        assert theta_minus is theta
        x = np.asarray(lookahead(theta_minus, taken(of), KEYS[0]))
        assert x.shape == (K, N)
        exact = np.array([np_targets(k, of) for k in members_of(key)])
        learned = np.asarray(theta.weights) > 0
        np.testing.assert_allclose(x[learned], exact[learned], rtol=1e-4, atol=1e-4)


def filled_state():
    state = jax.jit(Agent.init, static_argnums=(1, 2))(AGENT, FEATURES, ACTIONS, noise.root(5))
    of = batch(6, 24)
    for i in range(24):
        state = observe(state, jax.tree.map(lambda leaf, i=i: leaf[i], of))
    return state


def test_priors_and_the_bootstrap_never_change_while_members_learn():
    state = filled_state()
    before = state.phi
    for step in range(20):
        state, loss = learn(state, noise.fold(noise.root(6), step))
        assert np.isfinite(loss)
    kept = ((phi.fitted, phi.priors) for phi in (before, state.phi))
    for a, b in zip(*map(jax.tree.leaves, kept), strict=True):
        assert np.array_equal(a, b)
    for a, b in zip(
        jax.tree.leaves(before.learned), jax.tree.leaves(state.phi.learned), strict=True
    ):
        assert np.all(np.any(np.asarray(a) != np.asarray(b), axis=tuple(range(1, a.ndim))))


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("size", {"size": 0}),
        ("size", {"size": 2.5}),
        ("mask", {"mask": 0.0}),
        ("mask", {"mask": 1.1}),
        ("mask", {"mask": float("nan")}),
        ("prior", {"prior": -1.0}),
        ("prior", {"prior": float("inf")}),
    ],
)
def test_bad_values_are_refused_by_name(field, settings, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ConfigError, match=field) as caught:
        Ensemble(**settings)
    assert caught.value.field == field
