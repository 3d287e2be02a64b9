"""Inline code and tables that read well in narrow columns and narrow windows."""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

SHORT = 30
"""The number of characters up to which inline code stays on one line."""
PROSE = 40
"""The mean number of letters in a row from which a table is prose and not numbers."""


def pieces(text: str) -> list[str]:
    """Split code where a line may break: "a/b::c" into "a/", "b::" and "c"."""
    return [piece for piece in re.split(r"(?<=/)|(?<=\w::)|(?<=[a-z]_)(?=[a-z])", text) if piece]


def break_code(literal: nodes.literal) -> None:
    """Give short code a class, and long code invisible opportunities to break."""
    text = literal.astext()
    if len(text) <= SHORT:
        literal["classes"].append("short")
        return
    literal.clear()
    for piece in pieces(text):
        literal += [nodes.Text(piece), nodes.raw("", "<wbr>", format="html")]


def label_cells(table: nodes.table) -> None:
    """Put the heading of its column into each cell of a table of prose, for narrow windows, in
    which its cells are below each other."""
    *head, body = (list(part.findall(nodes.row)) for part in table.findall(is_part))
    letters = sum(map(str.isalpha, "".join(row.astext() for row in body)))
    if not head or len(body[0]) < 3 or letters < PROSE * len(body):
        return
    table["classes"].append("prose")
    for row in body:
        for heading, cell in zip(head[0][0], row, strict=True):
            for paragraph in cell.children[:1]:
                text = heading.astext()
                paragraph.insert(0, nodes.inline(text, text, classes=["column"]))


def is_part(node: nodes.Node) -> bool:
    return isinstance(node, nodes.thead | nodes.tbody)


def arrange(_app: Sphinx, doctree: nodes.document, _docname: str) -> None:
    for table in doctree.findall(nodes.table):
        label_cells(table)
    for literal in list(doctree.findall(nodes.literal)):
        break_code(literal)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", arrange, priority=900)  # after "names", which reads the code
    return {"parallel_read_safe": True, "parallel_write_safe": True}
