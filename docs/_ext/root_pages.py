"""Links to Markdown files outside of docs/ lead to the pages of the site that include them."""

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

LINK = re.compile(r"(?<=\]\()[^)\s#]+\.md(?=[)#])")


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    folder = Path(app.env.doc2path(docname)).parent
    root = Path(app.srcdir).parent
    pages = {root / file: Path(app.srcdir) / page for file, page in app.config.root_pages.items()}

    def replaced(match: re.Match[str]) -> str:
        page = pages.get((folder / match[0]).resolve())
        return os.path.relpath(page, folder) if page else match[0]

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("root_pages", {}, "env")
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
