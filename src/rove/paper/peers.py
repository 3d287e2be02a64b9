"""Other libraries, each in a separate virtual environment that is created when first needed.

They are installed from the package registry.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

_INSTALLING = threading.Lock()
SB3 = ("torch==2.13.0", "stable-baselines3==2.9.2", "gymnasium[mujoco]==1.4.0")
"""stable-baselines3 and what it needs."""


def python_of(folder: Path, packages: Sequence[str]) -> str:
    """Return the interpreter of a virtual environment with the given packages, created if needed.

    The first package is installed before the others: as a dependency, torch would be the newest.
    """
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    with _INSTALLING:
        if not stamp.exists() or stamp.read_text().split() != list(packages):
            print(f"installing {', '.join(packages)} (once)", file=sys.stderr)
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            for chosen in (packages[:1], packages):
                install = [str(python), "-m", "pip", "install", "--quiet", *chosen]
                subprocess.run(install, check=True)
            stamp.write_text("\n".join(packages))
    return str(python)


def folder() -> Path:
    """Return the folder of the virtual environments: the one that ROVE_BENCH names, or a cache."""
    return Path(os.environ.get("ROVE_BENCH") or user_cache_path("rove") / "peers")
