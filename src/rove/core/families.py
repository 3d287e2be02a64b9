"""Checks of the shapes that the methods of a family return. Nothing is computed."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rove.bonuses.base import Bonus
from rove.errors import ConfigError
from rove.parts import networks, noise
from rove.parts.networks import Network
from rove.parts.replay import Transition
from rove.posteriors.base import Phi, Posterior
from rove.posteriors.priors import Input, inputs
from rove.returns.base import Return

ROWS = 3
"""Number of rows of the minibatch that is checked."""
SMALL = networks.mlp(4, 8, 2)


def check_posterior(posterior: Posterior, network: Network = SMALL) -> None:
    """Raise `ConfigError` if a method of a posterior fails or returns a wrong shape.

    The error names the method. `rove.train` makes this check for every agent.

    **Arguments**
    - `posterior`: the posterior.
    - `network`: the network; by default one with four inputs, eight hidden units and two outputs.

    **Example**
    >>> rove.check_posterior(rove.Dirac())
    """
    call = _Caller("posterior", posterior, Posterior)
    key, features = noise.root(0), jnp.zeros((ROWS, network.inputs))
    phi = call("init", lambda: posterior.init(network, key))
    if not isinstance(phi, Phi):
        is_array = isinstance(phi, jax.ShapeDtypeStruct)
        kind = "an array" if is_array else f"a {type(phi).__name__}"
        raise call.error("init", f"returned {kind} instead of a rove.Phi")
    law = call("law", posterior.law, phi)
    draw = call("sample", posterior.sample, law, key)
    rows = jax.eval_shape(lambda phi: inputs(phi.priors, features), phi)
    row = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), rows)
    outputs = (network.outputs,)
    call.array("apply", outputs, call("apply", posterior.apply, law, draw, row))
    call.array("mean", outputs, call("mean", posterior.mean, law, row))
    call.array("entropy", (), call("entropy", posterior.entropy, law))

    def sampled(law: Any, x: Input) -> Any:
        return posterior.sample_rows(law, jnp.arange(ROWS), key)(law, x)

    z = call("sample_rows", sampled, law, rows)
    call.array("sample_rows", (*jnp.shape(z)[:1], ROWS, *outputs), z)


def check_returns(returns: Return) -> None:
    """Raise `ConfigError` if a method of a return family fails or returns a wrong shape.

    The error names the method. `rove.train` makes this check for every agent.

    **Example**
    >>> rove.check_returns(rove.Quantile())
    """
    call = _Caller("returns", returns, Return)
    if not isinstance(returns.outputs, int) or returns.outputs < 1:
        raise call.error("outputs", f"is {returns.outputs!r} instead of a positive integer")
    z, number, key = jnp.zeros(returns.outputs), jnp.zeros(()), noise.root(0)
    for method in (returns.mean, returns.std, returns.value):
        call.array(method.__name__, (), call(method.__name__, method, z))
    target = call("target", returns.target, z, number, number, key)
    call.array("loss", (), call("loss", returns.loss, z, target))
    xs, heights = call("density", returns.density, z)
    call.array("density", (*jnp.shape(xs)[:1],), heights)


def check_bonus(bonus: Bonus, features: int = 4) -> None:
    """Raise `ConfigError` if a method of an intrinsic reward fails or returns a wrong shape.

    The error names the method. `rove.train` makes this check for every agent.

    **Example**
    >>> rove.check_bonus(rove.Counts())
    """
    call, key = _Caller("bonus", bonus, Bonus), noise.root(0)
    x, zero, false = jnp.zeros(features), jnp.zeros(()), jnp.zeros((), bool)
    step = Transition(x, zero[None], zero, x, false, cell=jnp.zeros((), jnp.int32))
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf] * ROWS), step)
    state = call("init", lambda: bonus.init(features, False, key))
    observed, _ = call("observe", bonus.observe, state, step)
    call.unchanged("observe", state, observed)
    call.unchanged("update", state, call("update", bonus.update, state, batch))
    spread = jnp.zeros(ROWS)
    reward = call("reward", lambda state: bonus.reward(state, batch, lambda: spread), state)
    call.array("reward", (ROWS,), reward)


class _Caller:
    """Evaluates the shapes of the results of a family's methods, and raises errors about them."""

    def __init__(self, field: str, family: Any, base: type):
        if not isinstance(family, base):
            raise ConfigError.must_be(field, family, f"a rove.{base.__name__}")
        self.field, self.name = field, type(family).__name__

    def __call__(self, method: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the shapes of a method's result."""
        try:
            return jax.eval_shape(function, *arguments)
        except ConfigError:
            raise
        except Exception as error:
            reason = str(error).strip().partition("\n")[0]
            hint = ""
            if method in ("apply", "mean", "sample_rows") and self.field == "posterior":
                hint = " (x is an Input: the observation is x.features)"
            kind = type(error).__name__
            raise self.error(method, f"failed{hint}: {kind}: {reason}") from error

    def array(self, method: str, shape: tuple[int, ...], result: Any) -> None:
        """Raise an error unless a result is an array of floats with the given shape."""
        if not isinstance(result, jax.ShapeDtypeStruct):
            raise self.error(method, f"returned a {type(result).__name__} instead of an array")
        if result.shape != shape:
            wanted = shape or "(), a number"
            problem = f"returned an array of shape {result.shape} instead of {wanted}"
            raise self.error(method, problem)
        if not jnp.issubdtype(result.dtype, jnp.floating):
            raise self.error(method, f"returned {result.dtype} instead of floats")

    def unchanged(self, method: str, before: Any, after: Any) -> None:
        """Raise an error unless two states have the same structure, shapes and types."""
        same = jax.tree.structure(before) == jax.tree.structure(after)
        leaves = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=False)
        if not same or any((a.shape, a.dtype) != (b.shape, b.dtype) for a, b in leaves):
            raise self.error(method, "returned a state with another structure than that of init")

    def error(self, method: str, problem: str) -> ConfigError:
        """Return the error about a problem with a method."""
        return ConfigError(self.field, self.name, problem, f"{self.name}.{method} {problem}")
