"""Building blocks of agents: networks, random numbers, replay buffers, and JAX's configuration."""
