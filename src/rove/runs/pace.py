"""The pace of seeds, and an estimate of the time left."""

from collections import deque
from collections.abc import Collection

from rove.training.progress import Progress

WINDOW = 15.0
"""Seconds over which the pace of a seed is measured."""
ENOUGH = 1.0
"""Seconds of training, over all seeds, that an estimate needs."""


class Pace:
    """Measures the pace of each seed. Programs are compiled before a seed's first step and before
    its first update, so both restart its measurement."""

    def __init__(self) -> None:
        self._samples: dict[int, deque[tuple[float, float]]] = {}
        """For each job, by its identity, recent times and the fraction that was done at each."""
        self._learning: dict[int, bool] = {}
        self._most = 1
        """Maximum number of seeds that ran at once so far."""

    def add(self, progress: Progress, now: float) -> None:
        """Record the progress of a seed."""
        if not progress.steps_per_second:  # it has not taken a step yet
            return
        job, learning = id(progress.job), progress.step >= int(progress.job.agent.learning_starts)
        if self._learning.get(job) != learning:
            self._learning[job], self._samples[job] = learning, deque()
        samples = self._samples[job]
        samples.append((now, fraction(progress)))
        while now - samples[0][0] > WINDOW and len(samples) > 2:
            samples.popleft()

    def seconds_left(self, latest: Collection[Progress], total: int) -> float | None:
        """Return the seconds that the rest of `total` jobs will take, given the latest progress of
        those that have begun; None if it is too early to tell. Seeds that have just begun, or wait,
        are expected to progress like the others."""
        running = [id(progress.job) for progress in latest if not progress.finished]
        self._most = max(self._most, len(running))
        spans = [self._span(job) for job in running]
        if sum(seconds for seconds, _ in spans) < ENOUGH:  # those that run have just begun
            spans = list(map(self._span, self._samples))
        seconds, done = sum(span[0] for span in spans), sum(span[1] for span in spans)
        if seconds < ENOUGH or done <= 0.0:
            return None
        remaining = total - sum(map(fraction, latest))
        unfinished = total - sum(progress.finished for progress in latest)
        return remaining * seconds / done / max(min(self._most, unfinished), 1)

    def _span(self, job: int) -> tuple[float, float]:
        """Return the number of seconds for which a seed was measured, and the fraction done in
        them."""
        if job not in self._samples:
            return 0.0, 0.0
        samples = self._samples[job]
        (began, before), (ended, after) = samples[0], samples[-1]
        return ended - began, after - before


def fraction(progress: Progress) -> float:
    """Return how much of a job is done; one that stopped early counts as complete."""
    unit, goal = progress.job.goal
    return 1.0 if progress.finished else getattr(progress, unit) / goal
