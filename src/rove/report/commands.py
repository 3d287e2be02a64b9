"""The command that runs it again."""

import shlex
from typing import Any

from rove import environments
from rove.agents import AGENTS, Settings
from rove.errors import RoveError
from rove.experiments import EXPERIMENTS
from rove.report.folders import RunData, Source

OWN = "# composed in Python: rove.load(folder, ...) takes the agent and the environment again"


def of_run(run: RunData) -> str:
    """`rove train …`; in Python, where the command has no words for it."""
    config, told = run.config, run.told
    if config is None or not isinstance(config.agent, Settings) or told["environment"].get("given"):
        return OWN
    if list(told["seeds"]) != list(range(len(told["seeds"]))):
        return _python(told)
    words = ["rove", "train", config.agent_name, config.environment.name]
    words += ["--seeds", str(len(told["seeds"]))]
    words += [w for unit in ("episodes", "steps") if told[unit] for w in (f"--{unit}", told[unit])]
    words += ["--until-solved"] * bool(told["until_solved"])
    words += [word for item in told["agent"]["settings"].items() for word in _flag("agent", *item)]
    words += [word for item in _changed(told).items() for word in _flag("env", *item)]
    return shlex.join(map(str, words))


def of_source(source: Source) -> str | None:
    """`rove reproduce …`, for an experiment's folder by its usual name."""
    name = source.name.removesuffix("-quick")
    quick = " --quick" if name != source.name else ""
    return f"rove reproduce {name}{quick}" if name in EXPERIMENTS else None


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
    name, options = told["environment"]["name"], told["environment"]["options"]
    try:
        usual = _flat(environments.options(environments.make(name)))
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
