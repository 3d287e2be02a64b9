"""rejax's DQN on gymnax's Breakout with MinAtar's own settings, as a contestant of `minatar.py`.

rejax has no convolutional network: this is the one of MinAtar's DQN, and its `act` is rejax's.
"""

from functools import partial

import gymnax
import jax
from flax import linen as nn
from rejax import DQN
from rejax.networks import EpsilonGreedyPolicy

from serving import serve

STARTS, SHARED = 500, {"batch_size": 32, "buffer_size": 100_000, "learning_rate": 0.00025}


class ConvQNetwork(nn.Module):
    """One convolution with 16 channels and windows of 3 by 3, and 128 hidden units."""

    action_dim: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(16, (3, 3), padding="VALID")(x))
        x = nn.relu(nn.Dense(128)(x.reshape((x.shape[0], -1))))
        return nn.Dense(self.action_dim)(x)

    def take(self, x, action):
        """Return the values of the actions that were taken."""
        return jax.numpy.take_along_axis(self(x), action[:, None], axis=1).squeeze(1)


def main() -> None:
    env, env_params = gymnax.make("Breakout-MinAtar")
    algorithm = DQN.create(
        env=env,
        env_params=env_params,
        num_envs=1,
        num_epochs=1,
        ddqn=False,
        fill_buffer=STARTS,
        gamma=0.99,
        target_update_freq=1000,
        polyak=0.0,
        eps_start=1.0,
        eps_end=0.1,
        total_timesteps=2**30,
        **SHARED,
    )
    actions = env.action_space(env_params).n
    algorithm = algorithm.replace(agent=EpsilonGreedyPolicy(ConvQNetwork)(action_dim=actions))

    @partial(jax.jit, donate_argnums=0)
    def run(state, steps):
        return jax.lax.fori_loop(0, steps, lambda _, x: algorithm.train_iteration(x), state)

    state = jax.jit(algorithm.init_state)(jax.random.PRNGKey(0))

    def learn(steps: int) -> None:
        nonlocal state
        state = jax.block_until_ready(run(state, steps))

    serve(learn, 1, ("rejax", "gymnax", "jax", "jaxlib", "flax"))


if __name__ == "__main__":
    main()
