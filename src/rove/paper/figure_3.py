"""Figure 3: DQN, NoisyNet and GE on sparse control tasks."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rove.analysis.curves import steadiness
from rove.environments import make
from rove.paper import recorded
from rove.paper.base import AGENTS, DQNS, LABELS, LEFT_OUT, Experiment, Key, Runs, label
from rove.paper.claims import Claim
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.result import Run
from rove.runs.tables import as_csv, episodes_csv, publish_text
from rove.search.grids import variant_settings

SEARCHED = ("figure-3",)
"""The searches that the settings of the agents come from."""
CAR = "sparse-mountain-car"
EPISODES = {CAR: 600, "sparse-acrobot": 200, "sparse-cartpole": 400}
QUICK_EPISODES = {CAR: 100, "sparse-acrobot": 30, "sparse-cartpole": 150}
SEEDS, QUICK_SEEDS = 10, 2
EPISODES_PER_ITERATION = 20
VISITS_AFTER, QUICK_VISITS_AFTER = (10, 30), (2, 5)
"""The numbers of iterations after which panel (d) shows visits."""
VISITS_AGENTS = ("ge-step", *DQNS)
RARELY = 0.05
"""The threshold for "very rarely", as a fraction of all episodes."""
MAINTAINED = 0.9
"""Minimum ratio of the later to the earlier effective number of cells for a distribution that is
"maintained"."""


@dataclass(frozen=True)
class Figure3(Experiment):
    """Figure 3: DQN, NoisyNet and GE on sparse CartPole, MountainCar and Acrobot; state visits."""

    name = "figure-3"

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents of the figure."""
        return tuple(name for name in AGENTS if not self.quick or name not in LEFT_OUT)

    @property
    def dqns(self) -> tuple[str, ...]:
        """The variants of DQN among the agents."""
        return tuple(name for name in DQNS if name in self.agents)

    @property
    def visits_agents(self) -> tuple[str, ...]:
        """The agents of panel (d)."""
        return tuple(name for name in VISITS_AGENTS if name in self.agents)

    @property
    def visits_after(self) -> tuple[int, ...]:
        """The numbers of iterations after which panel (d) shows visits."""
        return QUICK_VISITS_AFTER if self.quick else VISITS_AFTER

    def configs(self) -> dict[Key, Config]:
        episodes = QUICK_EPISODES if self.quick else EPISODES
        plan = {
            (environment, agent): self._config(environment, agent, budget)
            for environment, budget in episodes.items()
            for agent in self.agents
        }
        for agent in self.visits_agents:  # bit-identical to the start of the runs above
            for iterations in self.visits_after:
                if iterations * EPISODES_PER_ITERATION < episodes[CAR]:
                    config = self._config(CAR, agent, iterations * EPISODES_PER_ITERATION)
                    plan[f"visits-{iterations}", agent] = config
        return plan

    def visits(self, runs: Runs, iterations: int, agent: str) -> Run:
        """Return the run of an agent that ends after a number of iterations."""
        return runs.get((f"visits-{iterations}", agent)) or runs[CAR, agent]

    def _config(self, environment: str, agent: str, episodes: int) -> Config:
        settings = variant_settings(agent, environment, SEARCHED)
        seeds = QUICK_SEEDS if self.quick else SEEDS
        return configure(settings, make(environment), seeds=seeds, episodes=episodes)

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        self.draw(runs, out)
        return self.claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """Write figure-3.csv.gz with every episode, and visits.csv.gz with panel (d)."""
        curves = {key: run for key, run in runs.items() if key[0] in EPISODES}
        lanes = [(agent, run.config, o) for (_, agent), run in curves.items() for o in run.outcomes]
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
        """Write figure-3.png and figure-3.svg."""
        scores = {key: run.scores for key, run in runs.items() if key[0] in EPISODES}
        visits = {
            (iterations, agent): self.visits(runs, iterations, agent).visits
            for iterations, agent in itertools.product(self.visits_after, self.visits_agents)
        }
        draw(scores, visits, out)

    def claims(self, runs: Runs) -> list[Claim]:
        """Test Section 6.2, "Exploration in Sparse Reward Environments", sentence by sentence."""
        others, tasks = (*self.dqns, "noisynet"), ("sparse-cartpole", CAR, "sparse-acrobot")
        tested = [
            _ahead(
                f"{environment}: GE entails much faster progress than {label(other)}",
                runs[environment, "ge-step"],
                runs[environment, other],
            )
            for environment in tasks
            for other in others
        ]
        tested += [
            Claim.count(
                f"{CAR}: {label(other)} never, or very rarely, reaches the target",
                f"reaches it in less than {RARELY:.0%} of all episodes",
                runs[CAR, other].scores.mean(axis=1) < RARELY,
            )
            for other in others
        ]
        tested += [
            _ahead(
                f"{CAR}: GE reaches the target more frequently than {label(other)} since the early "
                "stage",
                runs[CAR, "ge-step"],
                runs[CAR, other],
                early=True,
            )
            for other in others
        ]
        tested += [
            Claim.ahead(
                f"{CAR}: GE makes progress more steadily than {label(other)}",
                "net rise as a fraction of the total variation between iterations,",
                *(_steady(runs[CAR, agent]) for agent in ("ge-step", other)),
                support=(0.0, 1.0),
            )
            for other in others
        ]
        tested += self._visits_claims(runs)
        if "ge-episode" in self.agents:
            tested += [
                _ahead(
                    f"ours, {environment}: GE with θ per episode is ahead of GE with θ per step",
                    runs[environment, "ge-episode"],
                    runs[environment, "ge-step"],
                )
                for environment in tasks
            ]
        return tested

    def _visits_claims(self, runs: Runs) -> list[Claim]:
        """Test the claims about panel (d), with changes over iterations tested seed by seed."""
        first, last = self.visits_after[0], self.visits_after[-1]
        cells = {}
        for agent in self.visits_agents:
            early, total = (self.visits(runs, after, agent).visits for after in (first, last))
            # The longer run begins with the shorter one: subtract it to get the later part.
            later = (last * total - first * early) / (last - first)
            cells[agent, first], cells[agent, last] = spread_of(early), spread_of(later)
        maintained = cells["ge-step", last] > MAINTAINED * cells["ge-step", first]
        return [
            *(
                Claim.count(
                    f"{CAR}: the visits of {label(dqn)} increasingly cluster, from {first} to "
                    f"{last} iterations",
                    f"the effective number of cells falls below {MAINTAINED:g} times its earlier "
                    "value",
                    cells[dqn, last] < MAINTAINED * cells[dqn, first],
                )
                for dqn in self.dqns
            ),
            Claim.count(
                f"{CAR}: GE maintains a widespread distribution, from {first} to {last} iterations",
                f"the effective number of cells stays above {MAINTAINED:g} times its earlier value",
                maintained,
            ),
            *(
                Claim.ahead(
                    f"{CAR}: after {last} iterations the visits of GE are more widespread than "
                    f"those of {label(dqn)}",
                    "effective number of cells",
                    cells["ge-step", last],
                    cells[dqn, last],
                    (1.0, runs[CAR, dqn].visits.shape[1]),
                )
                for dqn in self.dqns
            ),
        ]


def draw(
    scores: Mapping[Key, np.ndarray], visits: Mapping[tuple[int, str], np.ndarray], out: Path
) -> None:
    """Write figure-3.png and figure-3.svg.

    **Arguments**
    - `scores`: the scores of each environment and agent, of shape [seeds, episodes].
    - `visits`: the visits after some iterations of each agent, of shape [seeds, cells].
    """
    from rove.analysis import panels, plots  # imported here because Matplotlib is slow to import

    figure = plots.figure(3, 3, width=11.0, height=8.6)
    top, boards = figure.axes[:3], (figure.axes[3:6], figure.axes[6:])
    names = ("sparse-cartpole", CAR, "sparse-acrobot")
    for axes, letter, environment in zip(top, "abc", names, strict=True):
        task = make(environment)
        curves = {a: scores[environment, a] for a in AGENTS if (environment, a) in scores}
        options = {"names": LABELS, "support": task.score_range}
        plots.learning_curves(axes, curves, label=task.score_label, **options)
        title = environment.replace("-", " ").title().replace(" ", "")
        axes.set_title(f"({letter}) {title}", loc="left")
    plots.legend(figure)
    car = make(CAR)
    for row, iterations in zip(boards, sorted({k[0] for k in visits}), strict=True):
        agents = [agent for agent in VISITS_AGENTS if (iterations, agent) in visits]
        for axes, agent in itertools.zip_longest(row, agents):
            if agent is None:
                axes.set_axis_off()
                continue
            panels.visits(axes, visits[iterations, agent].reshape(-1, *car.cells), car.coordinates)
            axes.set_title(f"(d) {label(agent)}, {iterations} iterations", loc="left")
    figure.supxlabel(
        f"{plots.seeds_text(len(scores[CAR, 'dqn']))}; moving window of {plots.WINDOW} episodes; "
        "(d): fraction of episodes in which a cell was visited",
        fontsize=8,
    )
    plots.save(figure, out / "figure-3.png")
    plots.save(figure, out / "figure-3.svg")


def redraw(data: str | Path, visits: str | Path, out: str | Path) -> None:
    """Draw the figure again from its data, without training.

    The data are files such as docs/data/figure-3.csv.gz and docs/data/figure-3-visits.csv.gz.
    """
    runs = recorded.grouped(recorded.read(data), "environment", "agent")
    scores = {(key[0], key[1]): recorded.by_seed(rows, "score") for key, rows in runs.items()}
    seeds, cells = len(scores[CAR, "dqn"]), make(CAR).bins
    tables = {}
    for (iterations, agent), rows in recorded.grouped(
        recorded.read(visits), "iterations", "agent"
    ).items():
        table = tables[int(iterations), agent] = np.zeros((seeds, cells))
        seed, cell = (recorded.numbers(rows, name).astype(int) for name in ("seed", "cell"))
        table[seed, cell] = recorded.numbers(rows, "frequency")
    draw(scores, tables, Path(out))


def spread_of(visits: np.ndarray) -> np.ndarray:
    """Return the effective number of cells visited by each seed: exp(entropy of its visits)."""
    visits = np.maximum(visits, 0.0)  # a difference may be slightly negative by rounding
    share = visits / visits.sum(axis=1, keepdims=True)
    return np.exp(-np.sum(np.where(share > 0, share * np.log(np.maximum(share, 1e-12)), 0.0), 1))


def _ahead(text: str, better: Run, worse: Run, early: bool = False) -> Claim:
    """Test whether one run has a higher mean score, over all episodes or over the first quarter."""
    task = better.config.environment
    count = max(1, better.scores.shape[1] // (4 if early else 1))
    what = f"{task.score_label} over {f'the first {count}' if early else 'all'} episodes"
    means = [run.scores[:, :count].mean(axis=1) for run in (better, worse)]
    assert task.score_range is not None
    return Claim.ahead(text, what, *means, support=task.score_range)


def _steady(run: Run) -> np.ndarray:
    """Return the steadiness of the mean scores of iterations, for each seed.

    Curves start at 0, so that constant scores do not count as steady progress.
    """
    num_episodes = run.scores.shape[1] // EPISODES_PER_ITERATION * EPISODES_PER_ITERATION
    iterations = run.scores[:, :num_episodes].reshape(len(run.scores), -1, EPISODES_PER_ITERATION)
    means = iterations.mean(axis=2)
    return steadiness(np.pad(means, ((0, 0), (1, 0))))
