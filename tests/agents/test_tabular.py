"""The tabular gold standards against NumPy, published formulas and known laws."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import rove
from rove.agents.tabular import PosteriorSampling, QValueSampling, psrl
from rove.agents.tabular.base import state_index
from rove.agents.tabular.bayesian_q_learning import NormalGamma
from rove.agents.tabular.psrl import Model
from rove.cli import main as cli
from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.replay import Transition
from rove.runs.configure import configure
from rove.training import chunks, outcomes, storage
from rove.training.executors import Threads, base
from rove.training.solving import episodes_to_solve

STATES, ACTIONS = 4, 3
AGENTS = {
    "psrl": PosteriorSampling(concentration=2.0, reward_std=0.7, noise_std=0.4, gamma=0.9),
    "bayesian_q_learning": QValueSampling(mu=0.3, lam=0.6, alpha=1.4, beta=0.8, gamma=0.9),
}

learn = jax.jit(lambda agent, state, row: agent.learn(agent.observe(state, row), noise.root(0)))
greedy = jax.jit(lambda agent, state, x: agent.greedy(state, x))
act = jax.jit(lambda agent, state, x, key: agent.act(state, x, key))


def history(rng: np.random.Generator, length: int) -> list[tuple[int, int, float, int, bool]]:
    """(s, a, r, s′, terminated), with one pair never seen and some ends of the task."""
    rows = []
    while len(rows) < length:
        s, a, s_next = (int(rng.integers(k)) for k in (STATES, ACTIONS, STATES))
        if (s, a) != (STATES - 1, 0):
            rows.append((s, a, float(rng.normal()), s_next, bool(rng.random() < 0.2)))
    return rows


def coded(s: int, thermometer: bool = False) -> jax.Array:
    states = np.arange(STATES)
    return jnp.asarray(states <= s if thermometer else states == s, jnp.float32)


def after(agent, rows, thermometer: bool = False):
    """The agent's state after these transitions, and the losses on the way."""
    state, losses = agent.init(STATES, ACTIONS, noise.root(0)), []
    for s, a, r, s_next, terminated in rows:
        x, y = coded(s, thermometer), coded(s_next, thermometer)
        if terminated:
            y = jnp.zeros(STATES)  # as Deep Sea has it: the last observation tells nothing
        row = Transition(x, jnp.array(a), jnp.array(r, jnp.float32), y, jnp.array(terminated))
        state, loss = learn(agent, state, row)
        losses.append(float(loss))
    return state, losses


def test_the_number_of_a_state():
    for s in range(STATES):
        assert int(state_index(coded(s))) == s
        assert int(state_index(coded(s, thermometer=True))) == s
        assert int(state_index(-0.5 * coded(s))) == s
    assert int(state_index(jnp.zeros(STATES))) == 0


@pytest.mark.parametrize("name", AGENTS)
def test_both_kinds_of_features_are_the_same_states(name):
    rows = history(np.random.default_rng(0), 20)
    one_hot, thermometer = (after(AGENTS[name], rows, kind)[0] for kind in (False, True))
    for a, b in zip(jax.tree.leaves(one_hot.phi), jax.tree.leaves(thermometer.phi), strict=True):
        np.testing.assert_array_equal(a, b)


# PSRL


def numpy_posterior(rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dirichlet parameters, mean and standard deviation of the rewards, pair by pair."""
    agent = AGENTS["psrl"]
    alpha = np.full((STATES, ACTIONS, STATES + 1), agent.concentration / (STATES + 1))
    rewards = {pair: [] for pair in itertools.product(range(STATES), range(ACTIONS))}
    for s, a, r, s_next, terminated in rows:
        alpha[s, a, STATES if terminated else s_next] += 1
        rewards[s, a].append(r)
    mean, std = np.zeros((STATES, ACTIONS)), np.zeros((STATES, ACTIONS))
    for pair, r in rewards.items():
        precision = agent.reward_std**-2 + len(r) * agent.noise_std**-2
        mean[pair] = sum(r) * agent.noise_std**-2 / precision
        std[pair] = precision**-0.5
    return alpha, mean, std


def numpy_q(p, r, gamma, sweeps) -> np.ndarray:
    """Value iteration with loops; the last outcome is worth nothing."""
    q = np.zeros((STATES, ACTIONS))
    for _ in range(sweeps):
        v = [max(row) for row in q] + [0.0]
        q = np.array(
            [
                [r[s, a] + gamma * sum(p[s, a, i] * v[i] for i in range(STATES + 1))
                 for a in range(ACTIONS)]
                for s in range(STATES)
            ]
        )  # fmt: skip
    return q


def random_mdp(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(STATES + 1), (STATES, ACTIONS)), rng.normal(size=(STATES, ACTIONS))


def test_counts_and_rewards_are_the_posterior():
    rows = history(np.random.default_rng(1), 60)
    state, losses = after(AGENTS["psrl"], rows)
    alpha, mean, std = numpy_posterior(rows)
    agent, counts = AGENTS["psrl"], state.phi.fitted
    model = agent.mean(counts)
    np.testing.assert_allclose(
        model.transition, alpha / alpha.sum(axis=-1, keepdims=True), rtol=1e-5
    )
    np.testing.assert_allclose(model.reward, mean, rtol=1e-4, atol=1e-6)
    # One key draws the same standard normals from the prior and from the posterior.
    sample, unseen = jax.jit(agent.sample), agent.init(STATES, ACTIONS, noise.root(0)).phi.fitted
    normals = np.asarray(sample(unseen, noise.root(2)).reward) / agent.reward_std
    drawn = sample(counts, noise.root(2)).reward
    np.testing.assert_allclose(drawn, mean + std * normals, rtol=1e-4, atol=1e-5)
    assert int(state.counter) == 60
    # The last loss is −log of what its outcome's probability was before.
    s, a, _, s_next, terminated = rows[-1]
    before = numpy_posterior(rows[:-1])[0][s, a]
    outcome = STATES if terminated else s_next
    np.testing.assert_allclose(losses[-1], -np.log(before[outcome] / before.sum()), rtol=1e-5)


@pytest.mark.parametrize("sweeps", [1, 2, 7])
def test_value_iteration_against_loops(sweeps):
    p, r = random_mdp(2)
    q = psrl.solve(Model(jnp.asarray(p, jnp.float32), jnp.asarray(r, jnp.float32)), 0.9, sweeps)
    np.testing.assert_allclose(q, numpy_q(p, r, 0.9, sweeps), rtol=1e-4, atol=1e-5)


def test_value_iteration_ends_at_the_best_policy():
    """Of all 81 policies, each solved as a linear system."""
    p, r = random_mdp(3)
    values = []
    for policy in itertools.product(range(ACTIONS), repeat=STATES):
        choice = (np.arange(STATES), np.array(policy))
        values.append(np.linalg.solve(np.eye(STATES) - 0.9 * p[choice][:, :STATES], r[choice]))
    model = Model(jnp.asarray(p, jnp.float32), jnp.asarray(r, jnp.float32))
    q = np.asarray(psrl.solve(model, 0.9, 300))
    np.testing.assert_allclose(q.max(axis=1), np.max(values, axis=0), rtol=1e-4)


def test_a_sampled_mdp_has_the_law_of_the_posterior():
    rows = history(np.random.default_rng(4), 40)
    counts, draws = after(AGENTS["psrl"], rows)[0].phi.fitted, 4000
    sample = jax.jit(jax.vmap(AGENTS["psrl"].sample, (None, 0)))
    models = sample(counts, noise.folds(noise.root(1), draws))
    p = np.asarray(models.transition, float)
    alpha, mean, std = numpy_posterior(rows)
    np.testing.assert_allclose(p.sum(axis=-1), 1.0, atol=1e-5)
    assert (p >= 0).all()
    total = alpha.sum(axis=-1, keepdims=True)
    expected, variance = alpha / total, alpha * (total - alpha) / (total**2 * (total + 1))
    assert np.all(np.abs(p.mean(axis=0) - expected) < 5 * np.sqrt(variance / draws))
    np.testing.assert_allclose(p.var(axis=0), variance, rtol=0.25, atol=1e-3)
    # A marginal of a Dirichlet is a beta; one pair was never seen.
    for s, a in ((0, 0), (STATES - 1, 0)):
        beta = stats.beta(alpha[s, a, 1], total[s, a, 0] - alpha[s, a, 1])
        assert stats.kstest(p[:, s, a, 1], beta.cdf).pvalue > 1e-3
    z = (np.asarray(models.reward, float) - mean) / std
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3
    correlation = np.corrcoef(z.reshape(draws, -1).T) - np.eye(STATES * ACTIONS)
    assert np.abs(correlation).max() < 5 / np.sqrt(draws)


def test_psrl_acts_on_its_draw_and_is_greedy_on_the_mean():
    rows = history(np.random.default_rng(5), 50)
    agent, state = AGENTS["psrl"], after(AGENTS["psrl"], rows)[0]
    alpha, mean, _ = numpy_posterior(rows)
    q = numpy_q(alpha / alpha.sum(axis=-1, keepdims=True), mean, 0.9, 100)
    resample_theta = jax.jit(agent.resample_theta)
    key = noise.root(6)
    drawn = resample_theta(state, jnp.array(True), key)
    model = jax.jit(agent.sample)(state.phi.fitted, key)
    q_drawn = numpy_q(np.asarray(model.transition), np.asarray(model.reward), 0.9, 100)
    np.testing.assert_allclose(drawn.theta, q_drawn, rtol=1e-3, atol=1e-4)
    for s in range(STATES):
        assert int(greedy(agent, drawn, coded(s))) == q[s].argmax()
        assert int(act(agent, drawn, coded(s), noise.root(7))) == q_drawn[s].argmax()
    held = resample_theta(drawn, jnp.array(False), noise.root(8))
    np.testing.assert_array_equal(held.theta, drawn.theta)
    other = resample_theta(drawn, jnp.array(True), noise.root(8))
    assert not np.allclose(other.theta, drawn.theta)


# Bayesian Q-learning


def published_update(prior, m1: float, m2: float):
    """Dearden et al. 1998, for n = 1 return with E[R] = m1 and E[R²] = m2."""
    mu, lam, alpha, beta = prior
    n = 1
    return (
        (lam * mu + n * m1) / (lam + n),
        lam + n,
        alpha + n / 2,
        beta + n / 2 * (m2 - m1**2) + n * lam * (m1 - mu) ** 2 / (2 * (lam + n)),
    )


def test_moment_updating_as_published():
    agent = AGENTS["bayesian_q_learning"]
    rows = history(np.random.default_rng(9), 60)
    state, losses = after(agent, rows)
    tables = dict.fromkeys(
        itertools.product(range(STATES), range(ACTIONS)),
        (agent.mu, agent.lam, agent.alpha, agent.beta),
    )
    errors = []
    for s, a, r, s_next, terminated in rows:
        mu, lam, alpha, beta = max(
            (tables[s_next, b] for b in range(ACTIONS)), key=lambda t: float(t[0])
        )
        first, second = mu, (lam + 1) / lam * beta / (alpha - 1) + mu**2
        if terminated:
            first = second = 0.0
        m1 = r + agent.gamma * first
        m2 = r**2 + 2 * agent.gamma * r * first + agent.gamma**2 * second
        errors.append((m1 - tables[s, a][0]) ** 2)
        tables[s, a] = published_update(tables[s, a], m1, m2)
    for (s, a), wanted in tables.items():
        learned = [float(table[s, a]) for table in state.phi.fitted]
        np.testing.assert_allclose(learned, wanted, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(losses, errors, rtol=1e-3, atol=1e-5)
    for s in range(STATES):
        best = np.argmax([tables[s, a][0] for a in range(ACTIONS)])
        assert int(greedy(agent, state, coded(s))) == best


def test_returns_that_are_known_give_the_conjugate_posterior():
    """Without variance of their own, n updates are the textbook's one update with n data."""
    x = np.random.default_rng(10).normal(2.0, 1.5, 30)
    mu, lam, alpha, beta, n = 0.5, 0.7, 1.3, 0.9, len(x)
    law = NormalGamma(*(jnp.float32(value) for value in (mu, lam, alpha, beta)))
    for value in x:
        law = law.updated(jnp.float32(value), jnp.float32(0.0))
    spread = n * x.var() + lam * n / (lam + n) * (x.mean() - mu) ** 2
    wanted = ((lam * mu + x.sum()) / (lam + n), lam + n, alpha + n / 2, beta + spread / 2)
    np.testing.assert_allclose([float(value) for value in law], wanted, rtol=1e-5)


def test_sampled_values_and_returns_have_students_law():
    draws, (mu, lam, alpha, beta) = 20_000, (0.5, 0.7, 1.8, 0.9)
    law = NormalGamma(*(jnp.full(draws, value) for value in (mu, lam, alpha, beta)))
    drawn = np.asarray(jax.jit(NormalGamma.sample)(law, noise.root(11)))
    student = stats.t(2 * alpha, mu, np.sqrt(beta / (lam * alpha)))
    assert stats.kstest(drawn, student.cdf).pvalue > 1e-3
    # A return's predictive law is Student's too, wider; its variance is what `moments` says.
    predictive = stats.t(2 * alpha, mu, np.sqrt(beta * (lam + 1) / (lam * alpha)))
    mean, variance = law.moments()
    np.testing.assert_allclose([mean[0], variance[0]], predictive.stats("mv"), rtol=1e-5)


def test_actions_are_taken_as_often_as_they_are_best():
    """Two actions of equal variance: P(1 is best) from a million draws of the two laws."""
    tables = NormalGamma(
        *(jnp.array([[first, second]]) for first, second in ((0, 1), (2, 2), (3, 3), (4, 4))),
    )
    tables = jax.tree.map(lambda table: table.astype(jnp.float32), tables)
    agent = QValueSampling()
    state = agent.init(1, 2, noise.root(0))
    state = state._replace(phi=state.phi._replace(fitted=tables))
    keys = noise.folds(noise.root(12), 10_000)
    taken = jax.jit(jax.vmap(lambda key: agent.act(state, jnp.ones(1), key)))(keys)
    laws = [stats.t(6, m, np.sqrt(4 / (2 * 3))) for m in (0, 1)]
    rng = np.random.default_rng(13)
    first, second = (law.rvs(1_000_000, random_state=rng) for law in laws)
    assert abs(float(jnp.mean(taken)) - np.mean(second > first)) < 0.02


# As agents among the others


SETTINGS = {"psrl": rove.PSRL(), "bayesian_q_learning": rove.BayesianQLearning()}


def leaves(outcome):
    return jax.tree.leaves(outcome.lane._replace(log=None))


@pytest.mark.fast_cases("bayesian_q_learning")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_goes_on_from_its_checkpoint_to_the_same_bits(name, tmp_path):
    config = configure(SETTINGS[name], "deep-sea-4", seeds=[3], episodes=30)
    whole = Threads().execute(config.jobs(None))[0]
    job = config.jobs(tmp_path)[0]
    flight = outcomes.fresh(job)
    while not flight.finished:
        lane = chunks.advance([flight], [int(flight.lane.step)], chunk=7)[0]
        flight = outcomes.extended(flight, lane)
        storage.save(flight)
        flight = storage.load(job)
    for a, b in zip(leaves(whole), leaves(flight), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(whole.episodes.returns, flight.episodes.returns)


@pytest.mark.fast_cases("psrl")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_run_folder_gives_back_returns_and_policies(name, tmp_path):
    run = rove.train(SETTINGS[name], "chain-5", seeds=2, episodes=20, out=tmp_path / "a")
    back = rove.load(tmp_path / "a")
    assert back.config == run.config
    np.testing.assert_array_equal(back.returns, run.returns)
    np.testing.assert_array_equal(back.evaluate(), run.evaluate())
    assert not np.array_equal(*run.returns)  # seeds differ
    # The agent itself, without settings, is the same agent.
    bare = rove.train(SETTINGS[name].compose(), "chain-5", seeds=2, episodes=20, out=tmp_path / "b")
    np.testing.assert_array_equal(bare.returns, run.returns)
    assert rove.load(tmp_path / "b").config.agent == SETTINGS[name].compose()
    assert bare.config.agent_name == name


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_together_agrees_with_apart(name):
    configs = [
        configure(SETTINGS[name], "deep-sea-4", seeds=seeds, episodes=episodes)
        for seeds, episodes in ((2, 12), ([2], 5))
    ]
    jobs = [job for config in configs for job in config.jobs(None)]
    for a, b in zip(Threads().execute(jobs), Threads(together=True).execute(jobs), strict=True):
        np.testing.assert_array_equal(a.episodes.returns, b.episodes.returns)
        for x, y in zip(
            jax.tree.leaves(a.lane.agent.phi), jax.tree.leaves(b.lane.agent.phi), strict=True
        ):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_tables_that_do_not_fit_are_refused_with_their_bytes(monkeypatch):
    monkeypatch.setattr(base, "_free_memory", lambda: 10**9)
    with pytest.raises(ConfigError, match=r"states=10000: .* 1.6 GB.*environment"):
        rove.train("psrl", "chain-10000", seeds=1, episodes=1)
    configure("bayesian_q_learning", "chain-10000", episodes=1)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("psrl", "concentration", 0.0), ("psrl", "reward_std", -1.0), ("psrl", "noise_std", 0.0),
        ("psrl", "gamma", 1.1), ("psrl", "sweeps", 0), ("psrl", "hidden", (8,)),
        ("bayesian_q_learning", "mu", float("nan")), ("bayesian_q_learning", "lam", 0.0),
        ("bayesian_q_learning", "alpha", 1.0), ("bayesian_q_learning", "beta", 0.0),
        ("bayesian_q_learning", "gamma", -0.1), ("bayesian_q_learning", "lr", 0.1),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_by_name(name, field, value):
    with pytest.raises(ConfigError) as caught:
        configure(name, "chain-5", episodes=1, **{field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("name", SETTINGS)
def test_the_command_shows_its_fields_and_no_others(name, capsys):
    cli.main(["list"])
    assert name in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["train", name, "chain-10", "--help"])
    text = capsys.readouterr().out
    assert "--agent.gamma" in text
    for field in ("hidden", "batch-size", "lr", "epsilon", "target-period", "learning-starts"):
        assert f"--agent.{field}" not in text


# Learning


class WithoutResampling(PosteriorSampling):
    def resample_theta(self, state, begins, key):
        return state


class WithoutSampling(PosteriorSampling):
    def sample(self, counts, key):
        return self.mean(counts)


def solved(agent, environment: str, episodes: int) -> list[int | None]:
    run = rove.train(agent, environment, seeds=3, episodes=episodes)
    optimum = run.config.environment.optimum
    return [episodes_to_solve(row, optimum) for row in run.returns]


@pytest.mark.slow
def test_psrl_solves_deep_sea():
    """Ten optimal episodes in a row: 43 to 108 episodes on 20 seeds, of which 3 are run here."""
    assert None not in solved(rove.PSRL(), "deep-sea-10", 150)


@pytest.mark.slow
@pytest.mark.parametrize("broken", [WithoutResampling(), WithoutSampling()])
def test_psrl_needs_its_draws(broken):
    assert solved(broken, "deep-sea-10", 150) == [None] * 3


class Greedy(QValueSampling):
    def act(self, state, observation, key):
        return self.greedy(state, observation)


class WithoutBootstrap(QValueSampling):
    """Takes every step for the last."""

    def observe(self, state, transition, where=True):
        return super().observe(state, transition._replace(terminated=jnp.array(True)), where)


def test_bayesian_q_learning_solves_a_short_chain():
    """Ten optimal episodes in a row: 19 to 48 episodes on 20 seeds, of which 3 are run here."""
    assert None not in solved(rove.BayesianQLearning(), "chain-5", 100)


@pytest.mark.parametrize("broken", [Greedy(), WithoutBootstrap()])
def test_bayesian_q_learning_needs_its_parts(broken):
    assert solved(broken, "chain-5", 100) == [None] * 3
