"""The options of `rove train` and `rove sweep`, which depend on the agent and the environment."""

import dataclasses
import inspect
import itertools
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import tyro

from rove import environments
from rove.agents import AGENTS
from rove.agents.settings import Settings, with_settings
from rove.agents.tuned import origin
from rove.cli.console import optional
from rove.cli.mirrors import mirror, values
from rove.cli.options import parse, split_arguments
from rove.core.learner import Learner
from rove.environments import Environment
from rove.errors import RoveError
from rove.parts.architectures import ConvNet
from rove.runs.configure import DEFAULT_BUDGET, default_settings
from rove.runs.folder import read_config

USAGE = {
    "train": "rove train AGENT ENVIRONMENT [OPTIONS]\n"
    "       rove train --config RUN [OPTIONS]\n"
    "       for example: rove train ge chain-100 --seeds 5 --episodes 250 --out runs/a\n"
    "       all options of an agent: rove train ge chain-100 --help",
    "sweep": "rove sweep AGENT ENVIRONMENT --agent.FIELD=VALUES ... [OPTIONS]\n"
    "       VALUES: -6:-2:5 (evenly spaced), 1e-4:1e-1:log4 (geometrically), or a list 1,2,3\n"
    "       for example: rove sweep ge sparse-cartpole --agent.rho=-10:-1:10 "
    "--agent.sigma=1e-8:1e-1:log8\n"
    "       all options of an agent: rove sweep ge sparse-cartpole --help",
}
PURPOSE = {
    "train": "Train an agent on an environment.",
    "sweep": "Try many settings of an agent, and confirm the best ones on fresh seeds.",
}
MORE_OPTIONS = """Use --agent.FIELD VALUE to change a setting of the agent, and --env.FIELD VALUE to
change an option of the environment. To list those of ge and chain-100, use rove {} ge chain-100
--help."""


Parsed: TypeAlias = tuple[Any, Settings | Learner, environments.Task]
"""The options of a command, the agent and the environment."""


@dataclasses.dataclass(frozen=True)
class SharedOptions:
    """Options that `rove train` and `rove sweep` share."""

    episodes: Annotated[
        int | None, optional("N", "250, or 50,000 steps with continuous actions")
    ] = None
    """Number of episodes to train each seed for."""
    steps: Annotated[int | None, optional("N")] = None
    """Number of steps to train each seed for, instead of a number of episodes."""
    until_solved: bool = False
    """Stop a seed after ten optimal episodes in a row; the optimum must be known."""
    workers: Annotated[
        int | None,
        optional("N", "one per core; all seeds with --on threads and a Gymnasium environment"),
    ] = None
    """Number of seeds to train at the same time."""
    on: Annotated[str, tyro.conf.arg(metavar="{processes,threads,ray,ray://HOST:PORT}")] = (
        "processes"
    )
    """Where seeds train: worker processes, threads or a Ray cluster; results are identical."""
    log: Annotated[Literal["tensorboard", "trackio"] | None, optional("{tensorboard,trackio}")] = (
        None
    )
    """Log to this tracker while training; its files are written to the output folder."""
    quiet: bool = False
    """Print warnings and errors only."""


@dataclasses.dataclass(frozen=True)
class TrainOptions(SharedOptions):
    """Options of `rove train`."""

    seeds: Annotated[str, tyro.conf.arg(metavar="N|LIST")] = "1"
    """Number of seeds (0, 1, …), or the seeds themselves, as in 0,3,7."""
    eval_every: Annotated[int | None, optional("N", "never")] = None
    """Evaluate the greedy policy after every N episodes, or every N steps with --steps."""
    eval_episodes: Annotated[int | None, optional("N", "10")] = None
    """Number of episodes of each evaluation."""
    stop_at: Annotated[float | None, optional("SCORE", "never")] = None
    """Stop a seed when the mean score of an evaluation or of the last 20 episodes reaches this."""
    out: Annotated[Path | None, optional("DIR", "runs/AGENT-ENVIRONMENT-CHANGED")] = None
    """Run folder. Repeating the command resumes a run; more episodes, steps or seeds extend it.
    CHANGED are the options that are not at their defaults, as in ge-chain-10-lr=0.01."""
    config: Annotated[Path | None, optional("RUN")] = None
    """Folder or config.json of a run to repeat, in place of AGENT ENVIRONMENT."""
    trust: bool = False
    """With --config: allow importing the package of the run's environment (gym/PACKAGE:ID)."""
    json: bool = False
    """Print a summary as JSON at the end, and nothing else."""


@dataclasses.dataclass(frozen=True)
class SweepOptions(SharedOptions):
    """Options of `rove sweep`."""

    seeds: int = 3
    """Number of seeds to tune on (1000, 1001, …)."""
    confirm_seeds: Annotated[int | None, optional("N", "the value of --seeds")] = None
    """Number of fresh seeds (0, 1, …) to confirm the best point on; 0: none."""
    method: Literal["grid", "random", "halving"] = "grid"
    """grid: all points; random: a random subset; halving: drop the worse half after each round."""
    points: Annotated[int | None, optional("N")] = None
    """Number of points to draw from the grid; only with --method random or halving."""
    out: Annotated[Path | None, optional("DIR", "sweeps/AGENT-ENVIRONMENT-CHANGED")] = None
    """Sweep folder; running the same command again resumes from it. CHANGED are the options that
    are neither swept nor at their defaults."""


def parse_named(command: str, kind: type, arguments: list[str], about: str = "") -> Parsed:
    """Parse the command line, whose --agent and --env options depend on the two names.

    `about` is appended to the description in the help.
    """
    names = arguments[: next((i for i, a in enumerate(arguments) if a.startswith("-")), 2)][:2]
    if len(names) < 2:
        if "-h" in arguments or "--help" in arguments:
            more = MORE_OPTIONS.format(command).replace("\n", " ")
            text = f"{PURPOSE[command]}\n\n{more}{about}"
            parse(kind, ["--help"], f"rove {command} AGENT ENVIRONMENT", text)
        got = f", got: {' '.join(arguments)}" if arguments else ""
        raise RoveError(
            f"rove {command} needs an agent and an environment first{got}\n"
            f"usage: {USAGE[command]}\n\nrove list shows all agents and environments."
        )
    if names[1] in AGENTS and names[0] not in AGENTS:
        raise RoveError(f"{names[1]!r} is an agent: write rove {command} {names[1]} {names[0]}")
    environment = environments.make(names[1])
    settings = default_settings(names[0], environment)
    defaults = f"Default settings: {origin(settings.name, environment.name)}."
    prog = f"rove {command} {names[0]} {names[1]}"
    about = f"{inspect.cleandoc(type(settings).__doc__ or '')}\n\n{defaults}{about}"
    return _parsed(kind, arguments[2:], prog, about, settings, environment)


def _parsed(
    kind: type,
    arguments: list[str],
    prog: str,
    about: str,
    agent: Any,
    environment: environments.Task,
    **defaults: Any,
) -> Parsed:
    """Parse the options for an agent and an environment."""
    settings, sized = environments.settings(environment), isinstance(environment, Environment)
    groups: dict[str, tuple[type, str]] = {}
    if isinstance(agent, Settings):
        hidden = () if isinstance(getattr(agent, "network", None), ConvNet) else ("network",)
        groups["agent"] = (mirror(agent, hidden), f"Settings of {agent.name}.")
    text = "Number of observations, up to the current one, that the agent sees together."
    stack = Annotated[int, tyro.conf.arg(help=text)]
    frames = environments.frames_of(environment)
    more = [] if frames is None else [("frame_stack", stack, frames)]
    options_of_environment = mirror(settings, {"n"} if sized else (), more)
    groups["env"] = (options_of_environment, f"Options of {environment.name}.")
    text = "Number of episodes to train each seed for."
    fields: list[Any] = [
        (name, Annotated[group, tyro.conf.arg(help=help)], dataclasses.field(default_factory=group))
        for name, (group, help) in groups.items()
    ]
    budget = _budget_text(environment, defaults.get("episodes"), defaults.get("steps"))
    fields.append(("episodes", Annotated[int | None, optional("N", budget, text)], None))
    options = dataclasses.make_dataclass(kind.__name__, fields, bases=(kind,), frozen=True)
    parsed = parse(options, arguments, prog, about, options(**defaults))
    chosen = environments.configured(environment, values(parsed.env))
    if isinstance(agent, Settings):
        agent = with_settings(agent, values(parsed.agent))
    given = {word.partition("=")[0] for word in arguments} & {"--episodes", "--steps"}
    if len(given) == 2:
        raise RoveError("--episodes and --steps cannot be combined; give one of them")
    if given:  # replaces the other one in a configuration that is trained again
        other = "steps" if given == {"--episodes"} else "episodes"
        parsed = dataclasses.replace(parsed, **{other: None})
    return parsed, agent, chosen


def _budget_text(environment: environments.Task, episodes: int | None, steps: int | None) -> str:
    """Return the default of --episodes in words, given the budget of the run to repeat, if any."""
    if episodes is None and steps is None:
        episodes, steps = DEFAULT_BUDGET[environment.continuous]
    return f"{steps:,} steps" if episodes is None else f"{episodes:,}"


def parse_config(arguments: list[str]) -> Parsed:
    """Parse `rove train --config RUN`."""
    at = next(i for i, word in enumerate(arguments) if word.partition("=")[0] == "--config")
    value = arguments[at].partition("=")[2] or next(iter(arguments[at + 1 : at + 2]), "")
    if not value:
        raise RoveError("--config needs a run folder or a config.json: rove train --config RUN")
    if at and not arguments[0].startswith("-"):
        raise RoveError(
            "--config replaces the agent and the environment, which cannot be given as well: "
            f"rove train --config {value}"
        )
    config = read_config(Path(value), trust=_trusted(arguments))
    defaults = {
        "seeds": ",".join(map(str, config.seeds)) + ",",  # a list, even of one seed
        "episodes": config.episodes,
        "steps": config.steps,
        "until_solved": config.until_solved,
        "eval_every": config.eval_every,
        "eval_episodes": config.eval_episodes,
        "stop_at": config.stop_at,
    }
    about = f"Train the configuration in {value} again: {config.label}."
    prog, task = "rove train --config RUN", config.environment
    return _parsed(TrainOptions, arguments, prog, about, config.agent, task, **defaults)


def _trusted(arguments: list[str]) -> bool:
    """Whether the value of the flag --trust is true, in any of its spellings."""
    flags = ("--trust", "--no-trust")
    pairs = itertools.pairwise(["", *arguments])
    flagged = [
        word
        for before, word in pairs
        if word.partition("=")[0] in flags or (before in flags and not word.startswith("-"))
    ]
    _, words = split_arguments(flagged, {"trust": bool, "no-trust": bool}, "rove train")
    return words[-1:] == ["--trust"]


def parse_seeds(text: str) -> int | list[int]:
    """Return the value of --seeds: a number of seeds, or a list of them."""
    try:
        listed = [int(word) for word in text.removesuffix(",").split(",")]
    except ValueError:
        allowed = "a number of seeds, or a list such as 0,3,7"
        raise RoveError(f"--seeds must be {allowed}, got {text!r}") from None
    return listed if "," in text else listed[0]
