"""Reading the files of a run folder, an experiment folder or a sweep folder, and checking them."""

import contextlib
import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rove.environments import ALIASES
from rove.environments.registered import PREFIX
from rove.errors import ConfigError, RunFolderError, check_integer
from rove.parts.files import read_bytes, read_text
from rove.runs.config import OPTIONAL, check_optional

LEVELS = 50
"""Maximum nesting depth of a JSON file."""
_COLUMNS = (
    "step", "return", "length", "terminated", "score", "spread", "return_spread", "coverage",
)  # fmt: skip


def sweep_config(path: Path) -> dict[str, Any] | None:
    """Return the content of a sweep's config.json; None if it is missing or not a sweep."""
    try:
        raw = read_json(path)
        return raw if isinstance(raw["sweep"]["agent"]["settings"], dict) else None
    except (RunFolderError, KeyError, TypeError):
        return None


def check_run(raw: dict[str, Any]) -> None:
    """Validate the fields of a run's configuration that the report uses."""
    agent, environment = (_checked(key, raw[key], dict) for key in ("agent", "environment"))
    for key in ("settings", "composition"):
        _checked(key, agent.get(key, {}), dict)
    _checked("name", environment["name"], str)
    _checked("options", environment["options"], dict)
    for seed in _checked("seeds", raw["seeds"], list):
        check_integer("seeds", seed, at_least=0)
    unit, other = ("steps", "episodes") if raw["episodes"] is None else ("episodes", "steps")
    check_integer(unit, raw[unit], at_least=1)
    if raw[other] is not None:
        raise ConfigError.must_be(other, raw[other], "null")
    _checked("until_solved", raw["until_solved"], bool)
    check_optional(*(raw.get(name) for name in OPTIONAL))


def is_gymnasium(entry: Any) -> bool:
    """Whether an environment in config.json is from Gymnasium. Creating such an environment would
    import its package and run its code."""
    if not isinstance(entry, dict):
        return False
    name = str(entry.get("name"))
    return name.startswith(PREFIX) or name in ALIASES or any(map(is_gymnasium, entry.values()))


def _checked(field: str, value: Any, kind: type) -> Any:
    """Return a value of the right type, or raise `ConfigError`."""
    if not isinstance(value, kind):
        raise ConfigError.must_be(field, value, f"a {kind.__name__}")
    return value


def read_episodes(path: Path) -> dict[int, dict[str, np.ndarray]]:
    """Read some columns of episodes.csv, by seed; empty if the file does not exist yet."""
    return _read_table(path, _COLUMNS)


def read_evaluations(path: Path) -> dict[int, dict[str, np.ndarray]]:
    """Read some columns of evaluations.csv, by seed; empty if the file does not exist."""
    return _read_table(path, ("episode", "step", "score"))


def _read_table(path: Path, columns: Sequence[str]) -> dict[int, dict[str, np.ndarray]]:
    """Read some columns of a table, by seed; empty if the file does not exist."""
    try:
        rows = csv.reader(io.StringIO(read_text(path), newline=""))
        head = next(rows, [])
        indices = [head.index(name) for name in columns]
        seed = head.index("seed")
        by_seed: dict[int, list[list[float]]] = {}
        for row in rows:
            by_seed.setdefault(int(row[seed]), []).append([float(row[i]) for i in indices])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from None
    tables = {seed: np.array(rows).T for seed, rows in by_seed.items()}
    return {seed: dict(zip(columns, table, strict=True)) for seed, table in tables.items()}


def read_json(path: Path) -> Any:
    """Read a JSON file; None if it does not exist."""
    try:
        content = json.loads(read_text(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise RunFolderError(f"{path} cannot be read: {error}") from None
    if not _shallow(content):
        raise RunFolderError(f"{path} cannot be read: it is nested deeper than {LEVELS} levels")
    return content


def _shallow(value: Any, levels: int = LEVELS) -> bool:
    """Whether JSON is nested at most `levels` deep, so that recursion over it is safe."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(child, levels - 1) for child in inner)


def read_claims(path: Path) -> list[dict[str, str]]:
    """Read claims.json; empty if it does not exist."""
    content = read_json(path) or []
    try:
        return [
            {key: str(c[key]) for key in ("text", "evidence", "verdict")}
            | {"after_holm": str(c.get("after_holm") or "–")}
            for c in content
        ]
    except (KeyError, TypeError, AttributeError):
        raise RunFolderError(f"{path} is not a list of claims written by rove") from None


def read_errors(path: Path) -> dict[int, str]:
    """Read errors.json: the error of each seed that failed; empty if it does not exist."""
    content = read_json(path) or {}
    try:
        return {int(seed): str(error) for seed, error in content.items()}
    except (AttributeError, ValueError):
        raise RunFolderError(f"{path} is not a list of errors written by rove") from None


def read_sweep(path: Path) -> dict[str, Any] | None:
    """Read sweep.json; None if it does not exist."""
    content = read_json(path)
    if content is None:
        return None
    try:
        fields = {str(name): list(values) for name, values in content["fields"].items()}
        points = [
            {
                "settings": {name: point["settings"][name] for name in fields},
                "scores": _scores(point["scores"]),
                "confirmed": _scores(point.get("confirmed")),
            }
            for point in content["points"]
        ]
        return content | {"fields": fields, "points": points}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFolderError(f"{path} is not a sweep written by rove: {error!r}") from None


def _scores(values: list[Any] | None) -> list[float]:
    """Return scores, with −∞ for null, the score of a diverged seed."""
    return [-math.inf if score is None else float(score) for score in values or []]


def read_picture(path: Path) -> bytes | None:
    """Read the figure of an experiment."""
    for file in sorted(path.glob("*.png")):
        with contextlib.suppress(OSError):
            if (data := read_bytes(file)).startswith(b"\x89PNG"):
                return data
    return None
