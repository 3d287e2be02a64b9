"""The settings of a run's agent, where they come from, and the rest of its configuration."""

from typing import Any

from rove.agents import AGENTS
from rove.agents.tuned import origin
from rove.reporting import commands
from rove.reporting.numbers import plain
from rove.reporting.run_data import RunData
from rove.runs.config import OPTIONAL, settings_identity
from rove.runs.configure import default_settings

NAMED = 5
"""Maximum number of changed settings that are named."""
RUN = ("episodes", "steps", "until_solved", *OPTIONAL, "seeds")
"""The fields of config.json that are about the run."""


def settings_of(run: RunData) -> dict[str, Any]:
    """Return the settings of a run's agent, or the parts it is composed of."""
    agent = run.raw["agent"]
    return agent.get("settings") or agent.get("composition") or {}


def changed(run: RunData) -> dict[str, Any]:
    """Return the settings of a run's agent that are not the defaults for its task."""
    defaults: dict[str, Any] = {}
    if run.name in AGENTS:
        defaults = settings_identity(default_settings(run.name, run.task))
    settings = settings_of(run)
    return {k: v for k, v in settings.items() if k not in defaults or defaults[k] != v}


def source_of(run: RunData) -> str:
    """Say where the settings of a run come from, such as "defaults (tuned on chain-10)"."""
    if run.name not in AGENTS or "settings" not in run.raw["agent"]:
        return "custom agent"
    names = list(changed(run))
    if names:
        more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
        return f"not the defaults: {', '.join([*names[:NAMED], *more])}"
    return f"defaults ({origin(run.name, run.task.name)})"


def about(run: RunData) -> dict[str, Any]:
    """Return the configuration of a run, its versions, where its settings come from and its
    command."""
    sections = {
        "agent": settings_of(run),
        "environment": {"name": run.environment, **commands.options_of(run.raw)},
        "run": {k: run.raw.get(k) for k in RUN},
        "versions": run.raw.get("versions") or {},
    }
    return plain(sections) | {"source": source_of(run), "command": commands.of_run(run)}
