"""Every link and image of the Markdown pages leads somewhere, as GitHub shows them."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from pages import DOCS, ROOT, anchors, links

PAGES = sorted(
    [*ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"]
    + [page for page in DOCS.rglob("*.md") if "_build" not in page.parts]
)


def broken(page: Path, root: Path = ROOT) -> list[str]:
    """The links of a page within the repository that have no target."""
    bad = []
    for link in links(page):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        lost = not target.exists() or not target.is_relative_to(root)
        if lost or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            bad.append(link)
    return bad


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_has_a_target(page):
    assert not broken(page)


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One σ\n\n[a](#one-σ) [b](#two) [c](page.md#one-σ) [d](none.md) ![e](none.png) "
        "[f](../outside.md) [g](https://example.com) <img src='lost.svg'>\n"
    )
    assert broken(page, tmp_path) == ["#two", "none.md", "none.png", "../outside.md", "lost.svg"]
