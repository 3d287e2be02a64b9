"""Figure 4: DDPG with three kinds of critic on pendulums."""

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove.agents import settings_of
from rove.agents.tuned import tuned
from rove.analysis.curves import mean_over_steps, recent_at
from rove.environments import make
from rove.paper import recorded
from rove.paper.base import Experiment, Key, Runs
from rove.paper.claims import Claim
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.result import Run
from rove.runs.tables import as_csv, publish_text
from rove.search.grids import FIGURE_4

AGENTS = ("ddpg", "ddpg_noisynet", "ddpg_ge")
TASKS = {
    "InvertedPendulum": "gym/InvertedPendulum-v5",
    "InvertedDoublePendulum": "gym/InvertedDoublePendulum-v5",
    "Sparse InvertedPendulum": "sparse-inverted-pendulum",
    "Sparse InvertedDoublePendulum": "sparse-inverted-double-pendulum",
}
"""The panels and their environments."""
SCORES = {
    "InvertedPendulum": (0.0, 1000.0),
    "InvertedDoublePendulum": (0.0, 10_000.0),
    "Sparse InvertedPendulum": (0.0, 1000.0),
    "Sparse InvertedDoublePendulum": (0.0, 1000.0),
}
"""The range of scores: an episode has at most 1,000 steps, and a step pays at most 1 (double
pendulum: 10)."""
STEPS, QUICK_STEPS = 20_000, 2_000
SEEDS, QUICK_SEEDS = 5, 2
POINTS = 100
"""Number of points of a curve."""
LAST = 10
"""Number of episodes that a point of a curve averages."""
MUCH = 0.1
"""The threshold for "much advantage", relative to the baseline."""
RISE = 2.0
"""A curve makes progress if its maximum exceeds this multiple of its value after 10% of the
steps."""


@dataclass(frozen=True)
class Figure4(Experiment):
    """Figure 4: DDPG with action noise, a NoisyNet critic or a GE critic on four pendulum tasks.

    Requires MuJoCo: pip install mujoco imageio. The double pendulum uses the settings tuned for the
    single one.
    """

    name = "figure-4"

    @classmethod
    def missing(cls) -> str | None:
        installed = importlib.util.find_spec("mujoco") is not None
        return None if installed else "it requires MuJoCo: pip install mujoco imageio"

    @property
    def steps(self) -> int:
        """Number of steps per seed."""
        return QUICK_STEPS if self.quick else STEPS

    def configs(self) -> dict[Key, Config]:
        return {
            (task, agent): configure(
                settings_of(agent)(**self._settings(agent, environment)),
                make(environment),
                seeds=QUICK_SEEDS if self.quick else SEEDS,
                steps=self.steps,
            )
            for task, environment in TASKS.items()
            for agent in AGENTS
        }

    def _settings(self, agent: str, environment: str) -> dict:
        searched = environment.replace("Double", "").replace("double-", "")
        return tuned(agent, searched, ["figure-4"]) or FIGURE_4.base(searched, agent)

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        self.draw(runs, out)
        return self.claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """Write figure-4.csv.gz with every episode."""
        rows: list[tuple] = []
        for (task, agent), run in runs.items():
            for outcome in run.outcomes:
                steps, lengths = outcome.episodes.step, outcome.episodes.length
                rows += [
                    (task, agent, outcome.job.seed, i + 1, step, length, f"{score:g}")
                    for i, (step, length, score) in enumerate(
                        zip(steps, lengths, outcome.scores, strict=True)
                    )
                ]
        header = ("task", "agent", "seed", "episode", "step", "length", "score")
        publish_text(out / "figure-4.csv.gz", as_csv(header, rows))

    def draw(self, runs: Runs, out: Path) -> None:
        """Write figure-4.png and figure-4.svg."""
        draw({key: self.curve(run) for key, run in runs.items()}, self.steps, out)

    def curve(self, run: Run) -> np.ndarray:
        """Return the mean score of the last episodes at evenly spaced steps, [seeds, POINTS]."""
        return curve([(o.scores, o.episodes.step) for o in run.outcomes], self.steps)

    def claims(self, runs: Runs) -> list[Claim]:
        """Test Section 6.2, "Randomized Critic for Exploration", sentence by sentence."""
        plain, double = "InvertedPendulum", "InvertedDoublePendulum"
        tested = []
        for critic, name in (("ddpg_noisynet", "NoisyNet"), ("ddpg_ge", "GE")):
            tested += [
                _ahead(
                    f"{plain}: DDPG with action noise makes progress much faster than with a "
                    f"{name} critic",
                    runs,
                    plain,
                    ("ddpg", critic),
                ),
                _not_ahead(
                    f"{double}: a {name} critic does not enjoy much advantage over action noise",
                    runs,
                    double,
                    critic,
                ),
                self._steadier(
                    f"{plain}: with a {name} critic progress is steadier than with action noise",
                    runs[plain, critic],
                    runs[plain, "ddpg"],
                ),
            ]
            tested += [
                _ahead(
                    f"{task}: a {name} critic makes progress at a slightly higher rate than "
                    "action noise",
                    runs,
                    task,
                    (critic, "ddpg"),
                )
                for task in TASKS
                if task.startswith("Sparse")
            ]
        return tested

    def _steadier(self, text: str, steady: Run, other: Run) -> Claim:
        """Test whether one curve falls less than another. Inconclusive unless both made progress,
        since a curve that does not rise cannot fall."""
        what = "drop below the best so far, as a fraction of it, of action noise and of the critic"
        claim = Claim.ahead(text, what, self.falls(other), self.falls(steady), (0.0, 1.0))
        for run in (steady, other):
            curve = self.curve(run)
            if curve.max(axis=1).mean() < RISE * curve[:, POINTS // 10 - 1].mean():
                evidence = f"{claim.evidence}; one of them made no progress"
                return Claim(text, evidence, "inconclusive", p=1.0)
        return claim

    def falls(self, run: Run) -> np.ndarray:
        """Return the average drop of each seed's curve below its best value so far, as a fraction
        of that value, from the point where the curve first averages LAST episodes."""
        curve = self.curve(run)
        first = [outcome.episodes.step[LAST - 1 : LAST] for outcome in run.outcomes]
        starts = [int(s[0] - 1) // (self.steps // POINTS) if len(s) else POINTS for s in first]
        drops = []
        for row, start in zip(curve, starts, strict=True):
            best = np.maximum.accumulate(row[start:])
            drops.append(np.mean((best - row[start:]) / np.where(best > 0, best, 1.0)))
        return np.nan_to_num(np.array(drops))


def curve(seeds: Sequence[tuple[np.ndarray, np.ndarray]], steps: int) -> np.ndarray:
    """Return the mean score of the last episodes at evenly spaced steps, [seeds, POINTS], given the
    scores of each seed and the steps at which its episodes end."""
    at = np.arange(1, POINTS + 1) * (steps // POINTS)
    return np.nan_to_num(np.array([recent_at(scores, ends, at, LAST) for scores, ends in seeds]))


def draw(curves: Mapping[Key, np.ndarray], steps: int, out: Path) -> None:
    """Write figure-4.png and figure-4.svg, given the curve of each task and agent."""
    from rove.analysis import plots  # imported here because Matplotlib is slow to import

    figure = plots.figure(1, 4, width=13.0, height=3.6)
    for axes, letter, task in zip(figure.axes, "abcd", TASKS, strict=True):
        by_agent = {agent: curves[task, agent] for agent in AGENTS}
        label = "episode length" if task.startswith("Sparse") else "return"
        options = {"every": steps // POINTS, "support": SCORES[task]}
        plots.learning_curves(axes, by_agent, window=1, label=label, **options)
        plots.over_episodes(axes, "step")
        axes.set_title(f"({letter}) {task}", loc="left", fontsize=9)
    plots.legend(figure)
    seeds = plots.seeds_text(len(curves["InvertedPendulum", "ddpg"]))
    figure.supxlabel(f"mean of the last {LAST} episodes; {seeds}", fontsize=8)
    plots.save(figure, out / "figure-4.png")
    plots.save(figure, out / "figure-4.svg")


def redraw(data: str | Path, out: str | Path) -> None:
    """Draw the figure without training, from a file such as docs/data/figure-4.csv.gz."""
    curves = {}
    for (task, agent), rows in recorded.grouped(recorded.read(data), "task", "agent").items():
        seeds = recorded.grouped(rows, "seed").values()
        columns = [tuple(recorded.numbers(x, name) for name in ("score", "step")) for x in seeds]
        curves[task, agent] = curve([(score, step) for score, step in columns], STEPS)
    draw(curves, STEPS, Path(out))


def _ahead(text: str, runs: Runs, task: str, pair: tuple[str, str]) -> Claim:
    """Test whether the first of a pair has a higher mean score over steps, as used by the
    search."""
    better, worse = (runs[task, agent] for agent in pair)
    return Claim.ahead(text, _score(better), _scores(better), _scores(worse), SCORES[task])


def _not_ahead(text: str, runs: Runs, task: str, critic: str) -> Claim:
    """Test whether (1 + MUCH) times the score of action noise is above the score of the critic."""
    noisy, random = (runs[task, agent] for agent in ("ddpg", critic))
    times, (low, high) = 1 + MUCH, SCORES[task]
    what = f"{_score(noisy)} {times:g} times that of action noise and that of the critic,"
    scaled = (times * low, times * high)
    return Claim.ahead(text, what, times * _scores(noisy), _scores(random), scaled, SCORES[task])


def _score(run: Run) -> str:
    """Return the description of the score."""
    return f"{run.config.environment.score_label}, averaged over steps,"


def _scores(run: Run) -> np.ndarray:
    """Return the mean score over steps of each seed."""
    return np.array([mean_over_steps(o.scores, o.episodes.length) for o in run.outcomes])
