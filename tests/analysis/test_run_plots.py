"""The two figures of a run: titles, names, marks, ticks, and what is drawn of few seeds."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

import rove
from helpers import SMALL as SMALLEST
from rove.analysis import panels, plots
from rove.analysis.curves import learning_start
from rove.runs.config import Config

SMALL = SMALLEST | {"learning_starts": 20}


@pytest.fixture(scope="module")
def five():
    return rove.train(rove.GE(**SMALL), "chain-5", seeds=5, episodes=6)


@pytest.fixture(scope="module")
def three(five):
    return rove.Run(five.config, five.outcomes[:3])


def texts(figure):
    """Everything that is written in a figure."""
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


def bands(figure):
    return [x for axes in figure.axes for x in axes.collections if isinstance(x, PolyCollection)]


def ticks(axes):
    """The ticks that are shown."""
    low, high = axes.get_xlim()
    return [x for x in axes.get_xticks() if low <= x <= high]


def test_up_to_five_seeds_are_drawn_instead_of_an_interval(three, five):
    few, many = three.plot(), rove.Run(five.config, five.outcomes + five.outcomes[:1]).plot()
    assert len(bands(few)) == len(bands(five.plot())) == 0
    assert len(bands(many)) == 1
    thin = [line for line in few.axes[0].lines if line.get_linewidth() < 1]
    np.testing.assert_array_equal(
        [line.get_ydata()[0] for line in thin], [o.scores[0] for o in three.outcomes]
    )
    assert "3 seeds (thin) and their mean" in str(texts(few))
    assert "95%" not in str(texts(few))
    assert "6 seeds (thin), mean and 95% interval" in str(texts(many))


@pytest.mark.parametrize("unit", ["episodes", "steps"])
def test_evaluations_during_training_are_a_dashed_line(unit):
    every, budget = {"episodes": (2, 6), "steps": (30, 84)}[unit]
    options = {"eval_every": every, "eval_episodes": 1, unit: budget}
    run = rove.train(rove.GE(**SMALL), "chain-5", seeds=2, **options)
    figure = run.plot()
    (dashed,) = [x for x in figure.axes[0].lines if x.get_linestyle() == "--" and x.get_lw() > 1.2]
    at = np.arange(every, budget + 1, every)
    np.testing.assert_array_equal(dashed.get_xdata(), at)
    np.testing.assert_allclose(
        dashed.get_ydata(), np.mean([x.scores[:, 0] for x in run.evaluations], axis=0)
    )
    text = " ".join(" ".join(texts(figure)).split())
    assert f"dashed: greedy policy, 1 episode after every {every} {unit}" in text


def test_diagnostics_draw_seeds_or_their_range_and_no_interval(five):
    """Coverage of a board of many cells would have an interval far beyond all seeds."""
    coverage = five.plot_diagnostics().axes[1]
    assert len(coverage.lines) >= 6
    assert not coverage.collections
    many = rove.Run(five.config, five.outcomes * 3)
    figure = many.plot_diagnostics()
    (band,) = figure.axes[1].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (many.coverage.min(), many.coverage.max())
    assert "15 seeds: mean and range (minimum to maximum)" in str(texts(figure))


@pytest.mark.parametrize("support", [None, (0.0, 1.0)])
def test_a_band_shows_no_impossible_score(support):
    scores = np.array([[0.0, 1.0, 1.0]] * 5 + [[0.0, 0.0, 1.0]])
    figure = plots.figure()
    plots.learning_curves(figure.axes[0], {"ge": scores}, window=1, support=support)
    (band,) = bands(figure)
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() >= 0.0
    assert heights.max() == 1.0


def test_few_cells_are_bars_with_the_numbers_of_the_states():
    figure = plots.figure()
    panels.visits(figure.axes[0], np.array([[1.0, 0.5], [1.0, 0.0]]), first_cell=0)
    bars = figure.axes[0].patches
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == [0, 1]
    assert [bar.get_height() for bar in bars] == [1.0, 0.25]
    assert figure.axes[0].get_xlabel() == "cell (dots: seeds)"
    panels.visits((axes := plots.figure().axes[0]), np.ones((1, 100)))
    assert not axes.patches


def test_narrow_return_distributions_are_visible():
    """Two point masses in a range that is a million times wider than they are."""
    points = 1e-6 * np.linspace(-4, 4, 101)
    heights = np.exp(-0.5 * np.linspace(-4, 4, 101) ** 2)
    figure = plots.figure()
    axes = figure.axes[0]
    panels.returns(axes, [(points, heights), (1.0 + points, heights)], ["left", "right"])
    low, high = axes.get_xlim()
    assert -0.2 < low < 0.0 < 1.0 < high < 1.2
    curves = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) > 1]
    for at, curve in zip((0.0, 1.0), curves, strict=True):
        wide = curve[curve[:, 1] > 0.5][:, 0]
        assert np.ptp(wide) > 0.01
        assert wide.mean() == pytest.approx(at, abs=0.01)
    assert [line.get_xdata()[0] for line in axes.lines if len(line.get_xydata()) == 1] == [
        pytest.approx(0.0, abs=1e-6),
        pytest.approx(1.0),
    ]


def test_return_distributions_of_a_network_that_diverged_leave_the_axis_finite():
    axes = plots.figure().axes[0]
    panels.returns(axes, [(np.full(3, np.nan), np.full(3, np.nan))], ["left"])
    assert np.all(np.isfinite(axes.get_xlim()))


def test_the_title_says_what_the_curve_shows(three):
    assert three.plot().get_suptitle() == "GE does not solve chain-5: 0 of 3 seeds"
    (named,) = three.plot_diagnostics().legends
    assert named.get_title().get_text().startswith("GE on chain-5: 3 seeds")


def test_learning_and_the_optimum_are_marked_and_named(three):
    """An episode of chain-5 has 14 steps: step 20 is in the second one."""
    figure = three.plot()
    axes = figure.axes[0]
    assert {"learning starts", "optimum"} <= set(texts(figure))
    upright = [line for line in axes.lines if list(line.get_ydata()) == [0, 1]]
    assert [line.get_xdata()[0] for line in upright] == [2]
    level = [line for line in axes.lines if list(line.get_xdata()) == [0, 1]]
    assert [line.get_ydata()[0] for line in level] == [11.0]
    assert texts(three.plot_diagnostics()).count("learning starts") == 5


def test_learning_that_starts_at_once_or_never_has_no_mark(three):
    ends = [np.array([14, 28, 42]), np.array([10, 20, 30])]
    assert learning_start(ends[:1], 14) == 1
    assert learning_start(ends[:1], 15) == 2
    assert learning_start(ends, 35) == 3  # one seed does not get there
    assert learning_start(ends, 43) is None
    assert learning_start(ends, 1) is None
    psrl = rove.train("psrl", "chain-5", episodes=3)
    assert "learning starts" not in texts(psrl.plot())


def test_ticks_are_whole_episodes(three):
    """Of three episodes too, where other ticks would be at 1.5."""
    short = [
        o._replace(episodes=type(o.episodes)(*(x[:3] for x in o.episodes))) for o in three.outcomes
    ]
    for figure in (rove.Run(three.config, short).plot(), three.plot()):
        assert all(float(x).is_integer() for x in ticks(figure.axes[0]))
        assert len(ticks(figure.axes[0])) >= 2


@pytest.mark.slow
def test_actions_have_their_names(three):
    shown = texts(three.plot_diagnostics())
    assert {"left", "right"} <= set(shown)
    assert any(text.startswith("Q(right) − Q(left), s = start") for text in shown)
    assert not {"0", "1", "action 0", "action 1"} & {t.get_text() for t in legend(three)}
    actor = rove.train("ddpg", "linear-quadratic-1", episodes=2, hidden=(4,), learning_starts=9)
    assert "the policy's action" in texts(actor.plot_diagnostics())


def legend(run):
    (named,) = run.plot_diagnostics().legends
    return named.get_texts()


def test_legends_are_off_the_data(three):
    figure = three.plot_diagnostics()
    figure.draw_without_rendering()
    (named,) = figure.legends
    place = named.get_window_extent()
    assert not any(place.overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert not any(axes.get_legend() for axes in figure.axes)
    assert place.y1 <= figure.bbox.height


def test_values_above_the_optimum_have_a_note(three):
    first = three.outcomes[0]
    high = first.lane.snapshots._replace(values=first.lane.snapshots.values + 50.0)
    changed = first._replace(lane=first.lane._replace(snapshots=high))
    figure = rove.Run(three.config, [changed]).plot_diagnostics()
    assert "Values above the optimum of 11" in str(texts(figure)).replace("\\n", " ")
    assert "Values above" not in str(texts(three.plot_diagnostics()))


def test_a_budget_of_steps_marks_the_step():
    run = rove.train(rove.DQN(**SMALL), "cartpole", steps=120)
    axes = run.plot().axes[0]
    upright = [line for line in axes.lines if list(line.get_ydata()) == [0, 1]]
    assert [line.get_xdata()[0] for line in upright] == [20]
    assert axes.get_xlabel() == "step"


def test_a_figure_names_everything_once(three):
    figure = plots.figure(1, 2)
    for axes in figure.axes:
        plots.learning_curves(axes, {"ge": three.scores, "dqn": three.scores})
    plots.legend(figure)
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["GE", "DQN"]


def test_the_history_of_visits_is_over_the_episodes_that_seeds_played():
    """Two seeds of 5 and 3 episodes: the last row has one episode of the first seed only."""
    first = np.array([[1, 0, 0], [0, 0, 0], [2, 0, 0], [1, 0, 0]])
    second = np.array([[0, 1, 0], [0, 1, 0], [0, 0, 0]])
    figure = plots.figure()
    panels.visit_history(figure.axes[0], [first, second], [5, 3])
    shares = np.asarray(figure.axes[0].images[0].get_array())
    np.testing.assert_allclose(shares, [[0.5, 0.5, 0], [0, 0.5, 0], [2 / 3, 0, 0], [1, 0, 0]])
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["1", "2", "3–4", "5"]


def test_no_text_leaves_the_figure(three):
    """However long the names of the agent and its actions are."""
    agent, environment = three.config.agent, three.config.environment
    named = rove.Run(Named(agent, environment, three.config.seeds, episodes=6), three.outcomes)
    for figure in (named.plot(), named.plot_diagnostics(), panel(named)):
        figure.draw_without_rendering()
        written = [axes.title for axes in figure.axes] + [axes._left_title for axes in figure.axes]
        written += [figure._suptitle] if figure._suptitle else []
        written += [t for key in figure.legends for t in [key.get_title(), *key.get_texts()]]
        assert any("long name" in text.get_text().replace("\n", " ") for text in written)
        for text in written:
            box = text.get_window_extent()
            assert box.x0 >= 0, text.get_text()
            assert box.x1 <= figure.bbox.width, text.get_text()
            assert box.y1 <= figure.bbox.height, text.get_text()


class Named(Config):
    """A configuration with a long name."""

    @property
    def agent_name(self):
        return "an agent with a long name that says all that distinguishes it from other agents"


def panel(run):
    """Diagnostics of a run with one panel, beside a legend of many actions."""
    figure = plots.figure()
    values = np.random.default_rng(0).normal(size=(3, 4, 10))
    names = [f"accelerate to the left {i}" for i in range(10)]
    panels.beliefs(figure.axes[0], values, np.array([1, 2, 4]), names)
    plots.legend(figure, title=plots.wrapped(run.config.label, figure, 11))
    return figure


def test_differences_are_coloured_by_their_sign():
    figure = plots.figure()
    panels.differences(figure.axes[0], np.array([[-1.0, 2.0], [3.0, 4.0]]), np.array([1, 2]))
    positive, negative, mean, _zero = figure.axes[0].lines
    np.testing.assert_array_equal(positive.get_xydata(), [[1, 2], [2, 3], [2, 4]])
    np.testing.assert_array_equal(negative.get_xydata(), [[1, -1]])
    np.testing.assert_array_equal(mean.get_ydata(), [0.5, 3.5])


@pytest.mark.slow
def test_runs_are_compared_in_one_figure(three, tmp_path):
    other = rove.train("dqn", "chain-5", seeds=2, episodes=6, hidden=(4,), learning_starts=9)
    bandit = rove.train("thompson", "bandit-3", episodes=9)
    figure = rove.compare([three, other, three, bandit], tmp_path / "compare.png")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["chain-5", "bandit-3"]
    names = [t.get_text() for t in figure.legends[0].get_texts()]
    assert names == ["GE", "DQN", "GE, run 2", "Thompson sampling"]
    assert (tmp_path / "compare.png").stat().st_size > 1000
    with pytest.raises(rove.ConfigError, match="runs must be a list of runs"):
        rove.compare([])
    steps = rove.train("dqn", "chain-5", steps=50, hidden=(4,), learning_starts=9)
    with pytest.raises(rove.ConfigError, match="all in episodes, or all in steps"):
        rove.compare([three, steps])
    assert rove.compare([steps]).axes[0].get_xlabel() == "step"


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(6.0, 9.0, ["6", "7", "8", "9"]), (0.02, 30.0, ["0.1", "1", "10"])],
)
def test_ticks_of_a_logarithmic_axis_are_plain_numbers(low, high, shown):
    """Not 6 × 10⁰, however little they span."""
    figure = plots.figure()
    (axes,) = figure.axes
    panels.lines(axes, {"x": np.geomspace(low, high, 9)[None]}, ["red"], True, window=1)
    figure.draw_without_rendering()
    limits = axes.get_ylim()
    ticks = [*axes.yaxis.get_major_ticks(), *axes.yaxis.get_minor_ticks()]
    texts = [t.label1.get_text() for t in ticks if limits[0] <= t.get_loc() <= limits[1]]
    assert [text for text in texts if text] == shown


def test_a_return_that_is_a_point_is_not_drawn():
    """DQN has no distribution at all: nothing is over seeds, and the title says so."""
    run = rove.train("dqn", "chain-5", seeds=2, episodes=4, hidden=(4,))
    figure = run.plot_diagnostics()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert not any(title.startswith("Z(s, a)") for title in titles)
    assert any(title.startswith("Q(") for title in titles)


def test_compared_curves_are_explained():
    run = rove.train("dqn", "chain-5", seeds=2, episodes=4, hidden=(4,))
    figure = rove.compare([run])
    assert figure.get_supxlabel() == "2 seeds (thin) and their mean; moving window of 20 episodes"


def test_a_comparison_ends_each_curve_with_its_budget_and_says_where_seeds_agree():
    options = SMALL | {"episodes": None, "workers": 1, "learning_starts": 10_000}
    short = rove.train("dqn", "chain-4", seeds=2, steps=400, **options)
    long = rove.train("noisynet", "chain-4", seeds=2, steps=420, **options)
    figure = rove.compare([short, long])
    ends = {line.get_label(): line.get_xdata()[-1] for line in figure.axes[0].lines}
    assert (ends["DQN"], ends["NoisyNet"]) == (400, 420)


@pytest.mark.parametrize(
    ("seeds", "support", "said"),
    [
        (5, None, "where all seeds agree, their lines coincide"),
        (6, None, "where all seeds agree, the interval has no width"),
        (6, (0.0, 1.0), ""),
        (1, None, ""),
    ],
)
def test_seeds_that_agree_are_mentioned(seeds, support, said):
    scores = np.full((seeds, 30), 0.5)
    assert plots.agreement_text([scores], 20, support) == said
    scores[0] += 0.1
    assert plots.agreement_text([scores], 20, support) == ""
