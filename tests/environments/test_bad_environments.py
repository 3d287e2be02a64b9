"""Environments that misbehave: each ends its lane with an error that names environment, step and
field, and takes nothing else with it."""

import re
import sys
import types

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import rove
from helpers import SMALL
from rove.cli import main as cli
from rove.environments import guard
from rove.environments.faults import BadEnvironment
from rove.environments.guard import Guard
from rove.errors import ConfigError, LaneError, RoveWarning
from rove.runs.configure import configure
from rove.runs.execution import run_all
from rove.training import progress
from rove.training.host import _guarded

BAD_STEP = 13  # the third of the second episode


class Plain(gymnasium.Env):
    """Ten steps an episode, nothing wrong. The subclasses go wrong at step 13 of a lane, if its
    number is odd or `always` is set."""

    observation_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, number=1):
        self.number, self.steps, self.time = number, 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.np_random.random(2).astype(np.float32), {}

    def step(self, action):
        self.steps, self.time = self.steps + 1, self.time + 1
        told = [self.np_random.random(2).astype(np.float32), 1.0, False, self.time >= 10, {}]
        if self.steps == BAD_STEP and self.number == 1:
            return self.wrong(told)
        return tuple(told)

    def wrong(self, told):
        return tuple(told)


def bad(change):
    """A kind of `Plain` whose 13th step is changed so."""

    class Bad(Plain):
        def wrong(self, told):
            return change(self, told)

    return Bad


def with_masks(change):
    """A kind of `Plain` with masks, whose 13th step has this `info`."""

    class Bad(Plain):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], {"action_mask": np.array([0, 1])}

        def step(self, action):
            *result, info = super().step(action)
            return *result, info or {"action_mask": np.array([1, 0])}

        def wrong(self, told):
            return *told[:4], change

    return Bad


def having(index, value):
    """One field of the answer is something else."""
    return bad(lambda self, told: (*told[:index], value, *told[index + 1 :]))


def raising(error):
    def change(self, told):
        raise error

    return bad(change)


def closed(self, told):
    self.close()
    raise RuntimeError("the window was closed")


def other_actions(self, told):
    self.action_space = spaces.Discrete(5)  # seen at the step after
    return tuple(told)


def never_again(self, told):
    self.time = -(10**9)
    return tuple(told)


def no_more_resets(self, told):
    def reset(*, seed=None, options=None):
        return np.zeros(2, np.float32)

    self.reset = reset
    return (*told[:2], True, *told[3:])


def exiting_reset(self, told):
    def reset(*, seed=None, options=None):
        sys.exit("the simulator is gone")

    self.reset = reset
    return (*told[:2], True, *told[3:])


NAN = np.array([0.0, np.nan], np.float32)
CASES = {
    "a NaN in the observation": (having(0, NAN), 13, "observation is not finite.* nan .*1"),
    "an infinite observation": (having(0, np.array([np.inf, 0.0])), 13, "observation .* inf"),
    "too large for float32": (having(0, np.array([1e300, 0.0])), 13, "observation .* inf"),
    "another shape": (having(0, np.zeros(3)), 13, r"observation has shape \(3,\).*\(2,\)"),
    "a ragged observation": (having(0, [[1.0], [1.0, 2.0]]), 13, "observation is not an array"),
    "an observation of text": (having(0, np.array(["a", "b"])), 13, "observation has dtype <U1"),
    "an observation of objects": (
        having(0, np.array([1, None])),
        13,
        "observation has dtype object",
    ),
    "no observation": (having(0, None), 13, "observation has shape"),
    "complex numbers": (having(0, np.zeros(2, complex)), 13, "observation has dtype complex128"),
    "a reward of NaN": (having(1, float("nan")), 13, "reward was not a finite number: nan"),
    "a reward that is infinite": (having(1, -np.inf), 13, "reward was not a finite number: -inf"),
    "a reward beyond float32": (having(1, 1e300), 13, "reward is outside the range of float32"),
    "no reward": (having(1, None), 13, "reward must be a number, got None"),
    "a reward of text": (having(1, "1.0"), 13, "reward must be a number, got '1.0'"),
    "a reward that is a vector": (
        having(1, np.ones(1)),
        13,
        r"reward must be a number, got .* \(1,\)",
    ),
    "terminated is a number": (having(2, 0.5), 13, "terminated must be True or False, got 0.5"),
    "truncated is missing": (having(3, None), 13, "truncated must be True or False, got None"),
    "the old tuple of four": (
        bad(lambda s, t: (t[0], t[1], False, {})),
        13,
        r"step must return \(.*, got \(",
    ),
    "nothing at all": (bad(lambda s, t: None), 13, "step must return .*, got None"),
    "an exception": (raising(ValueError("joint 3")), 13, "step raised ValueError: joint 3"),
    "an exit": (bad(lambda self, told: sys.exit(3)), 13, "step raised SystemExit: 3"),
    "it was closed": (bad(closed), 13, "step raised RuntimeError: the window was closed"),
    "a mask that was not there before": (
        having(4, {"action_mask": [1, 1]}),
        13,
        'info has an "action_mask", but had none',
    ),
    "a mask that is missing": (
        with_masks({"other": 1}),
        13,
        'info has no "action_mask", but had one before',
    ),
    "a mask of another shape": (
        with_masks({"action_mask": [1]}),
        13,
        r"action_mask has shape \(1,\)",
    ),
    "a mask that allows nothing": (
        with_masks({"action_mask": [False, False]}),
        13,
        "action_mask allows no action",
    ),
    "other actions": (bad(other_actions), 14, r"action_space changed .*\(2\) to .*\(5\)"),
    "an episode without end": (bad(never_again), 60, "episode did not end in 50 steps"),
    "a reset without info": (
        bad(no_more_resets),
        14,
        r"reset must return \(obs.*info\), got array",
    ),
    "a reset that exits": (bad(exiting_reset), 14, "reset raised SystemExit: the simulator is"),
}


def made(kind):
    """What makes environments for seeds 0, 1, …: the one of seed 1 goes wrong. The first that is
    made is only looked at."""
    numbers = iter(range(-1, 1000))
    return lambda: kind(next(numbers))


@pytest.mark.fast_cases("another shape")
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] * (i % 3 > 0)) for i, case in enumerate(CASES)],
)
def test_a_bad_environment_ends_its_lane_and_no_other(case, tmp_path):
    kind, step, words = CASES[case]
    environment = rove.adopt(made(kind), longest_episode=50)
    config = configure(rove.DQN(**SMALL), environment, seeds=3, episodes=6)
    run = run_all([(config, tmp_path)])[0]
    assert run.seeds == (0, 2)
    np.testing.assert_array_equal(run.lengths, 10)
    assert run.lengths.shape == (2, 6)
    (error,) = run.errors
    assert re.search(words, str(error)), error
    assert f"dqn on {kind.__name__}, seed 1, step {step} (episode " in str(error)
    back = rove.load(tmp_path, environment=environment)
    loaded = {outcome.job.seed: outcome for outcome in back.outcomes}
    for outcome in run.outcomes:  # the lane that failed may have had the time to save an episode
        kept = loaded[outcome.job.seed]
        assert kept.finished
        np.testing.assert_array_equal(kept.episodes.returns, outcome.episodes.returns)


class Panic(BaseException):
    """As an extension module may raise it."""


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (having(1, 10**400), "reward is too large"),
        (having(1, [[1.0], [1.0, 2.0]]), r"reward must be a number, got \[\[1.0\], .*"),
        (raising(Unspeakable()), "step raised Unspeakable"),
        (raising(Panic("rust")), "step raised Panic: rust"),
        (raising(GeneratorExit()), "step raised GeneratorExit"),
    ],
)
def test_a_guard_names_the_field(kind, words):
    guard = Guard(kind(), 50)
    guard.reset(0)
    for _ in range(BAD_STEP - 1):
        guard.step(0)
    place = r"( \(test_bad_environments\.py:\d+\))" + "?" * ("raised" not in words)
    with pytest.raises(BadEnvironment, match=f"^{words}{place}$"):
        guard.step(0)


def later(change):
    """What makes environments that are changed so from the second on."""
    numbers = iter(range(1000))

    def make():
        env = Plain()
        if next(numbers):
            change(env)
        return env

    return make


def other_observations(env):
    env.observation_space = spaces.Box(-1.0, 1.0, (3,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda env: other_actions(env, ()), r"action_space is Discrete\(5\), but was .*\(2\)"),
        (other_observations, r"observation_space is Box.*\(3,\).*, but was .*\(2,\)"),
        (lambda env: 1 / 0, "creating the environment raised ZeroDivisionError: division by zero"),
        (lambda env: sys.exit(3), "creating the environment raised SystemExit: 3"),
    ],
)
def test_an_environment_that_is_not_made_like_the_first_ends_its_lane(change, words):
    environment = rove.adopt(later(change))
    job, results = types.SimpleNamespace(name="dqn on Plain, seed 1"), {}
    _guarded(types.SimpleNamespace(job=job, copies=None), environment.make, results)
    assert re.search(
        f"^{job.name}, while the environment was created: {words}", str(results[id(job)])
    )


def test_whatever_is_raised_costs_one_lane():
    def move():
        raise Panic("rust")

    job, results = types.SimpleNamespace(name="dqn on Plain, seed 1"), {}
    _guarded(types.SimpleNamespace(job=job), move, results)
    assert "Panic('rust')" in str(results[id(job)])


def test_ctrl_c_in_an_environment_stops_everything():
    with pytest.raises(KeyboardInterrupt):
        rove.train(rove.DQN(**SMALL), raising(KeyboardInterrupt()), seeds=2, episodes=6)


def test_the_last_checkpoint_of_a_lane_that_failed_loads(tmp_path, monkeypatch):
    """It was saved after the first episode; the second went wrong."""
    monkeypatch.setattr(progress, "CHECKPOINT_SECONDS", 0.0)
    environment = rove.adopt(lambda: CASES["an exception"][0]())
    with pytest.raises(LaneError, match=r"seed 0, step 13 \(episode 2\): step raised"):
        rove.train(rove.DQN(**SMALL), environment, episodes=6, out=tmp_path)
    back = rove.load(tmp_path, environment=environment)
    assert back.lengths.tolist() == [[10.0]]
    assert back.policy()(np.zeros(2)) in (0, 1)
    assert (tmp_path / "episodes.csv").read_text().count("dqn,Bad,0") == 1


# Refused before anything is trained


def with_spaces(observations, actions):
    class Spaced(Plain):
        observation_space, action_space = observations, actions

    return Spaced


class NoSeed(Plain):
    def reset(self):
        return np.zeros(2, np.float32), {}


class NoInfo(Plain):
    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32)


class StartsAtNaN(Plain):
    def reset(self, *, seed=None, options=None):
        return NAN, {}


def masked(mask):
    class WithMask(Plain):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed)[0], {"action_mask": mask}

    return WithMask


class NoSpaces(gymnasium.Env):
    pass


class NotLoaded(Plain):
    @property
    def observation_space(self):
        raise RuntimeError("not loaded")


def breaking():
    raise ImportError("no module named simulator")


TWO = spaces.Discrete(2)
REFUSED = {
    "actions without bounds": (
        with_spaces(Plain.observation_space, spaces.Box(-np.inf, 1, (3,))), "bounds must be finite"
    ),
    "too many combinations": (
        with_spaces(Plain.observation_space, spaces.MultiBinary(30)), "1,073,741,824 combinations"
    ),
    "actions of another kind": (
        with_spaces(Plain.observation_space, spaces.Tuple((TWO, TWO))), "must be Discrete, Multi"
    ),
    "a mask of another shape": (masked([1, 1, 0]), r"action_mask has shape \(3,\).*\(2,\)"),
    "a mask of floats": (masked([1.0, 0.0]), "action_mask has dtype float64"),
    "a mask of text": (masked("10"), r"action_mask has shape \(\)"),
    "a ragged mask": (masked([[1], [1, 0]]), "action_mask is not an array"),
    "a mask of other numbers": (masked([1, 2]), r"only 0 and 1, got \[1, 2\]"),
    "a mask that allows nothing": (masked([0, 0]), "action_mask allows no action"),
    "no fixed size": (with_spaces(spaces.Sequence(TWO), TWO), "observation_space is Sequence"),
    "another shape than declared": (
        with_spaces(spaces.Box(0, 1, (3,)), TWO), r"observation has shape \(2,\)"
    ),
    "floats where integers are declared": (
        with_spaces(spaces.Box(0, 255, (2,), np.uint8), TWO), "has dtype float32.* uint8"
    ),
    "not in its discrete space": (with_spaces(spaces.Discrete(4), TWO), "not in its space"),
    "no spaces": (NoSpaces, "action_space is missing"),
    "far too large": (
        with_spaces(spaces.Box(0, 1, (4000, 4000), np.uint8), TWO), "has 16,000,000 entries"
    ),
    "a space that raises": (NotLoaded, "observation_space raised RuntimeError: not loaded"),
    "a reset without seed": (NoSeed, "reset must accept a seed"),
    "a reset without info": (NoInfo, "reset must return .*, got array"),
    "a NaN to start with": (StartsAtNaN, "observation is not finite"),
    "a function that raises": (breaking, "ImportError: no module named simulator"),
    "a function that exits": (lambda: sys.exit(0), "creating the environment raised SystemExit: 0"),
    "a function that makes something else": (lambda: 3, "must be a gymnasium.Env, got 3"),
    "a number": (3, "a function that returns one"),
    "nothing": (None, "a function that returns one"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_an_environment_is_looked_at_before_anything_is_trained(case):
    given, words = REFUSED[case]
    with pytest.raises(ConfigError, match=words) as caught:
        rove.train(rove.DQN(**SMALL), given, episodes=1)
    assert caught.value.field == "environment"


def test_a_vector_environment_is_refused_with_the_reason():
    vector = gymnasium.make_vec("CartPole-v1", num_envs=2)
    for given in (vector, lambda: vector):
        with pytest.raises(ConfigError, match=r"VectorEnv: pass a single environment"):
            rove.train(rove.DQN(**SMALL), given, episodes=1)
    vector.close()


class Uncopied(Plain):
    def __deepcopy__(self, memo):
        raise TypeError("a handle")


def test_one_environment_cannot_serve_two_seeds():
    env = Uncopied()
    assert rove.train(rove.DQN(**SMALL), env, episodes=2).lengths.tolist() == [[10.0, 10.0]]
    for given in (env, lambda: env):
        with pytest.raises(ConfigError, match="function that returns a new environment each time"):
            rove.train(rove.DQN(**SMALL), given, seeds=2, episodes=2)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gym/CartPoel-v1", "Did you mean 'gym/CartPole-v1'"),
        ("gym/NoSuch-v0", "name the package that registers it"),
        ("gym/gymnasium:CartPoel-v1", "Did you mean 'gym/gymnasium:CartPole-v1'"),
        ("gym/CartPole-v7", "Did you mean 'gym/CartPole-v1'"),
        ("gym/rove/Chian-v0", "Did you mean 'gym/rove/Chain-v0'"),
        ("gym/", "registered with Gymnasium"),
        (
            "gym/no_such_package:Thing-v0",
            r"no_such_package\.py is in the current folder, set PYTHONPATH",
        ),
        ("gym/Pendulum-v1", "has continuous ones; use one of ddpg"),
    ],
)
def test_names_that_lead_nowhere(name, words):
    with pytest.raises(ConfigError, match=words):
        rove.train("dqn", name, episodes=1)


@pytest.mark.parametrize(
    ("name", "entry", "words"),
    [
        ("broken_package:It-v0", "math:pi", "import broken_package raised ZeroDivisionError"),
        ("exiting_package:It-v0", "math:pi", "import exiting_package raised SystemExit: 0"),
        ("It-v0", "broken_package:It", "its entry point raised ZeroDivisionError"),
        ("It-v0", "exiting_package:It", "its entry point raised SystemExit: 0"),
        ("It-v0", "math:It", "its entry point raised AttributeError: .* no attribute 'It'"),
        ("It-v0", int, "its entry point raised ValueError: no signature"),
    ],
)
def test_a_package_that_breaks_is_named(name, entry, words, tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("1 / 0")
    (tmp_path / "exiting_package.py").write_text("import sys; sys.exit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    gymnasium.register("It-v0", entry_point=entry)
    try:
        with pytest.raises(ConfigError, match=words) as caught:
            rove.environments.make(f"gym/{name}")
    finally:
        del gymnasium.registry["It-v0"]
    assert caught.value.field == "environment"


@pytest.mark.parametrize("axes", [(0, 1.0), (0, True)])
def test_axes_are_whole_numbers(axes):
    with pytest.raises(ConfigError, match="two distinct indices below 4"):
        rove.environments.make("gym/CartPole-v1", axes=axes)


def test_a_package_that_is_missing_is_named():
    def needs(error):
        def entry():
            raise error

        gymnasium.register("Needs-v0", entry_point=entry)
        try:
            with pytest.raises(ConfigError) as caught:
                rove.train("dqn", "gym/Needs-v0", episodes=1)
        finally:
            del gymnasium.registry["Needs-v0"]
        return str(caught.value)

    missing = gymnasium.error.DependencyNotInstalled
    assert 'pip install swig "gymnasium[box2d]"' in needs(missing("Box2D is not installed"))
    assert 'pip install "gymnasium[mujoco]"' in needs(ImportError("No module named 'mujoco'"))
    assert "flux" in needs(ImportError("No module named 'flux'"))


def test_the_command_ends_with_1_for_a_lane_and_2_for_a_mistake(tmp_path, capsys):
    gymnasium.register("Raises-v0", entry_point=lambda: CASES["an exception"][0]())
    gymnasium.register("Exits-v0", entry_point=lambda: sys.exit(0))
    words = ["--agent.hidden", "8", "--agent.learning-starts", "8", "--episodes", "3"]
    try:
        for name, code, said in [
            ("gym/Raises-v0", 1, "dqn on gym/Raises-v0, seed 0, step 13 (episode 2): step raised"),
            ("gym/Exits-v0", 2, "gymnasium.make raised SystemExit: 0"),
            ("gym/Raise-v0", 2, "Did you mean 'gym/Raises-v0'?"),
        ]:
            with pytest.raises(SystemExit) as stopped:
                cli.main(["train", "dqn", name, *words, "--out", str(tmp_path / "run")])
            told = capsys.readouterr().err
            assert stopped.value.code == code
            assert said in told
            assert "Traceback" not in told
    finally:
        del gymnasium.registry["Raises-v0"], gymnasium.registry["Exits-v0"]


def test_a_long_episode_without_a_time_limit_is_warned_of(monkeypatch):
    monkeypatch.setattr(guard, "LONG_EPISODE", 5)
    env = gymnasium.make("CartPole-v1").unwrapped
    env.step = lambda action: (np.zeros(4, np.float32), 1.0, False, False, {})
    watched = Guard(env, 100)
    with pytest.warns(RoveWarning, match="after 5 steps.*--env.time-limit") as warned:
        list(map(watched.step, [0] * 9))
    assert len(warned) == 1
