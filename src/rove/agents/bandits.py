"""Thompson sampling for bandits whose rewards are not Gaussian, or depend on a context."""

from typing import Any

from rove.agents.paper import BanditSettings
from rove.core.algorithm import Agent
from rove.posteriors import Beta, LastLayer
from rove.returns import Bernoulli, Gaussian

_BETA: Any = Beta  # its attributes are the default values of its fields


class ThompsonBeta(BanditSettings, name="thompson_beta", label="Thompson, Beta"):
    """Thompson sampling with rewards of 0 or 1, for bandits: Bernoulli return, Beta posterior."""

    ones: float = _BETA.ones
    """Prior α of the probability of an arm, as a number of ones."""
    zeros: float = _BETA.zeros
    """Prior β of that probability, as a number of zeros; ones 1 and zeros 1: the uniform prior."""

    def compose(self) -> Agent:
        posterior = Beta(ones=self.ones, zeros=self.zeros, period=self.period)
        return Agent(Bernoulli(), posterior, **self.shared())


class ThompsonLinear(BanditSettings, name="thompson_linear", label="Thompson, linear"):
    """Thompson sampling, for contextual bandits: Gaussian return, linear regression."""

    sigma: float = 0.5
    """Standard deviation σ of a reward around its mean."""
    prior: float = 1.0
    """Prior standard deviation of each weight of an arm, and of its bias."""

    def compose(self) -> Agent:
        posterior = LastLayer(prior=self.prior, period=self.period)
        return Agent(Gaussian(self.sigma, draw="mean"), posterior, **self.shared())
