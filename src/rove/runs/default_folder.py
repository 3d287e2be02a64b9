"""The folder of a run or a sweep for which the user names none."""

import itertools
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from rove import environments
from rove.agents.settings import Settings
from rove.environments import HostEnvironment
from rove.errors import ConfigError
from rove.runs.config import OPTIONAL, Config, settings_identity
from rove.runs.configure import EVAL_EPISODES, default_settings
from rove.runs.folder import DifferentRun, Identified, RunFolder
from rove.runs.recorded import RESTATABLE, RecordedTask

LONGEST = 100
"""Maximum number of letters of a folder's name without its number; options beyond it are left
out."""


def default_folder(config: Config, root: str = "runs") -> tuple[Path, str]:
    """Return the folder of a run, and why it is not the first of its name, or "".

    The name is AGENT-ENVIRONMENT followed by the options that are not at their defaults, except the
    seeds and the budget: ge-chain-100-resample=episode. If that folder contains a run that this one
    neither resumes nor extends, such as one with more seeds, a number is appended: -2, -3, ….
    """
    return _first_free(Path(root) / folder_name(config), config)


def default_sweep_folder(
    plan: Identified, base: Config, swept: Collection[str]
) -> tuple[Path, str]:
    """Return the folder of a sweep, by the rule of `default_folder`, without the swept settings."""
    return _first_free(Path("sweeps") / folder_name(base, swept), plan)


def folder_name(config: Config, omit: Collection[str] = ()) -> str:
    """Return the name of a run's folder, without the number that may follow. `omit` names settings
    of the agent that are left out."""
    agent = {k: v for k, v in _agent_changes(config).items() if k not in omit}
    changes = agent | _environment_changes(config) | _training_changes(config)
    name = _plain(config.slug)[:LONGEST]
    for word in (_plain(_word(*change)) for change in changes.items()):
        if len(name) + 1 + len(word) > LONGEST:
            break
        name += f"-{word}"
    return name


def _plain(text: str) -> str:
    return re.sub(r"[^\w.+=-]+", "-", text)


def _first_free(path: Path, identified: Identified) -> tuple[Path, str]:
    """Return the first of the folders PATH, PATH-2, … that contains no other run, and why it is not
    PATH. Whatever else prevents its use is reported when it is opened."""
    reason = ""
    for number in itertools.count(1):
        numbered = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            if (numbered / "config.json").exists():
                RunFolder(numbered).check(identified)
            return numbered, reason
        except DifferentRun as error:
            reason = reason or f"{path} contains {error.content}"
    raise AssertionError


def _agent_changes(config: Config) -> dict[str, Any]:
    """Return the settings of a named agent that are not its defaults on the environment."""
    if not isinstance(config.agent, Settings):
        return {}
    default = settings_identity(default_settings(config.agent_name, config.environment))
    return _changes(settings_identity(config.agent), default)


def _environment_changes(config: Config) -> dict[str, Any]:
    """Return the options of an environment that are not at their defaults, if it has a name by
    which it can be created."""
    task = config.environment
    custom = isinstance(task, HostEnvironment) and not task.source.registered
    if custom or isinstance(task, RecordedTask):
        return {}
    name = task.name
    if isinstance(task, HostEnvironment):
        name = task.alias or task.source.full_name
    try:
        default = environments.options(environments.make(name))
    except ConfigError:  # a custom class
        return {}
    changes = _changes(environments.options(task), default)
    return {name: value for name, value in changes.items() if name not in RESTATABLE}


def _training_changes(config: Config) -> dict[str, Any]:
    """Return the other options that distinguish a run, except the seeds and the budget."""
    names = ("until_solved", *OPTIONAL)
    default = dict.fromkeys(OPTIONAL) | {"until_solved": False}
    default |= {"eval_episodes": EVAL_EPISODES if config.eval_every else None}
    return _changes({name: getattr(config, name) for name in names}, default)


def _changes(values: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k not in default or v != default[k]}


def _word(name: str, value: Any) -> str:
    """Return an option as part of a name: double, no-double, lr=0.001, hidden=64x64."""
    if isinstance(value, bool):
        return name if value else f"no-{name}"
    if isinstance(value, dict):  # a network, or an environment inside another
        return name
    if isinstance(value, list | tuple):
        return f"{name}={'x'.join(map(str, value))}"
    return f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
