"""The two figures of a run: its learning curve and its diagnostics."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from rove.agents import label_of
from rove.analysis import panels, plots
from rove.analysis.curves import aligned, learning_start, recent_at
from rove.analysis.sentences import Result, headline, note_above_optimum
from rove.environments import HostEnvironment
from rove.errors import ConfigError
from rove.training.lane import SNAPSHOTS
from rove.training.solving import LAST, episodes_to_solve

if TYPE_CHECKING:
    from rove.runs.result import Run

COVERAGE_COLOURS, SPREAD_COLOURS = ("#555555",), ("#8e6bbf", "#b8860b")
"""Colours of coverage and of the two spreads, which differ from those of actions."""
EVALUATED = "#333333"
"""Colour of evaluations during training."""
LARGEST_POINT_SPREAD = 1e-6
"""Maximum spread of Z, as a fraction of the largest Q, at which Z counts as a single point."""
POLICY_ACTION = ("the policy's action",)
"""The action names of an actor–critic, whose critic is recorded for the policy's action only."""


def learning_curve(run: Run) -> Figure:
    """Draw scores over episodes, or over steps if the budget is in steps.

    The title says how many seeds solved the task, or the final score.
    """
    figure, environment = plots.figure(), run.config.environment
    axes, steps = figure.axes[0], run.config.steps
    if not run.returns.size:
        plots.blank(axes)
        plots.titled(figure, run.config.label, "no episode has ended")
        return figure
    every = max(steps // plots.POINTS, 1) if steps else 1
    seeds_shown = len(run.seeds) <= plots.MOST_SEEDS
    grid = np.arange(every, (steps or 0) + 1, every)
    scores = _recent_scores(run, grid) if steps else run.scores
    plots.learning_curves(
        axes,
        {run.config.agent_name: scores},
        environment.optimum,
        window=1 if steps else plots.WINDOW,
        label=environment.score_label,
        every=every,
        support=environment.score_range,
        seeds=seeds_shown,
    )
    plots.over_episodes(axes, "step" if steps else "episode")
    starts = int(run.outcomes[0].job.agent.learning_starts)
    last = max(int(outcome.lane.step) for outcome in run.outcomes)
    first_update = starts if 1 < starts <= last else None
    plots.mark_learning(axes, first_update if steps else _learning_start(run))
    subtitle = plots.seeds_text(len(run.seeds), seeds_shown)
    subtitle += f"; moving window of {plots.WINDOW} episodes"
    window = 1 if steps else plots.WINDOW
    if agree := plots.agreement_text([scores], window, environment.score_range):
        subtitle += f"; {agree}"
    if run.config.eval_every:
        subtitle += f"; {_evaluations(axes, run)}"
    plots.titled(figure, headline([result(run)]), subtitle)
    return figure


def _evaluations(axes: Any, run: Run) -> str:
    """Draw the evaluations of the greedy policy during training: their mean over seeds as a dashed
    line and, of several seeds, a dot for each. Return a description.

    They end where those of a seed do, unless it has finished.
    """
    config, unit = run.config, "step" if run.config.steps else "episode"
    scores = aligned([x.mean for x in run.evaluations], [o.finished for o in run.outcomes])
    at = config.eval_every * np.arange(1, scores.shape[1] + 1)
    if len(at):
        axes.plot(at, scores.mean(axis=0), "--", color=EVALUATED, lw=1.4, marker=plots.marker(at))
    if len(scores) > 1:
        dots = {"color": EVALUATED, "ms": 3, "alpha": 0.5, "clip_on": False}
        axes.plot(np.tile(at, len(scores)), scores.ravel(), ".", **dots)
    of = f"{config.eval_episodes} episode{'s' * (config.eval_episodes != 1)}"
    return f"dashed: greedy policy, {of} after every {config.eval_every:,} {unit}s"


def compare(runs: Sequence[Run], about: Callable[[Sequence[Run], Sequence[str]], str]) -> Figure:
    """Draw the learning curves of several runs, one panel per environment. `about` returns a note
    on the runs of a panel, given their labels."""
    tasks: dict[str, list[Run]] = {}
    for run in runs:
        tasks.setdefault(run.config.environment.name, []).append(run)
    figure = plots.figure(1, len(tasks), width=max(4.2 * len(tasks), 5.6), height=3.2)
    notes: list[str] = []
    for axes, (task, group) in zip(figure.axes, tasks.items(), strict=True):
        steps = [run.config.steps or 0 for run in group]
        if 0 in steps and any(steps):
            allowed = "runs whose budgets are all in episodes, or all in steps"
            raise ConfigError.must_be("runs", [run.config.label for run in group], allowed)
        every = max(max(steps) // plots.POINTS, 1) if steps[0] else 1
        curves: dict[str, np.ndarray] = {}
        labels: dict[str, str] = {}
        for run in group:
            name, number = run.config.agent_name, 1
            while name in curves:  # the same agent with other settings
                number += 1
                name = f"{run.config.agent_name} ({number})"
            grid = np.arange(every, (run.config.steps or 0) + 1, every)
            curves[name] = _recent_scores(run, grid) if steps[0] else run.scores
            folder = run.path.name if run.path else f"run {number}"
            labels[name] = label_of(run.config.agent_name) + f", {folder}" * (number > 1)
        environment = group[0].config.environment
        window = 1 if steps[0] else plots.WINDOW
        plots.learning_curves(
            axes,
            curves,
            environment.optimum,
            window=window,
            label=environment.score_label,
            names=labels,
            every=every,
            support=environment.score_range,
        )
        plots.over_episodes(axes, "step" if steps[0] else "episode")
        axes.set_title(task, loc="left")
        notes.append(about(group, list(labels.values())))
        notes.append(plots.agreement_text([*curves.values()], window, environment.score_range))
    seed_counts = sorted({len(run.seeds) for run in runs})
    seeds = [*dict.fromkeys(map(plots.seeds_text, seed_counts))]
    notes = [*seeds, f"moving window of {plots.WINDOW} episodes", *filter(None, notes)]
    text = "; ".join(dict.fromkeys(notes))
    figure.supxlabel(plots.wrapped(text, figure, 8), x=0.01, ha="left", fontsize=8)
    plots.legend(figure)
    return figure


def result(run: Run) -> Result:
    """Return the results of a run that the title of its figure states."""
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
        lost=sum(run.lost),
    )


def _recent_scores(run: Run, steps: np.ndarray) -> np.ndarray:
    """Return the mean score of the most recent episodes at given steps, [seeds, steps].

    If the budget is in steps, seeds may differ in their number of episodes.
    """
    rows = [recent_at(o.scores, o.episodes.step, steps, plots.WINDOW) for o in run.outcomes]
    return np.stack(rows)


def _learning_start(run: Run) -> int | None:
    """Return the episode in which learning started, or None; see `learning_start`."""
    starts = int(run.outcomes[0].job.agent.learning_starts)
    return learning_start([outcome.episodes.step for outcome in run.outcomes], starts)


Panel = Callable[[Any], None]
"""A function that draws into axes."""


def diagnostics(run: Run) -> Figure:
    """Draw state visits, the spread of Q and of Z, and the beliefs of the first seed.

    Beliefs are drawn for each probe state.
    """
    outcome = run.outcomes[0]
    num_snapshots = min(len(outcome.episodes.returns).bit_length(), SNAPSHOTS)
    note = _note(run, num_snapshots)
    progress = _progress(run) if run.returns.size else []
    first, *others = _beliefs(run, num_snapshots, note)
    rows = [progress, first, *others]
    if len(progress) == 1:  # no cells are counted: draw the spread beside the beliefs
        rows = [progress + first, *others]
    rows = [row for row in (*rows, _networks(run)) if row] or [[]]
    columns = max(map(len, rows)) or 1
    size = {"width": max(3.4 * columns, 7.6), "height": 1.0 + 2.6 * len(rows)}
    figure = plots.figure(len(rows), columns, **size)
    grid = np.array(figure.axes).reshape(len(rows), columns)
    for row_of_axes, row in zip(grid, rows, strict=True):
        for axes, panel in itertools.zip_longest(row_of_axes, row, fillvalue=plots.blank):
            panel(axes)
    seed = f"seed\u00a0{outcome.job.seed}"
    subject = f"beliefs of {seed}" if num_snapshots else f"no episode of {seed} has ended"
    name = f"{label_of(run.config.agent_name)} on {run.config.environment.name}"
    over_seeds = [plots.described_text(len(run.seeds))] if progress else []
    title = plots.wrapped(f"{name}: {'; '.join([*over_seeds, subject])}", figure, 11)
    legend_title = {"title": title, "title_fontproperties": {"size": 11, "weight": "bold"}}
    plots.legend(figure, ncols=2 * columns + 2, **legend_title)
    if note:
        figure.supxlabel(plots.wrapped(note, figure, 8), x=0.01, ha="left", fontsize=8)
    return figure


def _progress(run: Run) -> list[Panel]:
    """Return panels of state visits and coverage, if cells are counted, and of non-zero spreads."""
    environment, starts = run.config.environment, _learning_start(run)

    def visits(axes: Any) -> None:
        cells = run.visits.reshape(-1, *environment.cells)
        panels.visits(axes, cells, environment.coordinates, environment.first_cell)
        plots.heading(axes, "state visits, fraction of episodes")

    def coverage(axes: Any) -> None:
        panels.lines(axes, {"": run.coverage}, COVERAGE_COLOURS, window=1)
        axes.yaxis.set_major_locator(plots.whole_numbers())
        total = "" if environment.coordinates else f", of {environment.bins:,}"
        plots.heading(axes, f"cells visited so far{total}")
        plots.mark_learning(axes, starts)

    def spread(axes: Any) -> None:
        spreads = {"spread of Q over θ": run.spread, "spread of Z": run.return_spread}
        panels.lines(axes, spreads, SPREAD_COLOURS, logarithmic=True)
        plots.heading(axes, "spread")
        plots.mark_learning(axes, starts)

    has_spread = np.nansum(run.spread) + np.nansum(run.return_spread) > 0
    row: list[Panel] = [visits, coverage] if environment.bins else []
    return [*row, spread] if has_spread else row


def _networks(run: Run) -> list[Panel]:
    """Return panels of what the networks of the seeds say in states that they have visited."""
    ended = [(o.job.seed, o.conclusion) for o in run.outcomes if o.conclusion is not None]
    known = {seed: x.inspection for seed, x in ended if x.inspection is not None}
    if not known:
        return []

    def units(axes: Any) -> None:
        panels.units_off(axes, [x.units_off for x in known.values()])
        plots.heading(axes, "hidden units that are off, fraction")

    def values(axes: Any) -> None:
        rows = [(x.value_range, x.value_at_start, x.return_from_start) for x in known.values()]
        panels.learned_and_earned(axes, list(known), np.array(rows))
        plots.heading(axes, "value at the start")

    has_layers = any(x.units_off for x in known.values())
    return [*([units] if has_layers else []), values]


def _note(run: Run, num_snapshots: int) -> str | None:
    """Return a note if state visits are not counted, or if values may exceed the optimum.

    Values exceed it if they include rewards after a time limit, from which targets bootstrap.
    """
    outcome, environment = run.outcomes[0], run.config.environment
    if isinstance(environment, HostEnvironment) and not environment.bins:
        return (
            "State visits are not shown: choose two entries of a Box or MultiDiscrete observation "
            "to count them by, with --env.axes or rove.adopt(…, axes=…); flatten a Dict or Tuple "
            "first, with gymnasium.wrappers.FlattenObservation."
        )
    values = np.asarray(outcome.lane.snapshots.values)[:num_snapshots]
    ends = outcome.scores, outcome.episodes.terminated
    return note_above_optimum(values, environment.optimum, *ends, environment.score_label)


def _beliefs(run: Run, num_snapshots: int, note: str | None) -> list[list[Panel]]:
    """Return panels of q(Q(s, a)) and Z(s, a) of the first seed in each probe state.

    There are two rows, or one for a single state. Z(s, a) is left out if it is a single point.
    """
    outcome, environment = run.outcomes[0], run.config.environment
    agent, starts, optimum = run.config.compose(), _learning_start(run), environment.optimum
    snapshots = outcome.lane.snapshots
    values = np.asarray(snapshots.values)
    actions = environment.action_names if values.shape[3] > 1 else POLICY_ACTION
    names = (list(environment.probes()) or ["start"]) if num_snapshots else []
    states = [f"s = {name}".replace(" ", "\u00a0") for name in names]  # on one line

    def values_of(axes: Any, probe: int) -> None:
        samples, episodes = values[:num_snapshots, :, probe], 2 ** np.arange(num_snapshots)
        if len(actions) == 2:
            panels.differences(axes, samples[..., 1] - samples[..., 0], episodes)
            title = f"Q({actions[1]}) − Q({actions[0]}), {states[probe]}"
        else:
            panels.beliefs(axes, samples, episodes, actions)
            title = f"q(Q(s, a)), {states[probe]}"
        plots.heading(axes, title)
        plots.mark_learning(axes, starts)
        if note and optimum is not None and len(actions) != 2 and np.any(samples > optimum):
            plots.mark_optimum(axes, optimum)

    def returns(axes: Any, probe: int) -> None:
        last = num_snapshots - 1
        outputs, scale = snapshots.outputs[last, probe], snapshots.reward_scale[last]
        curves = [(scale * x, y) for x, y in agent.densities(jnp.asarray(outputs))]
        panels.returns(axes, curves, actions)
        plots.heading(axes, f"Z(s, a) after episode {2**last}, {states[probe]}")

    rows: list[list[Panel]]
    spread = np.nanmax(run.return_spread, initial=0.0)
    largest = np.max(np.abs(values[:num_snapshots]), initial=0.0)
    is_point = num_snapshots and spread <= LARGEST_POINT_SPREAD * largest
    kinds = [values_of] if is_point else [values_of, returns]
    rows = [[partial(draw, probe=i) for i in range(len(names))] for draw in kinds]
    return rows if len(names) > 1 else [list(itertools.chain.from_iterable(rows))]
