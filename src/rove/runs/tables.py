"""Tables as CSV: one line per episode, or any other."""

import csv
import functools
import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rove.agents.settings import Settings
from rove.errors import RunFolderError
from rove.parts.files import publish, read_text
from rove.runs.config import Config, settings_identity
from rove.training.conclusion import Inspection
from rove.training.outcomes import Episodes, Evaluations

COLUMNS = (
    "agent", "environment", "seed", "episode", "step", "return", "length", "terminated",
    "score", "spread", "return_spread", "coverage",
)  # fmt: skip


def padded(columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return a table with one row per column, padded with NaN."""
    table = np.full((len(columns), max(map(len, columns), default=0)), np.nan)
    for row, column in zip(table, columns, strict=True):
        row[: len(column)] = column
    return table


def as_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def publish_text(path: Path, text: str) -> None:
    """Write text to a file, compressed if its name ends in .gz.

    The same text always gives the same bytes.
    """
    data = text.encode()
    publish(path, gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def episodes_csv(
    runs: Sequence[tuple[Config, int, Episodes]], agents: Sequence[str] | None = None
) -> str:
    """Return a CSV table with one line per episode.

    Each run is a configuration, a seed and its episodes. `agents` replaces the names of the runs'
    agents. Settings in which the configurations differ get a column each, which is empty for agents
    that do not have the setting.
    """
    agents = agents or [config.agent_name for config, _, _ in runs]
    settings_of_runs = [_settings(config) for config, _, _ in runs]
    names = dict.fromkeys(name for settings in settings_of_runs for name in settings)
    varying = [n for n in names if len({json.dumps(s.get(n)) for s in settings_of_runs}) > 1]
    rows = []
    for agent, (config, seed, x), settings in zip(agents, runs, settings_of_runs, strict=True):
        identity = agent, config.environment.name, seed
        extra = [settings.get(name, "") for name in varying]
        scores = config.environment.score(x.returns, x.length, x.terminated)
        for i in range(len(x.returns)):
            ended, score = int(x.terminated[i]), _decimals(scores[i])
            played = (i + 1, x.step[i], _decimals(x.returns[i]), x.length[i], ended, score)
            diagnostics = (f"{x.spread[i]:.4g}", f"{x.return_spread[i]:.4g}", x.coverage[i])
            rows.append((*identity, *played, *diagnostics, *extra))
    return as_csv((*COLUMNS, *varying), rows)


EVALUATION_COLUMNS = (
    "agent", "environment", "seed", "episode", "step", "episodes", "score", "lowest", "highest",
    "value_range", "policy_constant", "value_at_start", "return_from_start", "units_off",
)  # fmt: skip


def evaluations_csv(config: Config, evaluations: Mapping[int, Evaluations]) -> str:
    """Return a CSV table with one line per evaluation, given those of each seed."""
    identity = config.agent_name, config.environment.name
    rows = [
        (
            *(*identity, seed, x.episode[i], x.step[i], len(scores)),
            *map(_decimals, _summary(scores)),
            *_network(x.network[i]),
        )
        for seed, x in evaluations.items()
        for i, scores in enumerate(x.scores)
    ]
    return as_csv(EVALUATION_COLUMNS, rows)


def _network(row: np.ndarray) -> tuple[Any, ...]:
    """Return what the network said, empty for an agent without one; the fractions of units that are
    off in each layer are separated by blanks."""
    x = Inspection.of_row(row.tolist())
    if x is None:
        return ("",) * 5
    values = map(_decimals, (x.value_at_start, x.return_from_start))
    off = " ".join(f"{share:.4g}" for share in x.units_off)
    return _decimals(x.value_range), int(x.policy_constant), *values, off


def _summary(scores: np.ndarray) -> tuple[float, float, float]:
    return float(np.mean(scores)), float(np.min(scores)), float(np.max(scores))


def read_scores(path: Path) -> Callable[..., Any]:
    """Return a function that looks up the scores of episodes in an episodes.csv, by their returns,
    lengths and whether they terminated."""

    @functools.cache
    def table() -> dict[tuple[float, int, bool], float]:
        try:
            rows = list(csv.DictReader(io.StringIO(read_text(path))))
            return {
                (
                    float(np.float32(row["return"])),
                    int(row["length"]),
                    row["terminated"] == "1",
                ): float(row["score"])
                for row in rows
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"{path} cannot be read: {error!r}") from None

    def scores(returns: Any, length: Any, terminated: Any) -> np.ndarray:
        episodes = zip(returns.tolist(), length.tolist(), terminated.tolist(), strict=True)
        try:
            return np.array([table()[episode] for episode in episodes], np.float32)
        except KeyError:
            raise RunFolderError(
                f"{path} does not have all episodes of the checkpoints: pass the environment to "
                "rove.load(folder, environment=...)"
            ) from None

    return scores


def _decimals(value: Any) -> str:
    """Return the shortest decimal that reads back as the same float32."""
    return np.format_float_positional(np.float32(value), trim="0")


def _settings(config: Config) -> dict[str, Any]:
    """Return a named agent's settings, or all fields of a composed agent and its parts."""
    if isinstance(config.agent, Settings):
        return flat(settings_identity(config.agent))
    return flat(config.identity()["agent"]["composition"])


def flat(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten a nested mapping, joining its keys by dots: posterior.rho, …"""
    items: dict[str, Any] = {}
    for name, value in nested.items():
        key = f"{prefix}.{name}" if prefix else name
        items |= flat(value, key) if isinstance(value, Mapping) else {key: value}
    return items
