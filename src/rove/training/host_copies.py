"""The copies of a Gymnasium environment that a seed is trained on, and their current episodes."""

import numpy as np
from jaxtyping import Float, Int

from rove.environments.faults import BadEnvironment
from rove.environments.guard import Guard
from rove.environments.host import HostEnvironment
from rove.training.lane import ENVIRONMENT, Lane
from rove.training.outcomes import UNFINISHED, Unfinished
from rove.training.playing import reset_seed


class HostCopies:
    """The copies of an environment, in the order in which they take turns.

    The seed of an environment's reset is derived from the run's seed and the number of the episode.
    Episodes are numbered in the order in which they begin: the first of copy i has number i.
    """

    def __init__(self, environment: HostEnvironment, seed: int, ends: Int[np.ndarray, " episodes"]):
        """`ends` are the steps at which episodes have ended so far."""
        self.turn = 0
        """The index of the copy whose turn it is."""
        self._seed, self._continuous = seed, environment.continuous
        self._guards: list[Guard] = []
        count, width = environment.copies, environment.initial.shape[1]
        self._columns = np.zeros((count, width), np.float32)
        self._actions: list[list] = [[] for _ in range(count)]
        self._numbers = list(range(count))
        for number, step in enumerate(ends.tolist(), start=count):
            self._numbers[(step - 1) % count] = number
        try:
            for _ in range(count):
                self._guards.append(environment.make())
            if len(self.objects) < count:
                problem = "is shared by several copies: return a new one at each call"
                raise BadEnvironment("environment", problem)
        except BaseException:
            self.close()
            raise

    @property
    def objects(self) -> set[int]:
        """The identities of the environments."""
        return {id(guard.env.unwrapped) for guard in self._guards}

    @property
    def unfinished(self) -> Unfinished:
        """What restores the current episodes."""
        taken = [action for actions in self._actions for action in actions]
        return (
            Unfinished(np.array(taken, np.float32), self._columns.copy()) if taken else UNFINISHED
        )

    def reset(self, copy: int) -> Float[np.ndarray, " width"]:
        """Begin an episode, and return its first observation."""
        self._actions[copy], self.turn = [], copy
        number = self._numbers[copy]
        self._columns[copy] = self._guards[copy].reset(reset_seed(self._seed, ENVIRONMENT, number))
        return self._columns[copy].copy()

    def step(self, chosen: list[float]) -> tuple[np.ndarray, list[tuple[int, bool]]]:
        """Take a step in every copy, given the entries of all actions.

        Returns the responses, as the compiled `step` takes them, and, for each episode that has
        ended, the copy and whether it terminated.
        """
        count, k = len(self._guards), len(chosen) // len(self._guards)
        responses = np.empty((count, self._columns.shape[1] + 3), np.float32)
        ended = []
        for copy in range(count):
            reward, terminated, truncated = self._take(copy, chosen[copy * k : copy * k + k])
            responses[copy, -3:] = reward, terminated, truncated
            if terminated or truncated:
                ended.append((copy, terminated))
        responses[:, :-3] = self._columns
        return responses if count > 1 else responses[0], ended

    def end(self, copy: int, number: int) -> None:
        """End the current episode of a copy; `number` is that of its next one."""
        self._actions[copy], self._numbers[copy] = [], number

    def repeat(self, lane: Lane, unfinished: Unfinished) -> tuple[list[int], bool]:
        """Restore the episodes that a lane is in the middle of, by repeating their actions.

        Returns the copies that are between two episodes, and whether the others are as they were.
        """
        lengths, returns = (_of_copies(lane, field) for field in ("length", "returns"))
        actions, same = iter(unfinished.actions.tolist()), True
        for copy, (length, expected) in enumerate(zip(lengths, returns, strict=True)):
            if not length or not same:
                continue
            self.reset(copy)
            total, over = 0.0, False
            for _ in range(int(length)):
                action = next(actions)
                if not over:
                    reward, *ended = self._take(copy, action)
                    total, over = total + reward, any(ended)
            same = not over and np.isclose(total, expected, rtol=1e-4, atol=1e-4)
            if len(unfinished.columns):
                pair = self._columns[copy], unfinished.columns[copy]
                same = same and np.allclose(*pair, rtol=1e-5, atol=1e-6)
        return np.flatnonzero(lengths == 0).tolist(), bool(same)

    def close(self) -> None:
        for guard in self._guards:
            guard.close()

    def _take(self, copy: int, action: list[float]) -> tuple[float, bool, bool]:
        """Take an action in a copy, and remember it and the observation."""
        self.turn = copy
        self._actions[copy].append(action)
        given = action if self._continuous else int(action[0])
        self._columns[copy], reward, terminated, truncated = self._guards[copy].step(given)
        return reward, terminated, truncated


def _of_copies(lane: Lane, field: str) -> np.ndarray:
    """Return a field of a lane for every copy of its environment."""
    first, others = getattr(lane, field), getattr(lane.others, field, ())
    return np.append(np.asarray(first), np.asarray(others, np.asarray(first).dtype))
