"""The compiled training loop: environment, replay, acting and learning in one program."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise
from rove.environments.base import Environment, State
from rove.learner import AgentState, Beliefs, Learner
from rove.noise import Key
from rove.replay import Replay, Transition
from rove.statistics import TOLERANCE

# What a lane's key is folded with for its streams.
_INIT, _AGENT, _ENVIRONMENT, _EVALUATION, _DIAGNOSTICS = range(5)

LOG_CAPACITY = 256
SNAPSHOTS, LOOKS = 16, 5
LONGEST_EVALUATION = 100_000
UNLIMITED = 2**31 - 1
FAULTS = ("", "observation", "reward", "loss")


class Log(NamedTuple):
    """Episodes that ended since the host last looked."""

    count: Int[Array, ""]
    returns: Float[Array, " log"]
    length: Int[Array, " log"]
    step: Int[Array, " log"]
    terminated: Bool[Array, " log"]
    spread: Float[Array, " log"]
    """Standard deviation of Q_θ over θ ~ q_φ, mean over the probed states and actions."""
    return_spread: Float[Array, " log"]
    """Standard deviation of Z, the same mean."""
    coverage: Int[Array, " log"]
    """Cells visited so far."""


class Snapshots(NamedTuple):
    """Beliefs about the probed states after episodes 1, 2, 4, 8, …"""

    values: Float[Array, "slots draws probes actions"]
    """Q_θ for some θ ~ q_φ."""
    outputs: Float[Array, "slots probes outputs"]
    """The parameters of Z on the posterior mean."""


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
    streak: Int[Array, ""]
    """How many episodes in a row, up to the last, were optimal."""
    seen: Bool[Array, " bins"]
    """Cells visited in the episode under way."""
    visits: Int[Array, " bins"]
    """Episodes in which each cell was visited."""
    loss: Float[Array, ""]
    fault: Int[Array, ""]
    """Index into FAULTS of the first number that was not finite."""
    spread: Float[Array, ""]
    """The last that was measured, as in the log, and the next as well."""
    return_spread: Float[Array, ""]
    log: Log
    snapshots: Snapshots


def start(agent: Learner, environment: Environment, seed: Int[Array, ""]) -> Lane:
    """A lane at step 0."""
    key = noise.root(seed)
    state, observation = environment.reset(noise.fold(key, _ENVIRONMENT, 0, 0))
    agent_state = agent.init(
        environment.observation_size, environment.num_actions, noise.fold(key, _INIT)
    )
    zero, none = jnp.zeros((), jnp.int32), jnp.zeros(LOG_CAPACITY, jnp.int32)
    nought = jnp.zeros(LOG_CAPACITY)
    beliefs = jax.eval_shape(lambda: _beliefs(agent, environment, agent_state, key))
    return Lane(
        seed=seed,
        agent=agent_state,
        environment=state,
        observation=observation,
        step=zero,
        episode=zero,
        returns=jnp.zeros(()),
        length=zero,
        streak=zero,
        seen=_mark(environment, state, jnp.zeros(environment.bins, bool)),
        visits=jnp.zeros(environment.bins, jnp.int32),
        loss=jnp.zeros(()),
        fault=zero,
        spread=jnp.zeros(()),
        return_spread=jnp.zeros(()),
        log=Log(zero, nought, none, none, none.astype(bool), nought, nought, none),
        snapshots=Snapshots(*(jnp.zeros((SNAPSHOTS, *leaf.shape)) for leaf in beliefs[:2])),
    )


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
    lane = _drained(lane)
    for goes_on, learn in _phases(agent, last_step, last_episode, last_streak):
        lane = lax.while_loop(goes_on, partial(_step, agent, environment, learn=learn), lane)
    return lane


def run_together(
    agents: Learner,
    environments: Environment,
    lanes: Lane,
    last_step: Int[Array, " lanes"],
    last_episode: Int[Array, " lanes"],
    last_streak: Int[Array, " lanes"],
) -> Lane:
    """`run` for lanes, with their agents and environments, stacked along a first axis, in
    lockstep: for accelerators. A lane that is done stands still until the others are."""
    lanes = jax.vmap(_drained)(lanes)

    def going(phase: int, lanes: Lane) -> Bool[Array, " lanes"]:
        def one(agent: Learner, lane: Lane, *last: Array) -> Array:
            return _phases(agent, *last)[phase][0](lane)

        return jax.vmap(one)(agents, lanes, last_step, last_episode, last_streak)

    def step(phase: int, learn: bool, lanes: Lane) -> Lane:
        one = partial(_step_where, learn=learn)
        return jax.vmap(one)(going(phase, lanes), agents, environments, lanes)

    for phase, learn in enumerate((False, True)):
        any_going = lambda lanes, phase=phase: jnp.any(going(phase, lanes))  # noqa: E731
        lanes = lax.while_loop(any_going, partial(step, phase, learn), lanes)
    return lanes


def _phases(
    agent: Learner, last_step: Array, last_episode: Array, last_streak: int | Array
) -> tuple[tuple[Callable[[Lane], Array], bool], ...]:
    """First act without learning, then with: while which condition, and whether to learn."""

    def unfinished(lane: Lane) -> Array:
        return (
            (lane.step < last_step)
            & (lane.episode < last_episode)
            & (lane.streak < last_streak)
            & (lane.log.count < LOG_CAPACITY)
            & (lane.fault == 0)
        )

    def warming_up(lane: Lane) -> Array:
        return unfinished(lane) & (lane.step + 1 < agent.learning_starts)

    return (warming_up, False), (unfinished, True)


def _drained(lane: Lane) -> Lane:
    return lane._replace(log=lane.log._replace(count=jnp.zeros((), jnp.int32)))


def _step_where(
    active: Bool[Array, ""], agent: Learner, environment: Environment, lane: Lane, learn: bool
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
    agent: Learner, environment: Environment, state: AgentState, seed: Int[Array, ""]
) -> tuple[Float[Array, ""], Int[Array, ""], Bool[Array, ""]]:
    """Return, length and `terminated` of one episode of the greedy policy, which learns nothing
    (of its first LONGEST_EVALUATION steps, should it never end)."""
    key = noise.fold(noise.root(seed), _EVALUATION)
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
    visits = lane.visits + (seen & done)
    spread, return_spread, snapshots = _look(agent, environment, lane, agent_state, done)
    coverage = jnp.sum(visits > 0)
    score, optimum = environment.score(returns, length, after.terminated), environment.optimum
    optimal = optimum is not None and score >= optimum - TOLERANCE
    row = (returns, length, step, after.terminated, spread, return_spread, coverage)
    log = _append(lane.log, done, row)

    fresh_state, fresh_observation = environment.reset(noise.fold(k_environment, 0))
    agent_state = agent.redraw(agent_state, done, key)
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
        streak=jnp.where(done, jnp.where(optimal, lane.streak + 1, 0), lane.streak),
        seen=jnp.where(done, fresh_seen, seen),
        visits=visits,
        loss=loss,
        fault=jnp.select(bad, [1, 2, 3], lane.fault),
        spread=spread,
        return_spread=return_spread,
        log=log,
        snapshots=snapshots,
    )


def _beliefs(agent: Learner, environment: Environment, state: AgentState, key: Key) -> Beliefs:
    """About the probed states, or, where none are named, about a first state."""
    probes = environment.probes() or {"start": environment.reset(noise.root(0))[1]}
    return agent.beliefs(state, jnp.stack(list(probes.values())), key)


def _look(
    agent: Learner, environment: Environment, lane: Lane, state: AgentState, done: Array
) -> tuple[Array, Array, Snapshots]:
    """Where an episode ends: how far q_φ and Z spread, and, if it is the 1st, 2nd, 4th, …, a
    snapshot. From episode 2ᵏ to 2ᵏ⁺¹ it looks 2⁵ times at the most, and what was seen last stands
    in between."""

    def look() -> tuple[Array, Array, Snapshots]:
        key = noise.fold(noise.root(lane.seed), _DIAGNOSTICS, lane.episode)
        values, outputs, stds = _beliefs(agent, environment, state, key)
        due = (episode == 1 << octave) & (octave < SNAPSHOTS)
        snapshots = jax.tree.map(
            lambda old, new: jnp.where(due, old.at[octave].set(new), old),
            lane.snapshots,
            Snapshots(values, outputs),
        )
        return jnp.mean(jnp.std(values, axis=0)), jnp.mean(stds), snapshots

    episode = lane.episode + 1
    octave = 31 - lax.clz(episode)
    often = 1 << jnp.maximum(octave - LOOKS, 0)
    last = lane.spread, lane.return_spread, lane.snapshots
    return lax.cond(done & (episode % often == 0), look, lambda: last)


def _mark(environment: Environment, state: State, seen: Array) -> Array:
    return seen.at[environment.bin(state)].set(True) if environment.bins else seen


def _append(log: Log, done: Array, row: tuple[Array, ...]) -> Log:
    """Write an episode's row where it ended; otherwise write it where nobody reads it yet."""
    written = [
        lax.dynamic_update_index_in_dim(column, value.astype(column.dtype), log.count, 0)
        for column, value in zip(log[1:], row, strict=True)
    ]
    return Log(log.count + done, *written)
