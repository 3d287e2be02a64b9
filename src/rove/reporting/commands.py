"""The command line that repeats a run, a sweep or an experiment."""

import shlex
from typing import Any

import numpy as np

from rove import environments
from rove.agents import AGENTS, Settings
from rove.environments import ALIASES, HostEnvironment
from rove.environments.host import Source
from rove.environments.registered import PREFIX
from rove.errors import RoveError
from rove.paper import EXPERIMENTS
from rove.reporting.files import is_gymnasium
from rove.reporting.folders import Results
from rove.reporting.run_data import RunData
from rove.runs.config import OPTIONAL
from rove.runs.recorded import RESTATABLE, RecordedTask
from rove.search import space

CUSTOM = "# custom agent: pass it to rove.load(folder, agent=...) in Python"


def of_run(run: RunData) -> str:
    """Return the `rove train` command of a run, or Python code if the command line cannot express
    it."""
    config, raw = run.config, run.raw
    if config is None or not isinstance(config.agent, Settings):
        return CUSTOM
    seeds = raw["seeds"]
    counted = list(seeds) == list(range(len(seeds)))
    custom = isinstance(run.task, RecordedTask) and not is_gymnasium(raw["environment"])
    if custom or _needs_import(raw):
        return _python("train", raw, [], {"seeds": len(seeds) if counted else seeds}, custom)
    words = ["rove", "train", config.agent_name, _full_name(raw)]
    words += ["--seeds", str(len(seeds)) if counted else "".join(f"{seed}," for seed in seeds)]
    return shlex.join([*words, *_rest(raw, raw["agent"]["settings"])])


def _needs_import(raw: dict[str, Any]) -> bool:
    """Whether a module has to be imported that registers a run's environment with Gymnasium, but is
    not part of the environment's name."""
    facts = raw.get("task") or {}
    return bool(facts.get("module")) and not facts.get("package")


def _full_name(raw: dict[str, Any]) -> str:
    """Return the name of a run's environment with the package that registers it, if it is known."""
    package, name = (raw.get("task") or {}).get("package", ""), raw["environment"]["name"]
    return Source(name, package=package).full_name if package else name


def of_sweep(raw: dict[str, Any]) -> str:
    """Return the `rove sweep` command of a sweep, or Python code if the command line cannot express
    it. `raw` is the result of `Plan.identity`, with the facts about its task."""
    fields, agent = raw["fields"], raw["agent"]
    words = ["rove", "sweep", agent["name"], _full_name(raw)]
    words += [f"--agent.{k.replace('_', '-')}={_span(v)}" for k, v in fields.items()]
    words += ["--seeds", str(len(raw["seeds"])), "--confirm-seeds", str(raw["confirm_seeds"])]
    words += ["--method", raw["method"]]
    words += ["--points", str(raw["points"])] if raw["points"] else []
    words += _rest(raw, {k: v for k, v in agent["settings"].items() if k not in fields})
    custom = bool(raw["environment"].get("given"))
    expressible = not custom and not _needs_import(raw)
    if expressible and _swept(words, agent["name"]) == fields:
        return shlex.join(words)
    values = {name: list(map(_tuple, listed)) for name, listed in fields.items()}
    options = {k: raw[k] for k in ("confirm_seeds", "method", "points") if raw[k] is not None}
    return _python("sweep", raw, [repr(values)], {"seeds": len(raw["seeds"])} | options, custom)


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
    for name in (name for name in OPTIONAL if raw.get(name) is not None):
        words.append(f"--{name.replace('_', '-')}={raw[name]}")
    words += [word for item in settings.items() for word in _flag("agent", *item)]
    options, defaults = flat(options_of(raw)), flat(_defaults(raw["environment"]))
    changed = {k: v for k, v in options.items() if k not in defaults or defaults[k] != v}
    return words + [word for item in changed.items() for word in _flag("env", *item)]


def _flag(prefix: str, name: str, value: Any) -> list[str]:
    """Format a setting for the command line."""
    flag = f"--{prefix}.{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--{prefix}.no-{name.replace('_', '-')}"]
    if isinstance(value, list):
        return [flag, *(map(str, value) if value else ["none"])]
    if name == "network":  # None, or the fields of a ConvNet
        fields = {k: v for k, v in (value or {}).items() if k != "type"}
        return [word for item in fields.items() for word in _flag(f"{prefix}.{name}", *item)]
    return [f"{flag}={value}"]


def options_of(raw: dict[str, Any]) -> dict[str, Any]:
    """Return all options of the environment of a config.json."""
    stated = {k: raw[k] for k in RESTATABLE if raw.get(k) is not None}
    return raw["environment"]["options"] | stated


def _defaults(environment: dict[str, Any]) -> dict[str, Any]:
    """Return the options that an environment has by its name alone; empty if it is custom."""
    try:
        make = _placeholder if is_gymnasium(environment) else environments.make
        return environments.options(make(environment["name"]))
    except RoveError:
        return {}


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


def _python(
    call: str, raw: dict[str, Any], arguments: list[str], options: dict[str, Any], custom: bool
) -> str:
    """Return Python code that calls `rove.train` or `rove.sweep`. A custom environment is left to
    be filled in."""
    agent, name = raw["agent"], raw["environment"]["name"]
    settings = ", ".join(f"{k}={_value(v)}" for k, v in agent["settings"].items())
    budget = {k: raw[k] for k in ("episodes", "steps", "until_solved") if raw[k]}
    budget |= {k: raw[k] for k in OPTIONAL if raw.get(k) is not None}
    words = [
        f"rove.{AGENTS[agent['name']].__name__}({settings})",
        "environment" if custom else _task(raw),
        *arguments,
        *(f"{k}={v!r}" for k, v in (options | budget).items()),
    ]
    about = [f"# environment: {name!r}, which is custom"] * custom
    about += [_import(raw["task"]["module"], name)] if _needs_import(raw) else []
    return "\n".join([*about, f"rove.{call}({', '.join(words)})"])


def _import(module: str, name: str) -> str:
    """Return Python code that imports what registers an environment: the module that defines it, or
    another one."""
    registers = f"the module that registers {name.removeprefix(PREFIX)!r}"
    if module == "__main__" or not all(part.isidentifier() for part in module.split(".")):
        return f"# first import {registers}"
    return f"import {module}  # or {registers}"


def _task(raw: dict[str, Any]) -> str:
    """Return Python code for an environment: its name or, with options, `rove.make`."""
    environment = raw["environment"]
    defaults = _defaults(environment)
    options = {k: v for k, v in options_of(raw).items() if k not in defaults or defaults[k] != v}
    name = repr(environment["name"])
    return f"rove.make({name}, **{options!r})" if options else name


def _value(value: Any) -> str:
    """Return Python code for a setting; a dictionary describes a part, such as a ConvNet."""
    if not isinstance(value, dict):
        return repr(_tuple(value))
    fields = ", ".join(f"{k}={_value(v)}" for k, v in value.items() if k != "type")
    return f"rove.{value['type']}({fields})"


def _tuple(value: Any) -> Any:
    """Convert a JSON list to a tuple, as used in settings."""
    return tuple(value) if isinstance(value, list) else value
