"""The built site."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS

NEEDED = ("sphinx", "furo", "myst_parser", "sphinx_copybutton")
NOWHERE = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """The folder of the site, built without a network; warnings are errors."""
    for package in NEEDED:
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-n", "-d", folder / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, DOCS, folder / "html"]
    built = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=os.environ | NOWHERE
    )
    assert built.returncode == 0, built.stderr
    return folder / "html"
