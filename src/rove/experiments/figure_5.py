"""Figure 5: what ρ and σ do to GE on sparse CartPole, and the whole plane of the two."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rove import runner, trials
from rove.agents import GE
from rove.environments import make
from rove.environments.base import GRID
from rove.experiments.base import Experiment, Key, Runs, label
from rove.experiments.claims import Claim
from rove.runs import Config
from rove.tables import as_csv, publish_text
from rove.training.outcomes import Outcome
from rove.tuned import tuned

CARTPOLE = "sparse-cartpole"
RHOS = (-10.0, -8.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0)
SIGMAS = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Section 6 searches ρ from −10 to −1 and log₁₀ σ from −8 to −1."""
QUICK_RHOS, QUICK_SIGMAS = (-10.0, -4.0, -1.0), (1e-8, 1e-3, 1e-1)
RHO, SIGMA = -4.0, 1e-3
"""What is fixed while the other varies: GE's defaults, not what came out best."""
EPISODES, QUICK_EPISODES = 200, 100
SEEDS, QUICK_SEEDS = 5, 2
LINE_SEEDS = 15
"""On the two lines through (RHO, SIGMA), by which claims are judged."""
PART = 0.05
"""Of the best score: an end of a line that lacks less than this lacks nothing."""
COLUMNS = (
    "resample", "rho", "sigma", "seed", "episodes", "steps", "score", "spread", "cells",
)  # fmt: skip
LABELS = {resample: label(f"ge-{resample}") for resample in ("step", "episode")}
"""By when θ is drawn: the paper's, and ours."""
LENGTHS = (1.0, 500.0)
"""The support of a score, an episode's length."""


def key(resample: str, rho: float, sigma: float) -> Key:
    return f"ge-{resample}", f"rho{rho:g}-sigma{sigma:g}"


def more(point: Key) -> Key:
    """The further seeds of a point on a line."""
    return point[0], f"{point[1]}-more"


def lanes_at(runs: Runs, point: Key) -> list[Outcome]:
    """Of all seeds that a point has."""
    return [lane for k in (point, more(point)) if k in runs for lane in runs[k].outcomes]


@dataclass(frozen=True)
class Figure5(Experiment):
    """Figure 5: GE on sparse CartPole over ρ, over σ, and over both.

    All but ρ and σ is as `rove tune figure-3` found it.
    """

    @property
    def rhos(self) -> tuple[float, ...]:
        return QUICK_RHOS if self.quick else RHOS

    @property
    def sigmas(self) -> tuple[float, ...]:
        return QUICK_SIGMAS if self.quick else SIGMAS

    def configs(self) -> dict[Key, Config]:
        plan = {
            key(resample, rho, sigma): self._config(resample, rho, sigma)
            for resample in LABELS
            for rho in self.rhos
            for sigma in self.sigmas
        }
        if not self.quick:
            seeds = tuple(range(SEEDS, LINE_SEEDS))
            for point in [k for r in LABELS for k in self._rho_line(r) + self._sigma_line(r)]:
                plan[more(point)] = replace(plan[point], seeds=seeds)
        return plan

    def _config(self, resample: str, rho: float, sigma: float) -> Config:
        settings = tuned(f"ge-{resample}", CARTPOLE, ["figure-3"])
        return runner.configure(
            replace(GE(**settings), rho=rho, sigma=sigma),
            make(CARTPOLE),
            seeds=QUICK_SEEDS if self.quick else SEEDS,
            episodes=QUICK_EPISODES if self.quick else EPISODES,
        )

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        self.draw(runs, out)
        return self.claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """figure-5.csv: one row a lane."""
        rows: list[tuple] = []
        for run in runs.values():
            agent = run.config.agent
            assert isinstance(agent, GE)
            point = (agent.resample, f"{agent.rho:g}", f"{agent.sigma:g}")
            for outcome in run.outcomes:
                episodes, score = len(outcome.scores), trials.score(outcome)
                spread = f"{outcome.episodes.spread.mean():.4g}"
                steps, cells = outcome.episodes.step[-1], outcome.episodes.coverage[-1]
                played = (episodes, steps, f"{score:.6g}", spread, cells)
                rows.append((*point, outcome.job.seed, *played))
        publish_text(out / "figure-5.csv", as_csv(COLUMNS, rows))

    def draw(self, runs: Runs, out: Path) -> None:
        """figure-5.png and figure-5.svg."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.figure(2, 2, width=11.0, height=7.6)
        top, bottom = made.axes[:2], made.axes[2:]
        for resample, name in LABELS.items():
            colour = plots.COLOURS[f"ge-{resample}"]
            over_rho = [scores(lanes_at(runs, k)) for k in self._rho_line(resample)]
            over_sigma = [scores(lanes_at(runs, k)) for k in self._sigma_line(resample)]
            plots.interval_curve(top[0], self.rhos, over_rho, "ρ", colour, name, LENGTHS)
            plots.interval_curve(top[1], self.sigmas, over_sigma, "σ", colour, name, LENGTHS)
        for axes in top:
            axes.set_ylabel("episode length")
        top[0].legend()
        top[0].set_title(f"(a) over ρ, at σ = {SIGMA:g}", loc="left")
        top[1].set_title(f"(b) over σ, at ρ = {RHO:g}", loc="left")
        planes = {
            resample: {
                (rho, sigma): scores(runs[key(resample, rho, sigma)].outcomes)
                for rho in self.rhos
                for sigma in self.sigmas
            }
            for resample in LABELS
        }
        means = [float(each.mean()) for plane in planes.values() for each in plane.values()]
        for axes, letter, (resample, name) in zip(bottom, "cd", LABELS.items(), strict=True):
            sides, limits = (("ρ", self.rhos), ("σ", self.sigmas)), (min(means), max(means))
            plots.heat_map(axes, *sides, planes[resample], "episode length", limits, LENGTHS)
            axes.set_title(f"({letter}) {name}: the plane", loc="left")
        config = next(iter(runs.values())).config
        made.supxlabel(
            f"mean over all {config.episodes} episodes, with 95% intervals over "
            f"{len(lanes_at(runs, key('step', RHO, SIGMA)))} seeds ({len(config.seeds)} in (c) and "
            "(d))",
            fontsize=8,
        )
        plots.save(made, out / "figure-5.png")
        plots.save(made, out / "figure-5.svg")

    def _rho_line(self, resample: str) -> list[Key]:
        return [key(resample, rho, SIGMA) for rho in self.rhos]

    def _sigma_line(self, resample: str) -> list[Key]:
        return [key(resample, RHO, sigma) for sigma in self.sigmas]

    def claims(self, runs: Runs) -> list[Claim]:
        """Section 6, "Hyper-parameter", sentence by sentence; and the same of our variant."""
        found = []
        for resample, agent in LABELS.items():
            ours = "" if resample == "step" else "ours, "
            lines = {"ρ": self._rho_line(resample), "σ": self._sigma_line(resample)}
            for name, line in lines.items():
                values = self.rhos if name == "ρ" else self.sigmas
                on_line = [lanes_at(runs, k) for k in line]
                about = f"{ours}{agent}: "
                # The paper prints "large σ (small ρ)", by the sign of ρ in its softplus.
                found += [
                    critical(f"{about}{name} is critical to the performance", on_line),
                    peaked(f"{about}performance is not monotonic in {name}", on_line, values),
                    active(f"{about}large {name} leads to more active exploration", on_line),
                    hindered(f"{about}large {name} may hinder fast convergence", on_line),
                ]
        return found


def scores(lanes: Sequence[Outcome]) -> np.ndarray:
    """For each seed, the mean score of its episodes."""
    return np.array([trials.score(outcome) for outcome in lanes])


def table_of(line: Sequence[Sequence[Outcome]]) -> np.ndarray:
    """[values, seeds]"""
    return np.stack([scores(lanes) for lanes in line])


def judged(table: np.ndarray) -> np.ndarray:
    """Scores, [values, seeds], of the seeds by which claims are judged: those that do not choose a
    value."""
    return table[:, max(1, table.shape[1] // 3) :]


def chosen(table: np.ndarray, worst: bool = False) -> tuple[int, np.ndarray]:
    """Which value of a line is the best, or the worst, by the mean of the first third of the seeds,
    and the scores of the others there: they are not measured on what they were chosen by."""
    means = table[:, : max(1, table.shape[1] // 3)].mean(axis=1)
    at = int(np.argmin(means) if worst else np.argmax(means))
    return at, judged(table)[at]


def critical(text: str, line: Sequence[Sequence[Outcome]]) -> Claim:
    """The best value is ahead of the worst, by more than a part PART of its score."""
    table = table_of(line)
    (_, best), (_, worst) = chosen(table), chosen(table, worst=True)
    what = f"best value ahead of the worst by more than {PART:.0%}, each chosen on other seeds"
    return Claim.count(text, what + _means(best, worst), worst < (1 - PART) * best)


def peaked(text: str, line: Sequence[Sequence[Outcome]], values: Sequence[float]) -> Claim:
    """The best value between the ends is ahead of both, by more than a part PART of its score."""
    table = table_of(line)
    at, inside = chosen(table[1:-1])
    ends = {values[i]: judged(table)[i] for i in (0, -1)}
    what = (
        f"best value inside, chosen on other seeds ({values[1 + at]:g}), ahead by more than "
        f"{PART:.0%}{_means(inside, *ends.values())}"
    )
    ahead = {f"of {value:g}": end < (1 - PART) * inside for value, end in ends.items()}
    return Claim.count(text, what, ahead)


def active(text: str, line: Sequence[Sequence[Outcome]]) -> Claim:
    """At the largest value more cells are visited than at the smallest, in equally many steps."""
    small, large = line[0], line[-1]
    steps = min(int(lane.episodes.step[-1]) for lane in (*small, *large))
    cells = [np.array([cells_by(lane, steps) for lane in lanes]) for lanes in (large, small)]
    what = f"cells visited within {steps:,} steps at the largest and at the smallest value"
    return Claim.ahead(text, what, *cells, support=(0.0, GRID**2))


def cells_by(lane: Outcome, step: int) -> float:
    """How many a lane had visited; within an episode, in proportion."""
    episodes = lane.episodes
    return float(np.interp(step, np.append(0, episodes.step), np.append(0, episodes.coverage)))


def hindered(text: str, line: Sequence[Sequence[Outcome]]) -> Claim:
    """The best of the other values is ahead of the largest, by more than a part PART of its
    score."""
    table = table_of(line)
    (_, best), largest = chosen(table[:-1]), judged(table)[-1]
    what = f"best other value, chosen on other seeds, ahead of the largest by more than {PART:.0%}"
    return Claim.count(text, what + _means(best, largest), largest < (1 - PART) * best)


def _means(*groups: np.ndarray) -> str:
    return f" (mean steps an episode {' and '.join(f'{each.mean():.3g}' for each in groups)})"
