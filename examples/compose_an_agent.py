"""Put an agent together by hand, train it, and look at what it learned."""

import numpy as np

import rove

agent = rove.Agent(
    returns=rove.Gaussian(sigma=1e-3),
    posterior=rove.MeanField(rho=-3.0),
    resample="episode",
    target_period=25,
)
run = rove.train(agent, "chain-20", seeds=2, episodes=120)

print("mean return of the last 20 episodes of each seed:", run.returns[:, -20:].mean(axis=1))
print("return of the greedy policy of each seed:        ", run.evaluate())
observation = (np.arange(20) <= 1).astype(np.float32)  # state s₂, as a thermometer
print("action in s₂ (0 left, 1 right):                  ", run.policy(seed=0)(observation))
run.plot("chain-20.png")
