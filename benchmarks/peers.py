"""Other libraries, each in a virtual environment of its own that is made when it is first needed.

The environments are in benchmarks/.bench, or in the folder that ROVE_BENCH names.
"""

import os
from pathlib import Path
from typing import NamedTuple

from rove.paper import peers


class Peer(NamedTuple):
    title: str
    script: str
    packages: tuple[str, ...]


_JAX = ("jax==0.10.2", "jaxlib==0.10.2")
PEERS = {
    "sb3": Peer("stable-baselines3", "peer_sb3.py", peers.SB3),
    "sbx": Peer("sbx", "peer_sb3.py", ("torch==2.13.0", "sbx-rl==0.28.0", *_JAX)),
    "rejax": Peer("rejax", "peer_rejax.py", ("rejax==0.1.3", "gymnax==0.0.9", *_JAX)),
    "jaxnasium": Peer("jaxnasium", "peer_jaxnasium.py", ("jaxnasium[algs]==0.1.1", *_JAX)),
}


def folder() -> Path:
    """Return the folder of the virtual environments."""
    return Path(os.environ.get("ROVE_BENCH") or Path(__file__).resolve().parent / ".bench")


def python_of(name: str) -> str:
    """Return the interpreter of a peer; make its environment if there is none of these versions."""
    return peers.python_of(folder() / name, PEERS[name].packages)
