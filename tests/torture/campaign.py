"""What every part of the campaign shares: counts of attempts, and failures with their reasons."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

PYTHON = sys.executable


@dataclass
class Tally:
    """The attempts of one part of the campaign, and what failed."""

    name: str
    attempts: int = 0
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    took: float = 0.0
    """Seconds that the part took."""
    notes: list[str] = field(default_factory=list)
    """What was measured, or how the attempts are divided."""

    def failed(self, what: str) -> None:
        """Record a failure, and print it."""
        self.failures.append(what)
        print(f"  FAILED {self.name}: {what}", flush=True)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class Hangs(BaseException):
    """Something took longer than it may."""


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise `Hangs` in the main thread after so many seconds."""

    def raise_it(*_: object) -> None:
        raise Hangs(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, raise_it)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def kill(process: subprocess.Popen) -> None:
    """Kill a process and its group, which it leads."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def processes_with(text: str) -> list[int]:
    """Return the processes whose command line contains a text, except this one."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
                if text.encode() in file.read():
                    found.append(int(entry))
    return found
