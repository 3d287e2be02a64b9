"""Figures drawn again from the committed data."""

from pathlib import Path

import numpy as np
import pytest

from rove.paper import figure_3, figure_4, figure_5, recorded

DATA = Path(__file__).parents[2] / "docs" / "data"


def test_rows_of_a_table_by_seed(tmp_path):
    (tmp_path / "a.csv").write_text("agent,seed,x\nge,10,3\nge,2,1\nge,10,4\nge,2,2\ndqn,0,5\n")
    groups = recorded.grouped(recorded.read(tmp_path / "a.csv"), "agent")
    np.testing.assert_array_equal(recorded.by_seed(groups["ge",], "x"), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(recorded.numbers(groups["dqn",], "x"), [5])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        (figure_3, "figure-3", ["SparseMountainCar", "10 seeds, mean and 95% interval"]),
        (figure_4, "figure-4", ["InvertedDoublePendulum", "5 seeds (thin) and their mean"]),
        (figure_5, "figure-5", ["over all 200 episodes", "10 seeds", "(5 seeds in (c)"]),
    ],
    ids=["3", "4", "5"],
)
def test_figures_are_drawn_from_the_committed_data(module, name, words, tmp_path):
    files = [DATA / f"{name}.csv.gz"]
    files += [DATA / f"{name}-visits.csv.gz"] if name == "figure-3" else []
    module.redraw(*files, tmp_path)
    text = (tmp_path / f"{name}.svg").read_text()
    assert all(word in text for word in words)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
