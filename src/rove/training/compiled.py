"""The compiled training loop: environment, replay, acting and learning in one program."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise
from rove.algorithm import Agent, AgentState
from rove.environments.base import Environment, State
from rove.replay import Replay, Transition

# What a lane's key is folded with for its streams.
_INIT, _FIRST_EPISODE, _AGENT, _ENVIRONMENT, _EVALUATION = range(5)

LOG_CAPACITY = 256
LONGEST_EVALUATION = 100_000
FAULTS = ("", "observation", "reward", "loss")


class Log(NamedTuple):
    """Episodes that ended since the host last looked."""

    count: Int[Array, ""]
    returns: Float[Array, " log"]
    length: Int[Array, " log"]
    step: Int[Array, " log"]
    terminated: Bool[Array, " log"]


class Lane(NamedTuple):
    """One (agent, environment, seed) in flight: all that its future depends on."""

    seed: Int[Array, ""]
    agent: AgentState
    environment: State
    observation: Float[Array, " features"]
    step: Int[Array, ""]
    episode: Int[Array, ""]
    returns: Float[Array, ""]
    """Return of the episode under way."""
    length: Int[Array, ""]
    seen: Bool[Array, " bins"]
    """Cells visited in the episode under way."""
    visits: Int[Array, " bins"]
    """Episodes in which each cell was visited."""
    loss: Float[Array, ""]
    fault: Int[Array, ""]
    """Index into FAULTS of the first number that was not finite."""
    log: Log


def start(agent: Agent, environment: Environment, seed: Int[Array, ""]) -> Lane:
    """A lane at step 0."""
    key = noise.root(seed)
    state, observation = environment.reset(noise.fold(key, _ENVIRONMENT, 0, 0))
    agent_state = agent.init(
        environment.observation_size, environment.num_actions, noise.fold(key, _INIT)
    )
    agent_state = agent.begin_episode(agent_state, jnp.array(True), noise.fold(key, _FIRST_EPISODE))
    zero, none = jnp.zeros((), jnp.int32), jnp.zeros(LOG_CAPACITY, jnp.int32)
    return Lane(
        seed=seed,
        agent=agent_state,
        environment=state,
        observation=observation,
        step=zero,
        episode=zero,
        returns=jnp.zeros(()),
        length=zero,
        seen=_mark(environment, state, jnp.zeros(environment.bins, bool)),
        visits=jnp.zeros(environment.bins, jnp.int32),
        loss=jnp.zeros(()),
        fault=zero,
        log=Log(zero, jnp.zeros(LOG_CAPACITY), none, none, none.astype(bool)),
    )


def run(
    agent: Agent,
    environment: Environment,
    lane: Lane,
    last_step: Int[Array, ""],
    last_episode: Int[Array, ""],
) -> Lane:
    """Go on until a step, an episode, a full log or a fault. Where a run is cut into such
    chunks has no effect on its result."""
    lane = _drained(lane)
    for goes_on, learn in _phases(agent, last_step, last_episode):
        lane = lax.while_loop(goes_on, partial(_step, agent, environment, learn=learn), lane)
    return lane


def run_together(
    agents: Agent,
    environments: Environment,
    lanes: Lane,
    last_step: Int[Array, " lanes"],
    last_episode: Int[Array, " lanes"],
) -> Lane:
    """`run` for lanes, with their agents and environments, stacked along a first axis, in
    lockstep: for accelerators. A lane that is done stands still until the others are."""
    lanes = jax.vmap(_drained)(lanes)

    def going(phase: int, lanes: Lane) -> Bool[Array, " lanes"]:
        def one(agent: Agent, lane: Lane, last_step: Array, last_episode: Array) -> Array:
            return _phases(agent, last_step, last_episode)[phase][0](lane)

        return jax.vmap(one)(agents, lanes, last_step, last_episode)

    def step(phase: int, learn: bool, lanes: Lane) -> Lane:
        one = partial(_step_where, learn=learn)
        return jax.vmap(one)(going(phase, lanes), agents, environments, lanes)

    for phase, learn in enumerate((False, True)):
        any_going = lambda lanes, phase=phase: jnp.any(going(phase, lanes))  # noqa: E731
        lanes = lax.while_loop(any_going, partial(step, phase, learn), lanes)
    return lanes


def _phases(
    agent: Agent, last_step: Array, last_episode: Array
) -> tuple[tuple[Callable[[Lane], Array], bool], ...]:
    """First act without learning, then with: while which condition, and whether to learn."""

    def unfinished(lane: Lane) -> Array:
        return (
            (lane.step < last_step)
            & (lane.episode < last_episode)
            & (lane.log.count < LOG_CAPACITY)
            & (lane.fault == 0)
        )

    def warming_up(lane: Lane) -> Array:
        return unfinished(lane) & (lane.step + 1 < agent.learning_starts)

    return (warming_up, False), (unfinished, True)


def _drained(lane: Lane) -> Lane:
    return lane._replace(log=lane.log._replace(count=jnp.zeros((), jnp.int32)))


def _step_where(
    active: Bool[Array, ""], agent: Agent, environment: Environment, lane: Lane, learn: bool
) -> Lane:
    """A step where `active`; elsewhere the lane as it was."""
    after = _step(agent, environment, lane, learn=learn, where=active)
    rows = after.agent.replay.rows  # these were left alone by the step itself
    after = jax.tree.map(lambda new, old: jnp.where(active, new, old), _bare(after), _bare(lane))
    replay = Replay(rows, after.agent.replay[1])
    return after._replace(agent=after.agent._replace(replay=replay))


def _bare(lane: Lane) -> Any:
    """A lane without its replay's rows."""
    replay: Any = (None, lane.agent.replay.added)
    return lane._replace(agent=lane.agent._replace(replay=replay))


def evaluate(
    agent: Agent, environment: Environment, state: AgentState, seed: Int[Array, ""]
) -> Float[Array, ""]:
    """The return of one episode of the greedy policy, which learns nothing (of its first
    LONGEST_EVALUATION steps, should it never end)."""
    key = noise.fold(noise.root(seed), _EVALUATION)
    first, observation = environment.reset(noise.fold(key, 0))

    def step(carry: tuple) -> tuple:
        world, observation, returns, t, _ = carry
        action = agent.greedy(state, observation)
        after = environment.step(world, action, noise.fold(key, t))
        done = after.terminated | after.truncated
        return after.state, after.observation, returns + after.reward, t + 1, done

    carry = (first, observation, jnp.zeros(()), jnp.ones((), jnp.int32), jnp.zeros((), bool))
    return lax.while_loop(lambda c: ~c[-1] & (c[-2] <= LONGEST_EVALUATION), step, carry)[2]


def _step(
    agent: Agent,
    environment: Environment,
    lane: Lane,
    learn: bool,
    where: bool | Bool[Array, ""] = True,
) -> Lane:
    """One pass through the body of Algorithm 2's inner loop."""
    key = noise.fold(noise.root(lane.seed), _AGENT, lane.step)
    k_environment = noise.fold(noise.root(lane.seed), _ENVIRONMENT, lane.step + 1)

    action = agent.act(lane.agent, lane.observation, key)
    after = environment.step(lane.environment, action, noise.fold(k_environment, 1))
    transition = Transition(
        lane.observation, action, after.reward, after.observation, after.terminated
    )
    agent_state, loss = agent.observe(lane.agent, transition, where), lane.loss
    if learn:
        agent_state, loss = agent.learn(agent_state, key)

    done = after.terminated | after.truncated
    returns, length, step = lane.returns + after.reward, lane.length + 1, lane.step + 1
    seen = _mark(environment, after.state, lane.seen)
    log = _append(lane.log, done, Log(jnp.ones(()), returns, length, step, after.terminated))
    visits = lane.visits + (seen & done)

    fresh_state, fresh_observation = environment.reset(noise.fold(k_environment, 0))
    agent_state = agent.begin_episode(agent_state, done, key)
    state, observation = jax.tree.map(
        lambda new, old: jnp.where(done, new, old),
        (fresh_state, fresh_observation),
        (after.state, after.observation),
    )
    fresh_seen = _mark(environment, fresh_state, jnp.zeros_like(seen))
    both = jnp.stack([lane.observation, after.observation])  # the first may come from a reset
    bad = [jnp.any(~jnp.isfinite(x)) for x in (both, after.reward, loss)]
    return Lane(
        seed=lane.seed,
        agent=agent_state,
        environment=state,
        observation=observation,
        step=step,
        episode=lane.episode + done,
        returns=jnp.where(done, 0.0, returns),
        length=jnp.where(done, 0, length),
        seen=jnp.where(done, fresh_seen, seen),
        visits=visits,
        loss=loss,
        fault=jnp.select(bad, [1, 2, 3], lane.fault),
        log=log,
    )


def _mark(environment: Environment, state: State, seen: Array) -> Array:
    return seen.at[environment.bin(state)].set(True) if environment.bins else seen


def _append(log: Log, done: Array, row: Log) -> Log:
    """Write an episode's row where it ended; otherwise write it where nobody reads it yet."""
    written = [
        lax.dynamic_update_index_in_dim(column, value.astype(column.dtype), log.count, 0)
        for column, value in zip(log[1:], row[1:], strict=True)
    ]
    return Log(log.count + done, *written)
