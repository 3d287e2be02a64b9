"""How fast seeds progress, and how long the rest will take."""

from collections import deque
from collections.abc import Collection

from rove.training.progress import Progress

WINDOW = 15.0
"""Seconds over which the pace of a seed is measured."""
ENOUGH = 1.0
"""Seconds of training, over all seeds, that an estimate needs."""


class Pace:
    """Measures the pace of each seed. A seed's first step and its first update, before which
    programs are compiled, start its measurement anew."""

    def __init__(self) -> None:
        self._samples: dict[int, deque[tuple[float, float]]] = {}
        """When each job, by its identity, had done which fraction, in the last seconds."""
        self._learning: dict[int, bool] = {}
        self._most = 1
        """The most seeds that were seen to run at once."""

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
        """Return for how many seconds a seed was measured, and the fraction done in them."""
        if job not in self._samples:
            return 0.0, 0.0
        samples = self._samples[job]
        (began, before), (ended, after) = samples[0], samples[-1]
        return ended - began, after - before


def fraction(progress: Progress) -> float:
    """Return how much of a job is done; one that stopped early counts as complete."""
    unit, goal = progress.job.goal
    return 1.0 if progress.finished else getattr(progress, unit) / goal
