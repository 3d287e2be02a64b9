"""The command that runs it again."""

import shlex
from typing import Any

from rove import environments, spans
from rove.agents import AGENTS, Settings
from rove.errors import RoveError
from rove.experiments import EXPERIMENTS
from rove.report.folders import RunData, Source, of_gymnasium, unmade

OWN = "# composed in Python: rove.load(folder, ...) takes the agent and the environment again"


def of_run(run: RunData) -> str:
    """`rove train …`; in Python, where the command has no words for it."""
    config, told = run.config, run.told
    if config is None or not isinstance(config.agent, Settings) or told["environment"].get("given"):
        return OWN
    if list(told["seeds"]) != list(range(len(told["seeds"]))):
        return _python("train", told, [], {"seeds": told["seeds"]})
    words = ["rove", "train", config.agent_name, config.environment.name]
    return shlex.join([*words, *_rest(told, told["agent"]["settings"])])


def of_sweep(told: dict[str, Any]) -> str:
    """`rove sweep …`, of what a sweep's config.json says; in Python, where the command has no
    words for it."""
    fields, agent = told["fields"], told["agent"]
    words = ["rove", "sweep", agent["name"], told["environment"]["name"]]
    words += [f"--agent.{k.replace('_', '-')}={_span(v)}" for k, v in fields.items()]
    words += ["--confirm-seeds", str(told["confirm_seeds"]), "--method", told["method"]]
    words += ["--points", str(told["points"])] if told["points"] else []
    words += _rest(told, {k: v for k, v in agent["settings"].items() if k not in fields})
    if not told["environment"].get("given") and _read(words, agent["name"]) == fields:
        return shlex.join(words)
    values = {name: list(map(_tuple, each)) for name, each in fields.items()}
    more = {k: told[k] for k in ("confirm_seeds", "method", "points") if told[k] is not None}
    return _python("sweep", told, [repr(values)], {"seeds": len(told["seeds"])} | more)


def _span(values: list[Any]) -> str:
    """Values as the command takes them; a single one has a comma after it."""
    return ",".join(map(str, values)) + "," * (len(values) == 1)


def _read(words: list[str], agent: str) -> dict[str, list[Any]] | None:
    """The fields that a command sweeps, if it can."""
    try:
        found, _ = spans.split_arguments(words)
        return {k: list(spans.values(AGENTS[agent](), k, v)) for k, v in found.items()}
    except RoveError:
        return None


def of_source(source: Source) -> str | None:
    """`rove reproduce …`, for an experiment's folder by its usual name."""
    name = source.name.removesuffix("-quick")
    quick = " --quick" if name != source.name else ""
    return f"rove reproduce {name}{quick}" if name in EXPERIMENTS else None


def _rest(told: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    """Seeds, budget, settings and options."""
    words = ["--seeds", str(len(told["seeds"]))]
    for unit in ("episodes", "steps"):
        words += [f"--{unit}", str(told[unit])] if told[unit] else []
    words += ["--until-solved"] * bool(told["until_solved"])
    words += [word for item in settings.items() for word in _flag("agent", *item)]
    return words + [word for item in _changed(told).items() for word in _flag("env", *item)]


def _flag(place: str, name: str, value: Any) -> list[str]:
    """A setting, as the command takes it."""
    flag = f"--{place}.{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else f"--{place}.no-{name.replace('_', '-')}"]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [f"{flag}={value}"]


def _changed(told: dict[str, Any]) -> dict[str, Any]:
    """The options of an environment that its name does not imply."""
    place = told["environment"]
    name, options = place["name"], place["options"]
    try:
        plain = unmade({"name": name}) if of_gymnasium(place) else environments.make(name)
        usual = _flat(environments.options(plain))
    except RoveError:
        usual = {}
    return {k: v for k, v in _flat(options).items() if k not in usual or usual[k] != v}


def _flat(options: dict[str, Any], place: str = "") -> dict[str, Any]:
    """Options by dotted names, also of an environment inside another."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        inner = isinstance(value, dict) and "options" in value
        flat |= _flat(value["options"], f"{place}{name}.") if inner else {place + name: value}
    return flat


def _python(call: str, told: dict[str, Any], more: list[str], options: dict[str, Any]) -> str:
    """A call of `rove.train` or `rove.sweep`. An environment of one's own is left to be filled
    in."""
    agent, place = told["agent"], told["environment"]
    settings = ", ".join(f"{k}={_tuple(v)!r}" for k, v in agent["settings"].items())
    made = f"rove.environments.make({place['name']!r}, **{place['options']!r})"
    budget = {k: told[k] for k in ("episodes", "steps", "until_solved") if told[k]}
    words = [
        f"rove.{AGENTS[agent['name']].__name__}({settings})",
        "environment" if place.get("given") else made,
        *more,
        *(f"{k}={v!r}" for k, v in (options | budget).items()),
    ]
    return f"rove.{call}({', '.join(words)})"


def _tuple(value: Any) -> Any:
    """A list of JSON's as settings have it."""
    return tuple(value) if isinstance(value, list) else value
