"""`rove export`: a trained policy as files that do not need rove."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from rove.errors import ConfigError, RoveWarning, RunFolderError, as_path, check_choice
from rove.parts.files import publish
from rove.runs.exporting.formats import WRITERS
from rove.runs.recorded import check_created
from rove.runs.result import Run
from rove.training.delivering import lane_for
from rove.training.lane import BEST, SETTLED

Format = Literal["numpy", "onnx", "stablehlo"]
FORMATS = get_args(Format)


def export(
    run: Run,
    out: str | Path,
    *,
    seed: int | None = None,
    formats: Sequence[Format] = ("numpy", "onnx"),
) -> list[Path]:
    """Write one seed's greedy policy as files that do not need rove, and return their paths.

    The policy is greedy on the posterior mean: of the last network, of the one of the best
    evaluation or of the settled one, as the seed delivers it. The preparation of observations, such
    as normalisation, and the conversion of actions are included.

    **Arguments**
    - `run`: a run, from `rove.train` or `rove.load`.
    - `out`: the folder to write to.
    - `seed`: the seed whose policy is written; by default the first one.
    - `formats`: the kinds of files.
        - "numpy": policy.py, a function that needs only NumPy, with policy.npz and policy.json.
        - "onnx": policy.onnx, for ONNX Runtime and others.
        - "stablehlo": policy.stablehlo, for `jax.export.deserialize`. This works for every agent;
          the others need a network of fully connected layers and convolutions.
    """
    if not isinstance(run, Run):
        raise ConfigError.must_be("run", run, "a run, from rove.train or rove.load")
    if isinstance(formats, str) or not formats:
        raise ConfigError.must_be("formats", formats, "one or more formats, such as ['numpy']")
    for name in formats:
        check_choice("formats", name, FORMATS)
    folder = as_path("out", out)
    one = run.only(seed)
    check_created(run.config.environment)
    outcome, policy = one.concluded[0], one.delivered[0].policy
    if policy in (BEST, SETTLED):
        outcome = outcome._replace(lane=lane_for(outcome, policy))
    elif policy != "mean":
        text = f"seed {outcome.job.seed} delivers the policy {policy!r}, which scores "
        text += "more than the exported one, 'mean' (greedy on the posterior mean)"
        warnings.warn(text, RoveWarning, 2)
    files: dict[str, bytes] = {}
    for name in formats:
        files |= WRITERS[name](outcome)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            publish(folder / name, content)
    except OSError as error:
        raise RunFolderError(f"cannot write to {folder}: {error.strerror or error}") from None
    return [folder / name for name in files]
