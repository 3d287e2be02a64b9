"""The directive `commands`: a section for each command of `rove`, with its help as it is printed.

The text comes from the commands themselves, when the site is built.
"""

import contextlib
import io
import os
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rove.cli import main as cli

WIDTH = 92
EXAMPLE = ["ge", "chain-100"]
EXAMPLES = {"train": EXAMPLE, "sweep": EXAMPLE}
"""Commands whose options depend on an agent and an environment, with an example of both."""


def help_of(*words: str) -> str:
    """Return what a command prints about its options."""
    text, columns = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
            cli.main([*words, "--help"])
    finally:
        if columns is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = columns
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    if not any(lines):
        raise ValueError(f"rove {' '.join(words)} --help printed nothing")
    return "\n".join(lines).strip("\n")


class Commands(SphinxDirective):
    """One section per command, in the order of `rove --help`."""

    def run(self) -> list[nodes.Node]:
        return [self._section(name, about) for name, about in cli.COMMANDS.items()]

    def _section(self, name: str, about: str) -> nodes.section:
        section = nodes.section(ids=[f"rove-{name}"], names=[f"rove {name}"])
        section += nodes.title("", "", nodes.literal("", f"rove {name}"))
        section += nodes.paragraph(text=f"{about[0].upper()}{about[1:]}.")
        section += _printed(name)
        if name in EXAMPLES:
            example = " ".join(EXAMPLES[name])
            section += nodes.paragraph(text="The options of an agent and of an environment, here ")
            section[-1] += [nodes.literal("", f"rove {name} {example} --help"), nodes.Text(":")]
            section += _printed(name, *EXAMPLES[name])
        return section


def _printed(*words: str) -> nodes.literal_block:
    text = help_of(*words)
    return nodes.literal_block(text, text, language="text", classes=["help"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
