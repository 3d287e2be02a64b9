"""Figure 5: how GE on sparse CartPole depends on ρ, on σ, and on both."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from rove.agents.paper import GE
from rove.agents.tuned import tuned
from rove.environments import make
from rove.environments.base import GRID
from rove.paper import recorded
from rove.paper.base import Experiment, Key, Runs, label
from rove.paper.claims import Claim
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.tables import as_csv, publish_text
from rove.search import trials
from rove.training.outcomes import Outcome

CARTPOLE = "sparse-cartpole"
RHOS = (-10.0, -8.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0)
SIGMAS = (1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""The ranges of Section 6: ρ from −10 to −1 and log₁₀ σ from −8 to −1."""
QUICK_RHOS, QUICK_SIGMAS = (-10.0, -4.0, -1.0), (1e-8, 1e-3, 1e-1)
RHO, SIGMA = -4.0, 1e-3
"""The fixed value of one while the other varies: GE's defaults, not the best values."""
EPISODES, QUICK_EPISODES = 200, 100
SEEDS, QUICK_SEEDS = 5, 2
LINE_SEEDS = 15
"""Number of seeds on the two lines through (RHO, SIGMA), which the claims are tested on."""
MARGIN = 0.05
"""A value is worse than the best only if its score is lower by more than this fraction."""
COLUMNS = (
    "resample", "rho", "sigma", "seed", "episodes", "steps", "score", "spread", "cells",
)  # fmt: skip
LABELS = {resample: label(f"ge-{resample}") for resample in ("step", "episode")}
"""Display names by when θ is resampled: every step (the paper) or every episode (ours)."""
LENGTHS = (1.0, 500.0)
"""The range of scores, which are episode lengths."""


Point: TypeAlias = tuple[str, float, float]
"""When θ is resampled, ρ and σ."""


def key(resample: str, rho: float, sigma: float) -> Key:
    """Return the key of the run at a point (ρ, σ)."""
    return f"ge-{resample}", f"rho{rho:g}-sigma{sigma:g}"


def more(point: Key) -> Key:
    """Return the key of the run with the further seeds of a point on a line."""
    return point[0], f"{point[1]}-more"


def lanes_at(runs: Runs, point: Key) -> list[Outcome]:
    """Return the outcomes of all seeds of a point."""
    return [lane for k in (point, more(point)) if k in runs for lane in runs[k].outcomes]


@dataclass(frozen=True)
class Figure5(Experiment):
    """Figure 5: GE on sparse CartPole for ranges of ρ, of σ, and of both.

    All settings except ρ and σ are as tuned by `rove reproduce tuning figure-3`.
    """

    name = "figure-5"

    @property
    def rhos(self) -> tuple[float, ...]:
        """The values of ρ."""
        return QUICK_RHOS if self.quick else RHOS

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The values of σ."""
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
        return configure(
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
        """Write figure-5.csv with one row per seed."""
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
        """Write figure-5.png and figure-5.svg."""
        points = {
            (resample, rho, sigma): scores(lanes_at(runs, key(resample, rho, sigma)))
            for resample, rho, sigma in itertools.product(LABELS, self.rhos, self.sigmas)
        }
        config = next(iter(runs.values())).config
        draw(points, len(config.seeds), config.episodes or 0, out)

    def _rho_line(self, resample: str) -> list[Key]:
        return [key(resample, rho, SIGMA) for rho in self.rhos]

    def _sigma_line(self, resample: str) -> list[Key]:
        return [key(resample, RHO, sigma) for sigma in self.sigmas]

    def claims(self, runs: Runs) -> list[Claim]:
        """Test Section 6, "Hyper-parameter", sentence by sentence, for the paper's variant and
        ours."""
        tested = []
        for resample, agent in LABELS.items():
            ours = "" if resample == "step" else "ours, "
            lines = {"ρ": self._rho_line(resample), "σ": self._sigma_line(resample)}
            for name, line in lines.items():
                values = self.rhos if name == "ρ" else self.sigmas
                on_line = [lanes_at(runs, k) for k in line]
                about = f"{ours}{agent}: "
                # The paper prints "large σ (small ρ)" because of the sign of ρ in its softplus.
                tested += [
                    critical(f"{about}{name} is critical to the performance", on_line),
                    peaked(f"{about}performance is not monotonic in {name}", on_line, values),
                    active(f"{about}large {name} leads to more active exploration", on_line),
                    hindered(f"{about}large {name} may hinder fast convergence", on_line),
                ]
        return tested


def draw(points: Mapping[Point, np.ndarray], seeds: int, episodes: int, out: Path) -> None:
    """Write figure-5.png and figure-5.svg, given the scores of all seeds of each point. Those on
    the two lines through (RHO, SIGMA) may have more than the others, which have `seeds`."""
    from rove.analysis import plots, setting_plots  # here because Matplotlib is slow to import

    figure = plots.figure(2, 2, width=11.0, height=7.6)
    top, bottom = figure.axes[:2], figure.axes[2:]
    rhos, sigmas = sorted({rho for _, rho, _ in points}), sorted({sigma for _, _, sigma in points})
    for resample, name in LABELS.items():
        lines = {
            "ρ": (rhos, [points[resample, rho, SIGMA] for rho in rhos]),
            "σ": (sigmas, [points[resample, RHO, sigma] for sigma in sigmas]),
        }
        colour = plots.line_of(f"ge-{resample}")["color"]
        for axes, (field, line) in zip(top, lines.items(), strict=True):
            setting_plots.interval_curve(axes, *line, field, colour, name, LENGTHS)
            axes.set_ylabel("episode length")
    plots.legend(figure)
    top[0].set_title(f"(a) over ρ, at σ = {SIGMA:g}", loc="left")
    top[1].set_title(f"(b) over σ, at ρ = {RHO:g}", loc="left")
    means = [float(values[:seeds].mean()) for values in points.values()]
    sides, limits = (("ρ", rhos), ("σ", sigmas)), (min(means), max(means))
    for axes, letter, (resample, name) in zip(bottom, "cd", LABELS.items(), strict=True):
        plane = {(r, s): points[resample, r, s][:seeds] for r in rhos for s in sigmas}
        setting_plots.heat_map(axes, *sides, plane, "episode length", limits, LENGTHS)
        axes.set_title(f"({letter}) {name}: over ρ and σ", loc="left")
    on_lines = plots.seeds_text(len(points["step", RHO, SIGMA]))
    figure.supxlabel(
        f"mean over all {episodes} episodes; {on_lines} ({seeds} seeds in (c) and (d))", fontsize=8
    )
    plots.save(figure, out / "figure-5.png")
    plots.save(figure, out / "figure-5.svg")


def redraw(data: str | Path, out: str | Path) -> None:
    """Draw the figure without training, from a file such as docs/data/figure-5.csv.gz."""
    rows = sorted(recorded.read(data), key=lambda row: int(row["seed"]))
    points = {
        (resample, float(rho), float(sigma)): recorded.numbers(group, "score")
        for (resample, rho, sigma), group in recorded.grouped(
            rows, "resample", "rho", "sigma"
        ).items()
    }
    draw(points, SEEDS, int(rows[0]["episodes"]), Path(out))


def scores(lanes: Sequence[Outcome]) -> np.ndarray:
    """Return the mean score over the episodes of each seed."""
    return np.array([trials.score(outcome) for outcome in lanes])


def table_of(line: Sequence[Sequence[Outcome]]) -> np.ndarray:
    """Return the scores of all values on a line, [values, seeds]."""
    return np.stack([scores(lanes) for lanes in line])


def judged(table: np.ndarray) -> np.ndarray:
    """Return the scores, [values, seeds], of the seeds that claims are tested on: those that
    `chosen` does not use to choose a value."""
    return table[:, max(1, table.shape[1] // 3) :]


def chosen(table: np.ndarray, worst: bool = False) -> tuple[int, np.ndarray]:
    """Choose the best or the worst value of a line by the first third of the seeds; return its
    index and its scores on the other seeds, which the choice does not bias."""
    means = table[:, : max(1, table.shape[1] // 3)].mean(axis=1)
    at = int(np.argmin(means) if worst else np.argmax(means))
    return at, judged(table)[at]


def critical(text: str, line: Sequence[Sequence[Outcome]]) -> Claim:
    """Test whether the best value is ahead of the worst by more than MARGIN."""
    table = table_of(line)
    (_, best), (_, worst) = chosen(table), chosen(table, worst=True)
    what = f"best value ahead of the worst by more than {MARGIN:.0%}, both chosen on other seeds"
    return Claim.count(text, what + _means(best, worst), worst < (1 - MARGIN) * best)


def peaked(text: str, line: Sequence[Sequence[Outcome]], values: Sequence[float]) -> Claim:
    """Test whether the best interior value is ahead of both ends by more than MARGIN."""
    table = table_of(line)
    at, inside = chosen(table[1:-1])
    ends = {values[i]: judged(table)[i] for i in (0, -1)}
    what = (
        f"best interior value ({values[1 + at]:g}), chosen on other seeds, ahead by more than "
        f"{MARGIN:.0%}{_means(inside, *ends.values())}"
    )
    ahead = {f"of {value:g}": end < (1 - MARGIN) * inside for value, end in ends.items()}
    return Claim.count(text, what, ahead)


def active(text: str, line: Sequence[Sequence[Outcome]]) -> Claim:
    """Test whether the largest value visits more cells than the smallest in the same number of
    steps."""
    small, large = line[0], line[-1]
    steps = min(int(lane.episodes.step[-1]) for lane in (*small, *large))
    cells = [np.array([cells_by(lane, steps) for lane in lanes]) for lanes in (large, small)]
    what = f"cells visited within {steps:,} steps at the largest and at the smallest value"
    return Claim.ahead(text, what, *cells, support=(0.0, GRID**2))


def cells_by(lane: Outcome, step: int) -> float:
    """Return the number of cells visited by a step, interpolated within an episode."""
    episodes = lane.episodes
    return float(np.interp(step, np.append(0, episodes.step), np.append(0, episodes.coverage)))


def hindered(text: str, line: Sequence[Sequence[Outcome]]) -> Claim:
    """Test whether the best of the other values is ahead of the largest by more than MARGIN."""
    table = table_of(line)
    (_, best), largest = chosen(table[:-1]), judged(table)[-1]
    what = (
        f"best other value, chosen on other seeds, ahead of the largest by more than {MARGIN:.0%}"
    )
    return Claim.count(text, what + _means(best, largest), largest < (1 - MARGIN) * best)


def _means(*groups: np.ndarray) -> str:
    """Format the means of groups of scores."""
    return f" (mean steps per episode {' and '.join(f'{group.mean():.3g}' for group in groups)})"
