"""Figure 5: what ρ and σ do to GE on sparse CartPole, and the whole plane of the two."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rove import runner, trials
from rove.agents import GE
from rove.environments import make
from rove.experiments.base import Experiment, Key, Runs
from rove.experiments.claims import Claim
from rove.experiments.searches import FIGURE_3
from rove.run import Run
from rove.runs import Config
from rove.statistics import difference_interval, mean_interval
from rove.tables import as_csv, publish_text
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
LABELS = {"step": "GE", "episode": "GE, a θ an episode"}
"""By when θ is drawn: the paper's, and ours."""


def key(resample: str, rho: float, sigma: float) -> Key:
    return f"ge-{resample}", f"rho{rho:g}-sigma{sigma:g}"


@dataclass(frozen=True)
class Figure5(Experiment):
    """Figure 5: GE on sparse CartPole over ρ, over σ, and over both.

    All but ρ and σ is as `rove tune figure-3` found it, or as its base has it.
    """

    @property
    def rhos(self) -> tuple[float, ...]:
        return QUICK_RHOS if self.quick else RHOS

    @property
    def sigmas(self) -> tuple[float, ...]:
        return QUICK_SIGMAS if self.quick else SIGMAS

    def configs(self) -> dict[Key, Config]:
        return {
            key(resample, rho, sigma): self._config(resample, rho, sigma)
            for resample in LABELS
            for rho in self.rhos
            for sigma in self.sigmas
        }

    def _config(self, resample: str, rho: float, sigma: float) -> Config:
        variant = f"ge-{resample}"
        settings = tuned(variant, CARTPOLE, ["figure-3"]) or FIGURE_3.base(CARTPOLE, variant)
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
                rows.append((*point, outcome.job.seed, episodes, f"{score:.6g}", spread))
        header = ("resample", "rho", "sigma", "seed", "episodes", "score", "spread")
        publish_text(out / "figure-5.csv", as_csv(header, rows))

    def draw(self, runs: Runs, out: Path) -> None:
        """figure-5.png and figure-5.svg."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.figure(2, 2, width=11.0, height=7.6)
        top, bottom = made.axes[:2], made.axes[2:]
        means = {pair: scores(run) for pair, run in runs.items()}
        for resample, label in LABELS.items():
            colour = plots.COLOURS[f"ge-{resample}"]
            over_rho = [means[k] for k in self._rho_line(resample)]
            over_sigma = [means[k] for k in self._sigma_line(resample)]
            plots.interval_curve(top[0], self.rhos, over_rho, "ρ", colour, label)
            plots.interval_curve(top[1], self.sigmas, over_sigma, "σ", colour, label)
        for axes in top:
            axes.set_ylabel("episode length")
        top[0].legend()
        top[0].set_title(f"(a) over ρ, at σ = {SIGMA:g}", loc="left")
        top[1].set_title(f"(b) over σ, at ρ = {RHO:g}", loc="left")
        highest = max(float(each.mean()) for each in means.values())
        lowest = min(float(each.mean()) for each in means.values())
        for axes, letter, (resample, label) in zip(bottom, "cd", LABELS.items(), strict=True):
            cells = {(r, s): means[key(resample, r, s)] for r in self.rhos for s in self.sigmas}
            sides = ("ρ", self.rhos), ("σ", self.sigmas)
            plots.heat_map(axes, *sides, cells, "episode length", (lowest, highest))
            axes.set_title(f"({letter}) {label}: the plane", loc="left")
        run = next(iter(runs.values()))
        made.supxlabel(
            f"mean over all {run.config.episodes} episodes and {len(run.seeds)} seeds, with 95% "
            "bootstrap intervals over seeds",
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
        for resample, label in LABELS.items():
            ours = "" if resample == "step" else "ours, "
            lines = {"ρ": self._rho_line(resample), "σ": self._sigma_line(resample)}
            for name, line in lines.items():
                values = self.rhos if name == "ρ" else self.sigmas
                on_line = [runs[k] for k in line]
                about = f"{ours}{label}: "
                # The paper prints "large σ (small ρ)", by the sign of ρ in its softplus.
                found += [
                    critical(f"{about}{name} is critical to the performance", on_line),
                    peaked(f"{about}performance is not monotonic in {name}", on_line, values),
                    active(f"{about}large {name} leads to more active exploration", on_line),
                ]
        return found


def scores(run: Run) -> np.ndarray:
    """For each seed, the mean score of its episodes."""
    return np.array([trials.score(outcome) for outcome in run.outcomes])


def held_out(line: np.ndarray, worst: bool = False) -> list[int]:
    """For each seed the value, of those on a line ([values, seeds]), that is best, or worst, on the
    other seeds: what is then measured on the seed itself is not what it was chosen by."""
    others = [np.delete(line, seed, axis=1).mean(axis=1) for seed in range(line.shape[1])]
    return [int(np.argmin(each) if worst else np.argmax(each)) for each in others]


def critical(text: str, line: Sequence[Run]) -> Claim:
    """The best value is ahead of the worst, both chosen on other seeds."""
    table = np.stack([scores(run) for run in line])
    at = np.arange(table.shape[1])
    gains = table[held_out(table), at] - table[held_out(table, worst=True), at]
    gain, (low, high) = mean_interval(gains)
    return Claim.compare(
        text,
        f"best over worst value, chosen on the other seeds: {gain:.1f} steps, 95% interval "
        f"{low:.1f} to {high:.1f}, n = {len(gains)}",
        (low, high),
    )


def peaked(text: str, line: Sequence[Run], values: Sequence[float]) -> Claim:
    """A value between the ends, chosen on other seeds, is ahead of both ends."""
    table = np.stack([scores(run) for run in line])
    chosen, at = held_out(table[1:-1]), np.arange(table.shape[1])
    inside = table[1:-1][chosen, at]
    ends = {values[i]: inside - table[i] for i in (0, -1)}
    intervals = {value: mean_interval(gains)[1] for value, gains in ends.items()}
    told = "; ".join(
        f"over {value:g} {gains.mean():.1f} steps, 95% interval {intervals[value][0]:.1f} to "
        f"{intervals[value][1]:.1f}"
        for value, gains in ends.items()
    )
    peak = values[1:-1][int(np.argmax(table[1:-1].mean(axis=1)))]
    low, high = np.min(list(intervals.values()), axis=0)
    return Claim.compare(
        text,
        f"best value inside ({peak:g} over all seeds; chosen on the other seeds): {told}, "
        f"n = {len(at)}",
        (float(low), float(high)),
    )


def active(text: str, line: Sequence[Run]) -> Claim:
    """The spread of Q over θ, mean over episodes, is wider at the largest value than at the
    smallest."""
    small, large = (np.log10(np.maximum(line[i].spread.mean(axis=1), 1e-30)) for i in (0, -1))
    gain, (low, high) = difference_interval(large, small)
    return Claim.compare(
        text,
        f"log₁₀ of the spread of Q over θ, largest less smallest value: {gain:.2f}, 95% interval "
        f"{low:.2f} to {high:.2f}, n = {len(large)}",
        (low, high),
    )
