"""`rove watch` and `rove report`."""

import os
from pathlib import Path
from typing import Annotated

import tyro

from rove import platform, runner
from rove.commands import optional, say
from rove.errors import RoveError


def watch(
    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")],
    /,
    seed: Annotated[int | None, optional("SEED", "the first")] = None,
    episodes: int = 1,
    out: Annotated[Path | None, optional("FILE", "watch.gif in the run folder")] = None,
) -> None:
    """Film a trained policy: greedy on the posterior mean, without noise.

    Args:
        run: a run folder, as rove train writes it.
        seed: which lane.
        episodes: how many, one after the other.
        out: a .gif or .mp4.
    """
    from rove import watching

    if "DISPLAY" not in os.environ:  # what draws has to know before it is imported
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    loaded = runner.load(run)
    path, scores = watching.watch(loaded, seed, out, episodes)
    shown = ", ".join(f"{score:g}" for score in scores)
    say(f"{loaded.config.environment.score_label}: {shown}\nwritten to {path}")


def report(
    runs: Annotated[tyro.conf.Positional[tuple[Path, ...]], optional("RUN…")],
    /,
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("report.html"),
    follow: bool = False,
) -> None:
    """Write one HTML file that shows runs, experiments and sweeps, and needs no network.

    Args:
        runs: folders that rove train, rove reproduce or rove sweep wrote, or that hold such.
        out: the file.
        follow: write it again every few seconds until the runs are over; an open page follows.
    """
    from rove import report as reporting

    if not runs:
        raise RoveError("rove report needs at least one folder, such as runs/ge-chain-10")
    platform.prepare(lanes=1)
    if follow:
        try:
            reporting.follow(runs, out, say=say)
        except KeyboardInterrupt:
            reporting.write(runs, out)
    else:
        reporting.write(runs, out)
    say(f"written to {out}: {out.stat().st_size / 1e6:.1f} MB, open it in a browser")
