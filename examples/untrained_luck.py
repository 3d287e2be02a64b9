"""How often an untrained network already walks to the far end of the chain.

With thermometer features a random network tends to prefer one action everywhere, and on the plain
chain "right everywhere" is optimal. Permuting the actions by state takes that luck away.
"""

import jax
import jax.numpy as jnp
import numpy as np

import rove
from rove.core.policies import POLICIES
from rove.training.lane import EVALUATION, start
from rove.training.playing import LONGEST, compiled_episode

SEEDS = 200
agent = rove.DQN(buffer_size=64).compose()
for name in ("chain-10", "chain-50", "chain-100", "permuted-chain-50"):
    environment = rove.environments.make(name)

    def untrained(seed, environment=environment):
        lane = start(agent, environment, seed)
        task = POLICIES["mean"], agent, environment, lane.agent, seed
        return compiled_episode(*task, EVALUATION, 0, LONGEST).returns

    returns = np.asarray(jax.jit(jax.vmap(untrained))(jnp.arange(SEEDS)))
    lucky = np.flatnonzero(returns >= 11.0)
    print(f"{name}: {len(lucky)} of {SEEDS} untrained networks earn 11; first: {lucky[:5]}")
