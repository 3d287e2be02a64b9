"""Writing files atomically and never through a symbolic link, and reading regular files only."""

import contextlib
import os
import stat
from pathlib import Path

from rove.errors import RunFolderError

LARGEST = 2**28
"""Maximum number of bytes of a file that is read whole, such as config.json or episodes.csv."""


def publish(path: Path, data: bytes, previous: Path | None = None) -> None:
    """Write a file atomically: after a crash at any moment, it has its old or its new content.

    If the path is a symbolic link, the link is replaced, and not the file that it leads to. If
    `previous` is given, the old file is kept under that path.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()  # left by a process that was killed, or a link
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(partial, flags, 0o666), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if previous is not None and is_regular(path):
            _keep(path, previous)
        os.replace(partial, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            partial.unlink()  # it would take up space on a full disk
        raise RunFolderError(f"cannot write {path}: {error.strerror}") from None


def _keep(path: Path, previous: Path) -> None:
    """Give a file a second name, `previous`; nothing is kept on file systems without hard links."""
    previous.parent.mkdir(exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        previous.unlink()
    with contextlib.suppress(OSError):
        os.link(path, previous, follow_symlinks=False)


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file, and not a link to one."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def check_regular(path: Path) -> None:
    """Raise `OSError` unless the path leads to a regular file: opening a pipe or a device could
    block forever."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("it is not a regular file")


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Return the content of a regular file; raise `OSError` if it is not one, or too large."""
    check_regular(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(f"it has more than {largest:,} bytes")
    return data


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Return the text of a regular file; raise `OSError` or `ValueError` if it cannot be read."""
    return read_bytes(path, largest).decode("utf-8")
