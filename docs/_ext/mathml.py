"""Maths as MathML, which browsers render by themselves: pages need no script for it."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _convert(node: nodes.Element, as_block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block)
    except MathError as error:
        logger.warning("cannot convert %r to MathML: %s", node.astext(), error, location=node)
        return ""


def visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(_convert(node, as_block=True) + "</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
