"""Environments that misbehave, registered with Gymnasium for the worker processes that train on
them: `bad_tasks:NUMBER-v0`."""

import contextlib
import ctypes
import gc
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import gymnasium
import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "environments"))

from test_bad_environments import CASES, Plain, bad


class ReusesItsArray(Plain):
    """Returns the same array each time, and changes it in place."""

    def reset(self, *, seed=None, options=None):
        self.array, info = super().reset(seed=seed)
        return self.array, info

    def step(self, action):
        observation, *others = super().step(action)
        self.array[:] = observation
        return (self.array, *others)


class SpoilsItsArray(Plain):
    """Overwrites the array that it returned before."""

    given = None

    def reset(self, *, seed=None, options=None):
        self.given, info = super().reset(seed=seed)
        return self.given, info

    def step(self, action):
        self.given[:] = np.nan
        self.given, *others = super().step(action)
        return (self.given, *others)


class SharesItsInfo(Plain):
    """Returns one dictionary each time, with something that cannot be copied."""

    info = {"lock": threading.Lock(), "TimeLimit.truncated": True, "reward": "x"}

    def step(self, action):
        return (*super().step(action)[:4], self.info)


def doing(action):
    """Return a kind of `Plain` that does something at its 13th step, and returns what it should."""

    def change(self, told):
        action()
        return tuple(told)

    return bad(change)


def prints():
    for _ in range(2000):
        print('{"progress": 1}\n\x1b[2J' * 5)


def reads():
    with contextlib.suppress(EOFError):
        input()


def forks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        os._exit(7)
    os.waitpid(child, 0)


def forgets_the_clock():
    time.sleep(1.5)


def closes_output():
    with contextlib.suppress(OSError):
        os.close(1)


FAITHFUL = {
    "one array, changed in place": ReusesItsArray,
    "an old array is spoilt": SpoilsItsArray,
    "one info for all": SharesItsInfo,
    "prints what looks like messages": doing(prints),
    "reads standard input": doing(reads),
    "changes the folder": doing(lambda: os.chdir("/")),
    "leaves threads behind": doing(
        lambda: [threading.Thread(target=time.sleep, args=(3,), daemon=True).start() for _ in "abc"]
    ),
    "warnings are errors": doing(lambda: warnings.simplefilter("error")),
    "floating point errors are raised": doing(lambda: np.seterr(all="raise")),
    "seeds the global generators": doing(lambda: (random.seed(0), np.random.seed(0))),  # noqa: NPY002
    "is interrupted by a signal": doing(lambda: os.kill(os.getpid(), signal.SIGCHLD)),
    "collects no garbage": doing(gc.disable),
    "has a child process": doing(forks),
    "is slow once": doing(forgets_the_clock),
    "closes standard output": doing(closes_output),
    "clears the variables": doing(os.environ.clear),
    "forgets its modules": doing(lambda: sys.modules.pop("gymnasium", None)),
    "a reward that is a NumPy scalar": bad(lambda s, t: (t[0], np.float64(1.0), *t[2:])),
    "flags that are NumPy's": bad(lambda s, t: (*t[:2], np.bool_(False), np.bool_(t[3]), {})),
    "an observation as a list": bad(lambda s, t: (t[0].tolist(), *t[1:])),
    "an observation in double precision": bad(lambda s, t: (t[0].astype(float), *t[1:])),
    "an observation that is not contiguous": bad(
        lambda s, t: (np.stack([t[0], t[0]], 1)[:, 0], *t[1:])
    ),
    "an observation that is read-only": bad(
        lambda s, t: (np.frombuffer(t[0].tobytes(), np.float32), *t[1:])
    ),
}
"""What must train like `Plain`, to the bit."""


def recurses():
    recurses()


FATAL = {
    "ends the process": (lambda: os._exit(3), "ended with code 3, 3 times"),
    "aborts": (os.abort, "ended with code -6, 3 times"),
    "reads address 0": (lambda: ctypes.string_at(0), "ended with code -11, 3 times"),
    "kills itself": (lambda: os.kill(os.getpid(), 9), "ended with code -9, 3 times"),
    "recurses without end": (recurses, "step raised RecursionError"),
    "takes a petabyte": (lambda: np.ones(2**47), "step raised .*MemoryError"),
}
"""What ends its worker or raises, with what has to be said."""
EXPECTED = {
    **{name: (kind, None) for name, kind in FAITHFUL.items()},
    **{name: (doing(action), words) for name, (action, words) in FATAL.items()},
    **{name: (kind, words) for name, (kind, _, words) in CASES.items()},
}
"""All, by name: the environment, and the words of its error, or None if it has to train right."""
NAMES = {name: f"bad_tasks:Bad{i}-v0" for i, name in enumerate(EXPECTED)}
gymnasium.register("Right-v0", entry_point=Plain)
for _name, _id in NAMES.items():
    gymnasium.register(_id.partition(":")[2], entry_point=EXPECTED[_name][0])
