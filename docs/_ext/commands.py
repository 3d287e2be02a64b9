"""The directive `commands`: a section for each command of `rove`, with its help as it is printed.

The text comes from the commands themselves, when the site is built.
"""

import contextlib
import io
import os
import textwrap
from typing import Any
from unittest import mock

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rove.cli import main as cli

WIDTH = 90
_WITH_OPTIONS = "With the settings of an agent and the options of an environment:"
EXAMPLES = {
    "train": [(_WITH_OPTIONS, "ge", "chain-100")],
    "sweep": [(_WITH_OPTIONS, "ge", "chain-100")],
    "reproduce": [
        ("The suite, with one setting per agent:", "suite"),
        ("The searches behind the default settings:", "tuning"),
    ],
}
"""Commands whose help depends on the words that follow, with examples of those."""


def help_of(*words: str) -> str:
    """Return what a command prints about its options."""
    text = io.StringIO()
    with (
        mock.patch.dict(os.environ, COLUMNS=str(WIDTH)),
        contextlib.redirect_stdout(text),
        contextlib.suppress(SystemExit),
    ):
        cli.main([*words, "--help"])
    lines = [textwrap.fill(line, WIDTH) for line in text.getvalue().splitlines()]
    if not any(lines):
        raise ValueError(f"rove {' '.join(words)} --help printed nothing")
    return "\n".join(lines).strip("\n")


class Commands(SphinxDirective):
    """One section per command, in the order of `rove --help`."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name) for name in cli.COMMANDS]

    def _section(self, name: str) -> nodes.section:
        section = nodes.section(ids=[f"rove-{name}"], names=[f"rove {name}"])
        section += nodes.title("", "", nodes.literal("", f"rove {name}"))
        section += _printed(name)
        for about, *words in EXAMPLES.get(name, []):
            section += [nodes.paragraph(text=about), _printed(name, *words)]
        return section


def _printed(*words: str) -> nodes.literal_block:
    text = help_of(*words)
    return nodes.literal_block(text, text, language="text", classes=["help"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
