"""The base class of the settings of named agents."""

import dataclasses
from collections.abc import Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    TypeAlias,
    dataclass_transform,
    get_args,
    get_type_hints,
)

from rove.bonuses import RND, Counts, Disagreement, NoBonus
from rove.core.algorithm import Agent
from rove.core.learner import Learner
from rove.core.reward_scale import ConstantScale, LargestReturn, RewardScale
from rove.errors import (
    SYNONYMS,
    ConfigError,
    check_choice,
    check_number,
    check_type,
    did_you_mean,
    no_attribute,
)
from rove.parts.architectures import Architecture
from rove.returns import CVaR, Gaussian, Risk, ValueAtRisk
from rove.returns.gaussian import LEAST_SIGMA
from rove.returns.risk import check_level

_TRAINED = "an agent is trained by rove.train(agent, environment, steps=N)"
_ADVICE = dict.fromkeys(("learn", "train", "fit", "predict", "save", "load"), _TRAINED)
"""What to do instead, for methods that settings do not have."""
_AGENT: Any = Agent  # its attributes are the default values of its fields


ScaleName: TypeAlias = Literal["running", "growing"]
BonusName: TypeAlias = Literal["none", "disagreement", "counts", "rnd"]
BONUS_WEIGHT = 1.0
"""Default weight η of an intrinsic reward."""
RiskName: TypeAlias = Literal["mean", "cvar", "quantile"]
RISK_LEVEL = 0.1
"""Default level α of a risk measure."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a named agent; `compose` builds the agent from them.

    A subclass is a frozen dataclass whose fields are its settings.

    **Example**
    >>> class MyDQN(NetworkSettings, name="my_dqn", label="My DQN"):
    ...     epsilon: float = 0.2
    ...
    ...     def compose(self) -> Agent:
    ...         return Agent(Gaussian(0.0), Dirac(), **self.shared())
    """

    name: ClassVar[str] = ""
    """The name on the command line."""
    label: ClassVar[str] = ""
    """The name in figures and reports."""

    def __new__(cls, *unnamed: Any, **settings: Any) -> Self:
        if unnamed:
            allowed = f"given by name, as in rove.{cls.__name__}(lr=0.001)"
            raise ConfigError.must_be("settings", unnamed, allowed, f"; {_TRAINED}")
        for field, value in settings.items():
            if field not in cls.__dataclass_fields__:
                raise unknown_setting(cls, field, value)
        return super().__new__(cls)

    def __init_subclass__(cls, name: str = "", label: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name, cls.label = name or cls.name, label or cls.label
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        """Check the values, and normalise them to what JSON round-trips to.

        An int in a float field becomes a float: otherwise equal settings would differ in
        config.json and be compiled twice.
        """
        kinds = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value, kind = _plain(getattr(self, field.name)), kinds[field.name]
            check_type(field.name, value, kind)
            if type(value) is int and float in (kind, *get_args(kind)):
                check_number(field.name, value)
                value = float(value)
            object.__setattr__(self, field.name, value)
        self.compose()  # checks the ranges of the values

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name, _ADVICE)

    def compose(self) -> Learner:
        """Build the agent."""
        raise NotImplementedError


class NetworkSettings(Settings):
    """Settings shared by all agents that combine a return family with a posterior."""

    lr: float = _AGENT.lr
    """Learning rate α of Adam."""
    gamma: float = _AGENT.gamma
    """Discount factor γ."""
    n_step: int = _AGENT.n_step
    """Number of rewards in a target; above 1, sparse rewards travel faster."""
    one_step: float = _AGENT.one_step
    """Fraction of targets with a single reward; only with n-step above 1."""
    resample: Literal["step", "episode"] | int = _AGENT.resample
    """When to resample θ for acting: every step (the paper), every episode, or every N steps."""
    epsilon: float = _AGENT.epsilon
    """Final probability ε of a random action."""
    epsilon_start: float = _AGENT.epsilon_start
    """Probability of a random action at step 0, if epsilon-steps is above 0."""
    epsilon_steps: int = _AGENT.epsilon_steps
    """Number of steps over which ε falls from epsilon-start to epsilon; 0: constant."""
    repeat: int = _AGENT.repeat
    """Maximum duration of a random action, in steps; in half of the episodes, it lasts at least n
    steps with probability 1/n."""
    batch_size: int = _AGENT.batch_size
    """Number of transitions N in a minibatch."""
    buffer_size: int = _AGENT.buffer_size
    """Capacity of the replay buffer, in transitions."""
    prioritised: float | None = _AGENT.prioritised
    """Exponent α of prioritised replay, such as 0.6; None: uniform sampling."""
    importance: float = _AGENT.importance
    """Exponent β of the importance weights of prioritised replay; only with prioritised."""
    learning_starts: int = _AGENT.learning_starts
    """Step of the first update."""
    target_period: int = _AGENT.target_period
    """Number of steps between updates of the target parameters, φ⁻ ← φ."""
    hidden: tuple[int, ...] = _AGENT.hidden
    """Widths of the fully connected hidden layers."""
    network: Architecture = _AGENT.network
    """The network: a `ConvNet` for images, or a custom function; None: chosen to suit the
    observations."""
    bonus: BonusName = "none"
    """Intrinsic reward: disagreement (the spread of Q over θ), counts (of visits to states), or rnd
    (random network distillation)."""
    bonus_weight: float = BONUS_WEIGHT
    """Weight η of the intrinsic reward; only with a bonus."""
    reward_scale: float | ScaleName = 1.0
    """What rewards are divided by: a number; running: the largest return so far; growing: the same,
    but at least 1."""

    def shared(self) -> dict[str, Any]:
        """Return the arguments of `Agent` that all agents share, including the `Bonus` and the
        `RewardScale`."""
        fields = dataclasses.fields(NetworkSettings)
        shared = {field.name: getattr(self, field.name) for field in fields}
        shared["reward_scale"] = scale_of_rewards(self.reward_scale)
        return with_bonus(shared, type(self).bonus_weight)


def scale_of_rewards(scale: float | ScaleName) -> RewardScale:
    """Return the `RewardScale` that the setting `reward_scale` stands for."""
    names = {"running": LargestReturn(), "growing": LargestReturn(least=1.0)}
    return names[scale] if isinstance(scale, str) else ConstantScale(scale)


def with_bonus(shared: dict[str, Any], default: float = BONUS_WEIGHT) -> dict[str, Any]:
    """Return settings in which a `Bonus` replaces the names `bonus` and `bonus_weight`.

    `default` is the agent's default weight.
    """
    kinds = {"disagreement": Disagreement, "counts": Counts, "rnd": RND}
    name, weight = shared["bonus"], shared.pop("bonus_weight")
    check_choice("bonus", name, ("none", *kinds))
    check_number("bonus_weight", weight, at_least=0.0)
    if name == "none" and weight != default:
        reason = "has no effect with bonus='none': remove it, or set bonus='counts'"
        raise ConfigError("bonus_weight", weight, reason)
    return shared | {"bonus": NoBonus() if name == "none" else kinds[name](weight)}


class PointEstimateSettings(NetworkSettings):
    """Settings shared by agents with a point estimate of θ, which explore by ε-greedy actions."""

    resample: Literal["step", "episode"] | int = _AGENT.resample
    """No effect: this agent does not sample θ."""
    epsilon: float = 0.1
    """Final probability ε of a random action."""


class DistributionalSettings(PointEstimateSettings):
    """Settings shared by point estimates of a return distribution, which can avoid risk."""

    risk: RiskName = "mean"
    """What actions maximise: the mean return, its CVaR (mean of the lowest part), or a quantile."""
    risk_level: float = RISK_LEVEL
    """Level α of the CVaR or the quantile: the fraction of returns that count as the worst."""


def risk_measure(name: str, level: float) -> Risk | None:
    """Return the risk measure of the settings `risk` and `risk_level`; None: the mean."""
    kinds = {"cvar": CVaR, "quantile": ValueAtRisk}
    check_choice("risk", name, ("mean", *kinds))
    check_level("risk_level", level)
    if name == "mean" and level != RISK_LEVEL:
        reason = "has no effect with risk='mean': remove it, or set risk='cvar'"
        raise ConfigError("risk_level", level, reason)
    return None if name == "mean" else kinds[name](level)


def unknown_setting(
    settings: Settings | type[Settings], field: str, value: Any, others: Sequence[str] = ()
) -> ConfigError:
    """Return the error for a setting that the agent does not have.

    `others` are names that are not settings, but may have been meant.
    """
    fields = [f.name for f in dataclasses.fields(settings)]
    known = [*others, *fields]
    meant = SYNONYMS.get(field.replace("_", "-"), "").replace("-", "_")
    hint = f". Did you mean {meant!r}?" if meant in known else did_you_mean(field, known) or "."
    message = f"{settings.name} has no setting {field!r}{hint} It has " + ", ".join(fields)
    return ConfigError(field, value, "one of " + ", ".join(fields), message)


def with_settings(settings: Settings, changes: dict[str, Any]) -> Settings:
    """Return a copy of the settings with some changes; unknown names raise `ConfigError`."""
    fields = [f.name for f in dataclasses.fields(settings)]
    for field, value in changes.items():
        if field not in fields:
            raise unknown_setting(settings, field, value)
    inner = {  # the fields of a part, from the command line
        field: dataclasses.replace(getattr(settings, field), **value)
        for field, value in changes.items()
        if isinstance(value, dict)
    }
    return dataclasses.replace(settings, **changes | inner)


def gaussian_with_entropy(sigma: float, draw: Literal["sample", "mean"] = "sample") -> Gaussian:
    """Return a Gaussian return with σ > 0; at σ = 0 the entropy of q_φ would have no weight."""
    if sigma == 0:
        hint = "; the limit σ → 0 is the agent noisynet"
        raise ConfigError.must_be("sigma", sigma, f"at least {LEAST_SIGMA:g}", hint)
    check_number("sigma", sigma, at_least=LEAST_SIGMA)
    return Gaussian(sigma, draw)


def _plain(value: Any) -> Any:
    """Convert NumPy and JAX values to Python numbers, and lists to tuples."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(_plain(x) for x in value) if isinstance(value, list | tuple) else value
