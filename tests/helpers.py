"""Shortcuts that several tests share: draws for a minibatch, targets, objectives and refits;
counts of compiled programs; lanes of runs that were stopped; cases that are slow."""

import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rove.parts import noise, replay
from rove.parts.replay import Transition
from rove.posteriors.base import Data, OneTheta, Pairs, Phi
from rove.posteriors.priors import Input, inputs
from rove.runs.execution import run_all
from rove.training import progress, storage
from rove.training.lane import Lane

SMALL = {"hidden": (8,), "batch_size": 8, "buffer_size": 64, "learning_starts": 8}
"""Settings of agents that learn next to nothing. Runs of one agent with these on one task share
their compiled programs, in whichever file they are."""


def in_buffer(transition: Transition) -> Transition:
    """A transition, or several, with the action as it comes out of the buffer: a vector."""
    action = jnp.asarray(transition.action, jnp.float32)[..., None]
    return transition._replace(action=action)


def as_input(x) -> Input:
    return x if isinstance(x, Input) else Input(x)


def draw(posterior, law, n: int, key):
    """A θ for each of n transitions, numbered from 0."""
    return posterior.sample_rows(law, jnp.arange(n), key)


def rows(posterior, law, x, key):
    """[draws, n, outputs]: f_θ of every row, with a θ, or several, for each."""
    x = as_input(x)
    return draw(posterior, law, x.features.shape[0], key)(law, x)


def in_numpy(learned, x, epsilon) -> np.ndarray:
    """[n, outputs] in float64: f_θ of every row, with a θ for each, of a mean-field Gaussian over
    fully connected layers with the given μ and ρ. Given its input x, a layer's pre-activations are
    independent Gaussians of mean x·μ + μ_b and variance x²·σ² + σ_b²; `epsilon` has their standard
    normals, layer by layer, in a row for each row of x."""
    h, epsilon = np.asarray(x, np.float64), np.asarray(epsilon, np.float64)
    for mu, rho in zip(learned.mu, learned.rho, strict=True):
        outputs = len(mu.bias)
        xi, epsilon = np.split(epsilon, [outputs], axis=1)
        mean, bias = (np.asarray(part, np.float64) for part in mu)
        variance, of_bias = (np.logaddexp(0.0, np.asarray(part, np.float64)) ** 2 for part in rho)
        h = h @ mean + bias + np.sqrt(h**2 @ variance + of_bias) * xi
        h = np.maximum(h, 0.0) if epsilon.size else h
    return h


def single(posterior, law, x, key):
    """f_θ(x) with a θ drawn for this x alone, as in control."""
    x = jax.tree.map(lambda leaf: leaf[None], as_input(x))
    return posterior.sample_rows(law, None, key)(law, x)[0, 0]


def targets(agent, law, law_minus, batch: Transition, k_theta, k_target, priors=()):
    """Lines 9 and 10 of Algorithm 2 with a θ⁻ for each transition."""
    theta_minus = draw(agent.posterior, law_minus, batch.reward.shape[0], k_theta)
    return agent.lookahead(priors, law, law_minus, theta_minus, batch, k_target)


def targets_of_one(agent, law, law_minus, batch: Transition, key, part, priors=()):
    """The targets that `Posterior.refit` is given, in which all transitions share a θ⁻."""
    theta_minus = OneTheta(agent.posterior, noise.fold(key, 0))
    k_target = noise.fold(key, 1, part)
    return agent.lookahead(priors, law, law_minus, theta_minus, batch, k_target)[0]


def objective(agent, phi: Phi, batch: Transition, x, key):
    """The objective with θ drawn from a key. Also its first term."""
    theta = draw(agent.posterior, agent.posterior.law(phi), batch.reward.shape[0], key)
    return agent.objective(phi, theta, batch, x)


@jax.jit
def refit(posterior, phi: Phi, scale, counter, memory, key) -> Phi:
    """A refit with the reward as the target, for discrete actions."""

    def pairs(priors, batch: Transition) -> Pairs:
        return Pairs(inputs(priors, batch.observation, batch.priors), batch.action_index)

    def reward(transitions: Transition, key, part):
        return transitions.reward

    about = scale, 0.99, counter, memory, replay.stored_reward
    return posterior.refit(phi, Data(*about, pairs, reward, key))


class _Programs(logging.Handler):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.start, self.messages = f"Compiling jit({name})", []

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith(self.start):
            self.messages.append(record.getMessage())


@contextmanager
def compilations(name: str) -> Iterator[list[str]]:
    """The programs that JAX compiles from a function of this name, in any thread, as it logs
    them. A program that this process has compiled before is not among them."""
    handler, logger = _Programs(name), logging.getLogger("jax")
    logger.addHandler(handler)
    jax.config.update("jax_log_compiles", True)
    try:
        yield handler.messages
    finally:
        jax.config.update("jax_log_compiles", False)
        logger.removeHandler(handler)


def lane_at(config, step: int, out: Path, monkeypatch) -> Lane:
    """The lane of a run on the host, with its replay, at the end of the episode that ends with
    this step: the run is stopped there, and its checkpoint is read."""
    monkeypatch.setattr(progress, "CHECKPOINT_SECONDS", 0.0)

    def stop(update: progress.Progress) -> None:
        if update.step == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all([(config, out)], stop)
    return storage.load(config.jobs(out)[0]).lane


def some_quick(cases: Iterable, quick: Collection) -> list:
    """Cases of a test: `make test` runs those that are quick, `make test-slow` the others. A case
    is one argument, or a tuple of them."""
    cases = list(cases)
    lost = [case for case in quick if case not in cases]
    assert not lost, f"not among the cases: {lost}"
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if case in quick else pytest.mark.slow,
        )
        for case in cases
    ]
