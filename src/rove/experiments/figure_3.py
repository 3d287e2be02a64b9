"""Figure 3: DQN, NoisyNet and GE on sparse control tasks."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove import runner
from rove.agents import label_of, settings_of
from rove.environments import make
from rove.experiments.base import Experiment, Key, Runs
from rove.experiments.claims import Claim
from rove.experiments.searches import variant
from rove.run import Run
from rove.runs import Config, episodes_csv
from rove.statistics import steadiness
from rove.tables import as_csv, publish_text
from rove.tuned import tuned

AGENTS = ("dqn", "noisynet", "ge-step", "ge-episode")
"""The paper's three, and GE that holds its θ for an episode."""
SEARCHED = ("figure-3",)
"""Whose settings the agents have."""
LABELS = {"ge-step": "GE", "ge-episode": "GE, a θ an episode"}
CAR = "sparse-mountain-car"
EPISODES = {CAR: 600, "sparse-acrobot": 200, "sparse-cartpole": 400}
QUICK_EPISODES = {CAR: 100, "sparse-acrobot": 30, "sparse-cartpole": 150}
SEEDS, QUICK_SEEDS = 5, 2
ITERATION = 20
VISITS_AFTER, QUICK_VISITS_AFTER = (10, 30), (2, 5)
"""Panel (d): iterations."""
VISITS_AGENTS = ("ge-step", "dqn")
RARELY = 0.05
"""Of all episodes."""
KEPT = 0.9
"""Of the cells that visits were spread over, a part that is enough to have maintained it."""


def label(name: str) -> str:
    return LABELS.get(name) or label_of(name)


@dataclass(frozen=True)
class Figure3(Experiment):
    """Figure 3: DQN, NoisyNet and GE on sparse CartPole, MountainCar and Acrobot; visits."""

    @property
    def visits_after(self) -> tuple[int, ...]:
        return QUICK_VISITS_AFTER if self.quick else VISITS_AFTER

    def configs(self) -> dict[Key, Config]:
        episodes = QUICK_EPISODES if self.quick else EPISODES
        plan = {
            (environment, agent): self._config(environment, agent, budget)
            for environment, budget in episodes.items()
            for agent in AGENTS
        }
        for agent in VISITS_AGENTS:  # the first of each run above, to the bit
            for iterations in self.visits_after:
                if iterations * ITERATION < episodes[CAR]:
                    config = self._config(CAR, agent, iterations * ITERATION)
                    plan[f"visits-{iterations}", agent] = config
        return plan

    def visits(self, runs: Runs, iterations: int, agent: str) -> Run:
        """The run that has so many iterations."""
        return runs.get((f"visits-{iterations}", agent)) or runs[CAR, agent]

    def _config(self, environment: str, agent: str, episodes: int) -> Config:
        name, _ = variant(agent)
        settings = tuned(agent, environment, SEARCHED)
        seeds = QUICK_SEEDS if self.quick else SEEDS
        return runner.configure(
            settings_of(name)(**settings), make(environment), seeds=seeds, episodes=episodes
        )

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        self.draw(runs, out)
        return self.claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """figure-3.csv.gz: every episode; visits.csv.gz: panel (d)."""
        shown = [run for (name, _), run in runs.items() if name in EPISODES]
        lanes = [(run.config, o.job.seed, o.episodes) for run in shown for o in run.outcomes]
        publish_text(out / "figure-3.csv.gz", episodes_csv(lanes))
        rows: list[tuple] = []
        for iterations, agent in itertools.product(self.visits_after, VISITS_AGENTS):
            run = self.visits(runs, iterations, agent)
            for seed, row in zip(run.seeds, run.visits, strict=True):
                rows += [(agent, iterations, seed, i, f"{f:g}") for i, f in enumerate(row) if f]
        header = ("agent", "iterations", "seed", "cell", "frequency")
        publish_text(out / "visits.csv.gz", as_csv(header, rows))

    def draw(self, runs: Runs, out: Path) -> None:
        """figure-3.png and figure-3.svg."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.figure(2, 4, width=13.0, height=6.0)
        top, bottom = made.axes[:4], made.axes[4:]
        names = ("sparse-cartpole", CAR, "sparse-acrobot")
        for axes, letter, environment in zip(top, "abc", names, strict=False):
            place = runs[environment, "dqn"].config.environment
            curves = {agent: runs[environment, agent].scores for agent in AGENTS}
            plots.learning_curves(axes, curves, label=place.score_label, names=LABELS)
            title = environment.replace("-", " ").title().replace(" ", "")
            axes.set_title(f"({letter}) {title}", loc="left")
        top[3].set_axis_off()
        top[3].legend(*top[0].get_legend_handles_labels(), loc="center left")
        pairs = [(i, agent) for i in self.visits_after for agent in VISITS_AGENTS]
        for axes, (iterations, agent) in zip(bottom, pairs, strict=True):
            run = self.visits(runs, iterations, agent)
            place = run.config.environment
            plots.visits(axes, run.visits.reshape(-1, *place.cells), place.coordinates)
            axes.set_title(f"(d) {label(agent)}, {iterations} iterations", loc="left")
        seeds = len(runs[CAR, "dqn"].seeds)
        made.supxlabel(
            f"mean and 95% bootstrap interval over {seeds} seeds; moving window of "
            f"{plots.WINDOW} episodes; (d): in what fraction of episodes a cell was visited",
            fontsize=8,
        )
        plots.save(made, out / "figure-3.png")
        plots.save(made, out / "figure-3.svg")

    def claims(self, runs: Runs) -> list[Claim]:
        """Section 6.2, "Exploration in Sparse Reward Environments", sentence by sentence."""
        found = [
            _ahead(
                f"{environment}: GE entails much faster progress than {label(other)}",
                runs[environment, "ge-step"],
                runs[environment, other],
            )
            for environment in ("sparse-cartpole", CAR, "sparse-acrobot")
            for other in ("dqn", "noisynet")
        ]
        found += [_rarely(runs[CAR, agent]) for agent in ("dqn", "noisynet")]
        found += [
            _ahead(
                f"{CAR}: GE reaches the target more frequently than {label(other)} since the early "
                "stage",
                runs[CAR, "ge-step"],
                runs[CAR, other],
                early=True,
            )
            for other in ("dqn", "noisynet")
        ]
        found += [
            Claim.ahead(
                f"{CAR}: GE makes progress more steadily than {label(other)}",
                "rise, as a part of all moves up and down between iterations,",
                *(_steady(runs[CAR, agent]) for agent in ("ge-step", other)),
            )
            for other in ("dqn", "noisynet")
        ]
        first, last = self.visits_after[0], self.visits_after[-1]
        cells = {
            (agent, after): spread_of(self.visits(runs, after, agent))
            for agent in VISITS_AGENTS
            for after in (first, last)
        }
        found += [
            Claim.above(
                f"{CAR}: DQN's visits increasingly cluster, from {first} to {last} iterations",
                "effective number of cells, the earlier less the later",
                cells["dqn", first] - cells["dqn", last],
            ),
            Claim.above(
                f"{CAR}: GE maintains a widespread distribution, from {first} to {last} iterations",
                f"effective number of cells, the later less {KEPT:g} times the earlier",
                cells["ge-step", last] - KEPT * cells["ge-step", first],
            ),
            Claim.ahead(
                f"{CAR}: after {last} iterations GE's visits are more widespread than DQN's",
                "effective number of cells",
                cells["ge-step", last],
                cells["dqn", last],
            ),
        ]
        found += [
            _ahead(
                f"ours, {environment}: GE that holds θ for an episode is ahead of GE a step",
                runs[environment, "ge-episode"],
                runs[environment, "ge-step"],
            )
            for environment in ("sparse-cartpole", CAR, "sparse-acrobot")
        ]
        return found


def spread_of(run: Run) -> np.ndarray:
    """For each seed, exp of the entropy of where its visits fell: so many cells, if evenly."""
    share = run.visits / run.visits.sum(axis=1, keepdims=True)
    return np.exp(-np.sum(np.where(share > 0, share * np.log(np.maximum(share, 1e-12)), 0.0), 1))


def _ahead(text: str, better: Run, worse: Run, early: bool = False) -> Claim:
    """By the mean score of all episodes, an area under the curve, or of the first quarter."""
    count = better.scores.shape[1] // (4 if early else 1)
    told = f"the first {count}" if early else "all"
    what = f"{better.config.environment.score_label} of {told} episodes"
    return Claim.ahead(text, what, *(run.scores[:, :count].mean(axis=1) for run in (better, worse)))


def _rarely(run: Run) -> Claim:
    return Claim.below(
        f"{CAR}: {label(run.config.agent_name)} never, or very rarely, reaches the target",
        "part of all episodes that reach it",
        run.scores.mean(axis=1),
        RARELY,
    )


def _steady(run: Run) -> np.ndarray:
    """[seeds]: of the mean scores of iterations, from 0 on. No progress is not steady progress."""
    whole = run.scores.shape[1] // ITERATION * ITERATION
    means = run.scores[:, :whole].reshape(len(run.scores), -1, ITERATION).mean(axis=2)
    return steadiness(np.pad(means, ((0, 0), (1, 0))))
