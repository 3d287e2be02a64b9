"""Terminal output of the commands: live progress, and tables at the end."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import progress as bars
from rich.console import Console
from rich.table import Table

from rove.agents.settings import Settings
from rove.agents.tuned import origin
from rove.analysis.estimates import solve_summary
from rove.analysis.intervals import count_and_interval, episodes_interval, mean_and_interval
from rove.analysis.networks import as_json as networks_as_json
from rove.analysis.networks import network_text
from rove.cli.console import prose, word
from rove.core.policies import POLICIES
from rove.environments import HostEnvironment
from rove.environments.bandit import BanditTask
from rove.runs.configure import default_settings
from rove.runs.live import format_score, print_line
from rove.search.sweep_result import Sweep, SweepProgress, format_value
from rove.training.solving import lowest_optimal

if TYPE_CHECKING:
    from rove.paper.claims import Claim
    from rove.runs.result import Run


class SweepLive:
    """Shows a progress bar for a sweep: finished runs, the best point so far and the time left.

    If the output is not a terminal, it prints a line every few seconds instead.
    """

    def __init__(self, console: Console, total: int, quiet: bool = False):
        self._console, self._last_line, self._line, self._quiet = console, 0.0, "", quiet
        self._progress = bars.Progress(
            bars.TextColumn("runs"),
            bars.BarColumn(bar_width=24),
            bars.MofNCompleteColumn(),
            bars.TextColumn("{task.fields[status]}"),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self._bar = self._progress.add_task("runs", total=total, status="starting")

    def report(self, progress: SweepProgress) -> None:
        """Show the progress of the sweep."""
        if self._quiet:
            return
        text = _status(progress)
        self._progress.update(self._bar, completed=progress.done, status=text)
        if not self._console.is_terminal and time.monotonic() - self._last_line > 5.0:
            line = f"{progress.done} of {progress.total} runs" + (f", {text}" if text else "")
            if line != self._line:
                self._last_line, self._line = time.monotonic(), line
                print_line(self._console, line)

    def __enter__(self) -> "SweepLive":
        self._progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


def _status(progress: SweepProgress) -> str:
    """Describe the best point so far and the time left."""
    parts = []
    if progress.best is not None:
        scores = progress.best.scores
        parts.append(
            f"best mean {np.mean(scores):.3f} (n = {len(scores)}) at {progress.best.label}"
        )
    if progress.seconds_left is not None:
        minutes, seconds = divmod(round(progress.seconds_left), 60)
        parts.append(f"{minutes} min {seconds} s left" if minutes else f"{seconds} s left")
    return ", ".join(parts)


def sweep_table(console: Console, sweep: Sweep) -> None:
    """Print the ten best points, and the scores of the best on tuning and on fresh seeds."""
    base = sweep.plan.base

    def interval(scores: Sequence[float]) -> str:
        return mean_and_interval(np.array(scores), base.environment.score_range)

    table = Table(title=f"{base.label}: best of {len(sweep.points)} points", title_justify="left")
    for name in sweep.plan.fields:
        table.add_column(name, justify="right")
    table.add_column(f"mean {base.environment.score_label} on tuning seeds")
    for point in sweep.ranked[:10]:
        row = (format_value(value) for value in point.settings.values())
        table.add_row(*row, interval(point.scores))
    console.print(table)
    best = sweep.best
    mean = f"mean {base.environment.score_label}"
    lines = [f"best: {best.label}", f"{mean} on tuning seeds: {interval(best.scores)}"]
    if best.confirmed:
        lines.append(f"{mean} on fresh seeds:  {interval(best.confirmed)}")
    for line in lines:
        prose(console, line)


def summary(run: "Run") -> dict[str, Any]:
    """Return the results of a run for JSON: one list entry per seed, None for missing values."""
    optimum = run.config.environment.optimum

    def mean(scores: np.ndarray) -> float | None:
        return float(np.mean(scores)) if len(scores) else None

    return {
        "agent": run.config.agent_name,
        "environment": run.config.environment.name,
        "score": run.config.environment.score_label,
        "optimum": optimum,
        "seeds": list(run.seeds),
        "episodes": [len(outcome.scores) for outcome in run.outcomes],
        "steps": [int(outcome.lane.step) for outcome in run.outcomes],
        "mean": [mean(outcome.scores) for outcome in run.outcomes],
        "last_20": [mean(outcome.scores[-20:]) for outcome in run.outcomes],
        "policy": [delivered.policy for delivered in run.delivered],
        "evaluated": [float(np.mean(scores)) for scores in run.evaluated],
        "greedy": [float(np.mean(scores)) for scores in run.greedy],
        **networks_as_json(run.networks),
        "solved_at": run.solved_at,
        "stopped_at": run.stopped_at,
        "lost": run.lost,
        "warnings": run.alarms,
        "errors": [str(error) for error in run.errors],
    }


def closing_table(console: Console, run: "Run", summary: dict[str, Any]) -> None:
    """Print one row per seed, and the mean over seeds with its interval."""
    optimum, label = summary["optimum"], summary["score"]
    policies = zip(summary["policy"], summary["evaluated"], strict=True)
    values_of = summary | {"trained": [_by_policy(*x) for x in policies]}
    table = Table(title=run.config.label, title_justify="left")
    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "seed": ("seeds", str),
        "episodes": ("episodes", "{:,}".format),
        "steps": ("steps", "{:,}".format),
        f"mean {label}": ("mean", format_score),
        "last 20": ("last_20", format_score),
        "policy": ("trained", str),
    }
    if optimum is not None:
        columns["solved at"] = ("solved_at", "{:,}".format)
    for column in columns:
        table.add_column(column, justify="right")
    for i in range(len(run.seeds)):
        values = ((show, values_of[field][i]) for field, show in columns.values())
        cells = ["–" if value is None else show(value) for show, value in values]
        cells[-1] += " (lost again)" * summary["lost"][i]
        table.add_row(*cells)
    console.print(table)
    what = f"policy: mean {label} of the trained policy (and which it is)"
    prose(console, f"{what}: {_policies(summary['policy'])}")
    if isinstance(run.config.agent, Settings):
        text = origin(run.config.agent_name, run.config.environment.name)
        default = default_settings(run.config.agent_name, run.config.environment)
        changed = [f.name for f in fields(default) if _differs(f.name, default, run.config.agent)]
        text += f"; changed: {', '.join(changed)}" if changed else ""
        prose(console, f"default settings: {text}")
    if text := network_text(run.networks):
        prose(console, text)
    last = [value for value in summary["last_20"] if value is not None]
    if len(last) > 1:
        mean = mean_and_interval(np.array(last), run.config.environment.score_range)
        prose(console, f"mean {label}, last 20 episodes: {mean} seeds")
    if run.config.stop_at is not None:
        reached = [at for at in summary["stopped_at"] if at is not None]
        text = count_and_interval(len(reached), len(run.seeds))
        text += f", at episode{'s' * (len(reached) > 1)} " * bool(reached)
        text += ", ".join(map("{:,}".format, reached))
        of = "an evaluation" if run.config.eval_every else "the last 20 episodes"
        prose(console, f"seeds that reached {run.config.stop_at:g}, the mean of {of}: {text}")
    if isinstance(bandit := run.config.environment, BanditTask):
        regret = bandit.regret(np.stack([outcome.visits for outcome in run.outcomes]))
        pulls = [len(outcome.scores) for outcome in run.outcomes]
        mean = mean_and_interval(regret, (0.0, max(pulls) * bandit.regrets.max()))
        text = f"regret: {mean} seed{'s' * (len(pulls) != 1)}"
        if (rate := bandit.lai_robbins) is not None:
            text += f"; Lai and Robbins' rate times log {np.mean(pulls):.0f}: "
            text += f"{rate * np.log(np.mean(pulls)):.1f}"
        prose(console, text)
    if optimum is not None:
        prose(
            console,
            f"seeds that solved it (ten episodes in a row at the optimum of {optimum:g}): "
            + solve_summary([o.scores for o in run.outcomes], optimum, sum(summary["lost"])),
        )
        pairs = zip(summary["evaluated"], summary["solved_at"], strict=True)
        unsolved = [score for score, at in pairs if at is None and score is not None]
        if optimal := sum(score >= lowest_optimal(optimum) for score in unsolved):
            which = "seeds that did not solve it, but whose trained policy is optimal"
            prose(console, f"{which}: {optimal} of {len(unsolved)}")
    elif isinstance(run.config.environment, HostEnvironment):
        prose(
            console,
            "rove cannot tell whether the task is solved; give its best possible score with "
            "--env.optimum",
        )


def _by_policy(name: str, score: float | None) -> str:
    """Return the mean score of a trained policy, and which it is: '11.000 (mean)'."""
    return f"{'–' if score is None else format_score(score)} ({name})"


def _policies(names: Sequence[str]) -> str:
    """Describe the policies of seeds: 'greedy on the posterior mean (mean): 2 seeds; …'"""
    counts = {name: names.count(name) for name in POLICIES if name in names}
    return "; ".join(
        f"{POLICIES[name].description} ({name}): {n} seed{'s' * (n > 1)}"
        for name, n in counts.items()
    )


def _differs(name: str, one: Any, other: Any) -> bool:
    return getattr(one, name) != getattr(other, name)


def scores(
    console: Console, run: "Run", policies: Sequence[str], table: np.ndarray, as_json: bool
) -> None:
    """Print the policy of each seed, and its scores, of shape [seeds, episodes], as a table or as
    JSON."""
    environment, support = run.config.environment, run.config.environment.score_range
    means = table.mean(axis=1)
    limits = [episodes_interval(row, support) if len(row) > 1 else None for row in table]
    if as_json:
        result = {
            "agent": run.config.agent_name,
            "environment": environment.name,
            "score": environment.score_label,
            "optimum": environment.optimum,
            "seeds": list(run.seeds),
            "policy": list(policies),
            "scores": table.tolist(),
            "intervals": limits,
            "mean": float(means.mean()),
            **networks_as_json(run.networks),
        }
        console.print(json.dumps(result, indent=2), markup=False, highlight=False, soft_wrap=True)
        return
    episodes = f"{table.shape[1]} episode{'s' * (table.shape[1] != 1)}"
    title = f"{run.config.label}: {environment.score_label} of the trained policy, {episodes}"
    prose(console, title)
    grid = Table()
    for column in ("seed", "policy", "mean", "95% interval", "min", "max"):
        grid.add_column(column, justify="right")
    for seed, policy, row, ends in zip(run.seeds, policies, table, limits, strict=True):
        mean, low, high = map(format_score, (row.mean(), row.min(), row.max()))
        interval = " to ".join(map(format_score, ends)) if ends else "–"
        grid.add_row(str(seed), policy, mean, interval, low, high)
    console.print(grid)
    prose(console, f"policies: {_policies(policies)}")
    if support is None and not np.isin(table, (0.0, 1.0)).all() and table.shape[1] > 1:
        prose(
            console,
            "intervals are Student's, which assume normal scores: for exact ones, give the range "
            "of the score with --env.score-range when you train",
        )
    optimum = "" if environment.optimum is None else f"; the optimum is {environment.optimum:g}"
    if len(means) > 1:
        mean = mean_and_interval(means, environment.score_range)
        prose(console, f"mean {environment.score_label} over seeds: {mean} seeds{optimum}")


def claims_table(console: Console, claims: Sequence["Claim"], name: str, quick: bool) -> None:
    """Print the claims of an experiment with their verdicts; in quick form, which only draws, those
    of the committed full run."""
    title = f"{name}: claims" + ", as the committed full run judged them" * quick
    table = Table(title=title, title_justify="left")
    table.add_column("claim", ratio=3)
    table.add_column("what was measured", ratio=4)
    for column in ("verdict", "over all claims (Holm)")[: 1 if quick else 2]:
        table.add_column(column)
    colours = {"supported": "green", "not supported": "red"}
    for claim in claims:
        coloured = f"[{colours.get(claim.verdict, 'yellow')}]{claim.verdict}[/]"
        table.add_row(claim.text, claim.evidence, coloured, *[claim.after_holm] * (not quick))
    console.print(table)
    if quick:
        prose(
            console,
            "The quick form only draws the figure: its seeds are too few to test a claim.\n"
            "To run the experiment in full: " + word(f"rove reproduce {name}"),
        )
