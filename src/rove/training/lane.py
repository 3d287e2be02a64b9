"""A lane, the training of one agent on one environment with one seed: its state and its steps.

Both training loops, the compiled one and the one on the host, are built from these functions.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float, Int

from rove.core.learner import AgentState, Beliefs, Learner
from rove.environments.base import State, Task, with_action_mask
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Observation

# Indices of a lane's random streams: its key is folded with one of them.
INIT, AGENT, ENVIRONMENT, EVALUATION, DIAGNOSTICS, SELECTION, POLICY, COPIES, SETTLING = range(9)

BEST, SETTLED = "best", "settled"
"""The names of policies whose networks are kept beside the last one."""

LOG_CAPACITY = 256
"""Maximum number of episodes in the log, after which the host has to read it."""
SNAPSHOTS = 16
"""Maximum number of snapshots: after episodes 1, 2, 4, …, 2¹⁵."""
HISTORY_BINS = 10_000
"""Maximum number of cells of an environment for which a history of visits is kept."""
UNLIMITED = 2**31 - 1
"""A number of steps or episodes that is never reached."""
FAULTS = ("", "observation", "action", "reward", "loss", "optimiser", "action_mask")
"""What can be the first to contain a number that is not finite; or an action mask that allows no
action."""


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
    reward_scale: Float[Array, " slots"]
    """The unit of Z: what rewards were divided by."""


class Copy(NamedTuple):
    """The part of a lane's state that each copy of its environment has separately."""

    observation: Observation
    returns: Float[Array, ""]
    length: Int[Array, ""]
    seen: Bool[Array, " bins"]
    theta: Any
    """θ in use for control in this copy; see `AgentState`."""
    random: Any
    """The random action, or noise, in this copy; see `AgentState`."""
    reward_scale: Any
    """The statistic of the reward scale for this copy's episode; see `ScaleState.current`."""


class Lane(NamedTuple):
    """The complete training state of one agent on one environment with one seed.

    With several copies of the environment, the fields of a `Copy` are those of the first one.
    """

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
    others: Any = ()
    """A `Copy` with the fields of all further copies of the environment, stacked; () if there are
    none."""


BETWEEN_EPISODES = (
    "episode", "streak", "visits", "due", "spread", "return_spread", "log", "snapshots",
)  # fmt: skip
"""The fields of a lane that change only when an episode ends."""


def start(agent: Learner, environment: Task, seed: Int[Array, ""]) -> Lane:
    """Return a lane at step 0."""
    key = noise.root(seed)
    state, observation = environment.reset(noise.fold(key, ENVIRONMENT, 0, 0))
    sizes = environment.observation_size, environment.num_actions
    agent_state = agent.init(*sizes, noise.fold(key, INIT), environment.form)
    zero, integers = jnp.zeros((), jnp.int32), jnp.zeros(LOG_CAPACITY, jnp.int32)
    floats = jnp.zeros(LOG_CAPACITY)
    visits = jnp.zeros(environment.bins, jnp.int32)
    snapshot = jax.eval_shape(
        lambda: snapshot_of(probe_beliefs(agent, environment, agent_state, state, key), visits)
    )
    lane = Lane(
        seed=seed,
        agent=agent_state,
        environment=state,
        observation=with_action_mask(environment, state, observation),
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
    if environment.copies == 1:
        return lane

    def other(key: Key) -> Copy:
        """Return a copy with a separate θ."""
        resampled = agent.resample_theta(lane.agent, jnp.ones((), bool), key)
        return copy_of(lane._replace(agent=resampled))

    keys = noise.folds(noise.fold(key, COPIES), environment.copies - 1)
    return lane._replace(others=jax.vmap(other)(keys))


def copy_of(lane: Lane) -> Copy:
    """Return the `Copy` of the environment whose turn it is."""
    return Copy(
        observation=lane.observation,
        returns=lane.returns,
        length=lane.length,
        seen=lane.seen,
        theta=lane.agent.theta,
        random=lane.agent.random,
        reward_scale=lane.agent.reward_scale.current,
    )


def with_copy(lane: Lane, copy: Copy) -> Lane:
    """Return the lane at the turn of a copy of the environment."""
    scale = lane.agent.reward_scale._replace(current=copy.reward_scale)
    return lane._replace(
        agent=lane.agent._replace(theta=copy.theta, random=copy.random, reward_scale=scale),
        observation=copy.observation,
        returns=copy.returns,
        length=copy.length,
        seen=copy.seen,
    )


def snapshot_of(beliefs: Beliefs, visits: Int[Array, " bins"]) -> Snapshots:
    """Return one snapshot: beliefs, and visits unless there are too many cells."""
    recorded = visits if len(visits) <= HISTORY_BINS else visits[:0]
    return Snapshots(beliefs.values, beliefs.outputs, recorded, jnp.asarray(beliefs.reward_scale))


def step_key(lane: Lane) -> Key:
    """Return the key from which the agent draws in a step, for acting and for learning."""
    return noise.fold(noise.root(lane.seed), AGENT, lane.step)


def act(agent: Learner, lane: Lane) -> Array:
    """Lines 2.6–2.7: choose the action for the current observation."""
    return agent.act(lane.agent, lane.observation, step_key(lane))


def probe_observations(environment: Task, state: State) -> Observation:
    """Return the observations that diagnostics use: the environment's probes, or the observation
    after a reset."""
    probes = environment.probes() or {"start": environment.reset(noise.root(0))[1]}
    observations = [environment.agent_observation(state, x) for x in probes.values()]
    return jax.tree.map(lambda *rows: jnp.stack(rows), *observations)


@partial(jax.jit, inline=True)
def probe_beliefs(
    agent: Learner, environment: Task, agent_state: AgentState, state: State, key: Key
) -> Beliefs:
    """Return the agent's beliefs about the probes. (Traced once, for `start` and `measure`.)"""
    return agent.beliefs(agent_state, probe_observations(environment, state), key)


def mark(environment: Task, state: State, seen: Array) -> Array:
    """Mark the cell of a state as visited."""
    return seen.at[environment.bin(state)].set(True) if environment.bins else seen


def kept_parts(lane: Lane) -> tuple[Any, Any, Any]:
    """Return the parts of a lane that its greedy policy depends on: φ, the actor, and the state of
    the environment, which contains the statistics of normalised observations."""
    return lane.agent.phi, lane.agent.actor, lane.environment


def with_parts(lane: Lane, parts: tuple[Any, Any, Any]) -> Lane:
    """Return the lane with the parts of another one; see `kept_parts`."""
    phi, actor, environment = parts
    return lane._replace(agent=lane.agent._replace(phi=phi, actor=actor), environment=environment)
