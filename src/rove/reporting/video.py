"""`rove watch`: a video of a trained policy."""

import io
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rove.environments import ENVIRONMENTS, Environment, HostEnvironment, Task
from rove.environments.drawing import captioned
from rove.environments.gymnasium import CompiledEnv
from rove.environments.sparse import Sparse
from rove.errors import ConfigError, RoveError, RunFolderError, check_integer
from rove.parts.files import publish
from rove.runs.delivery import TrainedPolicy
from rove.runs.result import Run

FORMATS = (".gif", ".mp4")
FPS = 30
MAX_FRAMES = 1000
"""Maximum number of frames in a video."""
INSTALL = "install rove with its extra watch, as in pip install '.[watch]' in a clone"
"""How to install the libraries that videos may need."""
SHORTEST = 3.0
"""Minimum length of a video, in seconds: fewer frames are shown for longer."""


def watch(
    run: Run,
    path: str | Path | None = None,
    *,
    seed: int | None = None,
    episodes: int = 1,
    policy: str | None = None,
) -> tuple[Path, list[float]]:
    """Write a video of one seed's trained policy, and return its path and the episodes' scores.

    **Arguments**
    - `run`: a run, from `rove.train` or `rove.load`.
    - `path`: the .gif or .mp4 file to write; by default watch.gif in the run folder.
    - `seed`: the seed whose policy is shown; by default the first one.
    - `episodes`: the number of episodes to record.
    - `policy`: "mean", "sample", "vote", "behaviour" or "settled"; by default, the policy that the
      seed delivers (see `Run.delivered`).
    """
    if not isinstance(run, Run):
        raise ConfigError.must_be("run", run, "a run, from rove.train or rove.load")
    check_integer("episodes", episodes, at_least=1, at_most=100)
    if path is None:
        path = (run.path or Path()) / "watch.gif"
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ConfigError.must_be("out", str(path), "a file that ends in .gif or .mp4")
    act, env = run.policy(seed, policy), renderable(run.config.environment)
    frames, scores = [], []
    try:
        for episode in range(episodes):
            most = MAX_FRAMES - len(frames)
            recording = Episode(run.config.environment, env, act, episode, most)
            frames += [
                captioned(f, f"episode {episode + 1} of {episodes}, {t}") for f, t in recording
            ]
            scores.append(recording.score)
    except Exception as error:
        if isinstance(error, RoveError):
            raise
        raise _unrendered(run.config.environment, error) from error
    finally:
        env.close()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fps = min(_fps(env), len(frames) / SHORTEST)
        (_gif if path.suffix.lower() == ".gif" else _mp4)(frames, path, fps)
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error.strerror or error}") from None
    return path, scores


class Episode:
    """Plays an episode and yields its first frames, each with a text that counts steps and sums
    rewards; afterwards, `score` is the episode's score."""

    def __init__(
        self, environment: Task, env: gymnasium.Env, policy: TrainedPolicy, seed: int, most: int
    ):
        self._environment, self._env, self._policy, self._seed = environment, env, policy, seed
        self._most = most
        self.score = np.nan

    def __iter__(self) -> Iterator[tuple[np.ndarray, str]]:
        observation, info = self._env.reset(seed=self._seed)
        self._policy.reset()
        returns, length, over = 0.0, 0, False
        if self._most:
            yield self._frame(length, returns)
        longest = getattr(self._environment, "longest_episode", np.inf)
        while not over and length < longest:
            mask = info.get("action_mask") if self._environment.masked else None
            action = self._policy(observation, mask)
            observation, reward, terminated, truncated, info = self._env.step(action)
            returns, length, over = returns + float(reward), length + 1, terminated or truncated
            if length < self._most:
                yield self._frame(length, returns)
            ended = np.asarray(terminated)
            self.score = float(self._environment.score(np.asarray(returns), length, ended))

    def _frame(self, length: int, returns: float) -> tuple[np.ndarray, str]:
        frame: Any = self._env.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3:
            name, kind = self._environment.name, type(frame).__name__
            message = f"render of environment {name} must return an RGB array, got {kind}"
            raise ConfigError("environment", name, "render must return an RGB array", message)
        return frame, f"step {length}, return {returns:.4g}"


def renderable(environment: Task) -> gymnasium.Env:
    """Return the same task with rendering: Gymnasium's own version if there is one."""
    if isinstance(environment, HostEnvironment):
        return environment.renderable()
    assert isinstance(environment, Environment)
    task: Any = environment.environment if isinstance(environment, Sparse) else environment
    identifier = {family.kind: family.gymnasium for family in ENVIRONMENTS.values()}.get(type(task))
    if identifier is None:
        return CompiledEnv(environment, render_mode="rgb_array")
    try:
        return gymnasium.make(identifier, render_mode="rgb_array", max_episode_steps=task.horizon)
    except gymnasium.error.DependencyNotInstalled as error:
        raise _unrendered(environment, error) from None


def _unrendered(environment: Task, error: Exception) -> ConfigError:
    """An error about an environment that cannot be rendered."""
    reason = f"cannot be rendered: {type(error).__name__}: {error}"
    if isinstance(error, gymnasium.error.DependencyNotInstalled | ImportError):
        reason = f"cannot be rendered ({error}): {INSTALL}"
    message = f"environment {environment.name} {reason}"
    return ConfigError("environment", environment.name, reason, message)


def _fps(env: gymnasium.Env) -> float:
    return float(env.metadata.get("render_fps") or FPS)


def _gif(frames: list[np.ndarray], path: Path, fps: float) -> None:
    from PIL import Image  # comes with Matplotlib

    pictures = [Image.fromarray(frame) for frame in frames]
    duration = max(
        10 * math.ceil(100 / fps), 20
    )  # in hundredths; viewers slow down anything faster
    file = io.BytesIO()
    more = {"append_images": pictures[1:], "duration": duration, "loop": 0, "optimize": True}
    pictures[0].save(file, format="GIF", save_all=True, **more)
    publish(path, file.getvalue())


def _mp4(frames: list[np.ndarray], path: Path, fps: float) -> None:
    try:
        import imageio.v3 as imageio

        with tempfile.TemporaryDirectory(prefix="rove-") as folder:
            video = Path(folder) / f"video{path.suffix}"
            imageio.imwrite(video, np.stack(frames), fps=fps)
            publish(path, video.read_bytes())
    except (ImportError, OSError, TypeError, ValueError) as error:
        reason = f"an .mp4 needs a video encoder: {INSTALL}. Or write a .gif"
        raise ConfigError("out", str(path), reason, f"cannot write {path}: {reason}") from error
