"""Figure 2: DQN, NoisyNet and GE on the chain."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rove.analysis.curves import moving_average, pair_variances
from rove.analysis.estimates import solve_summary
from rove.paper import recorded
from rove.paper.base import AGENTS, DQNS, LABELS, LEFT_OUT, Experiment, Key, Runs, label
from rove.paper.claims import Claim
from rove.runs.config import Config
from rove.runs.configure import configure
from rove.runs.result import Run
from rove.runs.tables import as_csv, episodes_csv, publish_text
from rove.search.grids import variant_settings
from rove.training.solving import lowest_optimal

SEARCHED = ("figure-2",)
"""The searches that the settings of the agents come from."""
BOOTSTRAPPED = "bootstrapped_dqn"
"""Not in the figure, but the text compares its variance with that of GE."""
EPISODES = {"chain-10": 200, "chain-50": 500, "chain-100": 500}
QUICK_EPISODES = {"chain-10": 100, "chain-50": 150, "chain-100": 200}
SEEDS, QUICK_SEEDS = 10, 3
VISITS = "chain-128"
"""The environment of panel (d), which shows visits in the first iteration of 20 episodes."""
VISITS_AGENTS = (*DQNS, "ge-step", "ge-episode")
EPISODES_PER_ITERATION = 20
OPTIMUM = 11.0
RETURNS = (0.0, OPTIMUM)
"""The range of returns."""
STUCK = 0.1
"""A seed is stuck if its greedy policy earns less than this fraction of the optimum."""
MOSTLY = 0.5
"""The threshold for "mostly" and "consistently": more than half of the time."""


@dataclass(frozen=True)
class Figure2(Experiment):
    """Figure 2: DQN, NoisyNet and GE on chains of 10, 50 and 100 states; state visits on 128."""

    name = "figure-2"

    def configs(self) -> dict[Key, Config]:
        episodes = QUICK_EPISODES if self.quick else EPISODES
        seeds, left_out = (QUICK_SEEDS, LEFT_OUT) if self.quick else (SEEDS, ())
        plan = {
            (environment, agent): self._config(environment, agent, episodes[environment], seeds)
            for environment in reversed(episodes)
            for agent in reversed(AGENTS)
            if agent not in left_out
        }
        if not self.quick:
            longest = "chain-100"
            plan[longest, BOOTSTRAPPED] = configure(  # tuned on chain-50: see the scoreboard
                BOOTSTRAPPED, longest, seeds=SEEDS, episodes=episodes[longest]
            )
        for agent in VISITS_AGENTS:
            if agent not in left_out:
                plan[VISITS, agent] = self._config(VISITS, agent, EPISODES_PER_ITERATION, SEEDS)
        return plan

    def _config(self, environment: str, agent: str, episodes: int, seeds: int) -> Config:
        settings = variant_settings(agent, environment, SEARCHED)
        return configure(settings, environment, seeds=seeds, episodes=episodes)

    def write(self, runs: Runs, out: Path) -> list[Claim]:
        self.write_data(runs, out)
        draw(runs, out)
        return claims(runs)

    def write_data(self, runs: Runs, out: Path) -> None:
        """Write figure-2.csv.gz with every episode, and visits.csv with panel (d)."""
        lanes = [(agent, run.config, o) for (_, agent), run in runs.items() for o in run.outcomes]
        text = episodes_csv(
            [(config, outcome.job.seed, outcome.episodes) for _, config, outcome in lanes],
            [agent for agent, _, _ in lanes],
        )
        publish_text(out / "figure-2.csv.gz", text)
        rows = [
            (agent, VISITS, seed, i + 1, f"{frequency:g}")
            for agent in _agents(runs, VISITS)
            for seed, row in zip(runs[VISITS, agent].seeds, runs[VISITS, agent].visits, strict=True)
            for i, frequency in enumerate(row)
        ]
        header = ("agent", "environment", "seed", "state", "frequency")
        publish_text(out / "visits.csv", as_csv(header, rows))


def _agents(runs: Mapping[Key, Any], environment: str) -> list[str]:
    """Return the agents of the figure that were run on an environment."""
    return [agent for agent in AGENTS if (environment, agent) in runs]


class Recorded(NamedTuple):
    """The results of a run that the figure shows, as read from the data files."""

    returns: np.ndarray
    """Of shape [seeds, episodes]."""
    visits: np.ndarray
    """The fraction of episodes that visited each state, of shape [seeds, states]."""


def draw(runs: Mapping[Key, Run | Recorded], out: Path) -> None:
    """Write figure-2.png and figure-2.svg."""
    from rove.analysis import plots  # imported here because Matplotlib is slow to import

    figure = plots.figure(2, 2, width=8.0, height=5.6)
    for axes, letter, environment in zip(figure.axes[:3], "abc", EPISODES, strict=True):
        curves = {a: runs[environment, a].returns for a in _agents(runs, environment)}
        plots.learning_curves(axes, curves, OPTIMUM, names=LABELS, support=RETURNS)
        n = environment.removeprefix("chain-")
        axes.set_title(f"({letter}) Chain MDP, N = {n}", loc="left")
        axes.set_ylim(-0.5, 11.8)
    axes = figure.axes[3]
    for agent in _agents(runs, VISITS):
        visits = runs[VISITS, agent].visits
        states = np.arange(1, visits.shape[1] + 1)
        style: dict[str, Any] = dict(plots.line_of(agent))
        axes.plot(states, visits.mean(0), **style, label=label(agent), lw=1.6)
        plots.seeds_or_band(axes, states, visits, style["color"], support=(0.0, 1.0), alpha=0.1)
    axes.set_title("(d) State visits in the first 20 episodes, N = 128", loc="left")
    plots.over_episodes(axes, "state")
    axes.set_ylabel("visit frequency")
    axes.set_xlim(1, 128)
    axes.set_ylim(0, 1.05)
    plots.legend(figure)
    seeds = len(runs["chain-100", "ge-step"].returns)
    in_d = "" if seeds == SEEDS else f" ({SEEDS} in (d))"
    figure.supxlabel(
        f"{plots.seeds_text(seeds)}{in_d}; moving window of {plots.WINDOW} episodes",
        fontsize=8,
    )
    plots.save(figure, out / "figure-2.png")
    plots.save(figure, out / "figure-2.svg")


def redraw(data: str | Path, visits: str | Path, out: str | Path) -> None:
    """Draw the figure without training, from files such as docs/data/figure-2.csv.gz and
    docs/data/figure-2-visits.csv."""
    returns = recorded.grouped(recorded.read(data), "environment", "agent")
    frequencies = recorded.grouped(recorded.read(visits), "environment", "agent")
    nothing = np.zeros((0, 0))
    runs = {
        (key[0], key[1]): Recorded(
            recorded.by_seed(returns[key], "return") if key in returns else nothing,
            recorded.by_seed(frequencies[key], "frequency") if key in frequencies else nothing,
        )
        for key in returns | frequencies
    }
    draw(runs, Path(out))


def claims(runs: Runs) -> list[Claim]:
    """Test Section 6.2, "Exploration in Chain MDP", sentence by sentence."""
    dqns = [agent for agent in DQNS if (VISITS, agent) in runs]
    visits = {agent: runs[VISITS, agent].visits for agent in (*dqns, "ge-step")}
    states = {agent: frequency.sum(axis=1) for agent, frequency in visits.items()}
    length = visits["ge-step"].shape[1]
    near, first = length // 10, "N = 128, first 20 episodes: "
    return [
        *(
            _solved(f"N = 10: all three algorithms solve the task ({label(dqn)})", runs, dqn)
            for dqn in dqns
        ),
        *(_stuck("N = 50: {} cannot make progress", runs, "chain-50", dqn) for dqn in dqns),
        _ahead(
            "N = 50: GE converges to the optimal policy faster than {}",
            runs,
            "chain-50",
            "noisynet",
        ),
        *(
            _stuck("N = 100: {} gets stuck", runs, "chain-100", agent)
            for agent in ("noisynet", *dqns)
        ),
        *(
            _ahead("N = 100: GE makes progress more consistently than {}", runs, "chain-100", agent)
            for agent in ("noisynet", *dqns)
        ),
        _wilder(
            "N = 100: GE has a higher variance than Bootstrapped DQN",
            runs["chain-100", "ge-step"],
            runs.get(("chain-100", BOOTSTRAPPED)),
        ),
        *(
            Claim.count(
                f"{first}{label(dqn)} mostly visits states near s₂",
                f"more than half of the visits are to s₁ to s_{near}, the first tenth of the chain",
                visits[dqn][:, :near].sum(axis=1) > MOSTLY * states[dqn],
            )
            for dqn in dqns
        ),
        *(
            Claim.ahead(
                f"{first}GE visits a much wider range of states than {label(dqn)}",
                "states visited per episode",
                states["ge-step"],
                states[dqn],
                (1.0, length),
            )
            for dqn in dqns
        ),
        Claim.count(
            f"{first}GE consistently visits s_N",
            "more than half of the episodes visit it",
            visits["ge-step"][:, -1] > MOSTLY,
        ),
    ]


def _solved(text: str, runs: Runs, dqn: str) -> Claim:
    """Test whether the greedy policies of all three agents earn the optimum."""
    greedy = {
        agent: runs["chain-10", agent].evaluate(policy="mean")[:, 0]
        for agent in (dqn, "noisynet", "ge-step")
    }
    solved = {label(agent): earned >= lowest_optimal(OPTIMUM) for agent, earned in greedy.items()}
    return Claim.count(text, "the final greedy policy earns 11", solved)


def _stuck(text: str, runs: Runs, environment: str, agent: str) -> Claim:
    """Test whether an agent is stuck, by its greedy policy: exploration lowers returns, but says
    nothing about what was learned."""
    stuck = runs[environment, agent].evaluate(policy="mean")[:, 0] < STUCK * OPTIMUM
    what = "the final greedy policy earns less than a tenth of the optimum"
    return Claim.count(text.format(label(agent)), what, stuck)


def _wilder(text: str, wild: Run, steady: Run | None) -> Claim:
    """Test whether one run varies more between seeds than another."""
    if steady is None:
        return Claim(text, "Bootstrapped DQN is not run with --quick", "not tested")
    both = [
        pair_variances(moving_average(run.returns, EPISODES_PER_ITERATION))
        for run in (wild, steady)
    ]
    what = "variance between seeds, over disjoint pairs of seeds and all episodes,"
    return Claim.ahead(text, what, *both, support=(0.0, 0.5 * OPTIMUM**2))


def _ahead(text: str, runs: Runs, environment: str, other: str) -> Claim:
    """Test whether GE has a higher mean return over all episodes (area under the curve)."""
    pair = {agent: runs[environment, agent].returns for agent in ("ge-step", other)}
    means = [returns.mean(axis=1) for returns in pair.values()]
    claim = Claim.ahead(
        text.format(label(other)), "return over all episodes", *means, support=RETURNS
    )
    solved = [f"{label(a)} {solve_summary(list(x), OPTIMUM)}" for a, x in pair.items()]
    evidence = f"{claim.evidence}; ten optimal episodes in a row: {'; '.join(solved)}"
    return replace(claim, evidence=evidence)
