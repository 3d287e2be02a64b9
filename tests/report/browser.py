"""A real Chromium without a window, driven by its DevTools protocol over a pipe."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE = 120.0
"""Seconds."""


def found() -> str | None:
    """Where Chromium is, if it is anywhere."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of one browser."""

    def __init__(self) -> None:
        path = found()
        assert path is not None
        self._home = tempfile.TemporaryDirectory(prefix="rove-browser-", ignore_cleanup_errors=True)
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        # Chromium reads from descriptor 3 and writes to 4, where a small process puts them: code
        # between a fork and an exec of this one is not safe beside JAX's threads.
        theirs = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]
        wire = (
            f"import os, sys; os.dup2({theirs[0]}, 3); os.dup2({theirs[1]}, 4); "
            f"os.closerange(5, 64); os.execv(sys.argv[1], sys.argv[1:])"
        )
        home = f"--user-data-dir={self._home.name}"
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", wire, path, *FLAGS, home, "about:blank"],
            pass_fds=theirs,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (read, write, *theirs):
            os.close(end)
        self._count, self._buffer, self._session = 0, b"", None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            told = self._receive(deadline)
            if told.get("id") == self._count:
                assert "error" not in told, told["error"]
                return told.get("result", {})

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            more = os.read(self._read, 1 << 16) if ready else b""
            assert more, "Chromium does not answer"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        told = json.loads(line)
        if "method" in told:
            self.events.append(told)
        return told

    def open(self, path: Path, width: int = 1200, height: int = 900, scheme: str = "light") -> None:
        """Load a file, and wait until its script has drawn everything."""
        self.events.clear()
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.scheme(scheme)
        self.send("Page.navigate", url=path.resolve().as_uri())
        deadline = time.monotonic() + PATIENCE
        while self.run("document.documentElement?.dataset.ready") != "true":
            assert time.monotonic() < deadline, f"the page was not drawn: {self.complaints()}"
            time.sleep(0.05)
        self.settle()

    def scheme(self, scheme: str, media: str = "") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=media, features=features)

    def settle(self) -> None:
        """Let what waits for the next frames happen."""
        self.run(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame("
            "() => setTimeout(() => done(1), 0))))"
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def reloads(self, script: str) -> None:
        """Run what makes the page load again, and wait for that.

        In a task of its own: the answer to this call would be lost with the page it came from.
        """
        self.events.clear()
        self.run(f"setTimeout(() => {{ {script} }}, 0)")
        deadline = time.monotonic() + PATIENCE
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self._receive(deadline)

    def press(self, key: str) -> None:
        """A key of the keyboard."""
        codes = {"ArrowLeft": 37, "ArrowRight": 39, "Tab": 9, "Enter": 13, "Home": 36, "End": 35}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
                **(text if kind == "keyDown" else {}),
            )

    def complaints(self) -> list[Any]:
        """Exceptions, and what was written to the console as a warning or worse."""
        self.run("1")  # what is on its way arrives before the answer
        told = []
        for event in self.events:
            params = event["params"]
            loud = event["method"] == "Log.entryAdded" or (
                event["method"] == "Runtime.consoleAPICalled"
                and params["type"] in ("error", "warning", "assert")
            )
            if event["method"] == "Runtime.exceptionThrown" or loud:
                told.append(params)
        return told

    def requests(self) -> list[str]:
        """What the page has asked for."""
        sent = [e for e in self.events if e["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def picture(self, path: Path, whole: bool = True) -> None:
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: Path) -> None:
        answer = self.send("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End it and everything it has started."""
        for end in (self._write, self._read):
            os.close(end)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._home.cleanup()
