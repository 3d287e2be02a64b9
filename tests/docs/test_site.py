"""The documentation as a site: it builds without a warning, and opens without a network."""

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from pages import DOCS

import rove
from rove.cli import main as cli


class Loads(HTMLParser):
    """Collects what a page asks for when it is opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag != "a":
            links = "" if values.get("rel") in ("canonical", "author") else values.get("href")
            self.found += [v for v in (values.get("src"), values.get("srcset"), links) if v]
        self.found += in_style(values.get("style") or "")
        self._style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._style:
            self.found += in_style(data)


def in_style(text: str) -> list[str]:
    """Return the addresses in a style sheet."""
    return [
        a or b for a, b in re.findall(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)", text)
    ]


def outside(address: str) -> bool:
    return re.match(r"(https?:)?//", address.strip()) is not None


@pytest.mark.slow
def test_every_page_is_in_the_site(site):
    for page in DOCS.rglob("*.md"):
        if "_build" not in page.parts:
            assert (site / page.relative_to(DOCS).with_suffix(".html")).exists()


@pytest.mark.slow
def test_nothing_is_asked_for_outside(site):
    asked = {}
    for page in site.rglob("*.html"):
        asked[page.name] = Loads(page.read_text("utf-8")).found
    for sheet in site.rglob("*.css"):
        asked[sheet.name] = in_style(sheet.read_text("utf-8"))
    assert any(asked.values())
    assert not {name: bad for name, all_ in asked.items() if (bad := [*filter(outside, all_)])}


def test_a_request_is_found():
    page = (
        "<script src='https://a/x.js'></script><link rel=stylesheet href='//b/y.css'>"
        "<a href='https://c'></a><img src='d.png'><p style='background: url(http://e)'>"
        "<style>@import 'https://f'; @font-face { src: url(\"https://g\") }</style>"
    )
    found = [address for address in Loads(page).found if outside(address)]
    assert found == ["https://a/x.js", "//b/y.css", "http://e", "https://f", "https://g"]


@pytest.mark.slow
def test_every_public_name_is_documented(site):
    index = (site / "genindex.html").read_text("utf-8")
    assert not [name for name in rove.__all__ if f'#rove.{name}"' not in index]


@pytest.mark.slow
def test_every_command_is_documented_as_it_prints(site, capsys, monkeypatch):
    page = (site / "reference" / "cli.html").read_text("utf-8")
    for name in cli.COMMANDS:
        assert f'id="rove-{name}"' in page
    monkeypatch.setenv("COLUMNS", "90")
    with pytest.raises(SystemExit):
        cli.main(["report", "--help"])
    text = re.sub(r"<[^>]+>", "", page)
    for line in capsys.readouterr().out.splitlines():
        assert line.strip() in text


@pytest.mark.slow
def test_maths_is_mathml(tmp_path):
    pytest.importorskip("myst_parser")
    (tmp_path / "conf.py").write_text(
        f"import sys; sys.path.insert(0, {str(DOCS / '_ext')!r})\n"
        "extensions = ['myst_parser', 'mathml']\nmyst_enable_extensions = ['dollarmath']\n"
        "html_math_renderer = 'mathml'\n"
    )
    (tmp_path / "index.md").write_text("# Maths\n\n$q_\\phi(\\theta)$\n\n$$\\frac{1}{2}$$\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", str(tmp_path), str(tmp_path / "out")]
    subprocess.run(command, check=True)
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert page.count("<math") == 2
    assert "<msub>" in page
    assert "<mfrac>" in page
    assert not re.search(r"<script[^>]*mathjax", page, re.IGNORECASE)


@pytest.mark.slow
def test_names_in_the_text_lead_to_the_reference_and_that_to_the_source(site):
    page = (site / "paper" / "paper-to-code.html").read_text("utf-8")
    assert re.search(r'href="\.\./reference/agents\.html#rove\.Agent\.lookahead"[^>]*><code', page)
    reference = (site / "reference" / "agents.html").read_text("utf-8")
    assert 'href="../_modules/rove/core/algorithm.html#Agent.lookahead"' in reference
    assert re.search(r"Inherited fields: <a [^>]*CriticLearner\.returns", reference)
    assert "def lookahead" in re.sub(
        "<[^>]+>", "", (site / "_modules/rove/core/algorithm.html").read_text("utf-8")
    )


@pytest.mark.slow
def test_an_argument_does_not_lead_to_the_function_of_its_name(site):
    page = (site / "reference" / "training.html").read_text("utf-8")
    assert re.search(r"<li><p><code[^>]*><span[^>]*>report</span></code>: a function that is", page)
    assert not re.findall(r'<li><p><a [^>]*href="#(rove\.[a-z]+)"', page)
    assert re.search(r'<a [^>]*href="#rove\.report"', page)  # elsewhere, the function is meant


@pytest.mark.slow
def test_long_code_breaks_at_its_joints_and_short_code_does_not(site):
    page = (site / "paper" / "paper-to-code.html").read_text("utf-8")
    parts = ("tests/", "core/", "test_", "identities.py::", "test_", "ge_", "with_", "a_")
    spans = [f'<span class="pre">{part}</span>' for part in (*parts, "dirac_", "is_", "dqn")]
    assert "<wbr>".join(spans) in page
    assert re.search(r'<code class="short [^"]*"><span class="pre">Gaussian\(sigma\)</span>', page)


@pytest.mark.slow
def test_cells_of_prose_name_their_column_and_numbers_do_not(site):
    prose = re.compile(r'<table class="prose [^>]*>.*?</table>', re.DOTALL)
    equations = prose.findall((site / "paper" / "paper-to-code.html").read_text("utf-8"))[0]
    rows = equations.count("<tr") - 1
    assert equations.count('<span class="column">what it says</span>') == rows > 5
    claims = prose.findall((site / "scoreboard.html").read_text("utf-8"))
    assert len(claims) == 1
    assert '<th class="head"><p>verdict</p></th>' in claims[0]
