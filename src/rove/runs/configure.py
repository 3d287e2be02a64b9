"""Converting the arguments of `rove.train` to a validated configuration."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rove import environments
from rove.agents import AGENTS, TD3, Auto, names_for, settings_of
from rove.agents.settings import Settings, unknown_setting, with_settings
from rove.agents.tuned import SOURCES, for_new_tasks, tuned
from rove.core.learner import Learner
from rove.environments import (
    Environment,
    GymnaxEnvironment,
    HostEnvironment,
    Task,
    adopt,
    adopt_gymnax,
    is_gymnax,
)
from rove.environments.faults import BadEnvironment
from rove.environments.host import ROVE_OPTIONS
from rove.environments.registered import PREFIX
from rove.errors import ConfigError, RoveError, check_flag, check_integer
from rove.parts import noise
from rove.parts.masks import unmasked
from rove.runs import advice
from rove.runs.config import Config, check_optional, with_network
from rove.training.outcomes import UNLIMITED
from rove.training.solving import lowest_optimal

DEFAULT_BUDGET = {True: (None, 50_000), False: (250, None)}
"""The numbers of episodes and steps if none are given, by whether actions are continuous."""
EVAL_EPISODES = 10
"""Default number of episodes of an evaluation during training."""
ARGUMENTS = (
    "seeds", "episodes", "steps", "until_solved", "eval_every", "eval_episodes", "stop_at", "out",
    "progress", "report", "workers", "on", "log",
)  # fmt: skip
"""Arguments of `rove.train` that a misspelt setting may have meant."""


def configure(
    agent: str | Settings | Learner,
    environment: Any,
    *,
    seeds: int | Iterable[int] = 1,
    episodes: int | None = None,
    steps: int | None = None,
    until_solved: bool = False,
    eval_every: int | None = None,
    eval_episodes: int | None = None,
    stop_at: float | None = None,
    **settings: Any,
) -> Config:
    """Return the validated configuration of a run; the arguments are those of `train`."""
    if isinstance(environment, str) and environment in AGENTS:
        message = f"{environment!r} is an agent: the agent comes first, then the environment"
        raise ConfigError("environment", environment, "an environment", message)
    given, environment = environment, as_environment(environment)
    if isinstance(agent, str):
        agent = default_settings(agent, environment)
    if isinstance(agent, Settings):
        for field, value in settings.items():
            if not hasattr(agent, field):
                if field in advice.TRAIN:
                    reason = advice.TRAIN[field]
                    message = f"rove.train has no argument {field!r}: {reason}"
                    raise ConfigError(field, value, reason, message)
                _check_not_an_option(field, value, environment, given)
                raise unknown_setting(agent, field, value, ARGUMENTS)
        agent = with_settings(agent, settings)
    elif not isinstance(agent, Learner):
        allowed = "a name, settings such as rove.GE(), or a rove.Agent"
        is_class = isinstance(agent, type) and issubclass(agent, Settings)
        hint = f". Did you mean rove.{agent.__name__}()?" if is_class else ""
        raise ConfigError.must_be("agent", agent, allowed, hint)
    elif settings:
        field, value = next(iter(settings.items()))
        reason = "has no effect on a composed agent: pass it to rove.Agent instead"
        raise ConfigError(field, value, reason)
    agent = with_network(agent, environment)
    learner = agent.compose() if isinstance(agent, Settings) else agent
    if learner.continuous != environment.continuous:
        kind = "continuous" if environment.continuous else "discrete"
        agents = ", ".join(filter(partial(_fits, environment), names_for(environment.continuous)))
        reason = f"{environment.name} has {kind} actions; use one of {agents}"
        other = "discrete" if environment.continuous else "continuous"
        message = f"{agent.name} needs {other} actions, but {environment.name} has {kind} ones; "
        message += f"use one of {agents}"
        raise ConfigError("agent", agent.name, reason, message)
    check_observations(agent.name, learner, environment)
    if episodes is not None and steps is not None:
        reason = "give either episodes or steps"
        message = f"{reason}, not both; got episodes={episodes!r} and steps={steps!r}"
        raise ConfigError("episodes", episodes, reason, message)
    if episodes is None and steps is None:
        episodes, steps = DEFAULT_BUDGET[environment.continuous]
    for field, value in (("episodes", episodes), ("steps", steps)):
        if value is not None:
            check_integer(field, value, at_least=1, at_most=UNLIMITED - 1)
    if hasattr(seeds, "tolist"):  # NumPy and JAX arrays
        seeds = seeds.tolist()
    if isinstance(seeds, bytes | str):
        raise ConfigError.must_be("seeds", seeds, "a number of seeds, or a list of them")
    if not isinstance(seeds, Iterable):
        check_integer("seeds", seeds, at_least=1, at_most=100_000)
        seeds = range(seeds)
    seeds = tuple(seeds)
    for seed in seeds:
        check_integer("seeds", seed, at_least=0, part="every seed in ")
    if len(set(seeds)) != len(seeds) or not len(seeds):
        raise ConfigError.must_be("seeds", list(seeds), "one or more distinct integers")
    check_flag("until_solved", until_solved)
    if until_solved and environment.optimum is None:
        reason = f"{environment.name} has no known optimum"
        message = f"until_solved requires a known optimum, which {environment.name} does not have"
        if isinstance(environment, HostEnvironment | GymnaxEnvironment):
            adopting = adopt if isinstance(environment, HostEnvironment) else adopt_gymnax
            message = "until_solved requires a known optimum: give the best possible score of "
            message += f"{environment.name} with --env.optimum, "
            message += f"or rove.{adopting.__name__}(…, optimum=…)"
        raise ConfigError("until_solved", True, reason, message)
    if eval_every is not None and eval_episodes is None:
        eval_episodes = EVAL_EPISODES
    check_optional(eval_every, eval_episodes, stop_at)
    if stop_at is not None:
        _check_reachable(stop_at, environment)
    if (copies := environment.copies) > (eval_every or copies):
        allowed = f"at least {copies}, the number of copies of the environment"
        raise ConfigError.must_be("eval_every", eval_every, allowed)
    if isinstance(environment, HostEnvironment) and (eval_every or copies > 1):
        _check_second(environment, "copies" if copies > 1 else "eval_every")
    whole = lambda number: None if number is None else int(number)  # noqa: E731 (NumPy's too)
    return Config(
        agent,
        environment,
        tuple(map(int, seeds)),
        whole(episodes),
        whole(steps),
        until_solved,
        eval_every=whole(eval_every),
        eval_episodes=whole(eval_episodes),
        stop_at=None if stop_at is None else float(stop_at),
    )


def _check_reachable(stop_at: float, environment: Task) -> None:
    """Raise `ConfigError` if no episode can have the score at which to stop."""
    limits = [environment.optimum, *(environment.score_range or ())[1:]]
    highest = min((limit for limit in limits if limit is not None), default=math.inf)
    if lowest_optimal(stop_at) > highest:
        reason = f"at most {highest:g}, the best possible {environment.score_label} of "
        raise ConfigError.must_be("stop_at", stop_at, reason + environment.name)


def _check_second(environment: HostEnvironment, field: str) -> None:
    """Raise `ConfigError` if a second environment cannot be created. `field` is the argument that
    requires it: several copies, or evaluations during training."""
    try:
        first, second = environment.make(), environment.make()
    except BadEnvironment as error:
        message = f"{field} needs a second environment, but {environment.name} failed: {error}"
        raise ConfigError(field, environment.name, str(error), message) from None
    if first.env.unwrapped is second.env.unwrapped:
        reason = "needs a second environment: pass a function that returns a new one each time"
        message = f"{field} {reason}; {environment.name} cannot be copied"
        raise ConfigError(field, environment.name, reason, message)
    first.close()
    second.close()


def _check_not_an_option(field: str, value: Any, environment: Task, given: Any) -> None:
    """Raise `ConfigError` if a field that the agent does not have is an option of the environment.

    `given` is the environment as the user passed it.
    """
    custom = isinstance(environment, HostEnvironment) and not environment.source.registered
    known = ROVE_OPTIONS
    if not custom:
        known = [option.name for option in fields(environments.settings(environment))]
        known += [] if environments.frames_of(environment) is None else ["frame_stack"]
    if field not in known:
        return
    maker = "rove.adopt(env" if field in ROVE_OPTIONS else f"gymnasium.make({environment.name!r}"
    remedy = f"{maker}, {field}={value!r})".replace(PREFIX, "")
    if isinstance(given, str):
        remedy = f"rove.make({given!r}, {field}={value!r})"
    elif isinstance(environment, GymnaxEnvironment):
        of_rove = field in ("optimum", "score_range")
        setting = f"{field}={value!r}" if of_rove else f"params.replace({field}={value!r})"
        remedy = f"rove.adopt_gymnax(env, {setting})"
    elif isinstance(given, Environment):
        remedy = f"rove.{type(given).__name__}(…, {field}={value!r})"
    message = f"{field} is an option of the environment, not of the agent: pass {remedy}"
    raise ConfigError(field, value, "an option of the environment", message)


def as_environment(environment: Any) -> Task:
    """Return the environment for a name, an `Environment`, or one of Gymnasium or gymnax."""
    if isinstance(environment, str):
        environment = environments.make(environment)
    elif isinstance(environment, type) and issubclass(environment, Task):
        allowed = f"an instance, such as rove.{environment.__name__}(…)"
        raise ConfigError.must_be("environment", environment, allowed)
    elif is_gymnax(environment):
        environment = adopt_gymnax(environment)
    elif not isinstance(environment, Task):
        environment = adopt(environment)
    if isinstance(environment, Environment):
        check_environment(environment)
    return environment


def check_environment(environment: Environment) -> None:
    """Raise `ConfigError` if the results of `reset` and `step` do not have the declared shapes."""

    def first_steps() -> tuple:
        key, k = noise.root(0), environment.num_actions
        action = jnp.zeros(k) if environment.continuous else jnp.zeros((), jnp.int32)
        state, first = environment.reset(key)
        after = environment.step(state, action, key)
        return first, after, environment.action_mask(state)

    try:
        first, after, mask = jax.eval_shape(first_steps)
        shapes = {
            "reset's observation": (first.shape, (environment.observation_size,)),
            "step's observation": (after.observation.shape, (environment.observation_size,)),
            "step's reward": (after.reward.shape, ()),
            "step's terminated": (after.terminated.shape, ()),
            "step's truncated": (after.truncated.shape, ()),
        }
        if mask is not None:
            shapes["action_mask"] = (mask.shape, (environment.num_actions,))
    except RoveError:
        raise
    except Exception as error:
        reason = f"reset or step cannot be compiled: {type(error).__name__}: {error}"
        message = f"environment {environment.name}: {reason}"
        raise ConfigError("environment", environment.name, reason, message) from error
    reasons = [
        f"{field} must have shape {expected}, got {actual}"
        for field, (actual, expected) in shapes.items()
        if actual != expected
    ]
    if mask is not None and mask.dtype != bool:
        reasons.append(f"action_mask must be an array of bool, got {mask.dtype}")
    if mask is not None and environment.continuous:
        reasons.append("action_mask must be None if actions are continuous")
    for reason in reasons:
        message = f"environment {environment.name}: {reason}"
        raise ConfigError("environment", environment.name, reason, message)


def check_observations(name: str, learner: Learner, environment: Task) -> None:
    """Raise `ConfigError` if the agent cannot use the environment's observations."""
    probes = environment.probes() or {"start": environment.reset(noise.root(0))[1]}
    for observation in probes.values():
        try:
            learner.validate(np.asarray(unmasked(observation)))
        except ConfigError as error:
            needed = error.allowed
            message = f"{name} cannot be trained on {environment.name}: it needs {needed}"
            raise ConfigError(
                "environment", environment.name, f"{name} needs {needed}", message
            ) from None


def _fits(environment: Task, agent: str) -> bool:
    """Whether an agent can use the environment's observations."""
    try:
        check_observations(agent, settings_of(agent)().compose(), environment)
    except ConfigError:
        return False
    return True


def default_settings(agent: str, environment: Task, searches: Sequence[str] = SOURCES) -> Settings:
    """Return a named agent's default settings on an environment, with its default network.

    They are those that the searches found or, without a search of the environment, those for new
    tasks. With continuous actions, "auto" is TD3."""
    kind = settings_of(agent)
    if kind is Auto and environment.continuous:
        kind = TD3
    changes = tuned(kind.name, environment.name, searches) or for_new_tasks(kind.name)
    return with_network(with_settings(kind(), changes), environment)
