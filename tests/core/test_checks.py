"""Families with mistakes are refused by the name of the class and of the method."""

import equinox as eqx
import jax.numpy as jnp
import pytest

import rove
from rove.core.critic import CriticLearner
from rove.errors import ConfigError
from rove.parts import networks


class Own(rove.Posterior):
    """A network without a distribution, with a mistake of one's choice."""

    wrong: str = eqx.field(default="", static=True)

    def init(self, network, key):
        theta = network.init(key)
        return theta if self.wrong == "init" else rove.Phi(theta)

    def law(self, phi):
        return phi.learned

    def sample(self, law, key):
        return law

    def apply(self, law, draw, x):
        if self.wrong == "features":
            return networks.forward(draw, x)
        z = networks.forward(draw, x.features)
        return z[:1] if self.wrong == "apply" else z

    def mean(self, law, x):
        z = networks.forward(law, x.features)
        return (z, z) if self.wrong == "mean" else z.astype(int) if self.wrong == "type" else z

    def entropy(self, law):
        return law[0].bias if self.wrong == "entropy" else jnp.zeros(())


MISTAKES = {
    "init": r"Own\.init returned a tuple instead of a rove\.Phi",
    "features": r"Own\.apply failed \(x is an Input: the observation is x\.features\): ",
    "apply": r"Own\.apply returned an array of shape \(1,\) instead of \(2,\)",
    "mean": r"Own\.mean returned a tuple instead of an array",
    "type": r"Own\.mean returned int32 instead of floats",
    "entropy": r"Own\.entropy returned an array of shape \(8,\) instead of \(\), a number",
}


@pytest.mark.parametrize("wrong", MISTAKES)
def test_a_mistake_in_a_posterior_is_named(wrong):
    with pytest.raises(ConfigError, match=MISTAKES[wrong]):
        rove.check_posterior(Own(wrong))


def test_training_checks_the_families():
    agent = rove.Agent(rove.Gaussian(sigma=1.0), Own("apply"), hidden=(8,))
    with pytest.raises(ConfigError, match=r"Own\.apply returned an array of shape \(1,\)"):
        rove.train(agent, "chain-5", episodes=1)


def test_a_mistake_in_a_return_family_is_named():
    class Two(rove.returns.base.Return):
        """Without a mean over its outputs."""

        outputs = 2
        scale = 1.0

        def mean(self, z):
            return z

        def std(self, z):
            return z[0]

        def target(self, z, reward, discount, key):
            return reward

        def loss(self, z, target):
            return z[0] - target

    with pytest.raises(ConfigError, match=r"Two\.mean returned an array of shape \(2,\)"):
        rove.check_returns(Two())


@pytest.mark.parametrize("name", rove.AGENTS)
def test_the_families_of_named_agents_pass(name):
    agent = rove.AGENTS[name]().compose()
    if isinstance(agent, CriticLearner):
        rove.check_posterior(agent.posterior, networks.mlp(4, *agent.hidden, 2))
        rove.check_returns(agent.returns)
    rove.check_posterior(Own())
