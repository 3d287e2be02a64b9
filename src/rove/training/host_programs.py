"""The compiled programs of the loop on the host, which begin, resume and step an episode."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from rove.core.learner import Learner
from rove.environments.base import Step
from rove.environments.host import HostEnvironment
from rove.training.copies import act_all, at_copy, in_turn
from rove.training.lane import BETWEEN_EPISODES, FAULTS, Lane, mark, start
from rove.training.packing import Packed, divided, merged, pack, unpack
from rove.training.stepping import end_episode, measure, take_step


def _begin(environment: HostEnvironment, columns: Float[Array, " width"], lane: Lane) -> Lane:
    """Take an episode's first observation."""
    observation = environment.received(columns)
    state = environment.updated(lane.environment, observation)
    seen = mark(environment, state, jnp.zeros_like(lane.seen))
    observation = environment.agent_observation(state, observation)
    return lane._replace(environment=state, observation=observation, seen=seen)


def _step(
    agent: Learner,
    environment: HostEnvironment,
    learn: bool,
    lane: Lane,
    taken: tuple[Array, Float[Array, " response"]],
) -> Lane:
    """Complete an environment's step, given the action and the response.

    The environment's response is a single vector, so that it is transferred at once: the columns of
    the observation, then the reward, terminated and truncated.
    """
    action, response = taken
    observation, reward = environment.received(response[:-3]), response[-3]
    ended = response[-2:] > 0.5
    state = environment.updated(lane.environment, observation)
    observation = environment.agent_observation(state, observation)
    after = Step(state, observation, reward, ended[0], ended[1])
    return take_step(agent, environment, lane, action, after, learn)


class Packs(NamedTuple):
    """A lane, packed into few arrays, in two parts."""

    hot: Packed
    """What a step changes."""
    cold: Packed
    """What only the end of an episode changes: `BETWEEN_EPISODES`."""


class Programs(NamedTuple):
    """The compiled functions of an agent and an environment.

    They take the numbers of an agent and an environment as a list, and a lane as a few packed
    arrays: flattening modules, or passing fifty arrays, would take longer than acting. Those that
    act return the actions of all copies of the environment twice: for the next call, and, together
    with the lane's fault, for the host. Those that begin or end an episode take the copy's index.
    """

    pack: Callable
    unpack: Callable
    """Like all others, it takes over the large arrays that it is given, so that the replay buffer
    is never copied."""
    streak: Callable
    """Returns `Lane.streak`."""
    begin: Callable
    resume: Callable
    """Chooses the next actions in the middle of an episode."""
    step: Callable
    """Completes a round of steps, one of each copy, and chooses the next actions."""
    end: Callable
    """Ends an episode: appends it to the log, and measures if that is due."""


@cache
def programs_for(structure: Any) -> Programs:
    """Return the programs of all agents and environments that have the given tree structure."""

    def parts(numbers: list) -> tuple[Learner, HostEnvironment, Lane, tuple]:
        """Return the agent, the environment, and the shapes of the two parts of a lane."""
        agent, environment = jax.tree.unflatten(structure, numbers)
        shape = jax.eval_shape(lambda: start(agent, environment, jnp.zeros((), jnp.int32)))
        return agent, environment, *_split(shape)

    def unpacked(numbers: list, hot: Packed) -> tuple[Learner, HostEnvironment, Lane]:
        agent, environment, shape, _ = parts(numbers)
        return agent, environment, unpack(hot, shape)

    def whole(numbers: list, packs: Packs) -> tuple[Learner, HostEnvironment, Lane]:
        agent, environment, shape, between = parts(numbers)
        cold: dict[str, Any] = dict(zip(BETWEEN_EPISODES, unpack(packs.cold, between), strict=True))
        return agent, environment, unpack(packs.hot, shape)._replace(**cold)

    def packed(lane: Lane) -> Packs:
        return Packs(*map(pack, _split(lane)))

    def acting(agent: Learner, lane: Lane) -> tuple[Packed, Array, Array]:
        actions = act_all(agent, lane)
        # An action that is not finite ends the run here, before the environment receives it.
        invalid = jnp.any(~jnp.isfinite(actions)) & (lane.fault == 0)
        lane = lane._replace(fault=jnp.where(invalid, FAULTS.index("action"), lane.fault))
        return pack(lane), actions, jnp.append(actions.astype(jnp.float32), lane.fault)

    def begin(numbers: list, hot: Packed, copy: Array, observation: Array) -> tuple:
        agent, environment, lane = unpacked(numbers, hot)
        return acting(agent, at_copy(partial(_begin, environment, observation), lane, copy))

    def resume(numbers: list, hot: Packed) -> tuple:
        agent, _, lane = unpacked(numbers, hot)
        return acting(agent, lane)

    def step(numbers: list, hot: Packed, actions: Array, responses: Array, learn: bool) -> tuple:
        agent, environment, lane = unpacked(numbers, hot)
        complete = partial(_step, agent, environment, learn)
        return acting(agent, in_turn(complete, lane, (actions, responses)))

    def streak(numbers: list, cold: Packed) -> Array:
        return unpack(cold, parts(numbers)[3])[BETWEEN_EPISODES.index("streak")]

    def end(numbers: list, packs: Packs, copy: Array, terminated: Array) -> Packs:
        agent, environment, lane = whole(numbers, packs)

        def ended(lane: Lane) -> Lane:
            return measure(agent, environment, end_episode(environment, lane, terminated))

        return packed(at_copy(ended, lane, copy))

    @partial(jax.jit, static_argnums=2, donate_argnums=0)
    def merge(large: list, small: list, structure: Any) -> Packs:
        return packed(merged(large, small, structure))

    def pack_lane(lane: Lane) -> Packs:
        return merge(*divided(lane))

    @partial(jax.jit, donate_argnums=1)
    def split(numbers: list, large: tuple, small: tuple) -> Lane:
        return whole(numbers, Packs(*map(Packed, small, large)))[2]

    def unpack_lane(numbers: list, packs: Packs) -> Lane:
        return split(numbers, *zip(*((part.large, part.small) for part in packs), strict=True))

    return Programs(
        pack=pack_lane,
        unpack=unpack_lane,
        streak=jax.jit(streak),
        begin=jax.jit(begin, donate_argnums=1),
        resume=jax.jit(resume, donate_argnums=1),
        step=jax.jit(step, donate_argnums=1, static_argnums=4),
        end=jax.jit(end, donate_argnums=1),
    )


def _split(lane: Lane) -> tuple[Lane, tuple]:
    """Return a lane without `BETWEEN_EPISODES`, and these."""
    between = tuple(getattr(lane, field) for field in BETWEEN_EPISODES)
    without: dict[str, Any] = dict.fromkeys(BETWEEN_EPISODES, ())
    return lane._replace(**without), between
