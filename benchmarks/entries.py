"""Who is measured in each part of the benchmark, and with what settings."""

from dataclasses import replace

from contestants import Entry
from peers import PEERS

ROUNDS = {"full": 30, "quick": 6, "trial": 2}
GYMNASIUM = "gym/CartPole-v1"
WIDE = "gym/wide:Wide-v0"
ON_GYMNASIUM = ("sb3", "sbx")
"""Libraries without compiled environments."""
AGENTS = (
    "dqn", "noisynet", "ge", "ge-minibatch", "ge-episode", "c51", "qr_dqn", "vdqn", "bbq",
    "bayesian_dqn", "bootstrapped_dqn", "bootstrapped_dqn-plain", "parameter_noise",
    "double_uncertain", "ige", "full_covariance", "adam_lmc", "bbvi", "return_density", "auto",
    "rlsvi", "psrl", "bayesian_q_learning", "particles", "thompson", "thompson_beta",
    "thompson_linear", "ddpg", "ddpg_noisynet", "ddpg_ge", "td3", "ddpg_dropout",
)  # fmt: skip
TASKS = {
    "psrl": "chain-4", "bayesian_q_learning": "chain-4", "particles": "chain-4",
    "thompson": "bandit-10", "thompson_beta": "bernoulli-bandit-10",
    "thompson_linear": "linear-bandit-4",
} | dict.fromkeys(
    ("ddpg", "ddpg_noisynet", "ddpg_ge", "td3", "ddpg_dropout"), "linear-quadratic-1"
)  # fmt: skip
"""Environments of agents that cannot learn CartPole: tables of states, agents for bandits, and
agents for continuous actions."""
MAIN = ("dqn", "ge", "ge-minibatch", "qr_dqn", "bootstrapped_dqn")
"""Agents of a quick run."""
VALUES = {
    "seeds": {"full": (1, 2, 4, 8), "quick": (1, 2), "trial": (1, 2)},
    "width": {"full": (32, 64, 128, 256, 512), "quick": (32, 512), "trial": (32,)},
    "batch": {"full": (32, 64, 128, 256, 512), "quick": (32, 512), "trial": (32,)},
    "size": {"full": (10, 20, 50, 100), "quick": (10, 50), "trial": (10,)},
}
CURVES = {"full": tuple(PEERS), "quick": ("sb3", "rejax"), "trial": ("sb3", "rejax")}
"""The libraries whose curves are drawn beside rove's."""
LARGEST_UNCODED = 50
"""rejax stores both observations of a transition: 4 GB for a buffer of Deep Sea 100."""


def peers(scale: str) -> list[Entry]:
    """The shared setting; other libraries with one thread and with as many as they choose."""
    rove = [Entry("rove", agent) for agent in ("dqn", "ge", "ge-minibatch")]
    rove.append(Entry("rove", environment=GYMNASIUM))
    threads = (1, None) if scale == "full" else (1,)
    return rove + [_peer(name, threads=number) for name in PEERS for number in threads]


def agents(scale: str) -> list[Entry]:
    """rove's agents on CartPole, or on a task that suits them."""
    chosen = {"full": AGENTS, "quick": MAIN, "trial": ("dqn", "psrl")}[scale]
    return [Entry("rove", agent, TASKS.get(agent, "cartpole")) for agent in chosen]


def seeds(scale: str) -> list[Entry]:
    """Several seeds at once. rejax and jaxnasium vmap theirs, with threads as they choose."""
    everyone = [Entry("rove", agent) for agent in ("dqn", "ge")]
    names = [name for name in CURVES[scale] if name not in ON_GYMNASIUM]
    everyone += [_peer(name, threads=None) for name in names]
    return [replace(each, seeds=number) for number in VALUES["seeds"][scale] for each in everyone]


def width(scale: str) -> list[Entry]:
    return [replace(each, width=n) for n in VALUES["width"][scale] for each in _everyone(scale)]


def batch(scale: str) -> list[Entry]:
    return [replace(each, batch=n) for n in VALUES["batch"][scale] for each in _everyone(scale)]


def size(scale: str) -> list[Entry]:
    """Deep Sea of N × N cells."""
    sizes = VALUES["size"][scale]
    rove = [Entry("rove", agent, f"deep-sea-{n}") for n in sizes for agent in ("dqn", "ge")]
    uncoded = [Entry("rejax", "dqn", f"deep-sea-{n}") for n in sizes if n <= LARGEST_UNCODED]
    return rove + uncoded


def gymnasium(scale: str) -> list[Entry]:
    """Gymnasium: one seed, five seeds, copies of an environment, a wide observation, continuous
    actions."""
    chosen = [Entry("rove", environment=GYMNASIUM, seeds=n) for n in (1, 5)]
    chosen += [Entry(name, environment=GYMNASIUM, copies=8) for name in ("rove", "sb3")]
    chosen += [Entry("rove", environment=WIDE), Entry("sb3", environment=GYMNASIUM)]
    chosen += [Entry("sb3", environment=WIDE)]
    if scale == "full":
        chosen += [Entry("rove", environment=WIDE, seeds=5)]
        chosen += [Entry("sbx", environment=task) for task in (GYMNASIUM, WIDE)]
        chosen += [Entry(name, "ddpg", "gym/InvertedPendulum-v5") for name in ("rove", "sb3")]
    return chosen


def _everyone(scale: str) -> list[Entry]:
    return [Entry("rove"), Entry("rove", "ge"), *map(_peer, CURVES[scale])]


def _peer(name: str, threads: int | None = 1) -> Entry:
    task = GYMNASIUM if name in ON_GYMNASIUM else "cartpole"
    return Entry(name, environment=task, threads=threads)
