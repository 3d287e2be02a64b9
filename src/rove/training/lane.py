"""A lane: what it is made of, how it starts, and what follows a step of its environment. Both
training loops, compiled and on the host, are made of these."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove import noise
from rove.core.learner import AgentState, Beliefs, Learner
from rove.environments.base import State, Step, Task
from rove.noise import Key
from rove.replay import Transition
from rove.statistics import TOLERANCE

# What a lane's key is folded with for its streams.
INIT, AGENT, ENVIRONMENT, EVALUATION, DIAGNOSTICS = range(5)

LOG_CAPACITY = 256
SNAPSHOTS, LOOKS = 16, 5
UNLIMITED = 2**31 - 1
FAULTS = ("", "observation", "action", "reward", "loss")


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
    due: Bool[Array, ""]
    """Whether to `look` now."""
    spread: Float[Array, ""]
    """The last that was measured, as in the log, and the next as well."""
    return_spread: Float[Array, ""]
    log: Log
    snapshots: Snapshots


def start(agent: Learner, environment: Task, seed: Int[Array, ""]) -> Lane:
    """A lane at step 0."""
    key = noise.root(seed)
    state, observation = environment.reset(noise.fold(key, ENVIRONMENT, 0, 0))
    agent_state = agent.init(
        environment.observation_size, environment.num_actions, noise.fold(key, INIT)
    )
    zero, none = jnp.zeros((), jnp.int32), jnp.zeros(LOG_CAPACITY, jnp.int32)
    nought = jnp.zeros(LOG_CAPACITY)
    beliefs = jax.eval_shape(_beliefs, agent, environment, agent_state, state, key)
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
        seen=mark(environment, state, jnp.zeros(environment.bins, bool)),
        visits=jnp.zeros(environment.bins, jnp.int32),
        loss=jnp.zeros(()),
        fault=zero,
        due=jnp.zeros((), bool),
        spread=jnp.zeros(()),
        return_spread=jnp.zeros(()),
        log=Log(zero, nought, none, none, none.astype(bool), nought, nought, none),
        snapshots=Snapshots(*(jnp.zeros((SNAPSHOTS, *leaf.shape)) for leaf in beliefs[:2])),
    )


def step_key(lane: Lane) -> Key:
    """The key of what an agent draws for a step: to act, and, once it has, to learn."""
    return noise.fold(noise.root(lane.seed), AGENT, lane.step)


def act(agent: Learner, lane: Lane) -> Array:
    """2.4: the action for the observation at hand."""
    return agent.act(lane.agent, lane.observation, step_key(lane))


def follow(
    agent: Learner,
    environment: Task,
    lane: Lane,
    action: Array,
    after: Step,
    learn: bool,
    where: bool | Bool[Array, ""] = True,
) -> tuple[Lane, Bool[Array, ""]]:
    """What follows an environment's step: store, learn, write down; and whether the episode
    ended, after which the environment has to be reset (the observation is its final one). Then
    it may be time to `look`."""
    key = step_key(lane)
    transition = Transition(
        lane.observation, action, after.reward, after.observation, after.terminated
    )
    agent_state, loss = agent.observe(lane.agent, transition, where), lane.loss
    if learn:
        agent_state, loss = agent.learn(agent_state, key)

    done = after.terminated | after.truncated
    returns, length, step = lane.returns + after.reward, lane.length + 1, lane.step + 1
    seen = mark(environment, after.state, lane.seen)
    visits = lane.visits + (seen & done)
    row = (returns, length, step, after.terminated, lane.spread, lane.return_spread)
    log = _append(lane.log, done, (*row, jnp.sum(visits > 0)))
    score, optimum = environment.score(returns, length, after.terminated), environment.optimum
    optimal = optimum is not None and score >= optimum - TOLERANCE
    episode = lane.episode + done
    often = 1 << jnp.maximum(_octave(episode) - LOOKS, 0)

    # In the order in which one causes the next: the first observation may come from a reset.
    met = lane.observation, action, after.observation, after.reward, loss
    bad = [jnp.any(~jnp.isfinite(x)) for x in met]
    lane = lane._replace(
        agent=agent.redraw(agent_state, done, key),
        environment=after.state,
        observation=after.observation,
        step=step,
        episode=episode,
        returns=jnp.where(done, 0.0, returns),
        length=jnp.where(done, 0, length),
        streak=jnp.where(done, jnp.where(optimal, lane.streak + 1, 0), lane.streak),
        seen=seen,
        visits=visits,
        loss=loss,
        fault=jnp.select(bad, [1, 2, 1, 3, 4], lane.fault),
        due=done & (episode % often == 0),
        log=log,
    )
    return lane, done


def drained(lane: Lane) -> Lane:
    """A lane whose log the host has read."""
    return lane._replace(log=lane.log._replace(count=jnp.zeros((), jnp.int32)))


def probed(environment: Task, state: State) -> Float[Array, "n features"]:
    """The observations to watch: those an environment names, or else a first one."""
    probes = environment.probes() or {"start": environment.reset(noise.root(0))[1]}
    return jnp.stack([environment.shown(state, x) for x in probes.values()])


@partial(jax.jit, inline=True)
def _beliefs(
    agent: Learner, environment: Task, agent_state: AgentState, state: State, key: Key
) -> Beliefs:
    """What an agent believes of the probed observations. (Traced once, for `start` and `look`.)"""
    return agent.beliefs(agent_state, probed(environment, state), key)


def mark(environment: Task, state: State, seen: Array) -> Array:
    """The cells visited, with that of a state."""
    return seen.at[environment.bin(state)].set(True) if environment.bins else seen


def look(agent: Learner, environment: Task, lane: Lane) -> Lane:
    """If it is due, where an episode has ended: how far q_φ and Z spread, and, if it was the 1st,
    2nd, 4th, …, a snapshot. From episode 2ᵏ to 2ᵏ⁺¹ that is 2⁵ times at the most, and what was
    seen last stands in between."""

    def seen() -> tuple[Array, Array, Log, Snapshots]:
        key = noise.fold(noise.root(lane.seed), DIAGNOSTICS, lane.episode - 1)
        values, outputs, stds = _beliefs(agent, environment, lane.agent, lane.environment, key)
        octave = _octave(lane.episode)
        due = (lane.episode == 1 << octave) & (octave < SNAPSHOTS)
        snapshots = jax.tree.map(
            lambda old, new: jnp.where(due, old.at[octave].set(new), old),
            lane.snapshots,
            Snapshots(values, outputs),
        )
        spread, of_return, row = jnp.mean(jnp.std(values, axis=0)), jnp.mean(stds), log.count - 1
        columns = log.spread.at[row].set(spread), log.return_spread.at[row].set(of_return)
        written = log._replace(spread=columns[0], return_spread=columns[1])
        return spread, of_return, written, snapshots

    log = lane.log
    last = lane.spread, lane.return_spread, log, lane.snapshots
    spread, return_spread, log, snapshots = lax.cond(lane.due, seen, lambda: last)
    return lane._replace(
        due=jnp.zeros_like(lane.due),
        spread=spread,
        return_spread=return_spread,
        log=log,
        snapshots=snapshots,
    )


def _octave(episode: Int[Array, ""]) -> Int[Array, ""]:
    """The k of 2ᵏ ≤ episode < 2ᵏ⁺¹."""
    return 31 - lax.clz(episode)


def _append(log: Log, done: Array, row: tuple[Array, ...]) -> Log:
    """Write an episode's row where it ended; otherwise write it where nobody reads it yet."""
    written = [
        lax.dynamic_update_index_in_dim(column, value.astype(column.dtype), log.count, 0)
        for column, value in zip(log[1:], row, strict=True)
    ]
    return Log(log.count + done, *written)
