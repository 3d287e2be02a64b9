"""Figure 3: DQN, NoisyNet and GE on sparse control tasks."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove import runner
from rove.environments import make
from rove.experiments.base import AGENTS, DQNS, LABELS, LEFT_OUT, Experiment, Key, Runs, label
from rove.experiments.claims import Claim
from rove.experiments.searches import variant_settings
from rove.run import Run
from rove.runs import Config, episodes_csv
from rove.statistics import steadiness
from rove.tables import as_csv, publish_text

SEARCHED = ("figure-3",)
"""Whose settings the agents have."""
CAR = "sparse-mountain-car"
EPISODES = {CAR: 600, "sparse-acrobot": 200, "sparse-cartpole": 400}
QUICK_EPISODES = {CAR: 100, "sparse-acrobot": 30, "sparse-cartpole": 150}
SEEDS, QUICK_SEEDS = 10, 2
ITERATION = 20
VISITS_AFTER, QUICK_VISITS_AFTER = (10, 30), (2, 5)
"""Panel (d): iterations."""
VISITS_AGENTS = ("ge-step", *DQNS)
RARELY = 0.05
"""Of all episodes."""
KEPT = 0.9
"""Of the cells that visits were spread over, a part that is enough to have maintained it."""


@dataclass(frozen=True)
class Figure3(Experiment):
    """Figure 3: DQN, NoisyNet and GE on sparse CartPole, MountainCar and Acrobot; visits."""

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(name for name in AGENTS if not self.quick or name not in LEFT_OUT)

    @property
    def dqns(self) -> tuple[str, ...]:
        return tuple(name for name in DQNS if name in self.agents)

    @property
    def visits_agents(self) -> tuple[str, ...]:
        return tuple(name for name in VISITS_AGENTS if name in self.agents)

    @property
    def visits_after(self) -> tuple[int, ...]:
        return QUICK_VISITS_AFTER if self.quick else VISITS_AFTER

    def configs(self) -> dict[Key, Config]:
        episodes = QUICK_EPISODES if self.quick else EPISODES
        plan = {
            (environment, agent): self._config(environment, agent, budget)
            for environment, budget in episodes.items()
            for agent in self.agents
        }
        for agent in self.visits_agents:  # the first of each run above, to the bit
            for iterations in self.visits_after:
                if iterations * ITERATION < episodes[CAR]:
                    config = self._config(CAR, agent, iterations * ITERATION)
                    plan[f"visits-{iterations}", agent] = config
        return plan

    def visits(self, runs: Runs, iterations: int, agent: str) -> Run:
        """The run that has so many iterations."""
        return runs.get((f"visits-{iterations}", agent)) or runs[CAR, agent]

    def _config(self, environment: str, agent: str, episodes: int) -> Config:
        settings = variant_settings(agent, environment, SEARCHED)
        seeds = QUICK_SEEDS if self.quick else SEEDS
        return runner.configure(settings, make(environment), seeds=seeds, episodes=episodes)

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        self.draw(runs, out)
        return self.claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """figure-3.csv.gz: every episode; visits.csv.gz: panel (d)."""
        shown = {key: run for key, run in runs.items() if key[0] in EPISODES}
        lanes = [(agent, run.config, o) for (_, agent), run in shown.items() for o in run.outcomes]
        text = episodes_csv(
            [(config, outcome.job.seed, outcome.episodes) for _, config, outcome in lanes],
            [agent for agent, _, _ in lanes],
        )
        publish_text(out / "figure-3.csv.gz", text)
        rows: list[tuple] = []
        for iterations, agent in itertools.product(self.visits_after, self.visits_agents):
            run = self.visits(runs, iterations, agent)
            for seed, row in zip(run.seeds, run.visits, strict=True):
                rows += [(agent, iterations, seed, i, f"{f:g}") for i, f in enumerate(row) if f]
        header = ("agent", "iterations", "seed", "cell", "frequency")
        publish_text(out / "visits.csv.gz", as_csv(header, rows))

    def draw(self, runs: Runs, out: Path) -> None:
        """figure-3.png and figure-3.svg."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.figure(3, 3, width=11.0, height=8.6)
        top, boards = made.axes[:3], (made.axes[3:6], made.axes[6:])
        names = ("sparse-cartpole", CAR, "sparse-acrobot")
        for axes, letter, environment in zip(top, "abc", names, strict=True):
            place = runs[environment, "dqn"].config.environment
            curves = {agent: runs[environment, agent].scores for agent in self.agents}
            plots.learning_curves(
                axes, curves, label=place.score_label, names=LABELS, support=place.score_range
            )
            title = environment.replace("-", " ").title().replace(" ", "")
            axes.set_title(f"({letter}) {title}", loc="left")
        top[2].legend(fontsize=7)
        for row, iterations in zip(boards, self.visits_after, strict=True):
            for axes in row[len(self.visits_agents) :]:
                axes.set_axis_off()
            for axes, agent in zip(row, self.visits_agents, strict=False):
                run = self.visits(runs, iterations, agent)
                place = run.config.environment
                plots.visits(axes, run.visits.reshape(-1, *place.cells), place.coordinates)
                axes.set_title(f"(d) {label(agent)}, {iterations} iterations", loc="left")
        seeds = len(runs[CAR, "dqn"].seeds)
        made.supxlabel(
            f"mean and 95% interval over {seeds} seeds; moving window of "
            f"{plots.WINDOW} episodes; (d): in what fraction of episodes a cell was visited",
            fontsize=8,
        )
        plots.save(made, out / "figure-3.png")
        plots.save(made, out / "figure-3.svg")

    def claims(self, runs: Runs) -> list[Claim]:
        """Section 6.2, "Exploration in Sparse Reward Environments", sentence by sentence."""
        others, tasks = (*self.dqns, "noisynet"), ("sparse-cartpole", CAR, "sparse-acrobot")
        found = [
            _ahead(
                f"{environment}: GE entails much faster progress than {label(other)}",
                runs[environment, "ge-step"],
                runs[environment, other],
            )
            for environment in tasks
            for other in others
        ]
        found += [
            Claim.count(
                f"{CAR}: {label(other)} never, or very rarely, reaches the target",
                f"reaches it in less than {RARELY:.0%} of all episodes",
                runs[CAR, other].scores.mean(axis=1) < RARELY,
            )
            for other in others
        ]
        found += [
            _ahead(
                f"{CAR}: GE reaches the target more frequently than {label(other)} since the early "
                "stage",
                runs[CAR, "ge-step"],
                runs[CAR, other],
                early=True,
            )
            for other in others
        ]
        found += [
            Claim.ahead(
                f"{CAR}: GE makes progress more steadily than {label(other)}",
                "rise, as a part of all moves up and down between iterations,",
                *(_steady(runs[CAR, agent]) for agent in ("ge-step", other)),
                support=(0.0, 1.0),
            )
            for other in others
        ]
        found += self._visits_claims(runs)
        if "ge-episode" in self.agents:
            found += [
                _ahead(
                    f"ours, {environment}: GE with θ per episode is ahead of GE with θ per step",
                    runs[environment, "ge-episode"],
                    runs[environment, "ge-step"],
                )
                for environment in tasks
            ]
        return found

    def _visits_claims(self, runs: Runs) -> list[Claim]:
        """Panel (d). How one seed's visits change is judged seed by seed, from the first iterations
        to those after them."""
        first, last = self.visits_after[0], self.visits_after[-1]
        cells = {}
        for agent in self.visits_agents:
            early, whole = (self.visits(runs, after, agent).visits for after in (first, last))
            later = (last * whole - first * early) / (last - first)  # the longer run begins alike
            cells[agent, first], cells[agent, last] = spread_of(early), spread_of(later)
        kept = cells["ge-step", last] > KEPT * cells["ge-step", first]
        return [
            *(
                Claim.count(
                    f"{CAR}: {label(dqn)}'s visits increasingly cluster, from {first} to {last} "
                    "iterations",
                    f"effective number of cells falls below {KEPT:g} times what it was",
                    cells[dqn, last] < KEPT * cells[dqn, first],
                )
                for dqn in self.dqns
            ),
            Claim.count(
                f"{CAR}: GE maintains a widespread distribution, from {first} to {last} iterations",
                f"effective number of cells stays above {KEPT:g} times what it was",
                kept,
            ),
            *(
                Claim.ahead(
                    f"{CAR}: after {last} iterations GE's visits are more widespread than "
                    f"{label(dqn)}'s",
                    "effective number of cells",
                    cells["ge-step", last],
                    cells[dqn, last],
                    (1.0, runs[CAR, dqn].visits.shape[1]),
                )
                for dqn in self.dqns
            ),
        ]


def spread_of(visits: np.ndarray) -> np.ndarray:
    """For each seed, exp of the entropy of where its visits fell: so many cells, if evenly."""
    visits = np.maximum(visits, 0.0)  # of a difference, what rounding leaves
    share = visits / visits.sum(axis=1, keepdims=True)
    return np.exp(-np.sum(np.where(share > 0, share * np.log(np.maximum(share, 1e-12)), 0.0), 1))


def _ahead(text: str, better: Run, worse: Run, early: bool = False) -> Claim:
    """By the mean score of all episodes, an area under the curve, or of the first quarter."""
    place = better.config.environment
    count = max(1, better.scores.shape[1] // (4 if early else 1))
    what = f"{place.score_label} of {f'the first {count}' if early else 'all'} episodes"
    means = [run.scores[:, :count].mean(axis=1) for run in (better, worse)]
    assert place.score_range is not None
    return Claim.ahead(text, what, *means, support=place.score_range)


def _steady(run: Run) -> np.ndarray:
    """[seeds]: of the mean scores of iterations, from 0 on. No progress is not steady progress."""
    whole = run.scores.shape[1] // ITERATION * ITERATION
    means = run.scores[:, :whole].reshape(len(run.scores), -1, ITERATION).mean(axis=2)
    return steadiness(np.pad(means, ((0, 0), (1, 0))))
