"""Validation of an agent's fields, and an estimate of its memory."""

from typing import Any, get_args

import jax
import numpy as np

from rove.bonuses import Bonus
from rove.core.learner import AgentState, Memory
from rove.core.objectives import Gradient
from rove.core.reward_scale import ConstantScale, RewardScale
from rove.errors import (
    ConfigError,
    check_choice,
    check_flag,
    check_hidden,
    check_integer,
    check_number,
)
from rove.parts.architectures import check_architecture
from rove.posteriors import Dirac
from rove.posteriors.base import Density, Posterior, Sampler, Spec
from rove.returns.base import Return


def check_critic(agent: Any) -> None:
    """Raise `ConfigError` if a field that `Agent` and `ActorCritic` share is invalid."""
    for field, family in (("returns", Return), ("posterior", Posterior), ("bonus", Bonus)):
        if not isinstance(getattr(agent, field), family):
            raise ConfigError.must_be(field, getattr(agent, field), f"a rove.{family.__name__}")
    if agent.bonus.uses_spread and isinstance(agent.posterior, Dirac | Sampler):
        bonus, posterior = (type(part).__name__ for part in (agent.bonus, agent.posterior))
        message = f"bonus {bonus} has no effect with the posterior {posterior}, under which Q has "
        message += "no spread. Use Counts or RND (--agent.bonus counts or rnd), or another "
        message += "posterior such as MeanField"
        raise ConfigError("bonus", bonus, f"Counts or RND, with {posterior}", message)
    check_reward_scale(agent)
    check_estimate(agent)
    check_resample(agent.resample)
    check_number("gamma", agent.gamma, at_least=0.0, at_most=1.0)
    check_integer("target_period", agent.target_period, at_least=1)
    check_integer("buffer_size", agent.buffer_size, at_least=1)
    check_integer("batch_size", agent.batch_size, at_least=1, at_most=2**16)
    if agent.batch_size > agent.buffer_size:
        message = f"buffer_size ({agent.buffer_size}) must be at least batch_size "
        message += f"({agent.batch_size})"
        raise ConfigError("batch_size", agent.batch_size, "at most buffer_size", message)
    check_number("importance", agent.importance, at_least=0.0, at_most=1.0)
    if agent.prioritised is not None:
        check_number("prioritised", agent.prioritised, at_least=0.0, at_most=1.0)
    elif float(agent.importance) != type(agent).importance:
        reason = "has no effect without prioritised: remove it, or set prioritised"
        raise ConfigError("importance", agent.importance, reason)
    check_integer("n_step", agent.n_step, at_least=1, at_most=agent.buffer_size)
    check_number("one_step", agent.one_step, at_least=0.0, at_most=1.0)
    if agent.n_step == 1 and float(agent.one_step) != type(agent).one_step:
        reason = "has no effect with n_step=1: remove it, or set n_step"
        raise ConfigError("one_step", agent.one_step, reason)
    check_integer("learning_starts", agent.learning_starts, at_least=1)
    check_hidden("hidden", agent.hidden)
    check_architecture(agent.network)


def check_reward_scale(agent: Any) -> None:
    """Raise `ConfigError` unless `reward_scale` is a `RewardScale`, and is 1 if the return is 0 or
    1."""
    scale = agent.reward_scale
    if not isinstance(scale, RewardScale):
        allowed = "a rove.RewardScale, such as rove.LargestReturn() or rove.ConstantScale(100.0)"
        raise ConfigError.must_be("reward_scale", scale, allowed)
    unscaled = isinstance(scale, ConstantScale) and float(scale.constant) == 1.0
    if agent.returns.binary and not unscaled:
        name = type(agent.returns).__name__
        raise ConfigError.must_be("reward_scale", scale, f"1 for {name}, whose returns are 0 or 1")


def check_estimate(agent: Any) -> None:
    """Raise `ConfigError` if `draws`, `gradient` or `alpha` is invalid, or if a family of the agent
    does not support it."""
    check_integer("draws", agent.draws, at_least=1, at_most=10_000)
    check_choice("gradient", agent.gradient, get_args(Gradient))
    if agent.alpha is not None:
        check_number("alpha", agent.alpha, at_least=1e-6)
        if float(agent.returns.unit) == 0.0:
            reason = "needs a return with a standard deviation above 0: set its sigma"
            raise ConfigError("alpha", agent.alpha, reason)
    if agent.gradient == "score":
        if not isinstance(agent.posterior, Density):
            name = type(agent.posterior).__name__
            reason = "needs a posterior with a density (MeanField, LowRank or FullCovariance), "
            raise ConfigError("gradient", "score", f"{reason}which {name} does not have")
        if agent.alpha is not None:
            raise ConfigError.must_be("alpha", agent.alpha, "None with gradient='score'")


def check_agent(agent: Any) -> None:
    """Raise `ConfigError` if a field of an `Agent` is invalid."""
    check_critic(agent)
    check_flag("double", agent.double)
    check_number("epsilon", agent.epsilon, at_least=0.0, at_most=1.0)
    check_number("epsilon_start", agent.epsilon_start, at_least=0.0, at_most=1.0)
    check_integer("epsilon_steps", agent.epsilon_steps, at_least=0)
    check_integer("repeat", agent.repeat, at_least=1, at_most=1_000_000)
    check_number("lr", agent.lr, above=0.0)
    agent.posterior.validate(spec_of(agent))


def check_actor_critic(agent: Any) -> None:
    """Raise `ConfigError` if a field of an `ActorCritic` is invalid."""
    check_critic(agent)
    if agent.network is not None:
        hint = ". The networks of an actor–critic are fully connected: set hidden"
        raise ConfigError.must_be("network", agent.network, "None", hint)
    check_integer("critics", agent.critics, at_least=1, at_most=100)
    check_number("noise_std", agent.noise_std, at_least=0.0)
    check_number("noise_reversion", agent.noise_reversion, above=0.0, at_most=1.0)
    check_integer("random_steps", agent.random_steps, at_least=0)
    check_number("actor_lr", agent.actor_lr, above=0.0)
    check_number("critic_lr", agent.critic_lr, above=0.0)
    check_number("tau", agent.tau, above=0.0, at_most=1.0)
    check_integer("policy_period", agent.policy_period, at_least=1)
    check_number("smoothing_std", agent.smoothing_std, at_least=0.0)
    check_number("smoothing_clip", agent.smoothing_clip, at_least=0.0)
    try:  # an input of the critic is (s, a), which is never one-hot
        agent.posterior.validate(spec_of(agent, np.full(2, 0.5)))
    except ConfigError as error:
        if error.field != "observation":
            raise
        name = type(agent.posterior).__name__
        reason = f"{name} cannot be the posterior of a critic with inputs (s, a): it requires "
        reason += f"{error.allowed}. Use another posterior, such as MeanField or LastLayer"
        raise ConfigError("posterior", name, reason, reason) from None


def spec_of(agent: Any, observation: np.ndarray | None = None) -> Spec:
    """Return the properties of an agent that its posterior may depend on."""
    returns, binary = agent.returns, agent.returns.binary
    return Spec(returns.exact, returns.scale, agent.hidden, agent.network, observation, binary)


def check_resample(resample: Any) -> None:
    """Raise `ConfigError` unless `resample` is "step", "episode" or a number of steps."""
    try:
        if resample not in ("step", "episode"):
            check_integer("resample", resample, at_least=1)
    except ConfigError:
        allowed = "step, episode, or a number of steps"
        raise ConfigError.must_be("resample", resample, allowed) from None


def memory_of(
    state: AgentState, features: int, buffer_size: int, hidden: tuple[int, ...]
) -> Memory:
    """Return the memory that an agent's state needs, computed from its shapes, and the part of the
    state that needs the most."""
    replay, total, per_copy = (
        sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(part))
        for part in (state.replay, state, (state.theta, state.random))
    )
    total += (state.replay.layout.stride - 1) * per_copy
    if replay >= total / 2:
        cause = "the replay buffer", "buffer_size", buffer_size, "a smaller buffer"
    elif hidden:
        cause = "the parameters", "hidden", hidden, "narrower layers"
    else:
        cause = "the parameters", "features", features, "a smaller environment"
    return Memory(total, *cause)
