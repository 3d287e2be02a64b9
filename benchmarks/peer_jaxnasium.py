"""jaxnasium as a contestant: its DQN on its own compiled CartPole; seeds are vmapped."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jaxnasium
from jaxnasium.algorithms import DQN
from jaxnasium.algorithms.architectures import MLP
from jaxnasium.algorithms.core import TransitionBuffer

from serving import entry, serve


def make(width: int, batch: int) -> DQN:
    """The network, batch, buffer and update rate of rove's side, and a constant ε."""
    return DQN(
        learning_rate_start=1e-3,
        epsilon_start=0.1,
        epsilon_end=None,
        gamma=0.99,
        max_grad_norm=None,
        update_every=1,
        num_updates=1,
        num_envs=1,
        batch_size=batch,
        replay_buffer_size=50_000,
        warmup_steps=100,
        tau=0.01,
        total_timesteps=2**30,
        normalize_observations=False,
        critic_kwargs={"body": MLP.with_params(hidden_sizes=(width, width))},
        log_function=None,
    )


def main() -> None:
    chosen = entry()
    seeds = chosen["seeds"]
    algorithm = make(chosen["width"], chosen["batch"])
    environment = algorithm.__check_env__(jaxnasium.make("CartPole-v1"), vectorized=True)

    def start(key):
        """What `DQN.train` does before its loop."""
        agent = algorithm.init_agent(key, environment)
        observation, state = environment.reset(jax.random.split(key, algorithm.num_envs))
        state, transitions = algorithm._collect_rollout(
            agent, (state, observation, key), environment, length=chosen["batch"] + 100
        )
        buffer = TransitionBuffer(
            max_size=algorithm.replay_buffer_size,
            sample_batch_size=algorithm.batch_size,
            data_sample=transitions,
        )
        return agent, buffer.insert(transitions), *state

    def iteration(state):
        return algorithm.train_iteration(state, jnp.int32(0), env=environment)[0]

    keys = jax.vmap(jax.random.PRNGKey)(jnp.asarray(seeds))
    if len(seeds) == 1:
        keys = keys[0]
    else:
        start, iteration = eqx.filter_vmap(start), eqx.filter_vmap(iteration)
    arrays, rest = eqx.partition(eqx.filter_jit(start)(keys), eqx.is_array)

    @partial(jax.jit, donate_argnums=0)
    def run(arrays, steps):
        def body(_, arrays):
            return eqx.filter(iteration(eqx.combine(arrays, rest)), eqx.is_array)

        return jax.lax.fori_loop(0, steps, body, arrays)

    def learn(steps: int) -> None:
        nonlocal arrays
        arrays = jax.block_until_ready(run(arrays, steps))

    serve(learn, len(seeds), ("jaxnasium", "jax", "jaxlib", "equinox"))


if __name__ == "__main__":
    main()
