"""The steps of a lane, from which both training loops are built: the compiled one and the one on
the host."""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Bool, Int

from rove.core.learner import Learner
from rove.environments.base import Step, Task
from rove.parts import noise
from rove.parts.masks import allowed_actions, unmasked
from rove.parts.replay import Transition
from rove.training.lane import (
    DIAGNOSTICS,
    FAULTS,
    SNAPSHOTS,
    Lane,
    Log,
    Snapshots,
    mark,
    probe_beliefs,
    snapshot_of,
    step_key,
)
from rove.training.solving import lowest_optimal

LOG2_MEASUREMENTS = 5
"""There are at most 2⁵ measurements from episode 2ᵏ to 2ᵏ⁺¹."""


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
    lane = take_step(agent, environment, lane, action, after, learn, where)
    done = after.terminated | after.truncated
    return end_episode(environment, lane, after.terminated, done), done


def take_step(
    agent: Learner,
    environment: Task,
    lane: Lane,
    action: Array,
    after: Step,
    learn: bool,
    where: bool | Bool[Array, ""] = True,
) -> Lane:
    """Carry out the part of `complete_step` that every step needs. It does not change the fields
    `BETWEEN_EPISODES`."""
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
    done = after.terminated | after.truncated
    return lane._replace(
        agent=agent.resample_theta(agent_state, done, key),
        environment=after.state,
        observation=after.observation,
        step=lane.step + 1,
        returns=lane.returns + after.reward,
        length=lane.length + 1,
        seen=mark(environment, after.state, lane.seen),
        loss=loss,
        fault=jnp.select(not_finite, faults, lane.fault),
    )


def end_episode(
    environment: Task, lane: Lane, terminated: Bool[Array, ""], done: bool | Bool[Array, ""] = True
) -> Lane:
    """Update the log and the counts of episodes if the episode is `done`."""
    returns, length = lane.returns, lane.length
    visits = lane.visits + (lane.seen & done)
    row = (returns, length, lane.step, terminated, lane.spread, lane.return_spread)
    log = _append(lane.log, done, (*row, jnp.sum(visits > 0)))
    score, optimum = environment.score(returns, length, terminated), environment.optimum
    optimal = optimum is not None and score >= lowest_optimal(optimum)
    episode = lane.episode + done
    period = 1 << jnp.maximum(_octave(episode) - LOG2_MEASUREMENTS, 0)
    return lane._replace(
        episode=episode,
        returns=jnp.where(done, 0.0, returns),
        length=jnp.where(done, 0, length),
        streak=jnp.where(done, jnp.where(optimal, lane.streak + 1, 0), lane.streak),
        visits=visits,
        due=done & (episode % period == 0),
        log=log,
    )


def drained(lane: Lane) -> Lane:
    """Return the lane with an empty log, once the host has read it."""
    return lane._replace(log=lane.log._replace(count=jnp.zeros((), jnp.int32)))


def measure(agent: Learner, environment: Task, lane: Lane) -> Lane:
    """Measure the spread of q_φ and of Z if that is due, which is only when an episode has ended,
    and check that Adam's moments are finite: a parameter with an infinite one never changes again.

    There are at most 2⁵ measurements from episode 2ᵏ to 2ᵏ⁺¹; in between, the last one is logged.
    After episodes 1, 2, 4, …, this also takes a snapshot.
    """

    def measured() -> tuple[Array, Array, Log, Snapshots, Array]:
        key = noise.fold(noise.root(lane.seed), DIAGNOSTICS, lane.episode - 1)
        beliefs = probe_beliefs(agent, environment, lane.agent, lane.environment, key)
        octave = _octave(lane.episode)
        snapshot_due = (lane.episode == 1 << octave) & (octave < SNAPSHOTS)
        snapshots = jax.tree.map(
            lambda old, new: jnp.where(snapshot_due, old.at[octave].set(new), old),
            lane.snapshots,
            snapshot_of(beliefs, lane.visits),
        )
        spread = jnp.mean(jnp.std(beliefs.values, axis=0))
        return_spread = jnp.mean(beliefs.stds)
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


def _append(log: Log, done: bool | Array, row: tuple[Array, ...]) -> Log:
    """Append an episode's row if it is done.

    Otherwise the row is written beyond the end of the log, where it is overwritten later.
    """
    columns = [
        lax.dynamic_update_index_in_dim(column, value.astype(column.dtype), log.count, 0)
        for column, value in zip(log[1:], row, strict=True)
    ]
    return Log(log.count + done, *columns)
