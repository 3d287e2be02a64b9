"""The interface of parameter distributions q_φ(θ)."""

import abc
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int, UInt32

from rove.errors import ConfigError
from rove.parts import noise
from rove.parts.architectures import Architecture, is_function
from rove.parts.networks import Network, Theta
from rove.parts.noise import Key
from rove.parts.replay import Replay, Reward, Transition
from rove.posteriors.priors import Input

Law = TypeVar("Law")
"""The parameters of q_φ in the form that sampling needs, as a pytree: a Gaussian's means and
standard deviations, for example."""
Draw = TypeVar("Draw")
"""A sample θ ~ q_φ, in whatever form suits the family: weights, the index of an ensemble member, an
epistemic index z, or dropout masks."""


class Phi(NamedTuple):
    """φ, the parameters of q_φ."""

    learned: Any
    """Parameters that are trained by gradient descent."""
    fitted: Any = ()
    """Parameters that are not: those that `refit` computes, or the key of the bootstrap masks."""
    priors: Theta | tuple[()] = ()
    """Prior functions: fixed networks, stacked along the first axis."""


class Stack(NamedTuple):
    """Networks, and the weights of their sum."""

    weights: Float[Array, " count"]
    networks: Theta
    """The parameters of the networks, stacked along the first axis."""


def single(theta: Theta) -> tuple[Stack]:
    """Return a stack of one network."""
    return (Stack(jnp.ones(1), jax.tree.map(lambda x: x[None], theta)),)


class Rows(eqx.Module, Generic[Law]):
    """One or more samples θ ~ q_φ for each row of a minibatch.

    An instance stores only random numbers (those that are transformed into θ), not φ. The same
    instance can therefore be evaluated for φ⁻ as well as for φ, which pairs θ⁻ with θ, and the
    result can be differentiated with respect to φ.
    """

    @abc.abstractmethod
    def __call__(self, law: Law, x: Input) -> Float[Array, "draws n outputs"]:
        """Return f_θ(x) for each row of x and each of its samples of θ."""

    @property
    def weights(self) -> Float[Array, "draws_ n_"]:
        """Weights of the loss for each sample and row, such as bootstrap masks.

        The shape broadcasts to [draws, n]. Where a weight is 0, the result of `__call__` is
        arbitrary.
        """
        return jnp.ones((1, 1))

    def for_target(self, independent: "Rows[Law]") -> "Rows[Law]":
        """Return the samples θ⁻ for the targets of the same rows.

        These are the independent samples, as in the paper, or these samples again (see `Paired`).
        """
        return independent


class Paired(Rows[Law]):
    """Samples of θ whose random numbers are also those of θ⁻."""

    rows: Rows[Law]

    def __call__(self, law: Law, x: Input) -> Float[Array, "draws n outputs"]:
        return self.rows(law, x)

    @property
    def weights(self) -> Float[Array, "draws_ n_"]:
        return self.rows.weights

    def for_target(self, independent: Rows[Law]) -> Rows[Law]:
        return self


class Pairs(NamedTuple):
    """A batch of state–action pairs (s, a), as inputs of a critic."""

    inputs: Input
    action: Int[Array, " n"]
    """Index of the action among the network's outputs; 0 if the action is one of its inputs."""


class Data(NamedTuple):
    """The data that `Posterior.refit` fits q_φ to."""

    scale: float | Array
    """`Return.scale`."""
    gamma: float | Array
    """Discount factor γ, which reading transitions from the buffer requires."""
    counter: Int[Array, ""]
    """Number of environment steps so far."""
    replay: Replay
    reward: Reward
    """Returns the rewards of single steps from the replay buffer, with intrinsic ones."""
    pairs: Callable[[Any, Transition], Pairs]
    """Converts transitions from the replay buffer to inputs of f_θ, given `Phi.priors`."""
    target: Callable[[Transition, Key, int | Array], Float[Array, " n"]]
    """Samples a target x for each transition, given a key and the index of a block.

    The key determines θ⁻, which is the same for all transitions and all blocks. The index gives
    each block its own randomness in everything else.
    """
    key: Key


class Spec(NamedTuple):
    """The properties of an agent and its environment that a posterior may depend on."""

    exact: bool
    """`Return.exact`: whether the network has one output z per action, with loss ½(z − x)²."""
    scale: float | Array
    """`Return.scale`."""
    hidden: tuple[int, ...]
    """Widths of the fully connected hidden layers."""
    network: Architecture
    """The kind of network."""
    observation: np.ndarray | None = None
    """An example of an observation; None if the environment is not known yet."""
    binary: bool = False
    """`Return.binary`: whether the return is 0 or 1, and the output the logit of its mean."""


class Posterior(eqx.Module, Generic[Law, Draw]):
    """A family of parameter distributions q_φ(θ).

    A subclass implements five methods: `init`, `law`, `sample`, `apply` and `mean`. The others have
    defaults. `law` converts φ to the form that sampling needs. An `Agent` stores its result instead
    of φ⁻, since φ⁻ is only ever copied.
    """

    @abc.abstractmethod
    def init(self, network: Network, key: Key) -> Phi:
        """Return the initial φ, for a network."""

    @abc.abstractmethod
    def law(self, phi: Phi) -> Law:
        """Return the parameters of q_φ in the form that sampling needs."""

    @abc.abstractmethod
    def sample(self, law: Law, key: Key) -> Draw:
        """Sample one θ ~ q_φ, to be applied to many states."""

    @abc.abstractmethod
    def apply(self, law: Law, draw: Draw, x: Input) -> Float[Array, " outputs"]:
        """Return f_θ(x) for one sampled θ and one input."""

    @abc.abstractmethod
    def mean(self, law: Law, x: Input) -> Float[Array, " outputs"]:
        """Return the prediction for greedy evaluation: f_θ(x) at the mean of θ, or E[f_θ(x)]."""

    def sample_rows(self, law: Law, ids: Int[Array, " n"] | None, key: Key) -> Rows[Law]:
        """Sample a θ for each row of a minibatch. By default, this calls `sample` for each row.

        Override it if the outputs can be sampled at a lower cost from the same distribution.

        **Arguments**
        - `ids`: the transitions' numbers in the replay buffer, or None to sample a single row for
          choosing an action.
        """
        if ids is None:
            return OneTheta(self, key)
        return ThetaPerRow(self, noise.folds(key, ids.shape[0]))

    def entropy(self, law: Law) -> Float[Array, ""]:
        """Return H(q_φ) up to a constant, or −KL(q_φ ‖ prior); 0 if q_φ has no density."""
        return jnp.zeros(())

    def refit(self, phi: Phi, data: Data) -> Phi:
        """Return φ after a closed-form fit to the replay buffer, for families that have one.

        This is called after every gradient step.
        """
        return phi

    def validate(self, spec: Spec) -> None:
        """Raise a `ConfigError` that names an alternative if this family cannot be used."""


class Foldable(Posterior[Law, Draw]):
    """A family whose `mean` is a weighted sum of networks, so that policies can be exported."""

    @abc.abstractmethod
    def mean_networks(self, phi: Phi) -> tuple[Stack, ...]:
        """Return networks whose weighted sum is `mean`."""


class Density(Posterior[Law, Draw]):
    """A family whose samples have a density, so that gradients can be estimated by scores."""

    @abc.abstractmethod
    def log_density(
        self, law: Law, draw: Draw
    ) -> tuple[Float[Array, ""], Float[Array, " outputs"]]:
        """Return log q_φ(θ) in two parts, up to constants that do not depend on φ: the part of the
        parameters that several outputs depend on, and for each output the part of the parameters
        that no other output depends on."""


class Sampler(Posterior[Law, Draw]):
    """A family whose φ is the state of a Markov chain: a step of the chain takes the place of a
    step of Adam."""

    @abc.abstractmethod
    def start(self, learned: Any) -> Any:
        """Return the initial state of the chain besides φ, such as moments."""

    @abc.abstractmethod
    def step(
        self,
        learned: Any,
        gradient: Any,
        moments: Any,
        lr: float | Array,
        temperature: float | Array,
        key: Key,
    ) -> tuple[Any, Any]:
        """Return φ and the moments after a step of the chain.

        The gradient is that of the objective J, and the posterior is proportional to exp(−J/T),
        where T is the temperature. `learned` has a `Phi.learned` for each critic of the agent.
        """


class OneTheta(Rows[Law]):
    """The same sample θ for all rows."""

    posterior: Posterior[Law, Any]
    key: Key

    def __call__(self, law: Law, x: Input) -> Float[Array, "1 n outputs"]:
        theta = self.posterior.sample(law, self.key)
        return apply_all(self.posterior, law, theta, x)[None]


class ThetaPerRow(Rows[Law]):
    """A separate sample θ for each row."""

    posterior: Posterior[Law, Any]
    keys: UInt32[Array, "n 2"]

    def __call__(self, law: Law, x: Input) -> Float[Array, "1 n outputs"]:
        def at(key: Key, x: Input) -> Array:
            return self.posterior.apply(law, self.posterior.sample(law, key), x)

        return jax.vmap(at)(self.keys, x)[None]


def apply_all(
    posterior: Posterior[Law, Draw], law: Law, draw: Draw, x: Input
) -> Float[Array, "n outputs"]:
    """Return f_θ(x) for every row of x and a single sampled θ."""
    return jax.vmap(posterior.apply, (None, None, 0))(law, draw, x)


def check_layers(posterior: Posterior[Any, Any], spec: Spec, why: str) -> None:
    """Raise `ConfigError` if the network is a custom function. `why` says what this posterior needs
    layers for."""
    if is_function(spec.network):
        name = type(posterior).__name__
        reason = f"{name} needs a network of layers, {why}: leave network out, or use "
        reason += "rove.ConvNet. Dirac, MeanField, Ensemble and ParameterNoise accept any function"
        raise ConfigError("network", spec.network, reason, reason)


def row_count(ids: Int[Array, " n"] | None) -> int:
    """Return the number of rows that `Posterior.sample_rows` has to sample."""
    return 1 if ids is None else ids.shape[0]
