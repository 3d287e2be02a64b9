"""The command line that repeats a run, a sweep or an experiment."""

import shlex
from typing import Any

import numpy as np

from rove import environments
from rove.agents import AGENTS, Settings
from rove.environments import ALIASES, HostEnvironment
from rove.environments.host import Source
from rove.errors import RoveError
from rove.paper import EXPERIMENTS
from rove.reporting.files import is_gymnasium
from rove.reporting.folders import Results, RunData
from rove.runs.recorded import RecordedTask
from rove.search import space

CUSTOM = "# custom agent or environment: pass it to rove.load(folder, ...) in Python"


def of_run(run: RunData) -> str:
    """Return the `rove train` command of a run, or Python code if the command line cannot express
    it."""
    config, raw = run.config, run.raw
    custom = isinstance(run.task, RecordedTask) and not is_gymnasium(raw["environment"])
    if config is None or not isinstance(config.agent, Settings) or custom:
        return CUSTOM
    words, seeds = ["rove", "train", config.agent_name, _full_name(raw)], raw["seeds"]
    counted = list(seeds) == list(range(len(seeds)))
    words += ["--seeds", str(len(seeds)) if counted else "".join(f"{seed}," for seed in seeds)]
    return shlex.join([*words, *_rest(raw, raw["agent"]["settings"])])


def _full_name(raw: dict[str, Any]) -> str:
    """Return the name of a run's environment with the package that registers it, if it is known."""
    package, name = (raw.get("task") or {}).get("package", ""), raw["environment"]["name"]
    return Source(name, package=package).full_name if package else name


def of_sweep(raw: dict[str, Any]) -> str:
    """Return the `rove sweep` command for the content of a sweep's config.json, or Python code if
    the command line cannot express it."""
    fields, agent = raw["fields"], raw["agent"]
    words = ["rove", "sweep", agent["name"], raw["environment"]["name"]]
    words += [f"--agent.{k.replace('_', '-')}={_span(v)}" for k, v in fields.items()]
    words += ["--seeds", str(len(raw["seeds"])), "--confirm-seeds", str(raw["confirm_seeds"])]
    words += ["--method", raw["method"]]
    words += ["--points", str(raw["points"])] if raw["points"] else []
    words += _rest(raw, {k: v for k, v in agent["settings"].items() if k not in fields})
    if not raw["environment"].get("given") and _swept(words, agent["name"]) == fields:
        return shlex.join(words)
    values = {name: list(map(_tuple, listed)) for name, listed in fields.items()}
    options = {k: raw[k] for k in ("confirm_seeds", "method", "points") if raw[k] is not None}
    return _python("sweep", raw, [repr(values)], {"seeds": len(raw["seeds"])} | options)


def _span(values: list[Any]) -> str:
    """Format values for the command line; a single value is followed by a comma."""
    return ",".join(map(str, values)) + "," * (len(values) == 1)


def _swept(words: list[str], agent: str) -> dict[str, list[Any]] | None:
    """Return the fields that a command sweeps, or None if it is invalid."""
    try:
        fields, _ = space.split_arguments(words)
        return {k: list(space.values(AGENTS[agent](), k, v)) for k, v in fields.items()}
    except RoveError:
        return None


def of_source(source: Results) -> str | None:
    """Return the `rove reproduce` command of an experiment, recognised by the name of its
    folder."""
    name = source.name.removesuffix("-quick")
    quick = " --quick" if name != source.name else ""
    return f"rove reproduce {name}{quick}" if name in EXPERIMENTS else None


def _rest(raw: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    """Return the options for the budget, agent settings and environment options."""
    words = []
    for unit in ("episodes", "steps"):
        words += [f"--{unit}", str(raw[unit])] if raw[unit] else []
    words += ["--until-solved"] * bool(raw["until_solved"])
    words += [word for item in settings.items() for word in _flag("agent", *item)]
    return words + [word for item in _changed(raw).items() for word in _flag("env", *item)]


def _flag(prefix: str, name: str, value: Any) -> list[str]:
    """Format a setting for the command line."""
    flag = f"--{prefix}.{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--{prefix}.no-{name.replace('_', '-')}"]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [f"{flag}={value}"]


def _changed(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an environment that differ from the defaults of its name."""
    environment = raw["environment"]
    name, options = environment["name"], environment["options"]
    try:
        make = _placeholder if is_gymnasium(environment) else environments.make
        defaults = flat(environments.options(make(name)))
    except RoveError:
        defaults = {}
    return {k: v for k, v in flat(options).items() if k not in defaults or defaults[k] != v}


def _placeholder(name: str) -> HostEnvironment:
    """Return a Gymnasium environment with its default options, which cannot be stepped."""
    shared = ALIASES[name][1] if name in ALIASES else {}
    return HostEnvironment(Source(name), 0, 0, np.zeros((1, 0), np.float32), **shared)


def flat(options: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return options by dotted names, including those of a wrapped environment."""
    named: dict[str, Any] = {}
    for name, value in options.items():
        inner = isinstance(value, dict) and isinstance(value.get("options"), dict)
        named |= flat(value["options"], f"{prefix}{name}.") if inner else {prefix + name: value}
    return named


def _python(call: str, raw: dict[str, Any], arguments: list[str], options: dict[str, Any]) -> str:
    """Return Python code that calls `rove.train` or `rove.sweep`. A custom environment is left to
    be filled in."""
    agent, environment = raw["agent"], raw["environment"]
    settings = ", ".join(f"{k}={_tuple(v)!r}" for k, v in agent["settings"].items())
    task = f"rove.environments.make({environment['name']!r}, **{environment['options']!r})"
    budget = {k: raw[k] for k in ("episodes", "steps", "until_solved") if raw[k]}
    words = [
        f"rove.{AGENTS[agent['name']].__name__}({settings})",
        "environment" if environment.get("given") else task,
        *arguments,
        *(f"{k}={v!r}" for k, v in (options | budget).items()),
    ]
    return f"rove.{call}({', '.join(words)})"


def _tuple(value: Any) -> Any:
    """Convert a JSON list to a tuple, as used in settings."""
    return tuple(value) if isinstance(value, list) else value
