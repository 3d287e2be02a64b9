"""Several copies of a Gymnasium environment for one seed: the order of their steps, what is each
one's own and what they share, files, and refusals."""

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium import spaces

import rove
from helpers import lane_at
from rove.cli.main import main
from rove.core.policies import Behaviour
from rove.environments import make
from rove.environments.faults import BadEnvironment
from rove.errors import ConfigError
from rove.parts import noise, replay
from rove.runs.configure import configure
from rove.runs.recorded import RecordedTask, facts_of
from rove.training import checkpoint, copies, progress, storage
from rove.training.host_copies import HostCopies
from rove.training.host_programs import _step
from rove.training.lane import ENVIRONMENT, LOG_CAPACITY, start
from rove.training.playing import reset_seed

FAST = {"hidden": (8,), "batch_size": 8, "buffer_size": 64, "learning_starts": 8}
GAMMA = 0.5


class Varied(gymnasium.Env):
    """The seed of a reset decides the episode: 2 to 5 steps, the reward of all of them, and whether
    it ends by termination. Shows the reward and the time."""

    observation_space = spaces.Box(-100.0, 100.0, (2,))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.length, self.reward, self.terminates = kind(seed)
        self.time = 0
        return np.array([self.reward, 0], np.float32), {}

    def step(self, action):
        self.time += 1
        over = self.time == self.length
        shown = np.array([self.reward, self.time], np.float32)
        return shown, self.reward, over and self.terminates, over and not self.terminates, {}


def kind(seed: int) -> tuple[int, float, bool]:
    rng = np.random.default_rng(seed)
    return int(rng.integers(2, 6)), float(rng.integers(1, 50)), bool(rng.integers(2))


def steps_by_hand(seed: int, count: int, rounds: int) -> list[dict]:
    """What copies that take turns do, and the number of the episode that each is in: episodes are
    numbered as they begin, and of those that end in one round, the first copy's is the first."""
    numbers, times, begun, steps = list(range(count)), [0] * count, count, []
    for _ in range(rounds):
        for copy in range(count):
            number = numbers[copy]
            length, reward, terminates = kind(reset_seed(seed, ENVIRONMENT, number))
            times[copy] += 1
            over = times[copy] == length
            step = {"episode": number, "reward": reward, "time": times[copy], "over": over}
            steps.append(step | {"terminated": over and terminates, "length": length})
            if over:
                numbers[copy], times[copy], begun = begun, 0, begun + 1
    return steps


@pytest.mark.slow
def test_every_copy_has_its_own_return_in_the_scale_of_rewards():
    """The largest discounted return of one episode, not of the rewards of all copies in turn."""
    agent = rove.DQN(**FAST, gamma=GAMMA, reward_scale="running")
    run = rove.train(agent, rove.adopt(Varied, copies=3), seeds=[5], steps=30)
    steps = steps_by_hand(5, 3, 10)
    by_hand = [step["reward"] * (2.0 - 2.0 ** (1 - step["time"])) for step in steps]
    assert float(run.outcomes[0].lane.agent.reward_scale.largest) == max(by_hand)


@pytest.mark.fast_cases("4-2-12")
@pytest.mark.parametrize(("count", "n_step", "rounds"), [(3, 3, 9), (4, 2, 12)])
def test_every_transition_is_that_of_one_copys_own_steps(
    count, n_step, rounds, tmp_path, monkeypatch
):
    """All that is in the buffer, against values worked out from the list of steps: episodes end by
    termination and by truncation, the ring has wrapped around (its size is not a multiple of the
    number of copies), and the newest steps have no successors yet."""
    settings = FAST | {"buffer_size": 22}
    agent = rove.DQN(**settings, n_step=n_step, gamma=GAMMA, epsilon=1.0)
    environment = rove.adopt(Varied, copies=count)
    config = configure(agent, environment, seeds=[5], episodes=1000)
    steps = steps_by_hand(5, count, rounds)
    last = next(
        i for i in range(len(steps), 22, -count) if any(s["over"] for s in steps[i - count : i])
    )
    steps = steps[:last]
    lane = lane_at(config, last, tmp_path, monkeypatch)
    rows, held = jax.tree.map(np.asarray, replay.everything(lane.agent.replay, GAMMA))
    assert held.all()
    truncations = terminations = cut = 0
    for slot in range(22):
        first = last - 1 - (last - 1 - slot) % 22
        own = list(range(first, last, count))[:n_step]
        ended = [i for i in own if steps[i]["over"]]
        own = own if not ended else own[: own.index(ended[0]) + 1]
        end = steps[own[-1]]
        assert {steps[i]["episode"] for i in own} == {steps[first]["episode"]}
        total = sum(GAMMA**k * steps[i]["reward"] for k, i in enumerate(own))
        assert rows.reward[slot] == pytest.approx(total)
        assert rows.discount[slot] == pytest.approx(GAMMA ** len(own))
        shown = [steps[first]["reward"], steps[first]["time"] - 1]
        np.testing.assert_array_equal(rows.observation[slot], shown)
        np.testing.assert_array_equal(rows.next_observation[slot], [end["reward"], end["time"]])
        assert rows.terminated[slot] == end["terminated"]
        assert rows.truncated[slot] == (end["over"] and not end["terminated"])
        terminations += end["terminated"]
        truncations += end["over"] and not end["terminated"]
        cut += len(own) < n_step and not end["over"]
    assert min(terminations, truncations, cut) > 0  # or these steps have nothing to show

    ended = [(i + 1, step) for i, step in enumerate(steps) if step["over"]]
    episodes = storage.load(config.jobs(tmp_path)[0]).episodes
    assert episodes.step.tolist() == [i for i, _ in ended]
    assert episodes.length.tolist() == [step["length"] for _, step in ended]
    assert episodes.terminated.tolist() == [step["terminated"] for _, step in ended]
    np.testing.assert_allclose(episodes.returns, [s["length"] * s["reward"] for _, s in ended])
    assert int(lane.step) == int(lane.agent.counter) == last
    assert int(lane.episode) == len(ended)
    rounds_learned = (last - 8) // count + 1  # from the round of the step of the first update on
    assert int(jax.tree.leaves(lane.agent.optimiser)[0]) == rounds_learned * count


def rounds_of(agent, count: int, done: np.ndarray):
    """What each copy has after every round, given which episodes end in it."""
    learner, environment = agent.compose(), rove.adopt(Varied, copies=count)
    if learner.continuous:
        environment = make("gym/Pendulum-v1", copies=count)
    width = environment.observation_size

    @jax.jit
    def complete(lane, actions, responses):
        def step(lane, taken):
            return _step(learner, environment, False, lane, taken)

        lane = copies.in_turn(step, lane, (actions, responses))
        return lane, copies.act_all(learner, lane), copies.stacked(lane)

    lane = jax.jit(lambda: start(learner, environment, jnp.int32(0)))()
    actions = jax.jit(lambda lane: copies.act_all(learner, lane))(lane)
    found = [(actions, jax.jit(copies.stacked)(lane))]
    for row in done:
        responses = np.ones((count, width + 3), np.float32)
        responses[:, -2], responses[:, -1] = 0.0, row
        lane, actions, stacked = complete(lane, actions, responses)
        found.append((actions, stacked))
    return jax.tree.map(lambda *xs: np.stack([np.asarray(x) for x in xs]), *found)


DONE = np.random.default_rng(0).random((12, 3)) < 0.3


def changes(tree) -> np.ndarray:
    """Whether a copy's part of a tree differs from that of the round before, [rounds, copies]."""
    leaves = [x.reshape(*x.shape[:2], -1) for x in jax.tree.leaves(tree)]
    return np.any([np.any(x[1:] != x[:-1], axis=2) for x in leaves], axis=0)


def test_a_copy_resamples_theta_when_its_own_episode_begins():
    actions, found = rounds_of(rove.GE(**FAST, resample="episode"), 3, DONE)
    np.testing.assert_array_equal(changes(found.theta), DONE)
    first = jax.tree.leaves(found.theta)[0][0]
    assert len(np.unique(first, axis=0)) == 3  # from the start, each has a θ of its own
    assert actions.shape == (13, 3)


def test_a_copy_resamples_theta_after_a_number_of_its_own_steps():
    _, found = rounds_of(rove.GE(**FAST, resample=3), 3, DONE)
    due = np.arange(1, 13) % 3 == 0
    np.testing.assert_array_equal(changes(found.theta), np.repeat(due[:, None], 3, axis=1))


def test_noise_and_repeated_actions_are_a_copys_own():
    """An Ornstein–Uhlenbeck process begins again in the copy whose episode ends; a random action
    that is under way ends there, and nowhere else."""
    agent = rove.DDPG(**FAST, noise="ou", noise_std=0.5, noise_reversion=0.1, random_steps=0)
    without, x = (rounds_of(agent, 3, done)[1].random[..., 0] for done in (0 * DONE, DONE))
    drawn = without[1:] - 0.9 * without[:-1]
    np.testing.assert_allclose(x[1:], np.where(DONE, 0.0, 0.9 * x[:-1]) + drawn, atol=1e-5)
    assert len(np.unique(drawn)) == drawn.size
    done = np.random.default_rng(1).random((60, 3)) < 0.1
    _, found = rounds_of(rove.DQN(**FAST, epsilon=0.9, repeat=50), 3, done)
    left = found.random.left
    under_way = (left[:-1] > 1) & ~done
    np.testing.assert_array_equal(left[1:][under_way], left[:-1][under_way] - 1)
    np.testing.assert_array_equal(changes(found.random.number)[under_way], False)
    assert under_way.any(axis=0).all()


def test_copies_explore_apart():
    """Random actions of one round are independent, and so are those of one copy."""
    actions, _ = rounds_of(rove.DQN(**FAST, epsilon=1.0), 8, np.zeros((60, 8), bool))
    pairs = np.corrcoef(actions.T)[np.triu_indices(8, 1)]
    assert np.abs(pairs).max() < 0.5
    assert 0.35 < actions.mean() < 0.65


def test_a_policy_of_one_environment_resamples_theta_as_often_as_a_copy():
    learner = rove.GE(**FAST, resample=4).compose()
    environment = rove.adopt(Varied, copies=2)
    state = jax.jit(lambda: start(learner, environment, jnp.int32(0)))().agent
    behaviour, key, changed = Behaviour(), noise.root(3), []
    act, kept = jax.jit(behaviour.act), behaviour.begin(learner, state, key)
    for i in range(12):
        _, after = act(learner, state, kept, jnp.zeros(2), noise.fold(key, i))
        before = jax.tree.leaves(kept.theta)[0]
        changed.append(
            bool(np.any(np.asarray(before) != np.asarray(jax.tree.leaves(after.theta)[0])))
        )
        kept = after
    assert changed == [False, False, False, True] * 3


class Kinds(gymnasium.Env):
    """Episodes of three steps, of two kinds by their seed: rewards of 1, or of −1."""

    observation_space = spaces.Discrete(7)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.kind, self.time = seed % 2, 0
        return 3 * self.kind, {}

    def step(self, action):
        self.time += 1
        over = self.time == 3
        reward = 1.0 if self.kind else -1.0
        return 6 if over else 3 * self.kind + self.time, reward, over, False, {}


@pytest.mark.slow
def test_values_of_several_steps_are_learned_from_all_copies():
    """γ = ½, n = 3: ±(1 + ½ + ¼), ±(1 + ½), ±1. Rewards of another copy would move all of them
    towards 0; an update with the steps of one copy alone would take four times as many steps."""
    agent = rove.DQN(
        hidden=(), gamma=GAMMA, lr=0.02, epsilon=1.0, n_step=3, target_period=5, learning_starts=16,
        batch_size=32, buffer_size=600,
    )  # fmt: skip
    run = rove.train(agent, rove.adopt(Kinds, copies=4), steps=1200)
    state = run.outcomes[0].lane.agent
    beliefs = agent.compose().beliefs(state, jnp.eye(7)[:6], noise.root(0))
    expected = np.outer([-1.75, -1.5, -1.0, 1.75, 1.5, 1.0], [1, 1])
    np.testing.assert_allclose(beliefs.values[0], expected, atol=0.03)


def content(out):
    files = sorted((out / "lanes").glob("*.safetensors"))
    return (out / "episodes.csv").read_bytes(), [checkpoint.load_arrays(f)[0] for f in files]


def assert_same(a, b):
    (table, lanes), (other_table, other_lanes) = content(a), content(b)
    assert table == other_table
    for x, y in zip(lanes, other_lanes, strict=True):
        assert x.keys() == y.keys()
        for name in x:
            np.testing.assert_array_equal(x[name], y[name], err_msg=name)


CASES = {
    "normalised": (
        rove.GE(**FAST, resample="episode"),
        make("gym/CartPole-v1", copies=3, normalise=True),
        {"steps": 500},
    ),
    "continuous": (
        rove.TD3(**FAST, noise_std=0.1, random_steps=10),
        make("gym/Pendulum-v1", copies=2, time_limit=17),
        {"episodes": 20},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_run_that_was_stopped_ends_bit_identical(case, tmp_path, monkeypatch):
    """Stopped three times, when an episode of one copy ends and the others are in the middle of
    theirs; evaluations in between change nothing."""
    agent, environment, budget = CASES[case]
    with monkeypatch.context() as patched:
        patched.setattr(progress, "CHECKPOINT_SECONDS", 0.0)
        for limit in (60, 150, 200):

            def stop(update, limit=limit):
                if update.step > limit:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                rove.train(agent, environment, **budget, out=tmp_path / "a", report=stop)
            part = rove.load(tmp_path / "a").outcomes[0]
            assert limit < int(part.lane.step)
            assert not part.finished
            assert len(part.unfinished.actions) == int(np.sum(part.lane.others.length)) + int(
                part.lane.length
            )
    rove.train(agent, environment, **budget, out=tmp_path / "a")
    run = rove.train(agent, environment, **budget, out=tmp_path / "b")
    assert_same(tmp_path / "a", tmp_path / "b")
    lane = run.outcomes[0].lane
    assert int(lane.step) % environment.copies == 0
    if environment.normalise:  # of all copies: every step, and the first of every episode
        begun = (
            int(lane.episode) + environment.copies - int(np.sum(copies.stacked(lane).length == 0))
        )
        assert int(lane.environment.statistics.count) == int(lane.step) + begun


@pytest.mark.slow
def test_budgets_end_with_a_round():
    """Copies take a step each: the budget may be exceeded by less than their number."""
    run = rove.train(rove.DQN(**FAST), rove.adopt(Varied, copies=4), steps=50)
    assert int(run.outcomes[0].lane.step) == 52
    run = rove.train(rove.DQN(**FAST), rove.adopt(Varied, copies=4), episodes=30)
    assert 30 <= run.returns.shape[1] < 34
    episodes = run.outcomes[0].episodes
    assert np.sum(episodes.step <= episodes.step[-1] - 4) < 30


class OneStep(gymnasium.Env):
    """One step an episode."""

    observation_space = spaces.Discrete(1)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 1.0, True, False, {}


@pytest.mark.slow
def test_every_episode_is_written_down_where_all_copies_end_at_once():
    environment = rove.adopt(OneStep, copies=100, optimum=1.0)
    run = rove.train(rove.DQN(**FAST), environment, episodes=3 * LOG_CAPACITY, eval_every=200)
    np.testing.assert_array_equal(run.outcomes[0].episodes.step, np.arange(1, 801))
    np.testing.assert_array_equal(run.returns, 1.0)
    assert run.evaluations[0].episode.tolist() == [200, 400, 600, 800]
    stopped = rove.train(rove.DQN(**FAST), environment, episodes=800, stop_at=1.0)
    assert stopped.returns.shape == (1, 100)
    solved = rove.train(rove.DQN(**FAST), environment, episodes=800, until_solved=True)
    assert solved.returns.shape == (1, 100)


class Uncopyable(Varied):
    def __deepcopy__(self, memo):
        raise TypeError


class Wider(Varied):
    def __init__(self, actions):
        self.action_space = spaces.Discrete(actions)


def test_copies_that_cannot_be_are_refused(capsys):
    for number in (0, -1, 257):
        with pytest.raises(ConfigError, match="copies must be an integer between 1 and 256"):
            make("gym/CartPole-v1", copies=number)
    with pytest.raises(ConfigError, match="eval_every must be at least 8, the number of copies"):
        configure("dqn", make("gym/CartPole-v1", copies=8), eval_every=7)
    shared = Varied()
    for task in (Uncopyable(), lambda: shared):
        with pytest.raises(
            ConfigError, match=r"copies needs a second environment: pass a function"
        ):
            configure("dqn", rove.adopt(task, copies=2))
    pair = [Varied(), Varied()]
    turns = iter([0, 0, 1, 0, 1, 0] * 2)
    task = rove.adopt(lambda: pair[next(turns)], copies=3)
    with pytest.raises(BadEnvironment, match="environment is shared by several copies"):
        HostCopies(task, seed=0, ends=np.zeros(0, int))
    widths = iter(range(3, 9))
    with pytest.raises(ConfigError, match=r"copies needs a second environment, but Wider failed: "):
        configure("dqn", rove.adopt(lambda: Wider(next(widths)), copies=2))
    with pytest.raises(
        ConfigError, match="chain-5 cannot have copies: only Gymnasium environments"
    ):
        make("chain-5", copies=2)
    with pytest.raises(ConfigError, match=r"rove\.make\('CartPole-v1', copies=8\)"):
        rove.train("dqn", "CartPole-v1", copies=8)
    assert make("chain-5", copies=1).copies == 1
    with pytest.raises(SystemExit):
        main(["train", "dqn", "chain-5", "--env.copies", "2"])
    assert "only Gymnasium environments have copies" in capsys.readouterr().err


def test_copies_are_recorded_unless_there_is_one():
    assert make("gym/CartPole-v1", copies=4).options()["copies"] == 4
    assert "copies" not in make("gym/CartPole-v1", copies=1).options()


def test_copies_count_in_the_memory_of_an_agent():
    learner = rove.GE(hidden=(64, 64), resample="episode").compose()
    one, five = (
        learner.dry_run(4, 2, make("gym/CartPole-v1", copies=number).form).nbytes
        for number in (1, 5)
    )
    theta = jax.eval_shape(lambda: learner.init(4, 2, noise.root(0))).theta
    assert five - one == 4 * sum(4 * leaf.size for leaf in jax.tree.leaves(theta))


def test_a_folder_records_how_many_copies_took_turns():
    task = rove.adopt(Varied, copies=3)
    contents = {"environment": {"name": "Varied", "options": task.options()}}
    assert RecordedTask(contents | {"task": facts_of(task)}).copies == 3
    contents["environment"]["options"]["copies"] = "many"
    with pytest.raises(ConfigError, match="copies must be an integer between 1 and 256"):
        RecordedTask(contents | {"task": facts_of(task)})


@pytest.mark.slow
def test_runs_with_copies_are_read_without_their_environment(tmp_path):
    run = rove.train(rove.DQN(**FAST), rove.adopt(Varied, copies=3), steps=30, out=tmp_path)
    read = rove.load(tmp_path)
    np.testing.assert_array_equal(read.returns, run.returns)
    with pytest.raises(rove.errors.RunFolderError, match="Varied"):
        read.evaluate()


class Unrepeatable(gymnasium.Wrapper):
    """Ignores the seed of a reset."""

    def reset(self, *, seed=None, options=None):
        return self.env.reset(options=options)


@pytest.mark.slow
def test_copies_whose_episodes_cannot_be_repeated_are_not_resumed(tmp_path):
    gymnasium.register("UnrepeatableCopies-v0", lambda: Unrepeatable(gymnasium.make("CartPole-v1")))
    task = make("gym/UnrepeatableCopies-v0", copies=2)
    rove.train(rove.DQN(**FAST), task, steps=6, out=tmp_path)
    with pytest.raises(rove.LaneError, match="does not repeat an episode"):
        rove.train(rove.DQN(**FAST), task, steps=12, out=tmp_path)


@pytest.mark.slow
def test_the_pole_is_balanced_with_eight_copies():
    """With the settings, the number of steps and the bar of the test with one."""
    settings = rove.DQN(
        hidden=(64, 64), target_period=200, epsilon=0.02, epsilon_steps=8000, learning_starts=1000
    )
    run = rove.train(settings, make("gym/CartPole-v1", copies=8), seeds=2, steps=40_000)
    assert all(np.mean(outcome.scores[-20:]) > 150 for outcome in run.outcomes)
