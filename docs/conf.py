"""Sphinx's configuration: Markdown pages, no request to another site, warnings are errors."""

import sys
from pathlib import Path

import rove

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "rove"
copyright = "the rove contributors"
version = release = rove.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "api",
    "commands",
    "layout",
    "mathml",
    "names",
    "root_pages",
]
exclude_patterns = ["_build"]
root_pages = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
}

myst_enable_extensions = ["attrs_block", "dollarmath"]
myst_heading_anchors = 4
maximum_signature_line_length = 66
python_use_unqualified_type_names = True
nitpick_ignore_regex = [("py:.*", r"(?!rove\.).*")]  # types of other packages, type variables

html_theme = "furo"
pygments_dark_style = "github-dark"
html_title = "rove"
html_static_path = ["_static"]
html_css_files = ["rove.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_search_summary = False  # a page opened from a file may not read others
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}

copybutton_exclude = ".linenos, .gp, .go"  # prompts and outputs
