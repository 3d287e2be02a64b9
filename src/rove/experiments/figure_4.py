"""Figure 4: DDPG with three critics on pendulums."""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove import runner
from rove.agents import settings_of
from rove.environments import make
from rove.experiments.base import Experiment, Key, Runs
from rove.experiments.claims import Claim
from rove.experiments.searches import FIGURE_4
from rove.run import Run
from rove.runs import Config
from rove.statistics import mean_over_steps, recent_at
from rove.tables import as_csv, publish_text
from rove.tuned import tuned

AGENTS = ("ddpg", "ddpg_noisynet", "ddpg_ge")
TASKS = {
    "InvertedPendulum": "gym/InvertedPendulum-v5",
    "InvertedDoublePendulum": "gym/InvertedDoublePendulum-v5",
    "Sparse InvertedPendulum": "sparse-inverted-pendulum",
    "Sparse InvertedDoublePendulum": "sparse-inverted-double-pendulum",
}
"""The panels, and the environment of each."""
SCORES = {
    "InvertedPendulum": (0.0, 1000.0),
    "InvertedDoublePendulum": (0.0, 10_000.0),
    "Sparse InvertedPendulum": (0.0, 1000.0),
    "Sparse InvertedDoublePendulum": (0.0, 1000.0),
}
"""The support of a score: an episode has at most 1,000 steps, and a step pays at most 1, or 10."""
STEPS, QUICK_STEPS = 20_000, 2_000
SEEDS, QUICK_SEEDS = 5, 2
POINTS = 100
"""Of a curve: every so many steps."""
LAST = 10
"""Episodes that a point of a curve is the mean of."""
MUCH = 0.1
"""An advantage, as a part of what it is over, that is not yet much."""
RISE = 2.0
"""How many times what it was after a tenth of the steps a curve reaches, if it makes progress."""


@dataclass(frozen=True)
class Figure4(Experiment):
    """Figure 4: DDPG with action noise, NoisyNet and GE as critics, on four pendulum tasks.

    It needs MuJoCo: pip install "rove[mujoco]". The double pendulum has the settings that were
    found for the single one.
    """

    @classmethod
    def missing(cls) -> str | None:
        installed = importlib.util.find_spec("mujoco") is not None
        return None if installed else 'it needs MuJoCo: pip install "rove[mujoco]"'

    @property
    def steps(self) -> int:
        return QUICK_STEPS if self.quick else STEPS

    def configs(self) -> dict[Key, Config]:
        return {
            (task, agent): runner.configure(
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
        """figure-4.csv.gz: every episode."""
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
        """figure-4.png and figure-4.svg."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.figure(1, 4, width=13.0, height=3.6)
        for axes, letter, task in zip(made.axes, "abcd", TASKS, strict=True):
            curves = {agent: self.curve(runs[task, agent]) for agent in AGENTS}
            label = runs[task, "ddpg"].config.environment.score_label
            every = self.steps // POINTS
            support = SCORES[task]
            plots.learning_curves(axes, curves, window=1, label=label, every=every, support=support)
            axes.set_xlabel("step")
            axes.set_title(f"({letter}) {task}", loc="left", fontsize=9)
        made.axes[0].legend(fontsize=8)
        seeds = len(runs["InvertedPendulum", "ddpg"].seeds)
        made.supxlabel(
            f"mean of the last {LAST} episodes; mean and 95% interval over {seeds} seeds",
            fontsize=8,
        )
        plots.save(made, out / "figure-4.png")
        plots.save(made, out / "figure-4.svg")

    def curve(self, run: Run) -> np.ndarray:
        """[seeds, POINTS]: the mean score of the last episodes at evenly spaced steps."""
        at = np.arange(1, POINTS + 1) * (self.steps // POINTS)
        rows = []
        for outcome in run.outcomes:
            rows.append(recent_at(outcome.scores, outcome.episodes.step, at, LAST))
        return np.nan_to_num(np.array(rows))

    def claims(self, runs: Runs) -> list[Claim]:
        """Section 6.2, "Randomized Critic for Exploration", sentence by sentence."""
        plain, double = "InvertedPendulum", "InvertedDoublePendulum"
        found = []
        for critic, name in (("ddpg_noisynet", "NoisyNet"), ("ddpg_ge", "GE")):
            found += [
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
            found += [
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
        return found

    def _steadier(self, text: str, steady: Run, other: Run) -> Claim:
        """By how far curves fall. What does not rise cannot fall: both must have made progress."""
        what = "fall below the best so far, as a part of it, of action noise and of the critic"
        judged = Claim.ahead(text, what, self.falls(other), self.falls(steady), (0.0, 1.0))
        for run in (steady, other):
            curve = self.curve(run)
            if curve.max(axis=1).mean() < RISE * curve[:, POINTS // 10 - 1].mean():
                evidence = f"{judged.evidence}; one of them made no progress"
                return Claim(text, evidence, "inconclusive", p=1.0)
        return judged

    def falls(self, run: Run) -> np.ndarray:
        """[seeds]: how far a curve is below the best it has been, as a part of that, on average
        from where it first is a mean of all LAST episodes."""
        curve = self.curve(run)
        first = [outcome.episodes.step[LAST - 1 : LAST] for outcome in run.outcomes]
        starts = [int(s[0] - 1) // (self.steps // POINTS) if len(s) else POINTS for s in first]
        found = []
        for row, start in zip(curve, starts, strict=True):
            best = np.maximum.accumulate(row[start:])
            found.append(np.mean((best - row[start:]) / np.where(best > 0, best, 1.0)))
        return np.nan_to_num(np.array(found))


def _ahead(text: str, runs: Runs, task: str, pair: tuple[str, str]) -> Claim:
    """The first of a pair, by the mean over steps, as the search has it."""
    better, worse = (runs[task, agent] for agent in pair)
    return Claim.ahead(text, _score(better), _scores(better), _scores(worse), SCORES[task])


def _not_ahead(text: str, runs: Runs, task: str, critic: str) -> Claim:
    """By the same: (1 + MUCH) times the score of action noise is above that of the critic."""
    noisy, random = (runs[task, agent] for agent in ("ddpg", critic))
    times, (low, high) = 1 + MUCH, SCORES[task]
    what = f"{_score(noisy)}, {times:g} times that of action noise and that of the critic,"
    scaled = (times * low, times * high)
    return Claim.ahead(text, what, times * _scores(noisy), _scores(random), scaled, SCORES[task])


def _score(run: Run) -> str:
    return f"{run.config.environment.score_label} of a step's episode"


def _scores(run: Run) -> np.ndarray:
    """[seeds]"""
    return np.array([mean_over_steps(o.scores, o.episodes.length) for o in run.outcomes])
