"""`rove eval`, `rove watch`, `rove export` and `rove report`."""

import os
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rove.cli import display
from rove.cli.console import console, optional, prose, say, word
from rove.errors import RoveError
from rove.parts import platform
from rove.runs.train import load

Kind = Literal["mean", "sample", "vote", "behaviour", "settled", "best"]
KINDS = "{mean,sample,vote,behaviour,settled,best}"
POLICY = (
    "mean: greedy on the posterior mean; sample: greedy on samples of θ, as in training; vote: the "
    "majority of 15 samples; behaviour: as in training; settled: mean, after 2000 more updates at "
    "learning rates that decrease to 0."
)
FORMATS = (
    "numpy: a function that needs only NumPy (policy.py); onnx: policy.onnx; stablehlo: "
    "policy.stablehlo, for JAX."
)
"""Help for options, as constants because line breaks in docstrings would be kept."""


def evaluate(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    /,
    episodes: int = 20,
    seed: Annotated[int | None, optional("SEED", "all seeds of the run")] = None,
    policy: Annotated[
        Kind | None, optional(KINDS, "the policy that each seed delivers", POLICY)
    ] = None,
    json: bool = False,
    trust: bool = False,
) -> None:
    """Play the trained policies of a run, and report their scores with 95% intervals.

    Args:
        run: Run folder written by rove train.
        episodes: Number of episodes to play with each seed.
        seed: Seed whose policy is played.
        json: Print the scores as JSON.
        trust: Allow importing the package of the run's environment (gym/PACKAGE:ID).
    """
    platform.prepare(lanes=1)
    loaded = load(run, trust=trust)
    if seed is not None:
        loaded = loaded.only(seed)
    scores = loaded.evaluate(episodes, policy)
    names = [policy] * len(scores) if policy else [d.policy for d in loaded.delivered]
    display.scores(console, loaded, names, scores, json)


def watch(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    /,
    seed: Annotated[int | None, optional("SEED", "the first seed of the run")] = None,
    policy: Annotated[
        Kind | None, optional(KINDS, "the policy that the seed delivers", POLICY)
    ] = None,
    episodes: int = 1,
    out: Annotated[Path | None, optional("FILE", "watch.gif in the run folder")] = None,
    trust: bool = False,
) -> None:
    """Record a video of a trained policy.

    Args:
        run: Run folder written by rove train.
        seed: Seed whose policy is shown.
        episodes: Number of episodes to record.
        out: Video file to write, .gif or .mp4.
        trust: Allow importing the package of the run's environment (gym/PACKAGE:ID).
    """
    from rove.reporting import video as watching

    if "DISPLAY" not in os.environ:  # renderers read these when they are imported
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    loaded = load(run, trust=trust)
    path, scores = watching.watch(loaded, out, seed=seed, episodes=episodes, policy=policy)
    listed = ", ".join(f"{score:g}" for score in scores)
    prose(console, f"{loaded.config.environment.score_label}: {listed}\nwritten to {word(path)}")


def export(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    /,
    out: Annotated[Path, tyro.conf.arg(metavar="FOLDER")],
    seed: Annotated[int | None, optional("SEED", "the first seed of the run")] = None,
    formats: Annotated[
        tuple[Literal["numpy", "onnx", "stablehlo"], ...], tyro.conf.arg(help=FORMATS)
    ] = ("numpy", "onnx"),
    trust: bool = False,
) -> None:
    """Write a trained policy, greedy on the posterior mean, as files that do not need rove.

    Args:
        run: Run folder written by rove train.
        out: Folder to write to.
        seed: Seed whose policy is written.
        trust: Allow importing the package of the run's environment (gym/PACKAGE:ID).
    """
    from rove.runs.exporting import export as write

    platform.prepare(lanes=1)
    paths = write(load(run, trust=trust), out, seed=seed, formats=formats)
    prose(console, f"written to {word(out)}: {', '.join(path.name for path in paths)}")


def report(
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], optional("RUN…")],
    /,
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("report.html"),
    follow: bool = False,
) -> None:
    """Write an HTML report of runs, experiments and sweeps to one file that works offline.

    Args:
        runs: Folders written by rove train, reproduce or sweep, or folders that contain these.
        out: HTML file to write.
        follow: Keep updating the file, also in open browsers, until all runs have finished.
    """
    from rove import reporting

    if not runs:
        raise RoveError("rove report needs at least one folder, such as runs/ge-chain-10")
    platform.prepare(lanes=1)
    if follow:
        try:
            reporting.follow(runs, out, say=say)
        except KeyboardInterrupt:
            reporting.report(runs, out)
    else:
        reporting.report(runs, out)
    size = f"{out.stat().st_size / 1e6:.1f} MB"
    prose(console, f"written to {word(out)} ({size}); open it in a browser")
