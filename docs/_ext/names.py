"""Links inline code that names an object of the package, such as `Agent.act`, to its reference."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode


def short_names(objects: dict[str, Any]) -> dict[str, str]:
    """Return the full names of objects by their short ones: "Agent.act" of "rove.Agent.act", and
    "rove.train" of itself. A short name of several objects is left out."""
    found: dict[str, set[str]] = {}
    for full in objects:
        parts = full.split(".")
        capital = next((i for i, part in enumerate(parts) if part[0].isupper()), None)
        short = full if capital is None else ".".join(parts[capital:])
        found.setdefault(short, set()).add(full)
        if capital is not None and parts[:capital] == ["rove"]:
            found.setdefault(full, set()).add(full)
    return {short: names.pop() for short, names in found.items() if len(names) == 1}


def link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn literals into references."""
    objects = app.env.domains["py"].data["objects"]
    full_names = short_names(objects)
    for literal in list(doctree.findall(nodes.literal)):
        name = full_names.get(literal.astext())
        above, parent = [], literal.parent
        while parent is not None:
            above.append(parent)
            parent = parent.parent
        if name is None or any(isinstance(p, nodes.reference | nodes.title) for p in above):
            continue
        entry = objects[name]
        reference = make_refnode(
            app.builder, docname, entry.docname, entry.node_id, literal.deepcopy(), name
        )
        literal.replace_self(reference)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
