"""The policies of a trained agent: pure functions of its state, which they do not change.

They only use the methods by which a `Learner` acts.
"""

import abc
from typing import Any, ClassVar, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from rove.core.learner import AgentState, Learner
from rove.parts import noise
from rove.parts.noise import Key
from rove.parts.onehot import Observation

VOTERS = 15
"""Number of samples of θ in a vote; odd, so that two actions cannot tie."""

Action: TypeAlias = Int[Array, ""] | Float[Array, " k"]


class Policy(eqx.Module):
    """Chooses the actions of an episode: `begin` is called once, and `act` in every step."""

    description: ClassVar[str]
    """What the policy does, in a few words."""

    @abc.abstractmethod
    def begin(self, agent: Learner, state: AgentState, key: Key) -> Any:
        """Return the policy's state at the start of an episode."""

    @abc.abstractmethod
    def act(
        self,
        agent: Learner,
        state: AgentState,
        policy_state: Any,
        observation: Observation,
        key: Key,
    ) -> tuple[Action, Any]:
        """Return an action, and the policy's state for the next step."""


class Mean(Policy):
    """Greedy on the posterior mean: `Learner.greedy`."""

    description: ClassVar[str] = "greedy on the posterior mean"

    def begin(self, agent: Learner, state: AgentState, key: Key) -> tuple[()]:
        return ()

    def act(
        self,
        agent: Learner,
        state: AgentState,
        policy_state: tuple[()],
        observation: Observation,
        key: Key,
    ) -> tuple[Action, tuple[()]]:
        return agent.greedy(state, observation), ()


class Settled(Mean):
    """`Mean`, played with the state after `rove.core.settling.settled`."""

    description: ClassVar[str] = "greedy on the posterior mean, settled"


class Best(Mean):
    """`Mean`, played with the network of the best evaluation during training."""

    description: ClassVar[str] = "greedy on the posterior mean, at the best evaluation in training"


class PolicyState(NamedTuple):
    """The parts of an agent's state that acting changes."""

    theta: Any
    random: Any
    counter: Int[Array, ""]


class Behaviour(Policy):
    """Acts as in training: θ is resampled at the same times, and actions are random as often."""

    description: ClassVar[str] = "as in training, with its random actions"

    def begin(self, agent: Learner, state: AgentState, key: Key) -> PolicyState:
        return _policy_state(agent.resample_theta(state, jnp.ones((), bool), key))

    def act(
        self,
        agent: Learner,
        state: AgentState,
        policy_state: PolicyState,
        observation: Observation,
        key: Key,
    ) -> tuple[Action, PolicyState]:
        now = state._replace(**policy_state._asdict())
        action = agent.act(now, observation, key)
        # In training, copies of the environment take turns: all have taken a step by then.
        after = now._replace(counter=now.counter + now.replay.layout.stride)
        return action, _policy_state(agent.resample_theta(after, jnp.zeros((), bool), key))


class Sample(Policy):
    """Greedy on θ ~ q_φ, which is resampled as in training: the behaviour without random actions
    (`Learner.random_actions`)."""

    description: ClassVar[str] = "greedy on samples of θ, drawn as in training"

    def begin(self, agent: Learner, state: AgentState, key: Key) -> PolicyState:
        return Behaviour().begin(_without_random_actions(agent), state, key)

    def act(
        self,
        agent: Learner,
        state: AgentState,
        policy_state: PolicyState,
        observation: Observation,
        key: Key,
    ) -> tuple[Action, PolicyState]:
        return Behaviour().act(
            _without_random_actions(agent), state, policy_state, observation, key
        )


class Vote(Policy):
    """The action that most of several samples of θ prefer; each is resampled as in training."""

    description: ClassVar[str] = f"the majority of {VOTERS} samples of θ, drawn as in training"

    def begin(self, agent: Learner, state: AgentState, key: Key) -> PolicyState:
        keys = noise.folds(key, VOTERS)
        return jax.vmap(Sample().begin, (None, None, 0))(agent, state, keys)

    def act(
        self,
        agent: Learner,
        state: AgentState,
        policy_state: PolicyState,
        observation: Observation,
        key: Key,
    ) -> tuple[Action, PolicyState]:
        keys = noise.folds(key, VOTERS)
        over_voters = jax.vmap(Sample().act, (None, None, 0, None, 0))
        actions, policy_state = over_voters(agent, state, policy_state, observation, keys)
        votes = jnp.sum(actions[:, None] == actions, axis=1)
        return actions[jnp.argmax(votes)], policy_state


POLICIES: dict[str, Policy] = {
    "mean": Mean(),
    "sample": Sample(),
    "vote": Vote(),
    "behaviour": Behaviour(),
    "settled": Settled(),
    "best": Best(),
}
"""All policies by name. The first one is delivered unless another is better."""


def policies_of(agent: Learner) -> list[str]:
    """Return the names of an agent's policies: "sample" and "vote" only if it samples θ to act, and
    "settled" only if it has a learning rate. "best" needs evaluations during training."""
    without = set() if agent.samples else {"sample", "vote"}
    without |= set() if agent.learning_rates else {"settled"}
    return [name for name in POLICIES if name not in without]


def candidates_of(agent: Learner) -> list[str]:
    """Return the names of an agent's policies that differ, without "settled" and "best", which need
    another network: without random actions, "behaviour" is equal to one of the others."""
    noisy = any(float(getattr(agent, field)) > 0.0 for field in agent.random_actions)
    without = {"settled", "best"} if noisy else {"settled", "best", "behaviour"}
    return [name for name in policies_of(agent) if name not in without]


def _policy_state(state: AgentState) -> PolicyState:
    return PolicyState(state.theta, state.random, state.counter)


def _without_random_actions(agent: Learner) -> Learner:
    """Return the agent with 0 in the fields that make its actions random."""
    fields = agent.random_actions
    if not fields:
        return agent
    zeros = [0 * getattr(agent, field) for field in fields]
    return eqx.tree_at(lambda x: [getattr(x, field) for field in fields], agent, zeros)
