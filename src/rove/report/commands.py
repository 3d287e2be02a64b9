"""The command that runs it again."""

import shlex
from typing import Any

from rove import environments
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
        return _python(told)
    words = ["rove", "train", config.agent_name, config.environment.name]
    return shlex.join([*words, *_rest(told, told["agent"]["settings"])])


def of_sweep(told: dict[str, Any]) -> str:
    """`rove sweep …`, of what a sweep's config.json says."""
    fields, agent = told["fields"], told["agent"]
    words = ["rove", "sweep", agent["name"], told["environment"]["name"]]
    words += [f"--agent.{k.replace('_', '-')}={','.join(map(str, v))}" for k, v in fields.items()]
    words += ["--confirm-seeds", str(told["confirm_seeds"]), "--method", told["method"]]
    words += ["--points", str(told["points"])] if told["points"] else []
    return shlex.join(
        [*words, *_rest(told, {k: v for k, v in agent["settings"].items() if k not in fields})]
    )


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


def _python(told: dict[str, Any]) -> str:
    agent, place = told["agent"], told["environment"]
    fields = {k: tuple(v) if isinstance(v, list) else v for k, v in agent["settings"].items()}
    settings = ", ".join(f"{k}={v!r}" for k, v in fields.items())
    made = f"rove.environments.make({place['name']!r}, **{place['options']!r})"
    words = {k: told[k] for k in ("seeds", "episodes", "steps", "until_solved") if told[k]}
    rest = ", ".join(f"{k}={v!r}" for k, v in words.items())
    kind = AGENTS[agent["name"]].__name__
    return f"rove.train(rove.{kind}({settings}), {made}, {rest})"
