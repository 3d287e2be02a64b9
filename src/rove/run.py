"""`Run`: what training leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from rove.core.learner import Learner
from rove.environments import HostEnvironment
from rove.errors import ConfigError, LaneError
from rove.runs import Config, RunFolder
from rove.statistics import collapsed_at, recent_at
from rove.training import compiled, host, outcomes
from rove.training.checkpoint import publish
from rove.training.lane import SNAPSHOTS
from rove.training.outcomes import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Run:
    """A trained run: [seeds, episodes] arrays, policies and pictures."""

    config: Config
    outcomes: list[Outcome]
    path: Path | None = None
    errors: Sequence[LaneError] = ()
    """Lanes that had to stop."""

    def __repr__(self) -> str:
        episodes = self.returns.shape[1]
        return f"<Run: {self.config.label}, seeds {list(self.seeds)}, {episodes} episodes>"

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(outcome.job.seed for outcome in self.outcomes)

    def _stack(self, field: str) -> np.ndarray:
        return self._table([getattr(outcome.episodes, field) for outcome in self.outcomes])

    def _table(self, columns: list[np.ndarray]) -> np.ndarray:
        table = np.full((len(columns), max(map(len, columns), default=0)), np.nan)
        for row, column in zip(table, columns, strict=True):
            row[: len(column)] = column
        return table

    @property
    def returns(self) -> np.ndarray:
        """[seeds, episodes]; NaN where a lane had fewer episodes."""
        return self._stack("returns")

    @property
    def scores(self) -> np.ndarray:
        """[seeds, episodes], as the environment scores an episode: on most, its return."""
        return self._table([outcome.scores for outcome in self.outcomes])

    @property
    def lengths(self) -> np.ndarray:
        """[seeds, episodes], in steps."""
        return self._stack("length")

    @property
    def visits(self) -> np.ndarray:
        """[seeds, cells]: in what fraction of its episodes a lane visited each cell."""
        bins = self.config.environment.bins
        rows = [o.visits / max(len(o.episodes.returns), 1) for o in self.outcomes]
        return np.array(rows).reshape(len(rows), bins)

    def policy(self, seed: int | None = None) -> Callable[[Any], Any]:
        """The greedy policy on the posterior mean: from an observation to an action."""
        outcome = self._outcome(seed)
        agent, environment = self.config.compose(), self.config.environment
        lane = outcome.lane

        def act(observation: Any) -> Any:
            x = environment.shown(lane.environment, jnp.asarray(environment.vector(observation)))
            return environment.action(_greedy(agent, lane.agent, x))

        return act

    def _outcome(self, seed: int | None) -> Outcome:
        self._check_any()
        for outcome in self.outcomes:
            if seed is None or outcome.job.seed == seed:
                return outcome
        raise ConfigError("seed", seed, f"one of {list(self.seeds)}")

    def _check_any(self) -> None:
        """Refuse a run that has no lane to show."""
        if not self.outcomes:
            what = "every lane diverged" if self.errors else "no lane has been saved yet"
            raise LaneError(f"{self.config.label}: {what}")

    def evaluate(self) -> np.ndarray:
        """[seeds]: the score of one episode of each lane's greedy policy."""
        agent, environment = self.config.compose(), self.config.environment
        lanes_ = [outcome.lane for outcome in self.outcomes]
        if isinstance(environment, HostEnvironment):
            played = [host.evaluate(agent, environment, lane) for lane in lanes_]
        else:
            played = [_evaluate(agent, environment, x.agent, x.seed) for x in lanes_]
        return environment.score(*np.array(played, float).reshape(-1, 3).T)

    def plot(self, path: str | Path | None = None) -> Figure:
        """The learning curve; written to `path` if one is given."""
        from rove import plots  # here, because Matplotlib takes long to import

        self._check_any()
        made, environment = plots.figure(), self.config.environment
        steps = self.config.steps
        every = max(steps // plots.POINTS, 1) if steps else 1
        scores = self._recent(np.arange(every, steps + 1, every)) if steps else self.scores
        plots.learning_curves(
            made.axes[0],
            {self.config.agent_name: scores},
            environment.optimum,
            per_seed=True,
            window=1 if steps else plots.WINDOW,
            label=environment.score_label,
            every=every,
            support=environment.score_range,
        )
        if steps:
            made.axes[0].set_xlabel("step")
        n = len(self.seeds)
        made.axes[0].set_title(
            f"{self.config.label}: mean of {n} seed{'s' * (n != 1)}"
            + (", 95% interval" if n > 1 else "")
            + f", window {plots.WINDOW}{' episodes' * bool(steps)}",
            loc="left",
        )
        if path is not None:
            plots.save(made, Path(path))
        return made

    def _recent(self, at: np.ndarray) -> np.ndarray:
        """[seeds, points]: at some steps, the mean score of the last episodes. The lanes of a
        budget in steps have different numbers of them."""
        from rove.plots import WINDOW

        lanes = self.outcomes
        return np.stack([recent_at(o.scores, o.episodes.step, at, WINDOW) for o in lanes])

    @property
    def spread(self) -> np.ndarray:
        """[seeds, episodes]: standard deviation of Q_θ over θ ~ q_φ, mean over probed states."""
        return self._stack("spread")

    @property
    def return_spread(self) -> np.ndarray:
        """[seeds, episodes]: standard deviation of Z, mean over probed states."""
        return self._stack("return_spread")

    @property
    def coverage(self) -> np.ndarray:
        """[seeds, episodes]: cells visited so far."""
        return self._stack("coverage")

    @property
    def alarms(self) -> list[str]:
        """Lanes whose beliefs collapsed: the spread of Q over θ fell below a hundredth of its
        highest, for 20 episodes, before any episode scored half of the optimum. Always
        empty where there is a reason in `not_watched`."""
        optimum, told = self.config.environment.optimum, []
        if optimum is None:
            return told
        for outcome in self.outcomes:
            at = collapsed_at(outcome.scores, outcome.episodes.spread, optimum)
            if at is not None:
                told.append(
                    f"seed {outcome.job.seed}: q_φ collapsed by episode {at}, before half of the "
                    "optimum was found"
                )
        return told

    @property
    def not_watched(self) -> str | None:
        """Why no alarm can ring, if none can."""
        environment = self.config.environment
        if environment.optimum is not None:
            return None
        return f"{environment.name} has no known optimum, half of which would end the watch"

    def plot_diagnostics(self, path: str | Path | None = None) -> Figure:
        """Where the lanes went, how their beliefs spread, and, for the first lane, what it
        believed of each probed state; written to `path` if one is given."""
        from rove import plots  # here, because Matplotlib takes long to import

        agent, outcome = self.config.compose(), self._outcome(None)
        environment, ended = self.config.environment, self.returns.size > 0
        values, outputs = map(np.asarray, outcome.lane.snapshots)
        taken = min(len(outcome.episodes.returns).bit_length(), SNAPSHOTS)
        names = (list(environment.probes()) or ["start"]) if taken else []
        rows, columns = 3 if taken else 1, max(len(names), 3)
        made = plots.figure(rows, columns, width=3.2 * columns, height=8.0 / 3 * rows)
        grid = np.array(made.axes).reshape(rows, columns)
        for axes in [*grid[0, 3:], *grid[1:, len(names) :].flat]:
            axes.set_axis_off()
        if environment.bins and ended:
            cells = self.visits.reshape(-1, *environment.cells)
            plots.visits(grid[0, 0], cells, environment.coordinates)
            plots.lines(grid[0, 1], {"cells": self.coverage})
            grid[0, 0].set_title("state visits, fraction of episodes", loc="left")
            grid[0, 1].set_title(f"cells visited so far, of {environment.bins}", loc="left")
        else:
            for axes in grid[0, :2]:
                axes.set_axis_off()
        if ended:
            spreads = {"of Q over θ": self.spread, "of Z": self.return_spread}
            plots.lines(grid[0, 2], spreads, logarithmic=True)
            grid[0, 2].set_title("spread", loc="left")
            grid[0, 2].legend()
        else:
            grid[0, 2].set_axis_off()
        for column, name in enumerate(names):
            plots.beliefs(grid[1, column], values[:taken, :, column], 2 ** np.arange(taken))
            grid[1, column].set_title(f"q(Q(s, a)), s = {name}", loc="left")
            pictures = {
                2**k: agent.pictures(jnp.asarray(outputs[k, column]))
                for k in sorted({0, taken // 2, taken - 1})
            }
            plots.returns(grid[2, column], pictures, agent.discrete)
            grid[2, column].set_title(f"Z(s, a), s = {name}", loc="left")
        for axes in grid[1:, 0]:
            axes.legend()
        who = f"seed {outcome.job.seed}"
        what = f"beliefs of {who}" if taken else f"no episode of {who} has ended"
        made.suptitle(f"{self.config.label}: {what}", x=0.01, ha="left")
        if path is not None:
            plots.save(made, Path(path))
        return made

    def draw(self, folder: Path) -> None:
        """learning-curve.png, diagnostics.png and diagnostics.json, into a folder."""
        self.plot(folder / "learning-curve.png")
        self.plot_diagnostics(folder / "diagnostics.png")
        visits = {
            seed: [round(float(share), 6) for share in row]
            for seed, row in zip(self.seeds, self.visits, strict=True)
        }
        cells = self.config.environment.cells
        told = {
            "alarms": self.alarms,
            "not_watched": self.not_watched,
            "cells": cells,
            "visits": visits,
        }
        publish(folder / "diagnostics.json", (json.dumps(told) + "\n").encode())

    def save(self, out: str | Path | None = None) -> Path:
        """Write the run to a folder of its own; without one, to runs/AGENT-ENVIRONMENT."""
        if out is None:
            out = self.path or self.config.default_folder
        folder = RunFolder(out)
        if self.path is not None and self.path.resolve() == folder.path.resolve():
            return folder.path
        self._check_any()
        jobs = {job.seed: job for job in self.config.jobs(folder.path)}
        with folder.open(self.config):
            for outcome in self.outcomes:
                outcomes.save(outcome._replace(job=jobs[outcome.job.seed]))
            episodes = {o.job.seed: o.episodes for o in self.outcomes}
            folder.write_episodes(self.config, episodes)
            self.draw(folder.path)
        return folder.path


@jax.jit
def _greedy(agent: Learner, state: Any, observation: Any) -> Any:
    return agent.greedy(state, observation)


_evaluate = jax.jit(compiled.evaluate)
