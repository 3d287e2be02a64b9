"""Training on a Ray cluster, on this machine or elsewhere.

A worker needs nothing but rove: a job comes with its configuration and checkpoint, and checkpoints
are sent back to the driver, which has the run folders. If a worker, a node or the driver dies, no
checkpoint is lost. Results are bit-identical to those of threads.
"""

import contextlib
import importlib
import importlib.util
import os
import queue
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rove.errors import ConfigError, LaneError, RoveError, check_integer
from rove.parts import platform
from rove.parts.files import publish
from rove.training.checkpoint import previous
from rove.training.executors import pool
from rove.training.executors.base import Custom, cores
from rove.training.outcomes import Job, Outcome
from rove.training.progress import Report, Saved, ignore

CONNECT_SECONDS = 4.0
"""Seconds within which the head of a cluster has to answer."""
POLL = 1.0
"""Seconds that `Remote.messages` waits for a message before it returns none."""


class Ray:
    """A Ray cluster: "ray" starts one on this machine, "ray://HOST:PORT" connects to one."""

    def __init__(self, on: str, jobs_in: str) -> None:
        self.on, self._jobs_in = on, jobs_in
        if importlib.util.find_spec("ray") is None:
            raise ConfigError("on", on, "needs Ray: pip install 'ray[client]'")

    def check(self, jobs: Sequence[Job], workers: int | None) -> None:
        if workers is not None:
            check_integer("workers", workers, at_least=1)
        if self.on != "ray" and not importlib.import_module("ray").is_initialized():
            self._reach()

    def _reach(self) -> None:
        """Raise `ConfigError` if the cluster's head does not answer: before anything is written,
        and sooner than Ray itself would give up."""
        try:
            address = urlsplit(self.on)
            host, port = address.hostname, address.port
        except ValueError:
            host = port = None
        if not host or not port:
            raise ConfigError.must_be("on", self.on, "ray://HOST:PORT, the address of a cluster")
        reason = f"it does not answer within {CONNECT_SECONDS:g} seconds"
        try:
            socket.create_connection((host, port), CONNECT_SECONDS).close()
            if os.environ.get("RAY_USE_TLS", "0") == "0" and not _speaks_grpc(f"{host}:{port}"):
                raise TimeoutError(reason)
        except OSError as error:
            message = f"cannot connect to the Ray cluster {self.on!r}: {error}"
            raise ConfigError("on", self.on, "a running Ray cluster", message) from None

    def remote(self, custom: Custom, unfinished: int, workers: int | None) -> bool:
        for label in custom():
            reason = f"cannot train {label}: it uses custom code, which the cluster does not have; "
            raise ConfigError("on", self.on, f"{reason}use on='threads'")
        return unfinished > 0

    def execute(
        self,
        jobs: Sequence[Job],
        report: Report = ignore,
        saved: Saved = ignore,
        workers: int | None = None,
    ) -> list[Outcome | LaneError]:
        self.check(jobs, workers)
        with self._connected(workers) as ray:
            at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
            start_worker = lambda inbox: _Actor(ray, inbox)  # noqa: E731
            return pool.run_jobs(jobs, start_worker, at_once, report, saved, self._jobs_in)

    @contextlib.contextmanager
    def _connected(self, workers: int | None) -> Iterator[Any]:
        """Yield a connected Ray; a connection that the user has already made is kept."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if self.on == "ray":  # listen on the loopback interface only, as on Windows and macOS
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        ray = importlib.import_module("ray")
        if ray.is_initialized():
            yield ray
            return
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.on == "ray":
                # From Ray 2.59 on, a local cluster rejects clients without its token.
                ray.init("local", num_cpus=workers or cores(), include_dashboard=False, **quiet)
            else:
                ray.init(self.on, **quiet)
        except (ConnectionError, OSError, ImportError, RuntimeError, ValueError) as error:
            message = f"cannot connect to the Ray cluster {self.on!r}: {error}"
            raise ConfigError("on", self.on, "a Ray cluster that is running", message) from None
        try:
            yield ray
        finally:
            ray.shutdown()


def _speaks_grpc(address: str) -> bool:
    """Whether a server answers in Ray's protocol."""
    grpc = importlib.import_module("grpc")
    with grpc.insecure_channel(address, [("grpc.enable_http_proxy", 0)]) as channel:
        try:
            grpc.channel_ready_future(channel).result(CONNECT_SECONDS)
            return True
        except grpc.FutureTimeoutError:
            return False


class _Actor(pool.Worker):
    """A worker on the cluster, and a thread that polls it for messages."""

    def __init__(self, ray: Any, inbox: pool.Inbox) -> None:
        super().__init__()
        self._ray, self._over = ray, threading.Event()
        # Three concurrent calls: it receives messages and is polled for its own while it trains.
        self._remote = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=3)(Remote).remote()
        threading.Thread(target=self._read, args=(inbox,), daemon=True).start()

    def _read(self, inbox: pool.Inbox) -> None:
        try:
            while not self._over.is_set():
                for message in self._ray.get(self._remote.messages.remote()):
                    if "stopped" in message:
                        return
                    inbox.put((self, self._with_checkpoint_saved(message)))
        except RoveError as error:  # a checkpoint could not be written
            inbox.put((self, {"ended": str(error)}))
        except Exception as error:  # from Ray, or the connection was lost
            inbox.put((self, {"ended": f"its worker on Ray ended ({type(error).__name__})"}))
        finally:
            self._release()

    def _release(self) -> None:
        """Kill the remote worker, which would otherwise keep occupying a core of the cluster."""
        if not self._over.is_set():
            with contextlib.suppress(self._ray.exceptions.RayError, ConnectionError):
                self._ray.kill(self._remote)
            self._over.set()

    def _with_checkpoint_saved(self, message: dict[str, Any]) -> dict[str, Any]:
        """Write the checkpoint that came with a message, if any, to the run folder.

        If that fails, this worker is ended: its job is resumed from the previous checkpoint.
        """
        data = message.pop("checkpoint", None)
        if data is not None and self.job is not None and self.job.path is not None:
            publish(self.job.path, data, previous(self.job.path))
        return message

    def send(self, **message: Any) -> None:
        if self.job is not None and "folder" in message:
            path, config = self.job.path, self.job.folder / "config.json"
            assert path is not None
            message["config"] = config.read_bytes()
            message["checkpoint"] = path.read_bytes() if path.exists() else None
            message["file"] = str(path.relative_to(self.job.folder))
        with contextlib.suppress(self._ray.exceptions.RayError):  # `_read` reports that it ended
            self._remote.receive.remote(message)

    def end(self, seconds: float) -> None:
        if not self._over.wait(seconds):
            self._release()


class Remote:
    """The part of a worker that runs in a process of the cluster."""

    def __init__(self) -> None:
        platform.prepare(lanes=1)
        self._stop = threading.Event()
        self._orders: queue.Queue[dict[str, Any]] = queue.Queue()
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._messages.put({"ready": True})
        threading.Thread(target=self._work, daemon=True).start()

    def receive(self, order: dict[str, Any]) -> None:
        """Queue a job, or stop."""
        if "stop" in order:
            self._stop.set()
        self._orders.put(order)

    def messages(self) -> list[dict[str, Any]]:
        """Return all messages since the last call."""
        messages = []
        with contextlib.suppress(queue.Empty):
            messages.append(self._messages.get(timeout=POLL))
            while True:
                messages.append(self._messages.get_nowait())
        return messages

    def _work(self) -> None:
        while "stop" not in (order := self._orders.get()):
            with tempfile.TemporaryDirectory(prefix="rove-") as folder:
                self._train(order, Path(folder))
        self._messages.put({"stopped": True})

    def _train(self, order: dict[str, Any], folder: Path) -> None:
        """Train the job in a temporary run folder of this worker."""
        file = folder / order["file"]
        publish(folder / "config.json", order["config"])
        if order["checkpoint"] is not None:
            publish(file, order["checkpoint"])

        def answer(**message: Any) -> None:
            if "saved" in message:
                message["checkpoint"] = file.read_bytes()
            self._messages.put(message)

        pool.work(order | {"folder": str(folder)}, answer, self._stop)
