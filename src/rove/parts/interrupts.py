"""Interrupts that are not lost: Ctrl-C, and the SIGTERM of a scheduler.

Python raises `KeyboardInterrupt` wherever the main thread happens to be. If that is a callback of a
library, the exception may be printed and dropped, so training loops also call `check`.
"""

import signal
import threading
from typing import Any

_pending = threading.Event()


def install() -> None:
    """Treat SIGTERM like Ctrl-C, and remember either until `check` has raised it. A job that a
    shell started in the background continues to ignore Ctrl-C."""
    _pending.clear()
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, _interrupt)


def _interrupt(*_: Any) -> None:
    _pending.set()
    raise KeyboardInterrupt


def check() -> None:
    """Raise `KeyboardInterrupt` if an interrupt has come since the last call."""
    if _pending.is_set() and threading.current_thread() is threading.main_thread():
        _pending.clear()
        raise KeyboardInterrupt
