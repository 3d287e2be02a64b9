"""Lanes on a Ray cluster, of this machine or elsewhere.

A worker needs nothing but rove: what its lane is to do, and its checkpoint, come with the order,
and checkpoints are sent back to the driver, who has the run folders. So a worker, a node or the
driver may die, and nothing that was saved is lost. The bits are those of a lane in a thread.
"""

import contextlib
import importlib
import importlib.util
import os
import queue
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rove import platform
from rove.errors import ConfigError, LaneError, RoveError, check_integer
from rove.training import crew, lanes
from rove.training.checkpoint import publish
from rove.training.outcomes import Job, Outcome

POLL = 1.0
"""Seconds that a worker waits for news before it says that there are none."""


class Ray:
    """Where lanes run: "ray", a cluster of this machine's, or "ray://HOST:PORT"."""

    def __init__(self, on: str) -> None:
        self.on = on
        if importlib.util.find_spec("ray") is None:
            raise ConfigError("on", on, "Ray is not installed: pip install 'rove[ray]'")

    def checked_workers(self, jobs: Sequence[Job], workers: int | None) -> int | None:
        """How many lanes to run at once; None: as many as the cluster has cores."""
        if workers is not None:
            check_integer("workers", workers, at_least=1)
        return workers

    def execute(
        self,
        jobs: Sequence[Job],
        report: lanes.Report = lambda progress: None,
        saved: lanes.Saved = lambda job, episodes: None,
        workers: int | None = None,
        checkpoint_seconds: float = 10.0,
    ) -> list[Outcome | LaneError]:
        """As `lanes.execute`, for lanes whose run folders hold all that a worker needs to know."""
        at_once = self.checked_workers(jobs, workers)
        with self._connected(at_once) as ray:
            at_once = at_once or max(1, int(ray.cluster_resources().get("CPU", 1)))
            hire = lambda mail: _Actor(ray, mail)  # noqa: E731
            return crew.share_out(jobs, hire, at_once, report, saved, checkpoint_seconds)

    @contextlib.contextmanager
    def _connected(self, workers: int | None) -> Iterator[Any]:
        """Ray, connected; as it was before, if a person has connected it."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray = importlib.import_module("ray")
        if ray.is_initialized():
            yield ray
            return
        quiet = {"log_to_driver": False, "logging_level": "ERROR"}
        try:
            if self.on == "ray":
                cores = workers or lanes.cores()
                # From 2.59 on, a local cluster of Ray's listens to nobody without its token.
                ray.init("local", num_cpus=cores, include_dashboard=False, **quiet)
            else:
                ray.init(self.on, **quiet)
        except (ConnectionError, OSError, ImportError, RuntimeError, ValueError) as error:
            what = f"a Ray cluster that can be reached ({error})"
            raise ConfigError("on", self.on, what) from None
        try:
            yield ray
        finally:
            ray.shutdown()


class _Actor(crew.Worker):
    """A worker on the cluster, and a thread that asks it for news."""

    def __init__(self, ray: Any, mail: crew.Mail) -> None:
        super().__init__()
        self._ray, self._over = ray, threading.Event()
        # Asked for news while it trains and while it is told things: three calls at a time.
        self._remote = ray.remote(num_cpus=1, max_restarts=0, max_concurrency=3)(Remote).remote()
        threading.Thread(target=self._read, args=(mail,), daemon=True).start()

    def _read(self, mail: crew.Mail) -> None:
        try:
            while not self._over.is_set():
                for message in self._ray.get(self._remote.news.remote()):
                    if "stopped" in message:
                        return
                    mail.put((self, self._kept(message)))
        except RoveError as error:  # a checkpoint that could not be written
            mail.put((self, {"ended": str(error)}))
        except Exception as error:  # Ray's own, or a connection's
            mail.put((self, {"ended": f"its worker on Ray ended ({type(error).__name__})"}))
        finally:
            self._leave()

    def _leave(self) -> None:
        """It would hold a core of the cluster for as long as it lives."""
        if not self._over.is_set():
            with contextlib.suppress(self._ray.exceptions.RayError, ConnectionError):
                self._ray.kill(self._remote)
            self._over.set()

    def _kept(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message, once the checkpoint that came with it is in the run folder. Where it cannot be
        written this worker ends, as it would go on with a lane that it no longer has."""
        data = message.pop("checkpoint", None)
        if data is not None and self.job is not None and self.job.path is not None:
            publish(self.job.path, data)
        return message

    def tell(self, **message: Any) -> None:
        if self.job is not None and "folder" in message:
            path, config = self.job.path, self.job.folder / "config.json"
            assert path is not None
            message["config"] = config.read_bytes()
            message["checkpoint"] = path.read_bytes() if path.exists() else None
            message["file"] = str(path.relative_to(self.job.folder))
        with contextlib.suppress(self._ray.exceptions.RayError):  # its end is in the mail
            self._remote.tell.remote(message)

    def end(self, seconds: float) -> None:
        if not self._over.wait(seconds):
            self._leave()


class Remote:
    """The worker itself, in a process of the cluster."""

    def __init__(self) -> None:
        platform.prepare(lanes=1)
        self._stop = threading.Event()
        self._orders: queue.Queue[dict[str, Any]] = queue.Queue()
        self._news: queue.Queue[dict[str, Any]] = queue.Queue()
        self._news.put({"ready": True})
        threading.Thread(target=self._work, daemon=True).start()

    def tell(self, order: dict[str, Any]) -> None:
        if "stop" in order:
            self._stop.set()
        self._orders.put(order)

    def news(self) -> list[dict[str, Any]]:
        """What was said since the last call."""
        told = []
        with contextlib.suppress(queue.Empty):
            told.append(self._news.get(timeout=POLL))
            while True:
                told.append(self._news.get_nowait())
        return told

    def _work(self) -> None:
        while "stop" not in (order := self._orders.get()):
            with tempfile.TemporaryDirectory(prefix="rove-") as folder:
                self._train(order, Path(folder))
        self._news.put({"stopped": True})

    def _train(self, order: dict[str, Any], folder: Path) -> None:
        """The lane, in a run folder of this worker's own."""
        file = folder / order["file"]
        publish(folder / "config.json", order["config"])
        if order["checkpoint"] is not None:
            publish(file, order["checkpoint"])

        def answer(**message: Any) -> None:
            if "saved" in message:
                message["checkpoint"] = file.read_bytes()
            self._news.put(message)

        crew.work(order | {"folder": str(folder)}, answer, self._stop)
