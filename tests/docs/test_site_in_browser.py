"""The site in a real browser: the search, both themes, a narrow and a wide window, offline."""

import time

import pytest

from report.browser import PATIENCE, Browser, found

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(found() is None, reason="needs Chromium"),
]
SEARCH = "document.querySelectorAll('#search-results ul.search li')"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


def wait_for(browser, script):
    deadline = time.monotonic() + PATIENCE
    while not browser.run(script):
        assert time.monotonic() < deadline, script
        time.sleep(0.05)


def visit(browser, page, width=1400, scheme="light"):
    browser.events.clear()
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.send("Emulation.setDeviceMetricsOverride", **size)
    browser.scheme(scheme)
    browser.send("Page.navigate", url=page.as_uri())
    wait_for(browser, f"document.URL === {page.as_uri()!r} && document.readyState === 'complete'")


def test_the_search_finds_pages(browser, site):
    visit(browser, site / "index.html")
    browser.run("document.querySelector('.sidebar-search').value = 'posterior'")
    browser.run("setTimeout(() => document.querySelector('.sidebar-search-container').submit(), 0)")
    wait_for(browser, f"document.URL.includes('search.html?q=posterior') && {SEARCH}.length > 3")
    found_pages = browser.run(f"Array.from({SEARCH}, item => item.querySelector('a').href)")
    assert any("how-to/add-a-family.html" in page for page in found_pages)
    assert not browser.complaints()


@pytest.mark.parametrize("width", [400, 1400])
def test_every_page_fits_its_window_and_asks_for_nothing_outside(browser, site, width):
    for page in sorted(site.rglob("*.html")):
        visit(browser, page, width)
        assert browser.run("document.documentElement.scrollWidth") <= width, page
        assert all(address.startswith(("file:", "data:")) for address in browser.requests()), page
        lost = "Array.from(document.images).filter(image => !image.naturalWidth).length"
        assert browser.run(lost) == 0, page
        assert not browser.complaints(), page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_the_readers(browser, site, scheme):
    visit(browser, site / "index.html", scheme=scheme)
    light = browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (scheme == "light")
