"""Markdown pages of the repository: their blocks, links and headings."""

import itertools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PARSER = MarkdownIt("commonmark").enable("table")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line it begins at."""

    language: str
    text: str
    line: int


def tokens(page: Path) -> list[Token]:
    """Return the tokens of a page, those within paragraphs and headings included."""
    flat = []
    for token in PARSER.parse(page.read_text("utf-8")):
        flat += [token, *(token.children or [])]
    return flat


def blocks(page: Path, *languages: str) -> list[Block]:
    """Return the fenced blocks of a page that are in one of the languages."""
    fences = [token for token in tokens(page) if token.type == "fence"]
    found = [Block(t.info.strip(), t.content, (t.map or [0])[0] + 1) for t in fences]
    return [block for block in found if block.language in languages]


def links(page: Path) -> list[str]:
    """Return the targets of the links and images of a page, those in HTML included."""
    targets = []
    for token in tokens(page):
        targets += [str(x) for x in (token.attrGet("href"), token.attrGet("src")) if x]
        if token.type in ("html_inline", "html_block"):
            targets += re.findall(r"(?:href|src|srcset)=[\"']([^\"']+)", token.content)
    return targets


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub names them."""
    found, seen = set(), Counter()
    parsed = PARSER.parse(page.read_text("utf-8"))
    for token, inline in itertools.pairwise(parsed):
        if token.type == "heading_open":
            slug = slug_of("".join(t.content for t in inline.children or []))
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return found


def slug_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
