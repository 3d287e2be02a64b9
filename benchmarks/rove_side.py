"""rove as a contestant: seeds of one agent, in slices."""

from collections.abc import Callable
from typing import Any

from serving import entry, serve

SHARED = {"batch_size": 64, "buffer_size": 50_000, "target_period": 100}
VARIANTS: dict[str, dict[str, Any]] = {
    "ge-episode": {"resample": "episode"},
    "ge-minibatch": {"draws": "minibatch"},
    "bootstrapped_dqn-plain": {"prior": None},
}
LINEAR = ("rlsvi", "thompson", "thompson_beta", "thompson_linear")
"""Agents with an exact posterior of a linear model; they keep their own batches and buffer."""


def settings_for(agent: str, width: int, batch: int) -> Any:
    """Return an agent's default settings with those of the shared ones that it has."""
    from rove.agents import settings_of
    from rove.agents.settings import with_settings

    name = agent.partition("-")[0]
    settings = settings_of(name)()
    shared = SHARED | {"hidden": (width, width), "batch_size": batch}
    if name in LINEAR:
        shared = {"target_period": shared["target_period"]}
    shared = {field: value for field, value in shared.items() if hasattr(settings, field)}
    return with_settings(settings, shared | VARIANTS.get(agent, {}))


def trainer(
    agent: str, environment: str, width: int, batch: int, seeds: list[int], copies: int = 1
) -> Callable[[int], list[int]]:
    """Return a function that trains each seed for a number of steps, and returns how many each has
    taken in all."""
    from rove.environments import HostEnvironment, make
    from rove.runs.configure import configure

    task = make(environment, copies=copies) if copies > 1 else make(environment)
    settings = settings_for(agent, width, batch)
    jobs = configure(settings, task, seeds=seeds, steps=2**30).jobs(None)
    return _on_host(jobs, copies) if isinstance(task, HostEnvironment) else _compiled(jobs)


def _compiled(jobs: list[Any]) -> Callable[[int], list[int]]:
    """Seeds are trained one after the other."""
    from rove.training import outcomes
    from rove.training.chunks import advance
    from rove.training.lane import FAULTS

    running = [outcomes.fresh(job) for job in jobs]

    def learn(steps: int) -> list[int]:
        for i, outcome in enumerate(running):
            step = int(outcome.lane.step)
            last = step + steps
            while step < last:  # a chunk also ends when its episode log is full
                (lane,) = advance([outcome], [step], last - step)
                if int(lane.fault):
                    raise RuntimeError(f"{outcome.job.name}: {FAULTS[int(lane.fault)]}")
                outcome = running[i] = outcome._replace(lane=lane)
                step = int(lane.step)
        return [int(outcome.lane.step) for outcome in running]

    return learn


def _on_host(jobs: list[Any], copies: int) -> Callable[[int], list[int]]:
    """Seeds take turns, one step of every copy each, as in `rove.train`."""
    from rove.training import host, progress

    trainers = [host._Trainer(job, progress.ignore, progress.ignore) for job in jobs]
    for each in trainers:
        each.begin()

    def learn(steps: int) -> list[int]:
        for _ in range(steps // copies):
            for each in trainers:
                each.step()
        return [each.steps for each in trainers]

    return learn


def main() -> None:
    from rove.parts import platform

    chosen = entry()
    platform.prepare(lanes=1)  # as rove's own workers
    chosen = {k: v for k, v in chosen.items() if k not in ("library", "threads")}
    serve(trainer(**chosen), len(chosen["seeds"]), ("rove", "jax", "jaxlib", "numpy", "gymnasium"))


if __name__ == "__main__":
    main()
