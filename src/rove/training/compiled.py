"""The compiled training loop: environment, replay, acting and learning in one program."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise
from rove.core.learner import AgentState, Learner
from rove.environments.base import Environment
from rove.training.lane import (
    ENVIRONMENT,
    EVALUATION,
    LOG_CAPACITY,
    UNLIMITED,
    Lane,
    act,
    drained,
    follow,
    look,
    mark,
)

LONGEST_EVALUATION = 100_000


def run(
    agent: Learner,
    environment: Environment,
    lane: Lane,
    last_step: Int[Array, ""],
    last_episode: Int[Array, ""],
    last_streak: int | Int[Array, ""] = UNLIMITED,
) -> Lane:
    """Go on until a step, an episode, so many optimal episodes in a row, a full log or a fault.
    Where a run is cut into such chunks has no effect on its result."""
    unfinished, phases = _phases(agent, last_step, last_episode, last_streak)

    def until_a_look(lane: Lane) -> Lane:
        for goes_on, learn in phases:
            lane = lax.while_loop(goes_on, partial(_step, agent, environment, learn=learn), lane)
        return look(agent, environment, lane)

    return lax.while_loop(unfinished, until_a_look, drained(lane))


def run_together(
    agents: Learner,
    environments: Environment,
    lanes: Lane,
    last_step: Int[Array, " lanes"],
    last_episode: Int[Array, " lanes"],
    last_streak: Int[Array, " lanes"],
) -> Lane:
    """`run` for lanes, with their agents and environments, stacked along a first axis, in
    lockstep: for accelerators. A lane that is done, or waits to look, stands still until the
    others are or do."""

    def where(condition: Callable[..., Array], lanes: Lane) -> Bool[Array, " lanes"]:
        return jax.vmap(condition)(agents, lanes, last_step, last_episode, last_streak)

    def unfinished(agent: Learner, lane: Lane, *last: Array) -> Array:
        return _phases(agent, *last)[0](lane)

    def goes_on(phase: int, agent: Learner, lane: Lane, *last: Array) -> Array:
        return _phases(agent, *last)[1][phase][0](lane)

    def step(phase: int, learn: bool, lanes: Lane) -> Lane:
        active = where(partial(goes_on, phase), lanes)
        return jax.vmap(partial(_step_where, learn=learn))(active, agents, environments, lanes)

    def until_a_look(lanes: Lane) -> Lane:
        for phase, learn in enumerate((False, True)):
            any_goes_on = lambda lanes, at=phase: jnp.any(where(partial(goes_on, at), lanes))  # noqa: E731
            lanes = lax.while_loop(any_goes_on, partial(step, phase, learn), lanes)
        return jax.vmap(look)(agents, environments, lanes)

    lanes = jax.vmap(drained)(lanes)
    return lax.while_loop(lambda lanes: jnp.any(where(unfinished, lanes)), until_a_look, lanes)


Condition: TypeAlias = Callable[[Lane], Array]


def _phases(
    agent: Learner, last_step: Array, last_episode: Array, last_streak: int | Array
) -> tuple[Condition, tuple[tuple[Condition, bool], ...]]:
    """Whether there is anything to do; and first act without learning, then with, up to a look:
    while which condition, and whether to learn."""

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
    """A step where `active`; elsewhere the lane as it was."""
    after = _step(agent, environment, lane, learn=learn, where=active)
    rows = after.agent.replay.rows  # these were left alone by the step itself
    after = jax.tree.map(lambda new, old: jnp.where(active, new, old), _bare(after), _bare(lane))
    memory = after.agent.replay._replace(rows=rows)
    return after._replace(agent=after.agent._replace(replay=memory))


def _bare(lane: Lane) -> Any:
    """A lane without its replay's rows."""
    memory: Any = lane.agent.replay
    memory = memory._replace(rows=None)
    return lane._replace(agent=lane.agent._replace(replay=memory))


def evaluate(
    agent: Learner, environment: Environment, state: AgentState, seed: Int[Array, ""]
) -> tuple[Float[Array, ""], Int[Array, ""], Bool[Array, ""]]:
    """Return, length and `terminated` of one episode of the greedy policy, which learns nothing
    (of its first LONGEST_EVALUATION steps, should it never end)."""
    key = noise.fold(noise.root(seed), EVALUATION)
    first, observation = environment.reset(noise.fold(key, 0))

    def step(carry: tuple) -> tuple:
        world, observation, (returns, length, _), _ = carry
        action = agent.greedy(state, observation)
        after = environment.step(world, action, noise.fold(key, length + 1))
        played = returns + after.reward, length + 1, after.terminated
        return after.state, after.observation, played, after.terminated | after.truncated

    def goes_on(carry: tuple) -> Array:
        return ~carry[3] & (carry[2][1] < LONGEST_EVALUATION)

    no = jnp.zeros((), bool)
    carry = (first, observation, (jnp.zeros(()), jnp.zeros((), jnp.int32), no), no)
    return lax.while_loop(goes_on, step, carry)[2]


def _step(
    agent: Learner,
    environment: Environment,
    lane: Lane,
    learn: bool,
    where: bool | Bool[Array, ""] = True,
) -> Lane:
    """One pass through the body of Algorithm 2's inner loop."""
    k_environment = noise.fold(noise.root(lane.seed), ENVIRONMENT, lane.step + 1)
    action = act(agent, lane)
    after = environment.step(lane.environment, action, noise.fold(k_environment, 1))
    lane, done = follow(agent, environment, lane, action, after, learn, where)

    state, observation = environment.reset(noise.fold(k_environment, 0))
    seen = mark(environment, state, jnp.zeros_like(lane.seen))
    state, observation, seen = jax.tree.map(
        lambda new, old: jnp.where(done, new, old),
        (state, observation, seen),
        (lane.environment, lane.observation, lane.seen),
    )
    return lane._replace(environment=state, observation=observation, seen=seen)
