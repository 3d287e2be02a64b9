"""A trained policy that rove exported. This file needs only NumPy:

    from policy import ExportedPolicy

    act = ExportedPolicy()
    action = act(observation)

policy.npz has the arrays, and policy.json says what they are.
"""

import functools
import json
from pathlib import Path

import numpy as np


class ExportedPolicy:
    """Maps an observation of the environment to the action of the greedy policy."""

    def __init__(self, folder=Path(__file__).parent):
        self.about = json.loads((Path(folder) / "policy.json").read_text("utf-8"))
        with np.load(Path(folder) / "policy.npz") as file:
            self.arrays = dict(file)

    def __call__(self, observation, action_mask=None):
        """Return the action for an observation and, if the environment masks actions, its mask."""
        masks = None if action_mask is None else [action_mask]
        return self.batch([observation], masks)[0]

    def batch(self, observations, action_masks=None):
        """Return the actions for several observations and, if there are masks, their masks."""
        values = self.values(np.stack([self.encoded(x) for x in observations]))
        if self.about["masked"] and action_masks is None:
            raise ValueError("this policy needs the action mask of each observation")
        if "low" in self.arrays:
            low, high = self.arrays["low"], self.arrays["high"]
            actions = (low + high) / 2 + (high - low) / 2 * values.reshape(-1, *low.shape)
            return np.clip(actions.astype(low.dtype), low, high)
        if action_masks is not None:
            allowed = np.stack([flat_mask(mask) for mask in action_masks])
            if allowed.shape != values.shape or not allowed.any(axis=1).all():
                needed = f"a mask needs {values.shape[1]} entries, at least one of which is not 0"
                raise ValueError(f"{needed}, got {action_masks!r}")
            values = np.where(allowed, values, -np.inf)
        return self.arrays["actions"][np.argmax(values, axis=1)]

    def encoded(self, observation):
        """Return an observation as a vector; raise ValueError if it is not one of the space."""
        x, size = encode(self.about["observation"], observation), len(self.arrays["unit"])
        if x.shape != (size,) or not np.isfinite(x).all():
            raise ValueError(f"an observation needs {size} finite entries, got {observation!r}")
        return x

    def values(self, x):
        """Return the values of all actions, or continuous actions in [−1, 1], for the rows of x,
        which are encoded observations."""
        arrays = self.arrays
        x = x * arrays["unit"]
        if "mean" in arrays:
            clip = self.about["clip"]
            x = np.clip((x - arrays["mean"]) / arrays["std"], -clip, clip)
        z = np.zeros((len(x), 1), np.float32)
        for i, depth in enumerate(self.about["depths"]):  # a weighted sum of networks
            y = x[None]
            for layer in range(depth):
                y = np.maximum(y, 0.0) if layer else y
                patches = arrays.get(f"{i}.patches.{layer}")  # the inputs of each unit's window
                y = y if patches is None else y[..., patches]
                y = y @ arrays[f"{i}.weight.{layer}"] + arrays[f"{i}.bias.{layer}"]
                y = y.reshape(*y.shape[:2], -1)
            z = z + np.tensordot(arrays[f"{i}.scale"], y, axes=1)
        if "low" in arrays:
            return np.tanh(z)
        if "support" in arrays:  # z has the logits of each action's return
            z = z.reshape(len(x), -1, len(arrays["support"]))
            z = np.exp(z - z.max(axis=-1, keepdims=True))
            z = z / z.sum(axis=-1, keepdims=True) @ arrays["support"]
        return z


def encode(space, x):
    """Return an observation as a vector: one-hot for integers of a discrete space, and in the order
    of the space for its parts."""
    kind = space["kind"]
    if kind == "frames":  # the last observations, from the oldest to the newest
        if isinstance(x, dict):  # Gymnasium stacks each entry of a dictionary
            x = [dict(zip(x, parts, strict=True)) for parts in zip(*x.values(), strict=True)]
        frames = np.stack([encode(space["each"], frame) for frame in x])
        return frames.reshape(len(frames), -1, space["channels"]).swapaxes(0, 1).ravel()
    if kind == "dict":
        return np.concatenate([encode(part, x[key]) for key, part in space["parts"]])
    if kind == "tuple":
        return np.concatenate([encode(*pair) for pair in zip(space["parts"], x, strict=True)])
    if kind == "box":
        x = np.asarray(x, np.float32)
        return (np.moveaxis(x, 0, -1) if space["channels_first"] else x).ravel()
    numbers = np.ravel(x) - space["first"]
    codes = [np.arange(size) == i for i, size in zip(numbers, space["sizes"], strict=True)]
    if not all(np.count_nonzero(code) == 1 for code in codes):
        raise ValueError(f"an observation is not in its discrete space: {x!r}")
    return np.concatenate(codes).astype(np.float32)


def flat_mask(mask):
    """Return a mask of actions as a vector: a tuple has one for each part of an action."""
    parts = map(np.asarray, mask if isinstance(mask, tuple) else (mask,))
    return functools.reduce(lambda a, b: np.multiply.outer(a, b).ravel(), parts) > 0
