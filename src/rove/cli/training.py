"""`rove train` and `rove sweep`."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import jax

from rove import environments
from rove.agents.settings import Settings
from rove.analysis.findings import grouped
from rove.cli import display
from rove.cli.console import console, errors, prose, say, word
from rove.cli.run_options import SweepOptions, TrainOptions, parse_config, parse_named, parse_seeds
from rove.errors import LaneError, RoveError
from rove.parts import platform
from rove.runs import tracking
from rove.runs.configure import configure
from rove.runs.default_folder import default_folder, default_sweep_folder
from rove.runs.execution import check, run_all
from rove.runs.live import Live
from rove.search import space
from rove.search import sweep as sweeps
from rove.training.executors import cores
from rove.training.executors.processes import started_early


def train(arguments: list[str]) -> None:
    """Run `rove train`."""
    repeats = any(word.partition("=")[0] == "--config" for word in arguments)
    parsed = parse_config(arguments) if repeats else parse_named("train", TrainOptions, arguments)
    options, agent, chosen = parsed
    seeds = parse_seeds(options.seeds)
    # Seeds of a Gymnasium environment share one device.
    hosted = isinstance(chosen, environments.HostEnvironment)
    count = seeds if isinstance(seeds, int) else len(seeds)
    platform.prepare(lanes=1 if hosted else min(max(count, 1), options.workers or cores()))
    with started_early(_worth_starting(options, count)):
        config = configure(
            agent,
            chosen,
            seeds=seeds,
            episodes=options.episodes,
            steps=options.steps,
            until_solved=options.until_solved,
            eval_every=options.eval_every,
            eval_episodes=options.eval_episodes,
            stop_at=options.stop_at,
        )
        config = dataclasses.replace(config, extendable=True, delivers=True)
        out, reason = options.out, ""
        if out is None:
            out, reason = default_folder(config)
        check(config, out, options.workers, options.on)
        silent = options.quiet or options.json
        _say_folder(out, reason, silent)
        screen = errors if options.json else console
        with (
            _open_tracker(options.log, out, silent) as tracker,
            Live(screen, config.jobs(None), silent) as live,
        ):
            run = run_all([(config, out)], live.report, options.workers, options.on, tracker)[0]
    if run.outcomes:
        run.draw(out)
        summary = display.summary(run)
        if options.json:
            say(json.dumps(summary | {"folder": str(out)}, indent=2))
        elif not options.quiet:
            display.closing_table(console, run, summary)
        for alarm in grouped(run.alarms):
            prose(errors, alarm, label="warning:")
        for tip in run.advice:
            prose(errors, tip)
    if run.errors:
        raise LaneError("\n".join(map(str, run.errors)))
    if not silent:
        tables = "episodes.csv, evaluations.csv" if config.eval_every else "episodes.csv"
        files = f"config.json, {tables}, learning-curve.png, diagnostics.png, diagnostics.json"
        prose(console, f"written to {word(out)}: {files} and lanes/ (checkpoints)")


def _say_folder(out: Path, reason: str, silent: bool) -> None:
    """Say where the results go if the folder of that name contains another run."""
    if reason and not silent:
        prose(console, f"{reason}. This one is written to {word(out)}")


def _worth_starting(options: TrainOptions, seeds: int) -> int:
    """Return the number of worker processes that training will need, as far as that is known."""
    several = min(seeds, options.workers or cores())
    new = options.out is None or not options.out.exists()
    local = options.on == "processes" and jax.default_backend() == "cpu"
    return several if several > 1 and new and local else 0


@contextlib.contextmanager
def _open_tracker(
    log: str | None, out: Path, silent: bool = False
) -> Iterator[tracking.Tracker | None]:
    """Open the tracker and print how to view it."""
    with tracking.opened(log, out) as tracker:
        if log is not None and not silent:
            prose(console, f"to follow training: {word(tracking.how_to_watch(log, out))}")
        yield tracker


def sweep(arguments: list[str]) -> None:
    """Run `rove sweep`: an --agent option with several values is swept."""
    fields, others = space.split_arguments(arguments)
    for field in fields:
        if any(word.partition("=")[0] == f"--agent.{field.replace('_', '-')}" for word in others):
            raise RoveError(
                f"--agent.{field} is given twice, with one value and with several; give it once"
            )
    about = f"\n\nAn --agent option with several values is swept: {space.SPELLING}. "
    about += "A point is one combination of values of the swept options."
    options, agent, chosen = parse_named("sweep", SweepOptions, others, about)
    assert isinstance(agent, Settings)
    if not fields:
        raise RoveError(
            "there is nothing to sweep; give at least one --agent option several values, written "
            f"as {space.SPELLING}"
        )
    plan = sweeps.plan(
        agent,
        chosen,
        fields,
        seeds=options.seeds,
        confirm_seeds=options.confirm_seeds,
        method=options.method,
        points=options.points,
        episodes=options.episodes,
        steps=options.steps,
        until_solved=options.until_solved,
    )
    out, reason = options.out, ""
    if out is None:
        out, reason = default_sweep_folder(plan, plan.base, plan.fields)
    _say_folder(out, reason, options.quiet)
    with (
        _open_tracker(options.log, out, options.quiet) as tracker,
        display.SweepLive(console, plan.total, options.quiet) as bar,
    ):
        result = sweeps.run(plan, out, bar.report, options.workers, options.on, tracker)
    if not options.quiet:
        display.sweep_table(console, result)
        confirmed = ", confirmed/" if plan.confirm_seeds else ""
        files = f"sweep.csv, sweep.json, sweep.png, points/{confirmed}"
        prose(console, f"written to {word(out)}: {files}")
