"""The named agents: each is one composition of a return family and a parameter family."""

import dataclasses
from typing import Any, ClassVar, Literal

from rove.algorithm import Agent
from rove.errors import ConfigError, check_choice, check_number, did_you_mean
from rove.posteriors import Dirac, Factorised, MeanField
from rove.returns import Gaussian


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What every named agent can be told. `compose` makes the agent."""

    name: ClassVar[str]
    """What a person types."""
    label: ClassVar[str]
    """What a picture says."""

    lr: float = 1e-3
    """α, the learning rate of Adam."""
    gamma: float = 0.99
    """γ, the discount."""
    resample: Literal["step", "episode"] = "step"
    """When a new θ is drawn for control: every step (the paper) or every episode."""
    epsilon: float = 0.0
    """Probability of a random action, once its schedule has ended."""
    epsilon_start: float = 1.0
    """The same at step 0."""
    epsilon_steps: int = 0
    """Steps over which it falls from epsilon-start to epsilon; 0: constant."""
    batch_size: int = 64
    """N, transitions in a minibatch."""
    buffer_size: int = 50_000
    """Transitions the replay buffer holds."""
    learning_starts: int = 500
    """The step of the first update."""
    target_period: int = 100
    """τ, steps between copies of φ to φ⁻."""
    hidden: tuple[int, ...] = (100, 100)
    """Widths of the hidden layers."""

    def compose(self) -> Agent:
        raise NotImplementedError

    def shared(self) -> dict[str, Any]:
        """The fields that go to `Agent` as they are."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(Settings)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class DQN(Settings):
    """DQN: Gaussian return, σ → 0; all mass on one θ; ε-greedy (Section 5.2)."""

    name: ClassVar[str] = "dqn"
    label: ClassVar[str] = "DQN"
    epsilon: float = 0.1
    """Probability of a random action, once its schedule has ended."""

    def compose(self) -> Agent:
        return Agent(Gaussian(0.0), Dirac(), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoisyNet(Settings):
    """NoisyNet: Gaussian return, σ → 0; Gaussian noise on every parameter (Section 5.2)."""

    name: ClassVar[str] = "noisynet"
    label: ClassVar[str] = "NoisyNet"
    rho: float = -4.0
    """ρ at the start: the noise of a parameter is softplus(ρ)."""
    noise: Literal["independent", "factorised"] = "independent"
    """A draw for each weight, or one for each input and output, multiplied."""

    def compose(self) -> Agent:
        check_choice("noise", self.noise, ("independent", "factorised"))
        posterior = {"independent": MeanField, "factorised": Factorised}[self.noise]
        return Agent(Gaussian(0.0), posterior(self.rho), **self.shared())


@dataclasses.dataclass(frozen=True, kw_only=True)
class GE(Settings):
    """GE, Gauss Exploration: Gaussian return, mean-field Gaussian posterior (Algorithm 2)."""

    name: ClassVar[str] = "ge"
    label: ClassVar[str] = "GE"
    rho: float = -4.0
    """ρ at the start: the spread of a parameter is softplus(ρ)."""
    sigma: float = 1e-3
    """σ of the return; the entropy of q_φ weighs σ²/N."""

    def compose(self) -> Agent:
        check_number("sigma", self.sigma, above=0.0)
        return Agent(Gaussian(self.sigma), MeanField(self.rho), **self.shared())


AGENTS: dict[str, type[Settings]] = {kind.name: kind for kind in (DQN, NoisyNet, GE)}


def label_of(name: str) -> str:
    """How to call an agent in a picture: its label, or the name it has."""
    return AGENTS[name].label if name in AGENTS else name


def settings_of(name: str) -> type[Settings]:
    """The settings class of a named agent."""
    if name not in AGENTS:
        raise ConfigError("agent", name, "one of " + ", ".join(AGENTS) + did_you_mean(name, AGENTS))
    return AGENTS[name]


def with_settings(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The same agent with some settings changed; an unknown one is refused."""
    fields = [f.name for f in dataclasses.fields(settings)]
    for field, value in changes.items():
        if field not in fields:
            hint = f"{settings.name} has " + ", ".join(fields) + did_you_mean(field, fields)
            raise ConfigError(field, value, f"an unknown setting; {hint}")
    plain = {field: _plain(value) for field, value in changes.items()}
    # A whole number where a fraction belongs would compile a second program.
    kinds = {f.name: f.type for f in dataclasses.fields(settings)}
    for field, value in plain.items():
        if kinds[field] in (float, "float") and type(value) is int:
            check_number(field, value)
            plain[field] = float(value)
    return dataclasses.replace(settings, **plain)


def _plain(value: Any) -> Any:
    """Python's own numbers and tuples, whatever library or file the value is from."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(_plain(x) for x in value) if isinstance(value, list | tuple) else value
