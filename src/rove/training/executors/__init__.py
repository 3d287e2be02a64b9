"""Executors, which run jobs: in threads of this process, in processes, or on a Ray cluster."""

from rove.errors import ConfigError
from rove.training.executors.base import Executor, cores
from rove.training.executors.processes import Processes
from rove.training.executors.ray import Ray
from rove.training.executors.threads import Threads

__all__ = ["Executor", "Processes", "Ray", "Threads", "cores", "executor_for"]


def executor_for(on: str, jobs_in: str) -> Executor:
    """Return the executor that `on` names: threads, processes, ray or ray://HOST:PORT.

    `jobs_in` names a function, as "module:function", with which workers outside of this process
    read the jobs of a folder.
    """
    if on == "threads":
        return Threads()
    if on == "processes":
        return Processes(jobs_in)
    if isinstance(on, str) and (on == "ray" or on.startswith("ray://")):
        return Ray(on, jobs_in)
    raise ConfigError.must_be("on", on, "threads, processes, ray or ray://HOST:PORT")
