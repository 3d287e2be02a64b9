"""Assembling one self-contained HTML file from a template, styles, scripts and the data."""

import base64
import hashlib
import html
import json
from importlib import resources
from typing import Any

from rove.analysis.colours import PALETTE

STYLES = ("page.css",)
SCRIPTS = (
    "draw.js", "charts.js", "controls.js", "beliefs.js", "sections.js", "visits.js", "sweeps.js",
    "headline.js", "page.js",
)  # fmt: skip


def page(data: dict[str, Any]) -> str:
    """Return the HTML page. Its content security policy allows only its own script and style, and
    no requests."""
    style, script = ("\n".join(map(_file, names)) for names in (STYLES, SCRIPTS))
    style += _colours()
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "POLICY": policy,
        "TITLE": html.escape(str(data["title"])),
        "STYLE": style,
        "DATA": _inert(data),
        "SCRIPT": script,
    }
    pieces = _file("page.html").split("%%")  # text, NAME, text, NAME, …, text
    return "".join(parts[p] if i % 2 else p for i, p in enumerate(pieces))


def _colours() -> str:
    """Return the styles of the numbered colours, which are those of all plots."""
    return "".join(
        f".s{i} {{ stroke: light-dark({light}, {dark}); fill: light-dark({light}, {dark}); }}\n"
        for i, (light, dark) in enumerate(PALETTE)
    )


def _file(name: str) -> str:
    return resources.files("rove.reporting").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _inert(data: dict[str, Any]) -> str:
    """Encode JSON so that it can neither close the HTML element it is in nor open another."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
