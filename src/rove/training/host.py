"""The training loop on the host: any Gymnasium environment, one compiled call a step.

An episode begins with `_begin`, which takes its first observation, and goes on with `_step`,
which takes what the environment answered, learns, and acts again. Between two episodes a lane
is all there is to know: that is where it is saved. The seed of an environment's reset comes from
the lane's seed and the episode's number, so that a lane that goes on from a file meets the same
episodes as one that was never stopped.
"""

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from rove import platform
from rove.core.learner import Learner
from rove.environments.base import Step
from rove.environments.guard import BadEnvironment, Guard
from rove.environments.host import HostEnvironment
from rove.errors import ConfigError, LaneError, RoveError
from rove.training import lanes, outcomes
from rove.training.lane import (
    ENVIRONMENT,
    EVALUATION,
    FAULTS,
    LOG_CAPACITY,
    Lane,
    act,
    drained,
    follow,
    look,
    mark,
    start,
)
from rove.training.lanes import SECONDS_A_CHUNK, Progress, Report, Saved
from rove.training.outcomes import Job, Outcome
from rove.training.packing import Packed, pack, unpack


def _begin(
    agent: Learner, environment: HostEnvironment, lane: Lane, observation: Float[Array, " features"]
) -> tuple[Lane, Array]:
    """An episode's first observation, and the action for it."""
    state = environment.noted(lane.environment, observation)
    seen = mark(environment, state, jnp.zeros_like(lane.seen))
    shown = environment.shown(state, observation)
    lane = lane._replace(environment=state, observation=shown, seen=seen)
    return lane, act(agent, lane)


def _step(
    agent: Learner,
    environment: HostEnvironment,
    lane: Lane,
    action: Array,
    told: Float[Array, " told"],
    learn: bool,
) -> tuple[Lane, Array]:
    """What follows an environment's step, and the next action. What the environment told is one
    vector, observation | reward | terminated | truncated: one transfer."""
    observation, reward, ended = told[:-3], told[-3], told[-2:] > 0.5
    state = environment.noted(lane.environment, observation)
    shown = environment.shown(state, observation)
    lane, _ = follow(
        agent, environment, lane, action, Step(state, shown, reward, ended[0], ended[1]), learn
    )
    lane = look(agent, environment, lane)
    return lane, act(agent, lane)


class _Programs(NamedTuple):
    """Compiled calls. They take the numbers of an agent and an environment as a list, and a lane
    as a few arrays: to take modules apart, or fifty arrays in and out, would cost more than to
    act. An action comes twice: for the next call, and, with the lane's fault, for the host."""

    pack: Callable
    unpack: Callable
    begin: Callable
    step: Callable


@functools.cache
def _programs(structure: Any) -> _Programs:
    """Those of lanes whose agents and environments differ in numbers alone."""

    def opened(numbers: list, packed: Packed) -> tuple[Learner, HostEnvironment, Lane]:
        agent, environment = jax.tree.unflatten(structure, numbers)
        shape = jax.eval_shape(lambda: start(agent, environment, jnp.zeros((), jnp.int32)))
        return agent, environment, unpack(packed, shape)

    def closed(lane: Lane, action: Array) -> tuple[Packed, Array, Array]:
        # An action that is not finite ends the lane here, before the environment sees it.
        bad = jnp.any(~jnp.isfinite(action)) & (lane.fault == 0)
        lane = lane._replace(fault=jnp.where(bad, FAULTS.index("action"), lane.fault))
        return pack(lane), action, jnp.append(action.astype(jnp.float32), lane.fault)

    def begin(numbers: list, packed: Packed, observation: Array) -> tuple:
        return closed(*_begin(*opened(numbers, packed), observation))

    def step(numbers: list, packed: Packed, action: Array, told: Array, learn: bool) -> tuple:
        return closed(*_step(*opened(numbers, packed), action, told, learn))

    return _Programs(
        pack=jax.jit(lambda lane: pack(drained(lane))),
        unpack=jax.jit(lambda numbers, packed: opened(numbers, packed)[2]),
        begin=jax.jit(begin, donate_argnums=1),
        step=jax.jit(step, donate_argnums=1, static_argnums=4),
    )


_greedy = jax.jit(
    lambda agent, environment, lane, observation: agent.greedy(
        lane.agent, environment.shown(lane.environment, observation)
    )
)


def execute(
    jobs: Sequence[Job],
    report: Report = lambda progress: None,
    saved: Saved = lambda job, episodes: None,
    workers: int | None = None,
    checkpoint_seconds: float = 10.0,
) -> list[Outcome | LaneError]:
    """Run all lanes to their end, as `lanes.execute` does; at most `workers` at once, otherwise
    all, each a step in turn.

    Each lane has a call of its own. One call for all of them, unrolled, was 7% cheaper, and with
    `vmap` 25%; but a program for every number of lanes has to be compiled, and a lane's bits would
    depend, with `vmap`, on its neighbours.
    """
    platform.prepare()
    return drive(jobs, report, saved, checkpoint_seconds, threading.Event(), workers)


def drive(
    jobs: Sequence[Job],
    report: Report,
    saved: Saved,
    checkpoint_seconds: float,
    stop: threading.Event,
    workers: int | None = None,
) -> list[Outcome | LaneError]:
    """Take lanes from where they stand to their end; one that is stopped is as it was saved."""
    waiting = list(jobs)
    results: dict[int, Outcome | LaneError] = {}
    flying: list[_Flight] = []
    try:
        while (flying or waiting) and not stop.is_set():
            while waiting and len(flying) < (workers or len(jobs)):
                job = waiting.pop(0)
                flight = _Flight(job, report, saved, checkpoint_seconds)
                flying.append(flight)
                _guarded(flight, flight.begin, results)
                if any(flight.shares(other) for other in flying if other is not flight):
                    what = "for several seeds, a function that makes a new environment each time"
                    raise ConfigError("environment", job.environment.name, what)
            for flight in flying:
                _guarded(flight, flight.step, results)
            for flight in [f for f in flying if id(f.job) in results]:
                flight.close()
                flying.remove(flight)
    finally:
        for flight in flying:
            flight.close()
    results |= {id(job): outcomes.resumed(job) for job in jobs if id(job) not in results}
    return [results[id(job)] for job in jobs]


def _guarded(
    flight: "_Flight", move: Callable[[], None], results: dict[int, Outcome | LaneError]
) -> None:
    """A move of a lane, unless it has ended; what it raises is this lane's alone."""
    if id(flight.job) in results:
        return
    job = flight.job
    try:
        move()
        if flight.outcome.finished:
            results[id(job)] = flight.outcome
    except (BadEnvironment, ConfigError) as error:
        place = "while it was made"
        if flight._guard is not None:
            place = f"step {flight.steps + 1:,} (episode {flight.episodes + 1:,})"
        results[id(job)] = LaneError(f"{job.name}, {place}: {error}")
    except LaneError as error:
        results[id(job)] = error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        told = str(error) if isinstance(error, RoveError) else repr(error)
        results[id(job)] = LaneError(f"{job.name}: {told}")


class _Flight:
    """A lane on its way: its environment, its arrays, and what the host counts itself so as not to
    ask for it."""

    def __init__(self, job: Job, report: Report, saved: Saved, checkpoint_seconds: float):
        assert isinstance(job.environment, HostEnvironment)
        self.job, self._report, self._saved = job, report, saved
        self._environment = job.environment
        self._checkpoint_seconds = checkpoint_seconds
        self._guard: Guard | None = None
        self.steps = self.episodes = 0
        numbers, structure = jax.tree.flatten((job.agent, job.environment))
        self._numbers, self._programs = jax.device_put(numbers), _programs(structure)
        self._learning_starts = int(job.agent.learning_starts)
        self.outcome: Any = None
        self._packed: Any = None
        self._action: Any = None
        self._chosen: Any = None
        self._unread = 0
        self._saved_at = self._read_at = self._told_at = time.monotonic()
        self._told_steps = 0

    def begin(self) -> None:
        """From the lane's file, or from step 0."""
        self.outcome = outcomes.resumed(self.job)
        lane = self.outcome.lane
        self.steps, self.episodes = int(lane.step), int(lane.episode)
        self._told_steps = self.steps
        if self.outcome.finished:
            self._tell()
            return
        self._guard = self._environment.make()
        self._packed = self._programs.pack(lane)
        self._reset()

    @property
    def lane(self) -> Lane:
        return self._programs.unpack(self._numbers, self._packed)

    def shares(self, other: "_Flight") -> bool:
        """Whether two lanes were given one environment."""
        mine, theirs = (f._guard.env.unwrapped if f._guard else f for f in (self, other))
        return mine is theirs

    def step(self) -> None:
        """2.4–2.15: take the action at hand, store, learn, and choose the next one."""
        assert self._guard is not None
        *action, fault = np.asarray(self._chosen).tolist()  # waits for the update before
        if fault:
            self._end(over=True)  # which says what it is
            return
        action = action if self._environment.continuous else action[0]
        observation, reward, terminated, truncated = self._guard.step(action)
        told = np.empty(observation.size + 3, np.float32)
        told[:-3], told[-3], told[-2], told[-1] = observation, reward, terminated, truncated
        learn = self.steps + 1 >= self._learning_starts
        self._packed, self._action, self._chosen = self._programs.step(
            self._numbers, self._packed, self._action, told, learn
        )
        done = terminated or truncated
        self.steps += 1
        self.episodes += done
        over = self.steps >= self.job.steps or self.episodes >= self.job.episodes
        if done or over:
            self._end(over)
        elif time.monotonic() - self._told_at > 2 * SECONDS_A_CHUNK:  # a long episode
            self._tell()

    def _end(self, over: bool) -> None:
        """An episode has ended, or the lane has: read its log and save it, where it is time."""
        self._unread += 1
        now = time.monotonic()
        due = now - self._saved_at > self._checkpoint_seconds
        stale = now - self._read_at > SECONDS_A_CHUNK or self._unread == LOG_CAPACITY
        if over or due or stale:
            lane = self.lane
            self.outcome, self._read_at = outcomes.extended(self.outcome, lane), now
            over = self.outcome.finished
            if self.job.path is not None and (over or due):
                outcomes.save(self.outcome)
                self._saved(self.job, self.outcome.episodes)
                self._saved_at = time.monotonic()
            self._tell()
            self._unread = 0
            self._packed = None if over else self._programs.pack(lane)
        if not over:
            self._reset()

    def close(self) -> None:
        if self._guard is not None:
            self._guard.close()

    def _reset(self) -> None:
        assert self._guard is not None
        observation = self._guard.reset(reset_seed(self.job.seed, ENVIRONMENT, self.episodes))
        self._packed, self._action, self._chosen = self._programs.begin(
            self._numbers, self._packed, observation
        )

    def _tell(self) -> None:
        now, scores = time.monotonic(), self.outcome.scores
        read = int(self.outcome.lane.step) == self.steps
        self._report(
            Progress(
                job=self.job,
                step=self.steps,
                episode=self.episodes,
                recent=float(np.mean(scores[-20:])) if len(scores) else float("nan"),
                steps_per_second=(self.steps - self._told_steps) / max(now - self._told_at, 1e-6),
                finished=self.outcome.finished,
                loss=lanes.loss(self.outcome) if read else float("nan"),
            )
        )
        self._told_at, self._told_steps = now, self.steps


def reset_seed(seed: int, stream: int, episode: int) -> int:
    """What an environment's reset is given, from a lane's seed and an episode's number."""
    return int(np.random.SeedSequence((seed, stream, episode)).generate_state(1)[0] >> 1)


def checked_workers(jobs: Sequence[Job], workers: int | None) -> int:
    """As in `lanes`; all lanes are in memory at once, unless `workers` says fewer."""
    return lanes.checked_workers(jobs, len(jobs) if workers is None else workers)


def evaluate(agent: Learner, environment: HostEnvironment, lane: Lane) -> tuple[float, int, bool]:
    """Return, length and `terminated` of one episode of the greedy policy, which learns nothing
    (of its first `longest_episode` steps, should it never end)."""
    guard, returns, length, terminated = environment.make(), 0.0, 0, False
    try:
        observation = guard.reset(reset_seed(int(lane.seed), EVALUATION, 0))
        while length < environment.longest_episode - 1:
            action = np.asarray(_greedy(agent, environment, lane, observation))
            observation, reward, terminated, truncated = guard.step(action)
            returns, length = returns + reward, length + 1
            if terminated or truncated:
                break
    except BadEnvironment as error:
        raise LaneError(f"{environment.name}, in evaluation: {error}") from error
    finally:
        guard.close()
    return returns, length, terminated
