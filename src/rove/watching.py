"""`rove watch`: an episode of a trained policy, as a film."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from rove.environments import ENVIRONMENTS, Environment, HostEnvironment, Task
from rove.environments.gymnasium import CompiledEnv
from rove.environments.sparse import Sparse
from rove.errors import ConfigError, RoveError, RunFolderError, check_integer
from rove.run import Run

FORMATS = (".gif", ".mp4")
FPS = 30
MOST = 1000
"""Frames of a film."""


def watch(
    run: Run, seed: int | None = None, path: str | Path | None = None, episodes: int = 1
) -> tuple[Path, list[float]]:
    """Films greedy episodes of one lane's policy; where it was written, and the scores. Without a
    path: watch.gif in the run's folder."""
    check_integer("episodes", episodes, at_least=1, at_most=100)
    if path is None:
        path = (run.path or Path()) / "watch.gif"
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ConfigError("out", str(path), "a file that ends in .gif or .mp4")
    policy, seen = run.policy(seed), viewable(run.config.environment)
    frames, scores = [], []
    try:
        for episode in range(episodes):
            played = Episode(run.config.environment, seen, policy, episode, MOST - len(frames))
            frames += list(played)
            scores.append(played.score)
    except Exception as error:
        if isinstance(error, RoveError):
            raise
        name = run.config.environment.name
        what = f"one that can be drawn; it raised {type(error).__name__}: {error}"
        raise ConfigError("environment", name, what) from error
    finally:
        seen.close()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        (_gif if path.suffix.lower() == ".gif" else _mp4)(frames, path, _fps(seen))
    except OSError as error:
        raise RunFolderError(f"cannot write {path}: {error.strerror or error}") from None
    return path, scores


class Episode:
    """The first frames of an episode, and, once it is over, or is at its longest, its score."""

    def __init__(self, environment: Task, seen: gymnasium.Env, policy: Any, seed: int, most: int):
        self._environment, self._seen, self._policy, self._seed = environment, seen, policy, seed
        self._most = most
        self.score = np.nan

    def __iter__(self) -> Iterator[np.ndarray]:
        observation, _ = self._seen.reset(seed=self._seed)
        if self._most:
            yield self._frame()
        returns, length, over = 0.0, 0, False
        longest = getattr(self._environment, "longest_episode", np.inf)
        while not over and length < longest:
            told = self._seen.step(self._policy(observation))
            observation, reward, terminated, truncated, _ = told
            returns, length, over = returns + float(reward), length + 1, terminated or truncated
            if length < self._most:
                yield self._frame()
            ended = np.asarray(terminated)
            self.score = float(self._environment.score(np.asarray(returns), length, ended))

    def _frame(self) -> np.ndarray:
        frame: Any = self._seen.render()
        if not isinstance(frame, np.ndarray) or frame.ndim != 3:
            what = f"an environment whose render gives an RGB array; it gave {type(frame).__name__}"
            raise ConfigError("environment", self._environment.name, what)
        return frame


def viewable(environment: Task) -> gymnasium.Env:
    """The same task with pictures: Gymnasium's own where it has it."""
    if isinstance(environment, HostEnvironment):
        return environment.viewable()
    assert isinstance(environment, Environment)
    task: Any = environment.environment if isinstance(environment, Sparse) else environment
    own = {family.kind: family.gymnasium for family in ENVIRONMENTS.values()}.get(type(task))
    if own is None:
        return CompiledEnv(environment, render_mode="rgb_array")
    try:
        return gymnasium.make(own, render_mode="rgb_array", max_episode_steps=task.horizon)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ConfigError("environment", environment.name, f"drawn with: {error}") from None


def _fps(seen: gymnasium.Env) -> float:
    return float(seen.metadata.get("render_fps") or FPS)


def _gif(frames: list[np.ndarray], path: Path, fps: float) -> None:
    from PIL import Image  # comes with Matplotlib

    pictures = [Image.fromarray(frame) for frame in frames]
    duration = max(round(1000 / fps), 20)  # viewers slow down what is faster
    pictures[0].save(
        path, save_all=True, append_images=pictures[1:], duration=duration, loop=0, optimize=True
    )


def _mp4(frames: list[np.ndarray], path: Path, fps: float) -> None:
    try:
        import imageio.v3 as imageio

        imageio.imwrite(path, np.stack(frames), fps=fps)
    except (ImportError, OSError, ValueError) as error:
        what = 'a .gif; for an .mp4: pip install "rove[watch]"'
        raise ConfigError("out", str(path), what) from error
