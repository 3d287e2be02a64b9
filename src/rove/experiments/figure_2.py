"""Figure 2: DQN, NoisyNet and GE on the chain."""

from dataclasses import dataclass
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
    difference_interval,
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
        made.supxlabel(
            f"mean and 95% bootstrap interval over {seeds} seeds ({SEEDS} in (d)); "
            f"moving window of {plots.WINDOW} episodes",
            fontsize=8,
        )
        plots.save(made, out / "figure-2.png")
        plots.save(made, out / "figure-2.svg")


def claims(runs: Runs) -> list[Claim]:
    """Section 6.2, "Exploration in Chain MDP", sentence by sentence."""
    greedy = {agent: runs["chain-10", agent].evaluate() for agent in AGENTS}
    visits = {agent: runs[VISITS, agent].visits.sum(axis=1) for agent in VISITS_AGENTS}
    wider, gain = difference_interval(visits["ge"], visits["dqn"])
    return [
        Claim.judge(
            "N = 10: all three algorithms solve the task",
            "greedy policy at the end earns 11: "
            + ", ".join(f"{label_of(a)} {np.sum(g >= 11)} of {len(g)}" for a, g in greedy.items()),
            all(np.all(g >= 11) for g in greedy.values()),
        ),
        _stuck("N = 50: DQN cannot make progress", [runs["chain-50", "dqn"]]),
        _ahead(
            "N = 50: GE converges to the optimal policy faster than NoisyNet",
            runs["chain-50", "ge"],
            runs["chain-50", "noisynet"],
        ),
        _stuck(
            "N = 100: NoisyNet and DQN get stuck",
            [runs["chain-100", "noisynet"], runs["chain-100", "dqn"]],
        ),
        _ahead(
            "N = 100: GE makes progress more consistently than NoisyNet",
            runs["chain-100", "ge"],
            runs["chain-100", "noisynet"],
        ),
        Claim.compare(
            "N = 128, first 20 episodes: GE visits a much wider range of states than DQN",
            f"states visited an episode: GE {visits['ge'].mean():.1f}, DQN "
            f"{visits['dqn'].mean():.1f}; difference {wider:.1f}, 95% interval "
            f"{gain[0]:.1f} to {gain[1]:.1f}, n = {len(visits['ge'])}",
            gain,
            enough=bool(visits["ge"].mean() > 2 * visits["dqn"].mean()),
        ),
        _steadier(
            "N = 100: GE has a higher variance than Bootstrapped DQN",
            runs["chain-100", "ge"],
            runs.get(("chain-100", BOOTSTRAPPED)),
        ),
    ]


def _stuck(text: str, runs: list[Run]) -> Claim:
    """No seed earns more than a tenth of the optimum at the end."""
    parts, holds = [], True
    for run in runs:
        last = run.returns[:, -20:].mean(axis=1)
        low, high = bootstrap_interval(last)
        parts.append(
            f"{label_of(run.config.agent_name)} {last.mean():.2f}, 95% interval {low:.2f} to "
            f"{high:.2f}, best seed {last.max():.2f}"
        )
        holds &= bool(last.max() < STUCK * 11.0)
    what = "return of the last 20 episodes: " + "; ".join(parts)
    return Claim.judge(text, f"{what}; n = {len(runs[0].seeds)}", holds)


def _steadier(text: str, wild: Run, steady: Run | None) -> Claim:
    """The standard deviation between seeds, mean over episodes, is higher beyond its interval."""
    if steady is None:
        return Claim(text, "Bootstrapped DQN is left out of --quick", "not tested")
    both = [moving_average(run.returns, ITERATION) for run in (wild, steady)]
    rng, n = np.random.default_rng(0), len(wild.seeds)
    gains = [
        np.subtract(*(np.std(x[rng.integers(n, size=n)], axis=0).mean() for x in both))
        for _ in range(2000)
    ]
    low, high = np.quantile(gains, [0.025, 0.975])
    shown = " and ".join(
        f"{label_of(run.config.agent_name)} {np.std(x, axis=0).mean():.2f}"
        for run, x in zip((wild, steady), both, strict=True)
    )
    return Claim.compare(
        text,
        f"standard deviation between seeds, mean over episodes: {shown}; difference's 95% interval "
        f"{low:.2f} to {high:.2f}, n = {n}",
        (float(low), float(high)),
    )


def _ahead(text: str, better: Run, worse: Run) -> Claim:
    """The mean return of all episodes, an area under the curve, is higher beyond its interval."""
    gain, (low, high) = difference_interval(better.returns.mean(axis=1), worse.returns.mean(axis=1))
    solved = [
        f"{label_of(run.config.agent_name)} "
        + solve_summary(run.returns, 11.0)
        for run in (better, worse)
    ]
    return Claim.compare(
        text,
        f"mean return of all episodes higher by {gain:.2f}, 95% interval {low:.2f} to {high:.2f}, "
        f"n = {len(better.seeds)}; ten optimal episodes in a row: {'; '.join(solved)}",
        (low, high),
    )
