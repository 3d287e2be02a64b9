"""rejax as a contestant: its DQN on gymnax's CartPole or Deep Sea; seeds are vmapped."""

from functools import partial

import gymnax
import jax
import jax.numpy as jnp
from flax import linen as nn
from rejax import DQN
from rejax.networks import DiscreteQNetwork, EpsilonGreedyPolicy

from serving import entry, serve


def environment_of(name: str) -> tuple:
    """gymnax's environment and its parameters by rove's name."""
    if name == "cartpole":
        return gymnax.make("CartPole-v1")
    return gymnax.make("DeepSea-bsuite", size=int(name.removeprefix("deep-sea-")))


def make(environment: str, width: int, batch: int) -> DQN:
    """The network, batch, buffer and update rate of rove's side, and a constant ε."""
    env, env_params = environment_of(environment)
    algorithm = DQN.create(
        env=env,
        env_params=env_params,
        num_envs=1,
        num_epochs=1,
        ddqn=False,
        batch_size=batch,
        buffer_size=50_000,
        fill_buffer=100,
        learning_rate=1e-3,
        gamma=0.99,
        target_update_freq=100,
        polyak=0.0,
        eps_start=0.1,
        eps_end=0.1,
        total_timesteps=2**30,
    )
    # Its configuration has no sizes of layers: they are 64 and 64.
    network = EpsilonGreedyPolicy(DiscreteQNetwork)(
        hidden_layer_sizes=(width, width),
        action_dim=env.action_space(env_params).n,
        activation=nn.relu,
    )
    return algorithm.replace(agent=network)


def main() -> None:
    chosen = entry()
    seeds = chosen["seeds"]
    algorithm = make(chosen["environment"], chosen["width"], chosen["batch"])
    start, iteration = algorithm.init_state, algorithm.train_iteration
    keys = jax.vmap(jax.random.PRNGKey)(jnp.asarray(seeds))
    if len(seeds) == 1:
        keys = keys[0]
    else:
        start, iteration = jax.vmap(start), jax.vmap(iteration)

    @partial(jax.jit, donate_argnums=0)
    def run(state, steps):
        return jax.lax.fori_loop(0, steps, lambda _, state: iteration(state), state)

    state = jax.jit(start)(keys)

    def learn(steps: int) -> None:
        nonlocal state
        state = jax.block_until_ready(run(state, steps))

    serve(learn, len(seeds), ("rejax", "gymnax", "jax", "jaxlib", "flax"))


if __name__ == "__main__":
    main()
