"""The report in a real browser: it draws, moves, stays text, asks for nothing, fits a phone."""

import json
import re

import numpy as np
import pytest
from made import HOSTILE, sweep_of, write_run

import rove
from rove import report, reporting
from rove.analysis.curves import moving_average

FIGURES = 'document.querySelectorAll("figure")'
CURVE = """document.querySelector('svg[aria-label^="Curves"]').closest("figure")"""
"""The first learning curves."""


@pytest.fixture
def opened(browser, page):
    browser.open(page)
    browser.run("sessionStorage.clear()")
    browser.open(page)
    unfold(browser)
    yield browser
    assert browser.complaints() == []
    assert [r for r in browser.requests() if not r.startswith(("file:", "data:"))] == []


def unfold(browser):
    """Open everything that is folded."""
    browser.run('document.querySelectorAll("details").forEach(d => { d.open = true; })')
    browser.settle()


def all_drawn(browser):
    """How many figures there are; each must hold shapes, all of finite numbers."""
    shapes = browser.run(
        f"""[...{FIGURES}].map(f => [f.querySelector(".chart svg")?.getAttribute("aria-label"),
        f.querySelectorAll("path.line, path.ray, rect.cell, rect.bar").length,
        /NaN|undefined|Infinity/.test(f.innerHTML)])"""
    )
    for name, count, broken in shapes:
        assert name
        assert count > 0, name
        assert not broken, name
    return len(shapes)


@pytest.mark.fast_cases("400-light")
@pytest.mark.parametrize(
    ("width", "scheme"), [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")]
)
def test_every_chart_draws_and_fits(opened, page, width, scheme):
    opened.open(page, width, 844, scheme)
    unfold(opened)
    # A map of solved seeds; 2 groups: curves, visits and 3 probes of 2 charts each; sweeps: a
    # curve, 2 maps, 1 with rays.
    assert all_drawn(opened) == 1 + 2 * (1 + 1 + 6) + 1 + 2 + 1
    assert opened.run("document.documentElement.scrollWidth") <= width
    ground = opened.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 22, 26)")


def test_a_choice_changes_the_curves(opened):
    """The window, each seed's curve, and what is shown over episodes."""
    lines = f"[...{CURVE}.querySelectorAll('path.line')].map(p => p.getAttribute('d')).join()"
    traces = f"{CURVE}.querySelectorAll('path.trace').length"
    title = f"[...{CURVE}.querySelectorAll('text.title')].map(t => t.textContent).join()"
    smooth = opened.run(lines)
    choose(opened, 1, 0)  # no window
    assert opened.run(lines) != smooth
    assert opened.run(traces) == 6  # 2 agents of 3 seeds, which are too few for an interval
    assert opened.run(f"{CURVE}.querySelectorAll('path.band').length") == 0
    assert opened.run(title) == "episode,return"
    choose(opened, 0, 1)
    assert opened.run(title) == "episode,fraction of seeds that solved it"
    assert opened.run(traces) == 0
    text = "document.querySelectorAll('.scroll table')[1].textContent"
    before = opened.run(text)
    assert "difference from" in before
    choose(opened, 2, 1)  # the other agent
    assert opened.run(text) != before


def test_the_headline_comes_first_and_the_rest_is_folded(browser, five, page):
    """A title, a card for each run and one figure; claims, beliefs and configuration on demand."""
    path = report([five], five / "r.html")
    browser.open(path)
    assert browser.run("document.querySelector('h1').textContent") == (
        "GE solves chain-5 on 5 of 5 seeds and DQN on 2 of 5 "
        "(difference in mean score in training +8.14, p = 0.041)"
    )
    first = browser.run(
        "[...document.querySelector('main section').children].map(e => e.className)"
    )
    assert first[0] == "cards"
    cards = browser.run("[...document.querySelectorAll('.card')].map(e => e.textContent)")
    assert [("GE" in c, "5 of 5" in c, "(optimum 11)" in c) for c in cards[:1]] == [(True,) * 3]
    assert "2 of 5" in cards[1]
    assert browser.run(f"{FIGURES}.length") == 1
    top = browser.run(f"{FIGURES}[0].getBoundingClientRect().top")
    assert top < browser.run("document.querySelector('.scroll').getBoundingClientRect().top")
    browser.open(page)
    words = browser.run(
        """[...document.querySelectorAll("details:not(details details)")].map(
        d => [d.open, d.textContent])"""
    )
    assert not any(is_open for is_open, _ in words)
    for start in ("Claims tested", "Posterior over training", "Configuration"):
        assert any(text.startswith(start) for _, text in words), start
    bare = """[...document.querySelectorAll(".claims, .beliefs, pre")].filter(
        e => !e.closest("details") && e.parentElement.tagName !== "SECTION").length"""
    assert browser.run(bare) == 0
    assert browser.complaints() == []


def test_five_seeds_have_their_curves_and_a_band_on_demand(browser, five, runs, tmp_path):
    browser.open(report([five], five / "r.html"))
    count = f"['band', 'trace'].map(kind => {CURVE}.querySelectorAll('path.' + kind).length)"
    note = "document.querySelector('.cards ~ p').textContent"
    assert browser.run(count) == [0, 10]
    assert "a thin line for each seed" in browser.run(note)
    browser.run('document.querySelector("input[type=checkbox]").click()')
    assert browser.run(count) == [2, 0]
    assert "a shaded 95% interval" in browser.run(note)
    choose(browser, 0, 1)  # the fraction of seeds that solved it
    assert browser.run(count) == [2, 0]
    browser.run('document.querySelector("input[type=checkbox]").click()')
    assert browser.run(count) == [0, 0]
    write_run(tmp_path / "six", runs, "ge", "chain-5", np.ones((6, 30)))
    browser.open(report([tmp_path], tmp_path / "r.html"))
    assert browser.run(count) == [1, 0]  # of more seeds, an interval


def test_the_interval_of_a_count_of_0_is_wide(browser, runs, tmp_path):
    """0 of 6 seeds do not show that none ever would."""
    write_run(tmp_path / "dqn", runs, "dqn", "chain-5", np.zeros((6, 30)))
    browser.open(report([tmp_path], tmp_path / "r.html"))
    choose(browser, 0, 1)
    high = f"{CURVE}.querySelector('path.band').getBBox().height"
    plot = f"{CURVE}.querySelector('svg').viewBox.baseVal.height"
    assert browser.run(high) > 0.25 * browser.run(plot)


def test_learning_the_optimum_and_actions_have_names(opened):
    notes = f"[...{CURVE}.querySelectorAll('text.note')].map(t => t.textContent)"
    assert opened.run(notes) == ["optimum 11", "learning starts"]
    upright = f"""[...{CURVE}.querySelectorAll("line.mark")].filter(
        l => l.getAttribute("x1") === l.getAttribute("x2")).length"""
    assert opened.run(upright) == 1
    keys = "[...document.querySelector('.beliefs .legend').children].map(e => e.textContent)"
    assert opened.run(keys) == ["left", "right"]
    assert "learning starts" in opened.run(
        "document.querySelector('.beliefs svg').closest('.beliefs').textContent"
    )


def test_marks_of_many_agents_leave_room_for_the_curves(opened):
    marks = "learningMarks([{}].map(([label, starts]) => ({{ label, starts }})))"

    def labels(*starts):
        runs = ", ".join(f"['a{i}', {x}]" for i, x in enumerate(starts))
        return opened.run(marks.format(runs) + ".map(m => m.label)")

    assert labels(2, 2, 2) == ["learning starts"]
    assert labels(2, 2, 5) == ["learning starts: a0; a1", "learning starts: a2"]
    assert labels("null", 2, 2) == ["learning starts: a1; a2"]
    assert labels(2, 2, 2, 5) == ["learning starts: 3 agents", "learning starts: a3"]
    assert labels(1, 2, 3, 4, 5) == ["learning starts, by agent", "", "", "", ""]


def test_ticks_are_whole_episodes(opened):
    assert opened.run("ticks([1, 3], 8, true)") == [1, 2, 3]
    assert opened.run("ticks([1, 3], 8)[1]") != 2


def test_nothing_scrolls_sideways_on_a_phone(opened, page):
    opened.open(page, 400, 800)
    unfold(opened)
    assert opened.run("document.documentElement.scrollWidth") <= 400
    tables = opened.run(
        """[...document.querySelectorAll(".scroll")].map(
        e => [getComputedStyle(e).overflowX, e.scrollWidth > e.clientWidth, e.clientWidth])"""
    )
    assert {how for how, _, _ in tables} == {"auto"}
    assert not any(wider for _, wider, _ in tables)  # they are lists
    assert all(width <= 400 for _, _, width in tables)
    bare = """[...document.querySelectorAll("main table")].filter(
        t => !t.closest(".scroll, .tip")).length"""
    assert opened.run(bare) == 0


def choose(browser, which, option):
    """Take an option of a list."""
    browser.run(
        f"""{{ const s = document.querySelectorAll("select")[{which}]; s.selectedIndex = {option};
        s.dispatchEvent(new Event("change")); 1 }}"""
    )


def test_every_view_draws(opened):
    """Whatever is chosen in every list, and with each seed's curve."""
    opened.run('document.querySelectorAll("input[type=checkbox]").forEach(b => b.click())')
    count = opened.run('document.querySelectorAll("select").length')
    assert count >= 8
    for i in range(count):
        for k in range(opened.run(f'document.querySelectorAll("select")[{i}].options.length')):
            choose(opened, i, k)
            all_drawn(opened)


def test_the_curve_is_the_moving_average(opened, runs):
    """As the page computes it, against the library."""
    shown = opened.run(
        """(() => { const data = JSON.parse(document.getElementById("data").textContent);
        const group = data.sources[0].groups[0];
        const run = group.runs.find(r => r.label === "GE");
        return scoreCurve(run, group, 20, true); })()"""
    )
    smooth = moving_average(rove.load(runs / "ge").scores, 20)
    np.testing.assert_allclose(shown["ys"], smooth.mean(axis=0), rtol=2e-3)
    np.testing.assert_allclose(np.array(shown["traces"]), smooth, rtol=2e-3)
    assert shown["xs"] == list(range(1, 41))


def test_the_slider_moves(opened):
    """With the keyboard: the words, the mark and the picture of Z follow."""
    look = """[document.querySelector("input[type=range]").parentElement.querySelector("output")
        .textContent, document.querySelector("rect.here").getAttribute("x"),
        [...document.querySelectorAll('[aria-label^="Return distributions"] path.line')]
        .map(p => p.getAttribute("d")).join()]"""
    opened.run('document.querySelector("input[type=range]").focus()')
    before = opened.run(look)
    assert before[0] == "after episode 32"
    opened.press("ArrowLeft")
    opened.settle()
    after = opened.run(look)
    assert after[0] == "after episode 16"
    assert all(a != b for a, b in zip(after, before, strict=True))
    opened.press("Home")
    assert opened.run(look)[0] == "after episode 1"
    words = 'document.querySelector("input[type=range]").getAttribute("aria-valuetext")'
    assert opened.run(words) == "after episode 1"


def test_curves_are_shown_and_hidden(opened):
    lines = f"{CURVE}.querySelectorAll('path.line').length"
    assert opened.run(lines) == 2
    opened.run('document.querySelector(".legend button").focus()')
    opened.press("Enter")
    assert opened.run(lines) == 1
    pressed = 'document.querySelector(".legend button").getAttribute("aria-pressed")'
    assert opened.run(pressed) == "false"
    opened.run('document.querySelectorAll(".legend button")[1].click()')
    assert "choose an agent" in opened.run(f"{CURVE}.textContent")


def test_values_are_read_with_the_keys_and_the_pointer(opened):
    opened.run(f"{CURVE}.querySelector('svg').focus()")
    opened.press("End")
    tip = f"{CURVE}.querySelector('.tip')"
    told = opened.run(f"{tip}.textContent")
    assert "episode 40" in told
    assert "GE" in told
    assert re.search(r"GE[\d.−e]+, [\d.−e]+, ", told)  # the mean and its three seeds
    opened.press("ArrowLeft")
    assert "episode 39" in opened.run(f"{tip}.textContent")
    place = opened.run(
        f"(r => [r.left, r.top, r.width, r.height])({CURVE}.getBoundingClientRect())"
    )
    x, y = place[0] + place[2] / 2, place[1] + place[3] / 2
    opened.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    assert "episode 2" in opened.run(f"{tip}.textContent")
    opened.send("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    assert opened.run(f"{tip}.hidden")


def test_a_map_shows_the_best_of_the_fields_that_it_hides(opened):
    """The point's own mean, interval and number of seeds, and where it is."""
    maps = """document.querySelectorAll('svg[aria-label^="Score over rho and sigma"]')"""
    assert opened.run(f"{maps}.length") == 2
    opened.run(f"{maps}[1].focus()")
    opened.press("Home")  # rho −6, sigma 0.1; the score is their sum with lr, and seed / 10
    told = opened.run(f"{maps}[1].parentElement.querySelector('.tip').textContent")
    assert told == "sigma 0.1, rho −6score−5.799−5.9, −5.8, −5.7seeds3lr0.001"
    page = opened.run("document.body.textContent")
    assert "Each cell shows the best point over the fields that are not shown" in page


def test_everything_is_reached_with_the_keyboard(opened):
    opened.press("Tab")
    assert opened.run("document.activeElement.className") == "skip"
    kinds = set()
    for _ in range(60):
        opened.press("Tab")
        kinds.add(opened.run("document.activeElement.tagName.toLowerCase()"))
    assert {"a", "button", "select", "input", "svg", "summary", "div"} <= kinds
    nameless = opened.run(
        """[...document.querySelectorAll("button, select, input, svg[tabindex], .scroll")].filter(
        e => !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).length"""
    )
    assert nameless == 0


def test_light_and_dark_can_be_switched(opened, page):
    ground = "getComputedStyle(document.body).backgroundColor"
    before = opened.run(ground)
    opened.run('document.querySelector("header button").click()')
    assert opened.run(ground) != before
    opened.open(page)  # and stays so
    assert opened.run(ground) != before


def test_claims_numbers_and_commands_are_there(opened):
    text = opened.run("document.body.textContent")
    for words in ("GE is ahead", "by 1.2, n = 3", "1 supported, 1 inconclusive", "versions"):
        assert words in text
    assert "rove reproduce figure-2 --quick" in text
    assert "rove train ge chain-5 --seeds 3 --episodes 40" in text
    assert opened.run("document.querySelector('img').naturalWidth") > 0


def test_paper(opened, tmp_path):
    opened.scheme("dark", media="print")
    assert opened.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    shown = """[...document.querySelectorAll(".controls, nav")].filter(
        e => getComputedStyle(e).display !== "none").length"""
    assert opened.run(shown) == 0
    opened.pdf(tmp_path / "r.pdf")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("width", [1200, 390])
def test_hostile_names_stay_text(browser, hostile, tmp_path, width):
    path = report([hostile], tmp_path / "h.html")
    browser.open(path, width)
    all_drawn(browser)
    for name in ("details", "select"):  # whatever is opened or chosen
        browser.run(f'document.querySelectorAll("{name}").forEach(e => {{ e.open = true; }})')
    browser.settle()
    assert browser.run("window.hacked") is None
    assert browser.run("document.querySelectorAll('img, main script, b').length") == 0
    text = browser.run("document.body.textContent")
    assert text.count(HOSTILE) >= 10
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []
    assert all(r.startswith("file:") for r in browser.requests())


def test_the_policy_holds(browser, page):
    """Even a script that got in could not ask for anything, nor run markup."""
    browser.open(page)
    refused = browser.run(
        "fetch('https://example.invalid/').then(() => false, () => true)"
        ".then(a => { const s = document.createElement('script'); s.textContent = 'window.in = 1';"
        "document.body.append(s); const i = document.createElement('div');"
        'i.innerHTML = \'<p style="color: red" onclick="1">x</p>\'; document.body.append(i);'
        "return a && window.in === undefined && getComputedStyle(i.firstChild).color; })"
    )
    assert refused
    assert refused != "rgb(255, 0, 0)"
    assert all("Content Security Policy" in json.dumps(c) for c in browser.complaints())


def test_a_page_that_follows_reloads_and_can_be_paused(browser, runs, tmp_path):
    """On a clock of the test's own."""
    path = tmp_path / "f.html"

    def stop(message):  # after the first page
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reporting.follow([runs / "ge"], path, every=5.0, say=stop)
    clock = "window.beats = []; window.setInterval = (f, ms) => beats.push([f, ms])"
    held = browser.send("Page.addScriptToEvaluateOnNewDocument", source=clock)
    browser.open(path)
    assert browser.run("beats.map(t => t[1])") == [5000]
    pause = 'document.querySelector(".controls input").click()'
    browser.run(f"window.mark = 1; {pause}; beats[0][0]()")
    browser.settle()
    assert browser.run("window.mark") == 1
    browser.reloads(f"{pause}; beats[0][0]()")
    assert browser.run("window.mark === undefined")
    browser.send("Page.removeScriptToEvaluateOnNewDocument", **held)
    assert browser.complaints() == []


def test_a_readout_stays_small(opened):
    """Its swatches are swatches, and it stays within the chart."""
    opened.run(f"{CURVE}.querySelector('svg').focus()")
    for key in ("Home", "End"):
        opened.press(key)
        tip, chart = (
            opened.run(f"(r => [r.left, r.right, r.height])({which}.getBoundingClientRect())")
            for which in (f"{CURVE}.querySelector('.tip')", f"{CURVE}")
        )
        assert chart[0] <= tip[0] <= tip[1] <= chart[1]
        assert tip[2] < 120


def test_warnings_are_what_they_say(browser, runs, tmp_path):
    write_run(tmp_path / "dqn", runs, "dqn", "chain-5", np.zeros((2, 30)))
    browser.open(report([tmp_path], tmp_path / "r.html"))
    assert browser.run("document.querySelector('.warnings summary').textContent") == "2 warnings"
    first = browser.run("document.querySelector('.warnings li').textContent")
    assert first == "DQN, seed 0: all 30 episodes scored 0: nothing better was found."


def test_what_went_wrong_is_above_the_curves(browser, runs, tmp_path):
    """In one line per agent that has warnings, between the cards and the figure."""
    scores = np.zeros((5, 60))
    scores[:4, 10:25] = 1.0
    write_run(tmp_path / "ge", runs, "ge", "chain-5", np.ones((5, 60)))
    write_run(tmp_path / "dqn", runs, "dqn", "chain-5", scores)
    browser.open(report([tmp_path / "ge", tmp_path / "dqn"], tmp_path / "a.html"))
    lines = "[...document.querySelectorAll('.findings li')].map(e => e.textContent)"
    text = "DQN: 4 of 5 seeds solved it and lost it again; 1 found nothing."
    assert browser.run(lines) == [text]
    order = browser.run(
        """[...document.querySelectorAll(".cards, .findings, figure, .warnings")].map(
        e => e.classList[e.classList.length - 1])"""
    )
    assert order.index("small") == order.index("cards") + 1  # "note-box findings small"
    assert order[-1] == "warnings"
    browser.open(report([tmp_path / "dqn"], tmp_path / "b.html"))
    title = browser.run("document.querySelector('h1').textContent")
    assert title == "DQN keeps no solution of chain-5: solved and lost on 4 of 5 seeds"
    browser.open(report([tmp_path / "ge"], tmp_path / "c.html"))
    assert browser.run(lines) == []


@pytest.mark.parametrize("width", [1400, 400])
def test_labels_of_marks_do_not_overlap(browser, runs, tmp_path, width):
    """However long the names are, and wherever the marks."""
    agents = ("bootstrapped_dqn", "bayesian_dqn", "ge")
    for agent in agents:
        write_run(tmp_path / agent, runs, agent, "chain-5", np.linspace(0, [1, 1], 900).T)
    for agent, starts in zip(agents, (3000, 3000, 8000), strict=True):
        config = json.loads((tmp_path / agent / "config.json").read_text())
        config["agent"]["settings"]["learning_starts"] = starts
        (tmp_path / agent / "config.json").write_text(json.dumps(config))
    browser.open(report([tmp_path], tmp_path / "r.html"), width)
    boxes = browser.run(
        f"""[...{CURVE}.querySelectorAll("text.note")].map(t => t.getBoundingClientRect())
        .map(r => [r.left, r.right, r.top, r.bottom])"""
    )
    assert len(boxes) == 3
    for i, (left, right, top, bottom) in enumerate(boxes):
        assert left >= 0
        assert right <= width
        for other in boxes[:i]:
            apart = other[1] <= left or right <= other[0] or other[3] <= top or bottom <= other[2]
            assert apart


def test_a_sweep_is_a_list_on_a_phone_and_marks_its_best_point(browser, tmp_path):
    fields = {"rho": [-2.0, -4.0, -6.0], "sigma": [1e-3, 1e-2], "lr": [1e-3, 1e-2]}
    for count in (1, 2, 3):
        (tmp_path / f"over-{count}").mkdir()
        swept = sweep_of(dict(list(fields.items())[:count]), lambda rho, *rest: rho - sum(rest))
        (tmp_path / f"over-{count}" / "sweep.json").write_text(json.dumps(swept))
    browser.open(report([tmp_path], tmp_path / "r.html"), 400)
    tables = "[...document.querySelectorAll('[aria-label=\"Best points\"]')]"
    assert browser.run(f"{tables}.map(t => t.scrollWidth <= t.clientWidth)") == [True] * 3
    heads = browser.run(f"{tables}.map(t => getComputedStyle(t.querySelector('thead')).display)")
    assert heads == ["none"] * 3
    first = browser.run(f"{tables}.map(t => t.querySelector('tbody th').textContent)")
    assert first == ["rho=-2", "rho=-2, sigma=0.001", "rho=-2, sigma=0.001, lr=0.001"]
    curve = "document.querySelector('svg[aria-label^=\"Score over rho.\"]')"
    note = browser.run(f"{curve}.querySelector('.note').textContent")
    assert note == "best; −1.8 on fresh seeds"
    assert browser.run(f"{curve}.querySelectorAll('.dots.large').length") == 1
    assert browser.run("document.querySelectorAll('rect.frame').length") == 2
    assert browser.complaints() == []


def test_slanted_labels_keep_what_tells_tasks_apart(browser, page):
    browser.open(page)
    assert browser.run("clipped('gym/KeyDoor-v0 (size=6)', 9, true)") == "…(size=6)"
    assert browser.run("clipped('a long name', 6)") == "a lon…"
    assert browser.run("clipped('short', 5)") == "short"
