"""A lane, the training of one agent on one environment with one seed: its state and its steps.

Both training loops, the compiled one and the one on the host, are built from these functions.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.core.learner import AgentState, Beliefs, Learner
from rove.environments.base import State, Step, Task, shown
from rove.parts import noise
from rove.parts.masks import allowed_actions, unmasked
from rove.parts.noise import Key
from rove.parts.onehot import Observation
from rove.parts.replay import Transition
from rove.training.solving import lowest_optimal

# Indices of a lane's random streams: its key is folded with one of them.
INIT, AGENT, ENVIRONMENT, EVALUATION, DIAGNOSTICS, SELECTION, POLICY = range(7)

LOG_CAPACITY = 256
"""Maximum number of episodes in the log, after which the host has to read it."""
SNAPSHOTS = 16
"""Maximum number of snapshots: after episodes 1, 2, 4, …, 2¹⁵."""
LOG2_MEASUREMENTS = 5
"""There are at most 2⁵ measurements from episode 2ᵏ to 2ᵏ⁺¹."""
HISTORY_BINS = 10_000
"""Maximum number of cells of an environment for which a history of visits is kept."""
UNLIMITED = 2**31 - 1
"""A number of steps or episodes that is never reached."""
FAULTS = ("", "observation", "action", "reward", "loss", "optimiser", "action_mask")
"""What was the first to contain a number that is not finite or, of masks, no allowed action."""


class Log(NamedTuple):
    """Episodes that have ended since the host last read the log."""

    count: Int[Array, ""]
    returns: Float[Array, " log"]
    length: Int[Array, " log"]
    step: Int[Array, " log"]
    terminated: Bool[Array, " log"]
    spread: Float[Array, " log"]
    """Standard deviation of Q_θ over θ ~ q_φ, averaged over the probe states and actions."""
    return_spread: Float[Array, " log"]
    """Standard deviation of Z, averaged in the same way."""
    coverage: Int[Array, " log"]
    """Number of cells visited so far."""


class Snapshots(NamedTuple):
    """Beliefs about the probe states, and visits, after episodes 1, 2, 4, 8, …"""

    values: Float[Array, "slots draws probes actions"]
    """Q_θ for several draws of θ ~ q_φ."""
    outputs: Float[Array, "slots probes outputs"]
    """The parameters of Z under the posterior mean."""
    visits: Int[Array, "slots bins"]
    """Number of episodes in which each cell was visited so far; see `HISTORY_BINS`."""


class Lane(NamedTuple):
    """The complete training state of one agent on one environment with one seed."""

    seed: Int[Array, ""]
    agent: AgentState
    environment: State
    observation: Observation
    step: Int[Array, ""]
    episode: Int[Array, ""]
    returns: Float[Array, ""]
    """Return of the current episode so far."""
    length: Int[Array, ""]
    """Length of the current episode so far."""
    streak: Int[Array, ""]
    """Number of optimal episodes in a row, up to the last one."""
    seen: Bool[Array, " bins"]
    """Cells visited in the current episode."""
    visits: Int[Array, " bins"]
    """Number of episodes in which each cell was visited."""
    loss: Float[Array, ""]
    fault: Int[Array, ""]
    """Index into FAULTS of the first number that was not finite; 0 if all were."""
    due: Bool[Array, ""]
    """Whether to `measure` now."""
    spread: Float[Array, ""]
    """Latest spread of Q; see `Log`."""
    return_spread: Float[Array, ""]
    """Latest spread of Z; see `Log`."""
    log: Log
    snapshots: Snapshots


def start(agent: Learner, environment: Task, seed: Int[Array, ""]) -> Lane:
    """Return a lane at step 0."""
    key = noise.root(seed)
    state, observation = environment.reset(noise.fold(key, ENVIRONMENT, 0, 0))
    sizes = environment.observation_size, environment.num_actions
    agent_state = agent.init(*sizes, noise.fold(key, INIT), environment.form)
    zero, integers = jnp.zeros((), jnp.int32), jnp.zeros(LOG_CAPACITY, jnp.int32)
    floats = jnp.zeros(LOG_CAPACITY)
    visits = jnp.zeros(environment.bins, jnp.int32)
    beliefs = jax.eval_shape(_beliefs, agent, environment, agent_state, state, key)
    snapshot = Snapshots(beliefs.values, beliefs.outputs, _recorded(visits))
    return Lane(
        seed=seed,
        agent=agent_state,
        environment=state,
        observation=shown(environment, state, observation),
        step=zero,
        episode=zero,
        returns=jnp.zeros(()),
        length=zero,
        streak=zero,
        seen=mark(environment, state, jnp.zeros(environment.bins, bool)),
        visits=visits,
        loss=jnp.zeros(()),
        fault=zero,
        due=jnp.zeros((), bool),
        spread=jnp.zeros(()),
        return_spread=jnp.zeros(()),
        log=Log(zero, floats, integers, integers, integers.astype(bool), floats, floats, integers),
        snapshots=jax.tree.map(lambda x: jnp.zeros((SNAPSHOTS, *x.shape), x.dtype), snapshot),
    )


def _recorded(visits: Int[Array, " bins"]) -> Int[Array, " recorded"]:
    """Return the visits to keep in a snapshot: none if there are too many cells."""
    return visits if len(visits) <= HISTORY_BINS else visits[:0]


def step_key(lane: Lane) -> Key:
    """Return the key from which the agent draws in a step, for acting and for learning."""
    return noise.fold(noise.root(lane.seed), AGENT, lane.step)


def act(agent: Learner, lane: Lane) -> Array:
    """Lines 2.6–2.7: choose the action for the current observation."""
    return agent.act(lane.agent, lane.observation, step_key(lane))


def complete_step(
    agent: Learner,
    environment: Task,
    lane: Lane,
    action: Array,
    after: Step,
    learn: bool,
    where: bool | Bool[Array, ""] = True,
) -> tuple[Lane, Bool[Array, ""]]:
    """Store the transition of an environment's step, learn if `learn`, and update the log.

    If `where` is False, the replay buffer is left unchanged (see `replay.add`). Also returns
    whether the episode has ended. If so, the lane's observation is the final one and the
    environment has to be reset. Afterwards, the lane may be due to be measured.
    """
    key = step_key(lane)
    transition = Transition(
        observation=lane.observation,
        action=action,
        reward=after.reward,
        next_observation=after.observation,
        terminated=after.terminated,
        truncated=after.truncated,
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
    optimal = optimum is not None and score >= lowest_optimal(optimum)
    episode = lane.episode + done
    period = 1 << jnp.maximum(_octave(episode) - LOG2_MEASUREMENTS, 0)

    # An early fault causes later ones, so report the first.
    names = "observation", "action", "observation", "reward", "loss"
    s, s_next = unmasked(lane.observation), unmasked(after.observation)
    values = s, action, s_next, after.reward, loss
    not_finite = [jnp.any(~jnp.isfinite(leaf)) for leaf in jax.tree.leaves(values)]
    faults = [FAULTS.index(name) for name in names]
    for x, terminal in ((lane.observation, False), (after.observation, after.terminated)):
        if (allowed := allowed_actions(x)) is not None:
            not_finite.append(~jnp.any(allowed) & ~terminal)
            faults.append(FAULTS.index("action_mask"))
    lane = lane._replace(
        agent=agent.resample_theta(agent_state, done, key),
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
        fault=jnp.select(not_finite, faults, lane.fault),
        due=done & (episode % period == 0),
        log=log,
    )
    return lane, done


def drained(lane: Lane) -> Lane:
    """Return the lane with an empty log, once the host has read it."""
    return lane._replace(log=lane.log._replace(count=jnp.zeros((), jnp.int32)))


def probe_observations(environment: Task, state: State) -> Observation:
    """Return the observations that diagnostics use: the environment's probes, or the observation
    after a reset."""
    probes = environment.probes() or {"start": environment.reset(noise.root(0))[1]}
    shown = [environment.agent_observation(state, x) for x in probes.values()]
    return jax.tree.map(lambda *rows: jnp.stack(rows), *shown)


@partial(jax.jit, inline=True)
def _beliefs(
    agent: Learner, environment: Task, agent_state: AgentState, state: State, key: Key
) -> Beliefs:
    """Return the agent's beliefs about the probes. (Traced once, for `start` and `measure`.)"""
    return agent.beliefs(agent_state, probe_observations(environment, state), key)


def mark(environment: Task, state: State, seen: Array) -> Array:
    """Mark the cell of a state as visited."""
    return seen.at[environment.bin(state)].set(True) if environment.bins else seen


def measure(agent: Learner, environment: Task, lane: Lane) -> Lane:
    """Measure the spread of q_φ and of Z if that is due, which is only when an episode has ended,
    and check that Adam's moments are finite: a parameter with an infinite one never changes again.

    There are at most 2⁵ measurements from episode 2ᵏ to 2ᵏ⁺¹; in between, the last one is logged.
    After episodes 1, 2, 4, …, this also takes a snapshot.
    """

    def measured() -> tuple[Array, Array, Log, Snapshots, Array]:
        key = noise.fold(noise.root(lane.seed), DIAGNOSTICS, lane.episode - 1)
        values, outputs, stds = _beliefs(agent, environment, lane.agent, lane.environment, key)
        octave = _octave(lane.episode)
        snapshot_due = (lane.episode == 1 << octave) & (octave < SNAPSHOTS)
        snapshots = jax.tree.map(
            lambda old, new: jnp.where(snapshot_due, old.at[octave].set(new), old),
            lane.snapshots,
            Snapshots(values, outputs, _recorded(lane.visits)),
        )
        spread, return_spread = jnp.mean(jnp.std(values, axis=0)), jnp.mean(stds)
        row = log.count - 1
        columns = log.spread.at[row].set(spread), log.return_spread.at[row].set(return_spread)
        updated = log._replace(spread=columns[0], return_spread=columns[1])
        finite = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(lane.agent.optimiser)]
        overflowed = (lane.fault == 0) & ~jnp.all(jnp.array([True, *finite]))
        fault = jnp.where(overflowed, FAULTS.index("optimiser"), lane.fault)
        return spread, return_spread, updated, snapshots, fault

    log = lane.log
    previous = lane.spread, lane.return_spread, log, lane.snapshots, lane.fault
    spread, return_spread, log, snapshots, fault = lax.cond(lane.due, measured, lambda: previous)
    return lane._replace(
        due=jnp.zeros_like(lane.due),
        spread=spread,
        return_spread=return_spread,
        log=log,
        snapshots=snapshots,
        fault=fault,
    )


def _octave(episode: Int[Array, ""]) -> Int[Array, ""]:
    """Return the k with 2ᵏ ≤ episode < 2ᵏ⁺¹."""
    return 31 - lax.clz(episode)


def _append(log: Log, done: Array, row: tuple[Array, ...]) -> Log:
    """Append an episode's row if it is done.

    Otherwise the row is written beyond the end of the log, where it is overwritten later.
    """
    columns = [
        lax.dynamic_update_index_in_dim(column, value.astype(column.dtype), log.count, 0)
        for column, value in zip(log[1:], row, strict=True)
    ]
    return Log(log.count + done, *columns)
