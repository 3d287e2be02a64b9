"""The compiled programs of the loop on the host, which begin, resume and step an episode."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.core.learner import Learner
from rove.environments.base import Step
from rove.environments.host import HostEnvironment
from rove.training.lane import (
    FAULTS,
    Lane,
    act,
    complete_step,
    drained,
    mark,
    measure,
    start,
)
from rove.training.packing import Packed, pack, unpack


def _begin(
    agent: Learner, environment: HostEnvironment, lane: Lane, columns: Float[Array, " width"]
) -> tuple[Lane, Array]:
    """Take an episode's first observation, and choose the first action."""
    observation = environment.received(columns)
    state = environment.updated(lane.environment, observation)
    seen = mark(environment, state, jnp.zeros_like(lane.seen))
    shown = environment.agent_observation(state, observation)
    lane = lane._replace(environment=state, observation=shown, seen=seen)
    return lane, act(agent, lane)


def _step(
    agent: Learner,
    environment: HostEnvironment,
    lane: Lane,
    action: Array,
    response: Float[Array, " response"],
    learn: bool,
) -> tuple[Lane, Array]:
    """Complete an environment's step, and choose the next action.

    The environment's response is a single vector, so that it is transferred at once: the columns of
    the observation, then the reward, terminated and truncated.
    """
    observation, reward = environment.received(response[:-3]), response[-3]
    ended = response[-2:] > 0.5
    state = environment.updated(lane.environment, observation)
    shown = environment.agent_observation(state, observation)
    lane, _ = complete_step(
        agent, environment, lane, action, Step(state, shown, reward, ended[0], ended[1]), learn
    )
    lane = measure(agent, environment, lane)
    return lane, act(agent, lane)


class Programs(NamedTuple):
    """The compiled functions of an agent and an environment.

    They take the numbers of an agent and an environment as a list, and a lane as a few packed
    arrays: flattening modules, or passing fifty arrays, would take longer than acting. They return
    the action twice: for the next call, and, together with the lane's fault, for the host.
    """

    pack: Callable
    unpack: Callable
    begin: Callable
    resume: Callable
    """Chooses the next action in the middle of an episode."""
    step: Callable


@functools.cache
def programs_for(structure: Any) -> Programs:
    """Return the programs of all agents and environments that have the given tree structure."""

    def unpacked(numbers: list, packed: Packed) -> tuple[Learner, HostEnvironment, Lane]:
        agent, environment = jax.tree.unflatten(structure, numbers)
        shape = jax.eval_shape(lambda: start(agent, environment, jnp.zeros((), jnp.int32)))
        return agent, environment, unpack(packed, shape)

    def results(lane: Lane, action: Array) -> tuple[Packed, Array, Array]:
        # An action that is not finite ends the run here, before the environment receives it.
        invalid = jnp.any(~jnp.isfinite(action)) & (lane.fault == 0)
        lane = lane._replace(fault=jnp.where(invalid, FAULTS.index("action"), lane.fault))
        return pack(lane), action, jnp.append(action.astype(jnp.float32), lane.fault)

    def begin(numbers: list, packed: Packed, observation: Array) -> tuple:
        return results(*_begin(*unpacked(numbers, packed), observation))

    def resume(numbers: list, packed: Packed) -> tuple:
        agent, _, lane = unpacked(numbers, packed)
        return results(lane, act(agent, lane))

    def step(numbers: list, packed: Packed, action: Array, response: Array, learn: bool) -> tuple:
        return results(*_step(*unpacked(numbers, packed), action, response, learn))

    return Programs(
        pack=jax.jit(lambda lane: pack(drained(lane))),
        unpack=jax.jit(lambda numbers, packed: unpacked(numbers, packed)[2]),
        begin=jax.jit(begin, donate_argnums=1),
        resume=jax.jit(resume, donate_argnums=1),
        step=jax.jit(step, donate_argnums=1, static_argnums=4),
    )
