"""Films of trained policies."""

import sys

import gymnasium
import numpy as np
import pytest
from PIL import Image, ImageDraw

import rove
from rove.cli import main as cli
from rove.environments import drawing
from rove.errors import ConfigError
from rove.parts import noise
from rove.reporting import video as watching

DQN = {"hidden": (4,), "batch_size": 4, "learning_starts": 10}


class Dial(gymnasium.Env):
    """Five positions; 1 goes up, 0 down; the fifth ends the task. Its picture is its position."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 5}
    observation_space = gymnasium.spaces.Box(0.0, 4.0, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode, self._at = render_mode, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._at = 0
        return self._seen(), {}

    def step(self, action):
        self._at = max(self._at + (1 if action else -1), 0)
        return self._seen(), -1.0, self._at == 4, False, {}

    def _seen(self):
        return np.array([self._at], np.float32)

    def render(self):
        return np.full((8, 8, 3), 50 * self._at, np.uint8)


def frames(path) -> list[np.ndarray]:
    film = Image.open(path)
    shown = []
    for i in range(film.n_frames):
        film.seek(i)
        shown.append(np.asarray(film.convert("RGB")))
    return shown


def seconds(path) -> float:
    """How long a film lasts."""
    film = Image.open(path)
    total = 0.0
    for i in range(film.n_frames):
        film.seek(i)
        total += film.info["duration"] / 1000
    return total


class Upwards(Dial):
    """A dial that only allows to go up, so that every policy does."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0], {"action_mask": np.array([0, 1], np.int8)}

    def step(self, action):
        *result, _ = super().step(action)
        return *result, {"action_mask": np.array([0, 1], np.int8)}


@pytest.fixture
def upwards():
    """A run whose policy always goes up: five pictures, of which the colours are known."""
    env = lambda: gymnasium.wrappers.TimeLimit(Upwards("rgb_array"), 9)  # noqa: E731
    return rove.train("dqn", env, episodes=2, **DQN)


def test_a_film_shows_the_policy_step_by_step(tmp_path, upwards):
    run = upwards
    path, scores = watching.watch(run, path=tmp_path / "a" / "film.gif")
    shown = frames(path)
    middle = shown[0].shape[1] // 2
    assert [int(frame[4, middle, 0]) for frame in shown] == [0, 50, 100, 150, 200]
    assert scores == [-4.0]
    assert seconds(path) >= 3.0  # five pictures at its own five a second would be one
    _, scores = watching.watch(run, path=tmp_path / "b.gif", episodes=3)
    assert scores == [-4.0] * 3


@pytest.mark.slow
def test_a_film_can_be_an_mp4(tmp_path, upwards):
    pytest.importorskip("imageio_ffmpeg", reason="needs rove[watch]")
    imageio = pytest.importorskip("imageio.v3")
    path, _ = watching.watch(upwards, path=tmp_path / "film.mp4")
    shown = imageio.imread(path)
    middle = shown.shape[2] // 2
    np.testing.assert_allclose(shown[:, 4, middle, 0], [0, 50, 100, 150, 200], atol=5)
    assert imageio.immeta(path)["fps"] == pytest.approx(5 / 3, rel=0.01)


@pytest.mark.slow
def test_compiled_environments_are_drawn_as_cells(tmp_path):
    """The chain's own greedy policy: the disc of each picture is where the state is."""
    run = rove.train("dqn", "chain-4", episodes=3, out=tmp_path, **DQN)
    path, _ = watching.watch(run)
    assert path == tmp_path / "watch.gif"
    first = frames(path)[0]
    y, x = drawing.MARGIN + drawing.LABEL + 24, drawing.MARGIN + 24
    assert [first[y, x + 48 * i, 0] < 100 for i in range(4)] == [False, True, False, False]
    assert seconds(path) >= 3.0


def said(monkeypatch):
    """What is written in pictures, by a drawing that is made as ever."""
    written, write = [], ImageDraw.ImageDraw.text

    def text(self, at, words, *rest, **options):
        written.append(words)
        return write(self, at, words, *rest, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", text)
    return written


@pytest.mark.fast_cases("chain-4")
@pytest.mark.parametrize("name", ["chain-4", "deep-sea-3"])
def test_start_goal_episode_and_step_are_written(name, tmp_path, monkeypatch):
    run = rove.train("dqn", name, episodes=2, **DQN)
    written = said(monkeypatch)
    path, _ = watching.watch(run, path=tmp_path / "a.gif", episodes=2)
    steps = {"chain-4": 13, "deep-sea-3": 3}[name]
    counters = [words for words in written if words.startswith("episode")]
    assert len(counters) == 2 * (steps + 1)
    assert counters[0] == "episode 1 of 2, step 0, return 0"
    assert counters[-1].startswith(f"episode 2 of 2, step {steps}, return ")
    assert written.count("start") == written.count("goal") == len(counters)
    assert seconds(path) >= 3.0


def test_landmarks_are_where_episodes_start_and_end():
    for task in (rove.Chain(5), rove.DeepSea(4)):
        assert int(task.bin(task.reset(noise.root(0))[0])) == task.landmarks["start"]
        assert task.landmarks["goal"] == task.bins - 1


def test_a_picture_has_bounded_width():
    for cells in ((3,), (100,), (100_000,), (4, 4), (40, 40)):
        picture = drawing.board(cells, 0, {0}, {"start": 0, "goal": int(np.prod(cells)) - 1})
        assert picture.shape[1] <= drawing.ROW_WIDTH + 2 * drawing.MARGIN
        assert picture.min() < 100  # the disc is there


@pytest.mark.parametrize("name", ["rove/DeepSea-v0", "rove/Chain-v0", "rove/Bandit-v0"])
def test_gymnasium_can_draw_ours(name):
    env = gymnasium.make(name, n=5, render_mode="rgb_array")
    env.reset(seed=0)
    for _ in range(3):
        before = env.render()
        env.step(1)
        assert before.dtype == np.uint8
        assert before.ndim == 3
    assert gymnasium.make(name, n=5).unwrapped.render() is None


@pytest.mark.slow
def test_classic_control_is_gymnasiums_own(tmp_path):
    pytest.importorskip("pygame", reason="needs rove[watch]")
    run = rove.train("dqn", rove.Sparse(rove.CartPole(horizon=7), reward=-1.0), episodes=2, **DQN)
    path, scores = watching.watch(run, path=tmp_path / "film.gif")
    assert 1 <= scores[0] <= 7  # a length, not the return
    assert frames(path)[0].shape == (400 + drawing.LABEL + drawing.MARGIN // 2, 600, 3)


@pytest.mark.slow
def test_a_pendulum_of_mujoco_is_filmed_by_the_command(tmp_path, capsys):
    pytest.importorskip("mujoco", reason="needs rove[mujoco]")
    settings = {"hidden": (4,), "batch_size": 4, "learning_starts": 10}
    rove.train("td3", "sparse-inverted-pendulum", episodes=2, out=tmp_path, **settings)
    cli.main(["watch", str(tmp_path)])
    shown = frames(tmp_path / "watch.gif")
    assert shown[0].shape[1] == 480
    assert len(np.unique(shown[0])) > 20  # it is no blank
    assert "watch.gif" in capsys.readouterr().out


@pytest.mark.slow
def test_what_cannot_be_filmed_is_refused(tmp_path):
    run = rove.train("dqn", Dial, steps=20, **DQN)
    with pytest.raises(ConfigError, match=r"render_mode .* must be 'rgb_array', got None"):
        watching.watch(run, path=tmp_path / "a.gif")
    with pytest.raises(ConfigError, match=r"\.gif or \.mp4"):
        watching.watch(run, path=tmp_path / "a.avi")
    with pytest.raises(ConfigError, match="seed"):
        watching.watch(run, seed=3, path=tmp_path / "a.gif")
    with pytest.raises(ConfigError, match="episodes"):
        watching.watch(run, episodes=0, path=tmp_path / "a.gif")


def test_a_missing_library_names_the_extra(tmp_path, monkeypatch):
    run = rove.train("dqn", "cartpole", steps=20, **DQN)
    monkeypatch.setitem(sys.modules, "pygame", None)  # as if it were not installed
    with pytest.raises(
        ConfigError, match=r"cartpole cannot be rendered .*pip install '\.\[watch\]'"
    ):
        rove.watch(run, tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "imageio.v3", None)
    with pytest.raises(ConfigError, match=r"an \.mp4 needs .*pip install '\.\[watch\]'"):
        rove.watch(rove.train("dqn", "chain-4", steps=20, **DQN), tmp_path / "a.mp4")
