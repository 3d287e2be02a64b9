"""The quick form of every part of the campaign."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["values", "files", "environments", "neighbours", "disks", "kills", "soak"]
)
def test_nothing_fails(part):
    command = [sys.executable, str(Path(__file__).parent), "--quick", "--only", part]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
