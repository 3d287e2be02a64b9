"""The compiled training loop: environment, replay buffer, acting and learning in one program."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Int

from rove.core.learner import Learner
from rove.environments.base import Environment, with_action_mask
from rove.parts import noise, replay
from rove.training.lane import (
    ENVIRONMENT,
    LOG_CAPACITY,
    UNLIMITED,
    Lane,
    act,
    mark,
)
from rove.training.stepping import complete_step, drained, measure


def run(
    agent: Learner,
    environment: Environment,
    lane: Lane,
    last_step: Int[Array, ""],
    last_episode: Int[Array, ""],
    last_streak: int | Int[Array, ""] = UNLIMITED,
) -> Lane:
    """Train until a limit is reached, the log is full, or a number is not finite.

    The limits are a step, an episode, and a number of optimal episodes in a row. How a run is cut
    into such chunks has no effect on its results.
    """
    unfinished, phases = _phases(agent, last_step, last_episode, last_streak)

    def until_measured(lane: Lane) -> Lane:
        for condition, learn in phases:
            lane = lax.while_loop(condition, partial(_step, agent, environment, learn=learn), lane)
        return measure(agent, environment, lane)

    return lax.while_loop(unfinished, until_measured, drained(lane))


def run_together(
    agents: Learner,
    environments: Environment,
    lanes: Lane,
    last_step: Int[Array, " lanes"],
    last_episode: Int[Array, " lanes"],
    last_streak: Int[Array, " lanes"],
) -> Lane:
    """Run several lanes in lockstep, for accelerators.

    Lanes, agents and environments are stacked along a first axis. A lane that is finished, or is
    due to be measured, waits for the others.
    """

    def where(condition: Callable[..., Array], lanes: Lane) -> Bool[Array, " lanes"]:
        return jax.vmap(condition)(agents, lanes, last_step, last_episode, last_streak)

    def unfinished(agent: Learner, lane: Lane, *last: Array) -> Array:
        return _phases(agent, *last)[0](lane)

    def in_phase(phase: int, agent: Learner, lane: Lane, *last: Array) -> Array:
        return _phases(agent, *last)[1][phase][0](lane)

    def step(phase: int, learn: bool, lanes: Lane) -> Lane:
        active = where(partial(in_phase, phase), lanes)
        return jax.vmap(partial(_step_where, learn=learn))(active, agents, environments, lanes)

    def until_measured(lanes: Lane) -> Lane:
        for phase, learn in enumerate((False, True)):
            any_active = lambda lanes, at=phase: jnp.any(where(partial(in_phase, at), lanes))  # noqa: E731
            lanes = lax.while_loop(any_active, partial(step, phase, learn), lanes)
        return jax.vmap(measure)(agents, environments, lanes)

    lanes = jax.vmap(drained)(lanes)
    return lax.while_loop(lambda lanes: jnp.any(where(unfinished, lanes)), until_measured, lanes)


Condition: TypeAlias = Callable[[Lane], Array]


def _phases(
    agent: Learner, last_step: Array, last_episode: Array, last_streak: int | Array
) -> tuple[Condition, tuple[tuple[Condition, bool], ...]]:
    """Return the condition under which a lane is unfinished, and its two phases.

    A lane first acts without learning and then with learning, until it is due to be measured. A
    phase is the condition under which it continues, and whether the lane learns.
    """

    def unfinished(lane: Lane) -> Array:
        return (
            (lane.step < last_step)
            & (lane.episode < last_episode)
            & (lane.streak < last_streak)
            & (lane.log.count < LOG_CAPACITY)
            & (lane.fault == 0)
        )

    def learning(lane: Lane) -> Array:
        return unfinished(lane) & ~lane.due

    def warming_up(lane: Lane) -> Array:
        return learning(lane) & (lane.step + 1 < agent.learning_starts)

    return unfinished, ((warming_up, False), (learning, True))


def _step_where(
    active: Bool[Array, ""], agent: Learner, environment: Environment, lane: Lane, learn: bool
) -> Lane:
    """Take a step if `active`; otherwise return the lane unchanged."""
    after = _step(agent, environment, lane, learn=learn, where=active)
    buffer = after.agent.replay  # the step itself leaves its rows unchanged if not active
    after = jax.tree.map(
        lambda new, old: jnp.where(active, new, old), _without_rows(after), _without_rows(lane)
    )
    buffer = replay.with_rows(after.agent.replay, buffer)
    return after._replace(agent=after.agent._replace(replay=buffer))


def _without_rows(lane: Lane) -> Any:
    """Return a lane without the rows of its replay buffer."""
    return lane._replace(agent=lane.agent._replace(replay=replay.with_rows(lane.agent.replay)))


def _step(
    agent: Learner,
    environment: Environment,
    lane: Lane,
    learn: bool,
    where: bool | Bool[Array, ""] = True,
) -> Lane:
    """Execute the body of Algorithm 2's inner loop once."""
    k_environment = noise.fold(noise.root(lane.seed), ENVIRONMENT, lane.step + 1)
    action = act(agent, lane)
    after = environment.step(lane.environment, action, noise.fold(k_environment, 1))
    after = after._replace(
        observation=with_action_mask(environment, after.state, after.observation)
    )
    lane, done = complete_step(agent, environment, lane, action, after, learn, where)

    state, observation = environment.reset(noise.fold(k_environment, 0))
    observation = with_action_mask(environment, state, observation)
    seen = mark(environment, state, jnp.zeros_like(lane.seen))
    state, observation, seen = jax.tree.map(
        lambda new, old: jnp.where(done, new, old),
        (state, observation, seen),
        (lane.environment, lane.observation, lane.seen),
    )
    return lane._replace(environment=state, observation=observation, seen=seen)
