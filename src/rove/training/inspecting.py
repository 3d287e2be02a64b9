"""Looking inside an agent's network: whether its values depend on the state, and are right."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.core.diagnostics import Inspected
from rove.core.learner import AgentState, Learner
from rove.environments.base import Environment, Task, with_action_mask
from rove.environments.host import HostEnvironment
from rove.parts import noise, replay
from rove.training.conclusion import Inspection
from rove.training.lane import EVALUATION, Lane
from rove.training.outcomes import Job, without_memory
from rove.training.playing import Played

STATES = 1_000
"""Number of visited states, drawn at random from the replay buffer."""
PARTS = 25
"""Number of parts in which the states are passed to the network. Each has 40 states: of a multiple
of 8, equal states give equal bits."""
STARTS = 20
"""Number of episodes over which the value of the first state, and what is earned from there, are
averaged."""
OFF = 1e-6
"""Range of a hidden unit's output over the states below which it counts as switched off."""
NEGLIGIBLE = 1e-3
"""Weight γᵗ of a reward from which on rewards are left out."""
LONGEST = 10_000
"""Maximum number of steps of an episode without its time limit."""
CONSTANT_ACTION = 1e-3
"""Range of a continuous action below which it counts as constant."""


def inspect(job: Job, lane: Lane, played: Sequence[Played]) -> Inspection | None:
    """Inspect the network of a lane that has its replay buffer; None if it has no value network, if
    it has not visited a state, or if a value or the return without a time limit is not finite.

    `played` are episodes of the greedy policy in a Gymnasium environment, whose time limit cannot
    be lifted; for a compiled one they are not needed.
    """
    agent, environment, state = job.agent, job.environment, lane.agent
    numbers = visited_numbers(int(state.replay.added), len(state.replay.rows), job.seed)
    if state.replay.layout.masked and len(numbers):
        numbers = numbers[~np.asarray(_terminated(state, _padded(numbers)))[: len(numbers)]]
    if not len(numbers):
        return None
    found, one_state = _inspected(agent, state, _padded(numbers))
    if found is None or not np.isfinite(np.asarray(found.values)).all():
        return None
    if isinstance(environment, Environment):
        starts = _from_starts(agent, environment, without_memory(lane).agent, lane.seed)
    else:
        assert isinstance(environment, HostEnvironment)
        starts = _of_played(agent, environment, lane, played, float(found.gamma))
    value, earned, bootstrapped = starts
    if not np.isfinite([value, earned]).all():
        return None
    actions, values = np.asarray(found.actions), np.asarray(found.values)
    spread = np.ptp(actions, axis=0)
    constant = np.all(spread < CONSTANT_ACTION) if agent.continuous else np.all(spread == 0)
    return Inspection(
        units_off=tuple(float(np.mean(np.ptp(np.asarray(x), axis=0) < OFF)) for x in found.units),
        value_range=float(np.ptp(values)),
        largest_value=float(np.max(np.abs(values))),
        gap_range=float(np.ptp(np.asarray(found.gaps))),
        actions=0 if agent.continuous else len(np.unique(actions)),
        policy_constant=bool(constant),
        value_at_start=value,
        return_from_start=earned,
        one_state=bool(one_state),
        bootstrapped=bootstrapped,
        expected=bool(found.expected) and not (bootstrapped and float(found.gamma) >= 1.0),
        numbers=tuple(map(int, numbers)),
    )


def visited_numbers(added: int, capacity: int, seed: int) -> Int[np.ndarray, " n"]:
    """Return the numbers of at most 1,000 of the transitions in a replay buffer, drawn at random
    without replacement, in order."""
    first, stored = max(added - capacity, 0), min(added, capacity)
    count = min(stored, STATES)
    chosen = np.random.default_rng((seed, added)).choice(stored, count, replace=False)
    return first + np.sort(chosen)


def _padded(numbers: Int[np.ndarray, " n"]) -> Int[Array, " m"]:
    """Return the numbers repeated until there are 1,000, so that one program serves all counts."""
    return jnp.asarray(np.resize(numbers, STATES), jnp.int32)


@jax.jit
def _terminated(state: AgentState, numbers: Int[Array, " n"]) -> Bool[Array, " n"]:
    """Return which transitions lead to a terminal state, whose values are never learned."""
    return replay.steps_at(state.replay, numbers).terminated


def _visited(state: AgentState, numbers: Int[Array, " n"]) -> Any:
    """Return the states of transitions. Masks of actions are stored with the next state only, so
    that of masked observations these are the next states, which must not be terminal."""
    steps = replay.steps_at(state.replay, numbers)
    return steps.next_observation if state.replay.layout.masked else steps.observation


@jax.jit
def _inspected(
    agent: Learner, state: AgentState, numbers: Int[Array, " n"]
) -> tuple[Inspected | None, Array]:
    """Return what the network says in the states of transitions, and whether these are the same.
    They are asked about in parts, because hidden layers of images are large."""
    first = _visited(state, numbers[:1])

    def said(numbers: Int[Array, " part"]) -> tuple[Inspected | None, Array]:
        xs = _visited(state, numbers)
        equal = jax.tree.map(lambda x, y: jnp.all(x == y), xs, first)
        return agent.inspect(state, xs), jnp.all(jnp.stack(jax.tree.leaves(equal)))

    found, same = lax.map(said, numbers.reshape(PARTS, -1))
    if found is None:
        return None, jnp.all(same)
    units = tuple(jnp.stack([jnp.min(x[:, 0], 0), jnp.max(x[:, 1], 0)]) for x in found.units)
    rows = {name: jnp.concatenate(getattr(found, name)) for name in ("actions", "values", "gaps")}
    once = {name: getattr(found, name)[0] for name in ("gamma", "expected")}
    return Inspected(**rows, units=units, **once), jnp.all(same)


def _from_starts(
    agent: Learner, environment: Environment, state: AgentState, seed: Array
) -> tuple[float, float, bool]:
    """Return the learned value of the first state, what the greedy policy earns from there, and
    whether that contains learned values, for a compiled environment without its time limit."""
    values, earned, rest = _without_limit(agent, environment, state, seed)
    cut = np.asarray(rest) > 0.0
    return float(np.mean(values)), float(np.mean(earned)), bool(np.any(cut))


@jax.jit
def _without_limit(
    agent: Learner, environment: Environment, state: Any, seed: Int[Array, ""]
) -> tuple[Float[Array, " n"], Float[Array, " n"], Float[Array, " n"]]:
    """Play episodes greedily, without a time limit, until rewards are negligible.

    Returns the learned values of the first states, the discounted returns and, for episodes that
    were cut off before that, the weight of the learned value that is part of the return; else 0.
    """
    keys = jax.vmap(lambda i: noise.fold(noise.root(seed), EVALUATION, i))(jnp.arange(STARTS))

    def masked(states: Any, observations: Any) -> Any:
        return jax.vmap(with_action_mask, (None, 0, 0))(environment, states, observations)

    def said(observations: Any) -> Inspected:
        inspected = agent.inspect(state, observations)
        assert inspected is not None
        return inspected

    def step(carry: tuple) -> tuple:
        states, observations, t, earned, weight = carry
        actions = said(observations).actions
        k = jax.vmap(lambda key: noise.fold(key, t + 1))(keys)
        after = jax.vmap(environment.step)(states, actions, k)
        earned += jnp.where(weight > 0.0, weight * after.reward, 0.0)
        weight *= gamma * (1.0 - after.terminated)
        return after.state, masked(after.state, after.observation), t + 1, earned, weight

    def unfinished(carry: tuple) -> Array:
        *_, t, _, weight = carry
        return jnp.any(weight >= NEGLIGIBLE) & (t < LONGEST)

    states, observations = jax.vmap(lambda key: environment.reset(noise.fold(key, 0)))(keys)
    observations = masked(states, observations)
    first = said(observations)
    gamma = first.gamma
    begin = states, observations, jnp.zeros((), jnp.int32), jnp.zeros(STARTS), jnp.ones(STARTS)
    _, observations, _, earned, weight = lax.while_loop(unfinished, step, begin)
    rest = jnp.where(weight >= NEGLIGIBLE, weight, 0.0)
    return first.values, earned + rest * said(observations).values, rest


def _of_played(
    agent: Learner, environment: HostEnvironment, lane: Lane, played: Sequence[Played], gamma: float
) -> tuple[float, float, bool]:
    """Return the same as `_from_starts`, from episodes in a Gymnasium environment."""
    episodes = played[:STARTS]
    ends = np.stack([np.stack(episode.ends) for episode in episodes])
    about = lane.environment
    values = np.asarray(_values(agent, environment, lane.agent, about, jnp.asarray(ends)))
    earned = [
        sum(gamma**t * reward for t, reward in enumerate(episode.rewards)) for episode in episodes
    ]
    weights = [gamma ** int(e.length) * (not e.terminated) for e in episodes]
    total = np.array(earned) + np.array(weights) * values[:, 1]
    cut = any(weight >= NEGLIGIBLE for weight in weights)
    return float(values[:, 0].mean()), float(total.mean()), cut


@jax.jit
def _values(
    agent: Learner, environment: Task, state: AgentState, about: Any, columns: Float[Array, "n 2 w"]
) -> Float[Array, "n 2"]:
    assert isinstance(environment, HostEnvironment)

    def seen(columns: Array) -> Any:
        return environment.agent_observation(about, environment.received(columns))

    inspected = agent.inspect(state, jax.vmap(seen)(columns.reshape(-1, columns.shape[-1])))
    assert inspected is not None
    return inspected.values.reshape(-1, 2)
