"""Figure 2: DQN, NoisyNet and GE on the chain."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rove import runner
from rove.agents import label_of, settings_of
from rove.experiments.base import Experiment, Key, Runs
from rove.experiments.claims import Claim
from rove.run import Run
from rove.runs import Config, episodes_csv
from rove.statistics import (
    bootstrap_interval,
    log_variances,
    moving_average,
    solve_summary,
)
from rove.tables import as_csv, publish_text

AGENTS = ("dqn", "noisynet", "ge")
BOOTSTRAPPED = "bootstrapped_dqn"
"""The text compares its variance with GE's; it is not in the figure."""
EPISODES = {"chain-10": 200, "chain-50": 500, "chain-100": 500}
QUICK_EPISODES = {"chain-10": 100, "chain-50": 150, "chain-100": 200}
SEEDS, QUICK_SEEDS = 5, 3
VISITS = "chain-128"
"""Panel (d): its visits are those of the first iteration, 20 episodes."""
VISITS_AGENTS = ("dqn", "ge")
ITERATION = 20
STUCK = 0.1
"""No progress: under a tenth of the optimum over the last 20 episodes."""
MOSTLY = 0.5
"""Mostly, and consistently: more than half of the time."""


@dataclass(frozen=True)
class Figure2(Experiment):
    """Figure 2: DQN, NoisyNet and GE on chains of 10, 50 and 100 states; visits at 128."""

    def configs(self) -> dict[Key, Config]:
        episodes = QUICK_EPISODES if self.quick else EPISODES
        seeds = QUICK_SEEDS if self.quick else SEEDS
        plan = {
            (environment, agent): runner.configure(
                agent, environment, seeds=seeds, episodes=episodes[environment]
            )
            for environment in reversed(episodes)
            for agent in reversed(AGENTS)
        }
        if not self.quick:
            longest = "chain-100"
            plain = settings_of(BOOTSTRAPPED)()  # the search was for the other three
            plan[longest, BOOTSTRAPPED] = runner.configure(
                plain, longest, seeds=seeds, episodes=episodes[longest]
            )
        for agent in VISITS_AGENTS:
            plan[VISITS, agent] = runner.configure(agent, VISITS, seeds=SEEDS, episodes=ITERATION)
        return plan

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        self.draw(runs, out)
        return claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """figure-2.csv.gz: every episode; visits.csv: panel (d)."""
        lanes = [(r.config, o.job.seed, o.episodes) for r in runs.values() for o in r.outcomes]
        publish_text(out / "figure-2.csv.gz", episodes_csv(lanes))
        rows = [
            (agent, VISITS, seed, i + 1, f"{frequency:g}")
            for agent in VISITS_AGENTS
            for seed, row in zip(runs[VISITS, agent].seeds, runs[VISITS, agent].visits, strict=True)
            for i, frequency in enumerate(row)
        ]
        header = ("agent", "environment", "seed", "state", "frequency")
        publish_text(out / "visits.csv", as_csv(header, rows))

    def draw(self, runs: Runs, out: Path) -> None:
        """figure-2.png and figure-2.svg."""
        from rove import plots  # here, because Matplotlib takes long to import

        made = plots.figure(2, 2, width=8.0, height=5.6)
        for axes, letter, environment in zip(made.axes[:3], "abc", EPISODES, strict=True):
            curves = {agent: runs[environment, agent].returns for agent in AGENTS}
            plots.learning_curves(axes, curves, optimum=11.0)
            n = environment.removeprefix("chain-")
            axes.set_title(f"({letter}) Chain MDP, N = {n}", loc="left")
            axes.set_ylim(-0.5, 11.8)
        made.axes[0].legend(loc="lower right")
        axes = made.axes[3]
        for agent in VISITS_AGENTS:
            visits = runs[VISITS, agent].visits
            states = np.arange(1, visits.shape[1] + 1)
            colour = plots.COLOURS[agent]
            axes.plot(states, visits.mean(0), color=colour, label=label_of(agent), lw=1.6)
            low, high = bootstrap_interval(visits)
            axes.fill_between(states, low, high, color=colour, alpha=0.2, lw=0)
        axes.set_title("(d) State visits in the first 20 episodes, N = 128", loc="left")
        axes.set_xlabel("state")
        axes.set_ylabel("visit frequency")
        axes.set_xlim(1, 128)
        axes.set_ylim(0, 1.05)
        axes.legend(loc="upper right")
        seeds = len(runs["chain-100", "ge"].seeds)
        more = "" if seeds == SEEDS else f" ({SEEDS} in (d))"
        made.supxlabel(
            f"mean and 95% bootstrap interval over {seeds} seeds{more}; "
            f"moving window of {plots.WINDOW} episodes",
            fontsize=8,
        )
        plots.save(made, out / "figure-2.png")
        plots.save(made, out / "figure-2.svg")


def claims(runs: Runs) -> list[Claim]:
    """Section 6.2, "Exploration in Chain MDP", sentence by sentence."""
    greedy = {agent: runs["chain-10", agent].evaluate() for agent in AGENTS}
    visits = {agent: runs[VISITS, agent].visits for agent in VISITS_AGENTS}
    states = {agent: each.sum(axis=1) for agent, each in visits.items()}
    near = visits["dqn"].shape[1] // 10
    first = "N = 128, first 20 episodes: "
    return [
        Claim.judge(
            "N = 10: all three algorithms solve the task",
            "greedy policy at the end earns 11: "
            + ", ".join(f"{label_of(a)} {np.sum(g >= 11)} of {len(g)}" for a, g in greedy.items()),
            all(np.all(g >= 11) for g in greedy.values()),
        ),
        _stuck("N = 50: DQN cannot make progress", runs["chain-50", "dqn"]),
        _ahead(
            "N = 50: GE converges to the optimal policy faster than NoisyNet",
            runs["chain-50", "ge"],
            runs["chain-50", "noisynet"],
        ),
        *(
            _stuck(f"N = 100: {label_of(agent)} gets stuck", runs["chain-100", agent])
            for agent in ("noisynet", "dqn")
        ),
        *(
            _ahead(
                f"N = 100: GE makes progress more consistently than {label_of(agent)}",
                runs["chain-100", "ge"],
                runs["chain-100", agent],
            )
            for agent in ("noisynet", "dqn")
        ),
        _wilder(
            "N = 100: GE has a higher variance than Bootstrapped DQN",
            runs["chain-100", "ge"],
            runs.get(("chain-100", BOOTSTRAPPED)),
        ),
        Claim.above(
            f"{first}DQN mostly visits states near s₂",
            f"part of its visits that are to s₁ to s_{near}, a tenth of the chain",
            visits["dqn"][:, :near].sum(axis=1) / states["dqn"],
            MOSTLY,
        ),
        Claim.ahead(
            f"{first}GE visits a much wider range of states than DQN",
            "states visited an episode",
            states["ge"],
            states["dqn"],
        ),
        Claim.above(
            f"{first}GE consistently visits s_N",
            "part of the episodes that visit it",
            visits["ge"][:, -1],
            MOSTLY,
        ),
    ]


def _stuck(text: str, run: Run) -> Claim:
    """At the end it earns less than a part STUCK of the optimum."""
    last = run.returns[:, -20:].mean(axis=1)
    return Claim.below(text, "return of the last 20 episodes", last, STUCK * 11.0)


def _wilder(text: str, wild: Run, steady: Run | None) -> Claim:
    """By the variance between seeds."""
    if steady is None:
        return Claim(text, "Bootstrapped DQN is left out of --quick", "not tested")
    both = [log_variances(moving_average(run.returns, ITERATION)) for run in (wild, steady)]
    return Claim.ahead(text, "log of the variance between seeds", *both)


def _ahead(text: str, better: Run, worse: Run) -> Claim:
    """By the mean return of all episodes, an area under the curve."""
    means = [run.returns.mean(axis=1) for run in (better, worse)]
    judged = Claim.ahead(text, "return of all episodes", *means)
    solved = [
        f"{label_of(run.config.agent_name)} {solve_summary(list(run.returns), 11.0)}"
        for run in (better, worse)
    ]
    told = f"{judged.evidence}; ten optimal episodes in a row: {'; '.join(solved)}"
    return replace(judged, evidence=told)
