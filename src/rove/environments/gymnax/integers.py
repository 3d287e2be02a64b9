"""Detection of gymnax environments whose observations are integers, from their programs.

gymnax returns the flags of MinAtar's images as float32, and declares them as a Box of real numbers.
That they are integers follows from the program: its last operation converts an array of integers.
(Seaquest's does not, so its flags are stored as floats of four bytes.)
"""

from typing import Any

import jax
import jax.numpy as jnp

from rove.parts import noise
from rove.parts.integers import Integers
from rove.parts.noise import Key

_TRANSPARENT = (
    "convert_element_type",
    "reshape",
    "squeeze",
    "broadcast_in_dim",
    "transpose",
    "copy",
    "stop_gradient",
)
"""Operations that do not change the values of their argument."""


def integers_of(environment: Any, params: Any, low: float, high: float) -> Integers | None:
    """Return the form of an environment's observations, given the bounds that it declares; None
    unless they are integers from 0 to 255."""
    if low < 0 or high > 255:
        return None

    def observe(key: Key) -> tuple[Any, Any]:
        first, state = environment.reset_env(key, params)
        action = environment.action_space(params).sample(key)
        return first, environment.step_env(key, state, action, params)[0]

    try:
        program = jax.make_jaxpr(observe)(noise.root(0)).jaxpr
    except Exception:  # the environment is not valid, which is reported when it is first used
        return None
    exact = all(_is_integer(program, variable) for variable in program.outvars)
    return Integers(flags=high <= 1) if exact else None


def _is_integer(program: Any, variable: Any) -> bool:
    """Whether a variable of a program is an array of integers or flags, or is converted from one
    without a change of its values."""
    if not jnp.issubdtype(variable.aval.dtype, jnp.floating):
        return True
    for equation in program.eqns:
        if variable not in equation.outvars:
            continue
        name, (source, *_) = equation.primitive.name, (*equation.invars, None)
        inner = equation.params.get("jaxpr")
        if name in ("jit", "pjit") and inner is not None:
            at = equation.outvars.index(variable)
            return _is_integer(inner.jaxpr, inner.jaxpr.outvars[at])
        return name in _TRANSPARENT and _is_integer(program, source)
    return False
