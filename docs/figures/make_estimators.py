"""Draw docs/figures/estimators.svg: the variance of four estimators of the gradient of (4).

    python docs/figures/make_estimators.py

A mean-field posterior over a network with eight hidden units and two actions, and a minibatch of 64
transitions with random targets. The variance is that of 400 independent estimates, summed over all
parameters. The last line that is printed compares the estimates for ρ with the gradient of the
entropy. It takes a few seconds.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from matplotlib.figure import Figure
from style import BLUE, GREEN, ORANGE, RED, save

from rove import MeanField
from rove.core.objectives import controlled, scores
from rove.parts import networks, noise
from rove.posteriors.base import apply_all
from rove.posteriors.priors import Input
from rove.posteriors.several import Thetas

ROWS, FEATURES, REPEATS = 64, 4, 400
DRAWS = (2, 4, 8, 16, 32, 64)
POSTERIOR = MeanField(-3.0)
ESTIMATORS = {
    "score": RED,
    "score, Rao–Blackwellised": ORANGE,
    "score, with control variates too": GREEN,
    "reparameterised": BLUE,
}


def variances(draws: int) -> np.ndarray:
    """Return the variance of each estimator of the gradient, for each μ and then for each ρ."""
    phi = POSTERIOR.init(networks.mlp(FEATURES, 8, 2), noise.root(0))
    x = Input(noise.normal(noise.root(1), (ROWS, FEATURES)))
    action = noise.integers(noise.root(2), (ROWS,), 2)
    targets = noise.normal(noise.root(3), (ROWS,))

    def losses(law, theta):
        """The loss of every row with one θ, divided by the number of rows."""
        q = apply_all(POSTERIOR, law, theta, x)
        return 0.5 * (jnp.take_along_axis(q, action[:, None], 1)[:, 0] - targets) ** 2 / ROWS

    @jax.jit
    def estimates(key):
        theta = Thetas(POSTERIOR, noise.folds(key, draws))

        def mean_loss(learned):
            law = POSTERIOR.law(phi._replace(learned=learned))
            values = jax.vmap(lambda k: losses(law, POSTERIOR.sample(law, k)))(theta.keys)
            return jnp.mean(jnp.sum(values, axis=1))

        law = POSTERIOR.law(phi)
        values = jax.vmap(lambda draw: losses(law, draw))(theta.samples(law))
        plain, blackwellised = (scores(theta, phi, values, a, 1) for a in (None, action))
        four = (
            controlled(plain, control=False),
            controlled(blackwellised, control=False),
            controlled(blackwellised),
            jax.grad(mean_loss)(phi.learned),
        )
        return jnp.stack([ravel_pytree(gradient)[0] for gradient in four])

    found = jax.lax.map(estimates, noise.folds(noise.root(4), REPEATS))
    return np.asarray(found, np.float64).var(axis=0)


def main() -> None:
    each = [variances(draws) for draws in DRAWS]
    table = np.array([found.sum(axis=1) for found in each])
    figure = Figure(figsize=(6.0, 3.2), layout="constrained")
    axes = figure.subplots()
    for (name, colour), row in zip(ESTIMATORS.items(), table.T, strict=True):
        axes.loglog(DRAWS, row, "o-", color=colour, ms=3.5, label=name)
        print(name, *(f"{v:.3g}" for v in row))
    rho = each[-1][:, each[-1].shape[1] // 2 :]
    stds = ", ".join(f"{x:.2g}" for x in np.sqrt(np.median(rho, axis=1)))
    entropy = 0.01**2 / ROWS * jax.grad(lambda x: jnp.log(jax.nn.softplus(x)))(POSTERIOR.rho)
    print(f"ρ, {DRAWS[-1]} draws: median std {stds}; entropy at σ = 0.01: {entropy:.2g}")
    axes.set(xlabel="number of draws of θ", ylabel="variance of the gradient")
    axes.set_xticks(DRAWS, [str(d) for d in DRAWS])
    axes.minorticks_off()
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, "estimators")


if __name__ == "__main__":
    main()
