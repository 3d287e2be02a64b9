"""The loop on the host: what is stored and learned, columns, files, and going on after a kill."""

import csv
import signal
import time

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces, wrappers

import killing
import rove
from helpers import SMALL, lane_at
from rove.errors import ConfigError
from rove.parts import noise, replay
from rove.runs.configure import configure
from rove.training import checkpoint, host_programs, playing, progress
from rove.training.lane import ENVIRONMENT, EVALUATION, LOG_CAPACITY
from rove.training.solving import episodes_to_solve


class Counting(gymnasium.Env):
    """Shows the number of steps since its reset, and whether the episode is one that ends (1) or
    is cut off (0); three steps an episode, a reward of the number of the step."""

    observation_space = spaces.Box(0.0, 10.0, (2,))
    action_space = spaces.Discrete(2)

    def __init__(self, ends=True):
        self.ends, self.time = ends, 0

    def shown(self):
        return np.array([self.time, self.ends], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.shown(), {}

    def step(self, action):
        self.time += 1
        over = self.time == 3
        return (
            self.shown(),
            float(self.time),
            over and self.ends,
            over and not self.ends,
            {},
        )


def content(out):
    files = sorted((out / "lanes").glob("*.safetensors"))
    return (out / "episodes.csv").read_bytes(), [checkpoint.load_arrays(f)[0] for f in files]


def assert_same(a, b):
    (csv_a, arrays_a), (csv_b, arrays_b) = content(a), content(b)
    assert csv_a == csv_b
    for x, y in zip(arrays_a, arrays_b, strict=True):
        assert x.keys() == y.keys()
        for name in x:
            np.testing.assert_array_equal(x[name], y[name], err_msg=name)


@pytest.mark.parametrize(
    ("ends", "wrapped"), [(True, wrappers.Autoreset), (False, lambda env: env)]
)
def test_final_observations_are_stored_and_only_an_end_is_terminal(
    ends, wrapped, tmp_path, monkeypatch
):
    """Every row of the replay, written out: the last s′ of an episode is its own, not a reset's,
    also where the environment would reset itself. And every state counts, the first ones too, once
    an episode."""
    environment = rove.adopt(lambda: wrapped(Counting(ends)))
    config = configure(rove.DQN(**SMALL), environment, seeds=1, episodes=100)
    lane = lane_at(config, 9, tmp_path, monkeypatch)
    rows, held = replay.everything(lane.agent.replay, 0.99)
    rows = [np.asarray(column)[np.asarray(held)] for column in rows[:8]]
    np.testing.assert_array_equal(rows[0], [[t, ends] for t in [0, 1, 2] * 3])
    np.testing.assert_array_equal(rows[3], [[t, ends] for t in [1, 2, 3] * 3])
    np.testing.assert_array_equal(rows[2], [1, 2, 3] * 3)
    np.testing.assert_array_equal(rows[4], [False, False, ends] * 3)
    np.testing.assert_array_equal(rows[7], [False, False, not ends] * 3)
    visits = np.asarray(lane.visits).reshape(environment.cells)
    assert np.argwhere(visits).tolist() == [[4 * ends, 4 * t] for t in range(4)]  # of 40 in [0, 10]
    assert visits.max() == 3


class OneStep(gymnasium.Env):
    """One state, one step an episode, a reward of 1; terminated, or cut off."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(2)

    def __init__(self, ends):
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 1.0, self.ends, not self.ends, {}


@pytest.mark.fast_cases("True-1.0")
@pytest.mark.parametrize(("ends", "value"), [(True, 1.0), (False, 2.0)])
def test_a_time_limit_is_bootstrapped_and_an_end_is_not(ends, value):
    """γ = ½: a return of 1 where the task ends, of 1 + ½ + ¼ + … = 2 where time runs out."""
    agent = rove.DQN(
        hidden=(), gamma=0.5, lr=0.02, epsilon=1.0, target_period=5, learning_starts=16,
        batch_size=16, buffer_size=600,
    )  # fmt: skip
    run = rove.train(agent, lambda: OneStep(ends), episodes=600)
    state = run.outcomes[0].lane.agent
    beliefs = agent.compose().beliefs(state, jnp.ones((1, 1)), noise.root(0))
    np.testing.assert_allclose(beliefs.values[0, 0], value, atol=0.02)


def test_every_episode_is_written_down():
    """More than the log holds, one step each."""
    run = rove.train(rove.DQN(**SMALL), lambda: OneStep(True), episodes=2 * LOG_CAPACITY + 50)
    assert run.returns.shape == (1, 2 * LOG_CAPACITY + 50)
    np.testing.assert_array_equal(run.returns, 1.0)
    np.testing.assert_array_equal(run.lengths, 1)
    np.testing.assert_array_equal(np.diff(run.outcomes[0].episodes.step), 1)


def test_a_budget_of_steps_ends_within_an_episode():
    run = rove.train(rove.DQN(**SMALL), Counting, steps=100)
    assert int(run.outcomes[0].lane.step) == 100
    assert run.lengths.tolist() == [[3.0] * 33]
    assert run.returns.tolist() == [[6.0] * 33]


@pytest.mark.slow
def test_a_lane_does_not_depend_on_its_neighbours():
    settings = rove.GE(**SMALL, resample="episode")
    alone = rove.train(settings, "gym/CartPole-v1", seeds=[1], episodes=15).outcomes[0]
    among = rove.train(settings, "gym/CartPole-v1", seeds=3, episodes=15)
    for x, y in zip(
        jax.tree.leaves(alone.lane._replace(log=None)),
        jax.tree.leaves(among.outcomes[1].lane._replace(log=None)),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)
    assert not np.array_equal(among.returns[0], among.returns[1])
    two = rove.train(settings, "gym/CartPole-v1", seeds=3, episodes=15, workers=2)
    np.testing.assert_array_equal(two.returns, among.returns)


def test_numbers_do_not_compile_again():
    before = host_programs.programs_for.cache_info().misses
    for lr, seed in ((1e-3, 0), (1e-4, 1)):
        rove.train(rove.DQN(**{**SMALL, "hidden": (7,)}, lr=lr), Counting, seeds=[seed], episodes=2)
    # two sources, so two structures; the same source twice is one
    environment = rove.adopt(Counting)
    for lr, seed in ((1e-3, 0), (1e-4, 1)):
        agent = rove.DQN(**{**SMALL, "hidden": (7,)}, lr=lr)
        rove.train(agent, environment, seeds=[seed], episodes=2)
    assert host_programs.programs_for.cache_info().misses - before <= 1


def test_resets_have_seeds_of_their_own():
    seeds = {playing.reset_seed(s, ENVIRONMENT, e) for s in range(30) for e in range(30)}
    assert len(seeds) == 900
    assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.slow
def test_the_columns_and_pictures_are_those_of_the_compiled_loop(tmp_path):
    environment = rove.environments.make("gym/CartPole-v1", axes=(0, 2))
    run = rove.train(rove.GE(**SMALL), environment, seeds=2, episodes=9, out=tmp_path)
    with open(tmp_path / "episodes.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(rove.runs.tables.COLUMNS)
    assert len(rows) == 18
    assert {row["terminated"] for row in rows} == {"1"}
    np.testing.assert_array_equal(run.returns, run.lengths)  # CartPole pays 1 a step
    assert np.all(run.spread > 0)
    assert np.all((run.coverage[:, -1] > 1) & (run.coverage[:, -1] < 100))
    np.testing.assert_array_equal(rove.load(tmp_path).visits, run.visits)
    values = np.asarray(run.outcomes[0].lane.snapshots.values)
    assert [i for i in range(len(values)) if np.any(values[i])] == [0, 1, 2, 3]
    run.plot_diagnostics(tmp_path / "d.svg")
    assert all(x in (tmp_path / "d.svg").read_text() for x in ("s = start", "observation 2"))


@pytest.mark.slow
def test_a_run_is_loaded_by_name(tmp_path):
    environment = rove.environments.make("gym/rove/Chain-v0", n=6, features="one-hot")
    run = rove.train(rove.GE(**SMALL), environment, seeds=2, episodes=4, out=tmp_path)
    back = rove.load(tmp_path)
    assert back.config == run.config
    assert back.config.environment.options()["n"] == 6
    assert back.config.environment.observation_size == 6
    np.testing.assert_array_equal(back.returns, run.returns)
    np.testing.assert_array_equal(back.evaluate(), run.evaluate())
    with pytest.raises(ConfigError, match=r"n must be .*, got 0"):
        rove.environments.make("gym/rove/Chain-v0", n=0)


def test_an_environment_of_ones_own_has_to_be_given_again(tmp_path):
    env = Counting()
    run = rove.train(rove.DQN(**SMALL), env, seeds=2, episodes=4, out=tmp_path)
    alone = rove.load(tmp_path)
    np.testing.assert_array_equal(alone.returns, run.returns)
    assert alone.delivered == run.delivered  # as recorded: nothing is played
    assert alone.evaluated == run.evaluated
    with pytest.raises(rove.RunFolderError, match=r"Counting.*environment="):
        alone.evaluate()
    back = rove.load(tmp_path, environment=env)
    np.testing.assert_array_equal(back.evaluate(), run.evaluate())
    observation = env.reset(seed=0)[0]
    assert back.policy(1)(observation) == run.policy(1)(observation)


def test_evaluation_is_the_greedy_policys_own_episode():
    run = rove.train(rove.DQN(**SMALL), "gym/CartPole-v1", episodes=30)
    env, act = gymnasium.make("CartPole-v1"), run.policy(kind="mean")
    observation, _ = env.reset(seed=playing.reset_seed(0, EVALUATION, 0))
    returns, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        returns, done = returns + reward, terminated or truncated
    assert run.evaluate(policy="mean").tolist() == [[returns]]


class Image(gymnasium.Env):
    """A picture of integers, and actions that are numbered from 5."""

    observation_space = spaces.Box(0, 255, (2, 3), np.uint8)
    action_space = spaces.Discrete(3, start=5)
    taken: set = set()

    def reset(self, *, seed=None, options=None):
        return np.arange(6, dtype=np.uint8).reshape(2, 3), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.add(int(action))
        return np.full((2, 3), 7, np.uint8), 0.0, True, False, {}


@pytest.mark.slow
def test_pictures_are_flattened_and_actions_have_the_environments_numbers():
    run = rove.train(rove.DQN(**SMALL, epsilon=1.0), Image(), episodes=50)
    assert Image.taken == {5, 6, 7}
    assert run.policy()(np.zeros((2, 3), np.uint8)) in (5, 6, 7)
    np.testing.assert_array_equal(run.outcomes[0].lane.observation, 7.0)
    with pytest.raises(ConfigError, match="shape"):
        run.policy()(np.zeros(6))


def test_parts_follow_one_another():
    from rove.environments.encoding import encoder

    space = spaces.Dict({"a": spaces.Discrete(3), "b": spaces.Box(0, 9, (2,))})
    vector = encoder(space)({"a": np.int64(1), "b": np.array([4, 5], np.float32)})
    np.testing.assert_array_equal(vector, [0, 1, 0, 4, 5])
    assert vector.dtype == np.float32


def test_normalised_observations_and_their_statistics():
    """Against NumPy, over all observations of all episodes, first ones and final ones too."""
    seen = []

    class Noting(Counting):
        def shown(self):
            seen.append([3.0 + 2.0 * self.time + 0.1 * len(seen), 4.0])
            return np.array(seen[-1], np.float32)

    environment = rove.adopt(Noting, normalise=True)
    seen.clear()
    run = rove.train(rove.DQN(**SMALL), environment, episodes=40)
    lane = run.outcomes[0].lane
    count, mean, squares = lane.environment.statistics
    del seen[40 * 4 :]  # observations of evaluation episodes, after training
    assert count == len(seen)
    np.testing.assert_allclose(mean, np.mean(seen, axis=0), rtol=1e-4)
    np.testing.assert_allclose(squares / count, np.var(seen, axis=0), rtol=1e-4, atol=1e-5)
    last = (seen[-1][0] - np.mean(seen, axis=0)[0]) / np.std(seen, axis=0)[0]
    np.testing.assert_allclose(lane.observation, [last, 0.0], rtol=1e-3, atol=1e-3)
    agent, raw = run.config.compose(), np.array([20.0, 4.0], np.float32)
    shown = (raw - np.asarray(mean)) / np.sqrt(np.asarray(squares / count) + 1e-8)
    assert run.policy()(raw) == int(agent.greedy(lane.agent, jnp.clip(shown, -10, 10)))


def train_with_files(out) -> None:
    """A run with a file five times a second."""
    progress.CHECKPOINT_SECONDS = 0.2
    environment = rove.environments.make("gym/CartPole-v1", normalise=True)
    settings = rove.GE(**SMALL, resample="episode")
    rove.train(settings, environment, seeds=2, steps=2500, out=out)


@pytest.mark.slow
def test_a_killed_run_ends_bit_identical(tmp_path):
    """Kill -9 once both lanes have a file, in the middle of an episode as like as not."""
    killing.finish(train_with_files, tmp_path / "whole")
    killed = killing.start(train_with_files, tmp_path / "killed")
    until = time.monotonic() + 100
    while time.monotonic() < until and killed.is_alive():
        if len(list((tmp_path / "killed").glob("lanes/*.safetensors"))) == 2:
            time.sleep(0.3)
            break
        time.sleep(0.01)
    killed.kill()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL, "it was over before it could be killed"
    part = rove.load(tmp_path / "killed")
    assert all(0 < int(o.lane.step) < 2500 for o in part.outcomes)
    assert all(int(o.lane.length) == 0 for o in part.outcomes)
    killing.finish(train_with_files, tmp_path / "killed")
    assert_same(tmp_path / "whole", tmp_path / "killed")


def test_stopped_by_hand_it_goes_on_to_the_same_end(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "CHECKPOINT_SECONDS", 0.0)
    arguments = (rove.DQN(**SMALL), "gym/CartPole-v1")

    def stop(told):
        if told.step > 150:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rove.train(*arguments, seeds=2, episodes=30, out=tmp_path / "a", report=stop)
    assert 0 < rove.load(tmp_path / "a").returns.shape[1] < 30
    rove.train(*arguments, seeds=2, episodes=30, out=tmp_path / "a")
    monkeypatch.undo()
    rove.train(*arguments, seeds=2, episodes=30, out=tmp_path / "b")
    assert_same(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
def test_the_chain_is_learned_as_in_the_compiled_loop():
    """The chain draws nothing, and an agent's keys depend on its seed and step alone: both loops
    store, draw and learn the same. Sums are rounded as each program was compiled."""
    settings = rove.GE(**{**SMALL, "hidden": (32,)}, rho=-3.0, target_period=25)
    compiled = rove.train(settings, "chain-10", seeds=2, episodes=80)
    hosted = rove.train(settings, "gym/rove/Chain-v0", seeds=2, episodes=80)
    np.testing.assert_array_equal(hosted.returns, compiled.returns)
    assert compiled.returns.max() == 11.0, "nothing was found, so that little is compared"
    for pair in zip(hosted.outcomes, compiled.outcomes, strict=True):
        for x, y in zip(*(jax.tree.leaves(o.lane.agent) for o in pair), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_chain_is_solved_as_in_the_compiled_loop():
    """With the tuned settings, in as many episodes."""
    settings = rove.runs.configure.default_settings("ge", rove.Chain(10))
    runs = [
        rove.train(settings, e, seeds=3, episodes=120) for e in ("chain-10", "gym/rove/Chain-v0")
    ]
    compiled, hosted = ([episodes_to_solve(row, 11.0) for row in run.returns] for run in runs)
    assert all(when is not None for when in compiled)
    assert hosted == compiled


@pytest.mark.slow
def test_the_pole_is_balanced_as_in_the_compiled_loop():
    """With the settings and the bar of the compiled loop's own test."""
    settings = rove.DQN(
        hidden=(64, 64), target_period=200, epsilon=0.02, epsilon_steps=8000, learning_starts=1000
    )
    for name in ("cartpole", "gym/CartPole-v1"):
        run = rove.train(settings, name, seeds=2, steps=40_000)
        assert all(np.mean(outcome.scores[-20:]) > 150 for outcome in run.outcomes), name
