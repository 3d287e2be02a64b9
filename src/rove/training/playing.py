"""Playing episodes with the policies of a trained agent.

Nothing of a lane changes: episodes have their own random streams and, on the host, their own
environment. The number of an episode determines its randomness, so that all policies play the same
episodes.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Bool, Float, Int

from rove.core.learner import AgentState, Learner
from rove.core.policies import POLICIES, Policy
from rove.environments.base import Environment, Task, with_action_mask
from rove.environments.faults import BadEnvironment
from rove.environments.guard import Guard
from rove.environments.host import HostEnvironment
from rove.errors import LaneError
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Observation
from rove.training.lane import EVALUATION, POLICY, Lane
from rove.training.outcomes import without_memory

LONGEST = 100_000
"""Maximum number of steps of an episode, which is cut off there."""


class Played(NamedTuple):
    """The results of an episode."""

    returns: float | Float[Array, ""]
    length: int | Int[Array, ""]
    terminated: bool | Bool[Array, ""]
    rewards: Any = None
    """All rewards; None for a compiled environment."""
    ends: Any = None
    """The first and the last observation, as columns; None for a compiled environment."""


PlayEpisode: TypeAlias = Callable[[int, int, int], Played]
"""Plays an episode, given its random stream, its number and its maximum number of steps."""


def play(
    name: str,
    agent: Learner,
    environment: Task,
    lane: Lane,
    episodes: int,
    stream: int = EVALUATION,
    most_steps: int | None = None,
) -> Float[np.ndarray, " episodes"]:
    """Play episodes with a policy of a lane's agent, and return their scores; see `episodes_of`."""
    played = episodes_of(name, agent, environment, lane, episodes, stream, most_steps)
    return scores_of(environment, played)


def scores_of(environment: Task, played: Sequence[Played]) -> Float[np.ndarray, " episodes"]:
    """Return the scores of episodes."""
    columns = np.array([episode[:3] for episode in played], float).T
    return np.asarray(environment.score(*columns), float)


def episodes_of(
    name: str,
    agent: Learner,
    environment: Task,
    lane: Lane,
    episodes: int,
    stream: int = EVALUATION,
    most_steps: int | None = None,
) -> list[Played]:
    """Play episodes with a policy of a lane's agent.

    **Arguments**
    - `name`: the policy, one of `rove.core.policies.POLICIES`.
    - `stream`: the random stream of the episodes.
    - `most_steps`: the number of steps, over all episodes, after which the current one is cut off
      and no other begins; by default, every episode may have LONGEST steps.
    """
    played: list[Played] = []
    left = most_steps or episodes * LONGEST
    with _player_of(POLICIES[name], agent, environment, without_memory(lane)) as episode:
        while len(played) < episodes and left > 0:
            played.append(episode(stream, len(played), min(left, LONGEST)))
            left -= int(played[-1].length)
    return played


@contextlib.contextmanager
def _player_of(
    policy: Policy, agent: Learner, environment: Task, lane: Lane
) -> Iterator[PlayEpisode]:
    """Yield a function that plays an episode; on the host, all of them in one environment."""
    if isinstance(environment, Environment):
        task = policy, agent, environment, lane.agent, lane.seed
        yield lambda *episode: compiled_episode(*task, *episode)
        return
    assert isinstance(environment, HostEnvironment)
    actor, guard = Acting(policy, agent, environment, lane, columns=True), environment.make()
    try:
        yield functools.partial(_play_on_host, actor, guard, environment)
    except BadEnvironment as error:
        raise LaneError(f"{environment.name}, during evaluation: {error}") from error
    finally:
        guard.close()


@jax.jit
def compiled_episode(
    policy: Policy,
    agent: Learner,
    environment: Environment,
    state: AgentState,
    seed: Int[Array, ""],
    stream: Int[Array, ""],
    number: Int[Array, ""],
    longest: Int[Array, ""],
) -> Played:
    """Play an episode of a compiled environment."""
    key, k_policy = noise.fold(noise.root(seed), stream, number), policy_key(seed, stream, number)
    first, observation = environment.reset(noise.fold(key, 0))
    observation = with_action_mask(environment, first, observation)

    def step(carry: tuple) -> tuple:
        environment_state, observation, policy_state, (returns, length, *_), _ = carry
        k = noise.fold(k_policy, length + 1)
        action, policy_state = policy.act(agent, state, policy_state, observation, k)
        after = environment.step(environment_state, action, noise.fold(key, length + 1))
        played = Played(returns + after.reward, length + 1, after.terminated)
        observation = with_action_mask(environment, after.state, after.observation)
        return after.state, observation, policy_state, played, after.terminated | after.truncated

    def unfinished(carry: tuple) -> Array:
        return ~carry[4] & (carry[3].length < longest)

    false = jnp.zeros((), bool)
    policy_state = policy.begin(agent, state, noise.fold(k_policy, 0))
    nothing = Played(jnp.zeros(()), jnp.zeros((), jnp.int32), false)
    return lax.while_loop(unfinished, step, (first, observation, policy_state, nothing, false))[3]


def _play_on_host(
    actor: "Acting", guard: Guard, environment: HostEnvironment, stream: int, number: int, most: int
) -> Played:
    """Play an episode of a Gymnasium environment, which is cut off before its guard would raise an
    error."""
    rewards: list[float] = []
    terminated, first = False, guard.reset(reset_seed(actor.seed, stream, number))
    columns = first
    actor.begin(policy_key(actor.seed, stream, number))
    while len(rewards) < min(most, environment.longest_episode - 1):
        action = np.asarray(actor(columns))
        columns, reward, terminated, truncated = guard.step(action)
        rewards.append(reward)
        if terminated or truncated:
            break
    return Played(sum(rewards), len(rewards), terminated, rewards, (first, columns))


class Acting:
    """Acts with a policy of a lane's agent, one observation at a time.

    With `columns`, observations are as the guard of a Gymnasium environment returns them.
    """

    def __init__(
        self, policy: Policy, agent: Learner, environment: Task, lane: Lane, columns: bool = False
    ):
        parts = policy, agent, environment, lane.agent, lane.environment
        leaves, structure = jax.tree.flatten(parts)  # flattening modules takes long
        self._leaves, self._programs = jax.device_put(leaves), _programs(structure, columns)
        self.seed = int(lane.seed)
        self._key: Any = None
        self._policy_state: Any = None
        self._row_keys: Any = ()
        self._row_states: Any = None
        self._step = 0

    def begin(self, key: Key) -> None:
        """Begin an episode."""
        self._key, self._step, self._row_keys = key, 0, ()
        self._policy_state = self._programs[0](self._leaves, key)

    def __call__(self, observation: Observation | np.ndarray) -> Array:
        """Return the learner's action for the next observation of the environment."""
        self._step += 1
        now = self._policy_state, self._key, self._step
        action, self._policy_state = self._programs[1](self._leaves, observation, *now)
        return action

    def rows(self, observations: Any) -> Array:
        """Return the learner's actions for several observations, each of an episode with its own
        state of the policy. Another number of them than before begins new episodes."""
        count = len(jax.tree.leaves(observations)[0])
        if len(self._row_keys) != count:
            self._row_keys = noise.folds(self._key, count)
            self._row_states = jax.vmap(self._programs[0], (None, 0))(self._leaves, self._row_keys)
        self._step += 1
        act = jax.vmap(self._programs[1], (None, 0, 0, 0, None))
        now = self._row_states, self._row_keys, self._step
        actions, self._row_states = act(self._leaves, observations, *now)
        return actions


@functools.cache
def _programs(structure: Any, columns: bool) -> tuple[Callable, Callable]:
    """Return the compiled `begin` and `act` of all agents with the given tree structure."""

    @jax.jit
    def begin(leaves: list, key: Key) -> Any:
        policy, agent, _, state, _ = jax.tree.unflatten(structure, leaves)
        return policy.begin(agent, state, noise.fold(key, 0))

    @jax.jit
    def act(leaves: list, observation: Any, policy_state: Any, key: Key, step: Array) -> tuple:
        policy, agent, environment, state, about = jax.tree.unflatten(structure, leaves)
        observation = environment.received(observation) if columns else observation
        observation = environment.agent_observation(about, observation)
        return policy.act(agent, state, policy_state, observation, noise.fold(key, step))

    return begin, act


def policy_key(seed: int | Array, stream: int | Array, number: int | Array) -> Key:
    """Return the key of a policy in an episode."""
    return noise.fold(noise.root(seed), POLICY, stream, number)


def reset_seed(seed: int, stream: int, episode: int) -> int:
    """Return the seed for an environment's reset, given the run's seed and the episode's number."""
    return int(np.random.SeedSequence((seed, stream, episode)).generate_state(1)[0] >> 1)
