"""The two figures of a run: its learning curve and its diagnostics."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from rove.agents import label_of
from rove.analysis import panels, plots
from rove.analysis.curves import learning_start, recent_at
from rove.analysis.sentences import LAST, Result, headline, note_above_optimum
from rove.training.lane import SNAPSHOTS
from rove.training.solving import episodes_to_solve

if TYPE_CHECKING:
    from rove.runs.result import Run

GREY, SPREADS = ("#555555",), ("#8e6bbf", "#b8860b")
"""Colours of coverage and of the two spreads, which differ from those of actions."""
POLICY_ACTION = ("the policy's action",)
"""Name of the only action whose value an actor's critic records."""


def learning_curve(run: Run) -> Figure:
    """Draw scores over episodes, or over steps if the budget is in steps. The title says how many
    seeds solved the task, or the final score."""
    figure, environment = plots.figure(), run.config.environment
    axes, steps = figure.axes[0], run.config.steps
    every = max(steps // plots.POINTS, 1) if steps else 1
    at = np.arange(every, (steps or 0) + 1, every)
    plots.learning_curves(
        axes,
        {run.config.agent_name: _recent(run, at) if steps else run.scores},
        environment.optimum,
        window=1 if steps else plots.WINDOW,
        label=environment.score_label,
        every=every,
        support=environment.score_range,
    )
    plots.over_episodes(axes, "step" if steps else "episode")
    starts = int(run.outcomes[0].job.agent.learning_starts)
    last = max(int(outcome.lane.step) for outcome in run.outcomes)
    reached = starts if 1 < starts <= last else None
    plots.mark_learning(axes, reached if steps else _learning_start(run))
    about = f"{plots.seeds_text(len(run.seeds))}; moving window of {plots.WINDOW} episodes"
    title = headline([result(run)]) if run.returns.size else run.config.label
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, weight="bold")
    axes.set_title(f"{run.config.label}: {about}", loc="left", fontsize=8.5, color=plots.QUIET)
    return figure


def result(run: Run) -> Result:
    """Return what the title says about a run."""
    environment, scores = run.config.environment, [o.scores for o in run.outcomes]
    optimum = environment.optimum
    solved = None
    if optimum is not None:
        solved = sum(episodes_to_solve(row, optimum) is not None for row in scores)
    final = [np.mean(row[-LAST:]) for row in scores if len(row)]
    return Result(
        label_of(run.config.agent_name),
        environment.name,
        solved,
        len(scores),
        float(np.mean(final)),
        environment.score_label,
    )


def _recent(run: Run, at: np.ndarray) -> np.ndarray:
    """Return the mean score of the most recent episodes at given steps, [seeds, points]. Where the
    budget is in steps, seeds differ in their number of episodes."""
    rows = [recent_at(o.scores, o.episodes.step, at, plots.WINDOW) for o in run.outcomes]
    return np.stack(rows)


def _learning_start(run: Run) -> int | None:
    starts = int(run.outcomes[0].job.agent.learning_starts)
    return learning_start([outcome.episodes.step for outcome in run.outcomes], starts)


def diagnostics(run: Run) -> Figure:
    """Draw state visits, the spread of Q and of Z and, for the first seed, its beliefs about each
    probe state."""
    outcome, environment = run.outcomes[0], run.config.environment
    taken = min(len(outcome.episodes.returns).bit_length(), SNAPSHOTS)
    names = (list(environment.probes()) or ["start"]) if taken else []
    rows, columns = 3 if taken else 1, max(len(names), 3)
    figure = plots.figure(rows, columns, width=3.4 * columns, height=1.0 + 2.6 * rows)
    grid = np.array(figure.axes).reshape(rows, columns)
    for axes in grid.flat:
        axes.set_axis_off()
    starts = _learning_start(run)
    if run.returns.size:
        _progress(run, grid[0], starts)
    note = _beliefs(run, grid[1:], names, taken, starts) if taken else None
    who = f"seed {outcome.job.seed}"
    subject = f"beliefs of {who}" if taken else f"no episode of {who} has ended"
    title = f"{run.config.label}: {plots.seeds_text(len(run.seeds))}; {subject}"
    plots.legend(figure, title=title, title_fontproperties={"size": 11, "weight": "bold"})
    if note:
        figure.supxlabel(textwrap.fill(note, 45 * columns), x=0.01, ha="left", fontsize=8)
    return figure


def _progress(run: Run, row: Any, starts: int | None) -> None:
    """Draw state visits, coverage and spreads."""
    environment = run.config.environment
    over_time = row[1:3] if environment.bins else row[2:3]
    if environment.bins:
        cells = run.visits.reshape(-1, *environment.cells)
        row[0].set_axis_on()
        panels.visits(row[0], cells, environment.coordinates)
        panels.lines(row[1], {"": run.coverage}, GREY, support=(0.0, environment.bins))
        row[1].yaxis.set_major_locator(plots.whole_numbers())
        row[0].set_title("state visits, fraction of episodes", loc="left")
        row[1].set_title(f"cells visited so far, of {environment.bins}", loc="left")
    spreads = {"spread of Q over θ": run.spread, "spread of Z": run.return_spread}
    panels.lines(row[2], spreads, SPREADS, logarithmic=True)
    row[2].set_title("spread", loc="left")
    for axes in over_time:
        axes.set_axis_on()
        plots.mark_learning(axes, starts)


def _beliefs(run: Run, rows: Any, names: list[str], taken: int, starts: int | None) -> str | None:
    """Draw q(Q(s, a)) and Z(s, a) of the first seed in each probe state. Return a note if values
    exceed the optimum because a time limit is bootstrapped."""
    outcome, environment = run.outcomes[0], run.config.environment
    agent = run.config.compose()
    values, outputs = map(np.asarray, outcome.lane.snapshots)
    actions = environment.action_names if values.shape[3] > 1 else POLICY_ACTION
    note = note_above_optimum(
        values[:taken], environment.optimum, outcome.episodes.terminated, environment.score_label
    )
    for column, name in enumerate(names):
        beliefs, returns = rows[:, column]
        shown = values[:taken, :, column]
        panels.beliefs(beliefs, shown, 2 ** np.arange(taken), actions)
        beliefs.set_title(f"q(Q(s, a)), s = {name}", loc="left")
        plots.mark_learning(beliefs, starts)
        if note and np.any(shown > environment.optimum):
            plots.mark_optimum(beliefs, environment.optimum)
        pictures = {
            2**k: agent.pictures(jnp.asarray(outputs[k, column]))
            for k in sorted({0, taken // 2, taken - 1})
        }
        panels.returns(returns, pictures, agent.discrete)
        returns.set_title(f"Z(s, a), s = {name}", loc="left")
        for axes in (beliefs, returns):
            axes.set_axis_on()
    return note
