"""The documentation says what the code does: expressions, examples, the grid, names of tests."""

import json
import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from pages import DOCS, ROOT, blocks
from safetensors import safe_open

import rove
from returns import test_families as families
from rove.cli import main as cli
from rove.parts import networks, noise
from rove.posteriors.base import Rows
from rove.posteriors.priors import Input

PAGES = DOCS / "agents"
GUIDE = DOCS / "how-to" / "add-a-family.md"
TEXTS = sorted(page for page in DOCS.glob("**/*.md") if "_build" not in page.parts)


@pytest.mark.parametrize("name", rove.AGENTS)
def test_an_agents_page_has_its_expression(name):
    """The first example, evaluated, is the agent that the default settings compose."""
    documented = eval(blocks(PAGES / f"{name}.md", "python")[0].text, dict(vars(rove)))
    assert eqx.tree_equal(documented, rove.AGENTS[name]().compose())
    assert f"[`{name}`]({name}.md)" in (PAGES / "README.md").read_text("utf-8")


def test_the_page_of_the_grid_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.setattr(cli.console, "width", 80)
    cli.main(["list", "--grid"])
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert "LowRank, prior functions" in printed
    assert printed.strip() in (PAGES / "README.md").read_text("utf-8")


def test_the_page_of_the_run_folder_names_every_field(tmp_path):
    page = (DOCS / "reference" / "run-folder.md").read_text("utf-8")
    rove.train("psrl", "chain-4", episodes=1, out=tmp_path).draw(tmp_path)
    with safe_open(tmp_path / "lanes" / "seed-0.safetensors", framework="numpy") as file:
        metadata, arrays = json.loads(file.metadata()["rove"]), set(file.keys())
    named = {name for name in arrays if not name.startswith((".", "episodes."))}
    columns = (tmp_path / "episodes.csv").read_text("utf-8").splitlines()[0].split(",")
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    diagnostics = json.loads((tmp_path / "diagnostics.json").read_text("utf-8"))
    for name in (*config, *columns, *metadata, *named, *diagnostics):
        assert f"`{name}`" in page


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_no_block_needs_scrolling_sideways(page):
    """The column of a page in a wide window has room for 90 characters of code."""
    text = blocks(page, "python", "sh", "console", "text")
    lines = [line for block in text for line in block.text.splitlines()]
    assert not [line for line in lines if len(line) > 90]


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page):
    """tests/a.py::test_b, and ::test_c after it in the same line."""
    for line in page.read_text("utf-8").splitlines():
        file = ""
        for path, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", line):
            file = (ROOT / path).read_text("utf-8") if path else file
            assert not test or f"def {test}(" in file, test


@pytest.mark.slow
def test_the_posterior_of_the_guide_is_short_and_its_cheap_rows_have_its_law():
    """About 40 lines. (That it trains is tested with the other blocks of its page.)"""
    page = {"__name__": "example"}
    isotropic, _, fast, *_ = (block.text for block in blocks(GUIDE, "python"))
    exec(isotropic + fast, page)
    assert len(isotropic.splitlines()) <= 45
    slow, quick = page["Isotropic"](-1.0), page["FastIsotropic"](-1.0)
    draws, law = 20_000, slow.law(slow.init(networks.mlp(2, 4, 1), noise.root(0)))
    xs = Input(jnp.tile(jnp.array([0.8, -1.5]), (draws, 1)))
    moments = []
    for posterior, key in ((slow, noise.root(1)), (quick, noise.root(2))):
        y = np.asarray(posterior.sample_rows(law, jnp.arange(draws), key)(law, xs), np.float64)
        assert y.shape == (1, draws, 1)
        moments.append((y.mean(), y.var(), y.std() / draws**0.5, (y**2).std() / draws**0.5))
    (mean, variance, *errors), (other_mean, other_variance, *_) = moments
    assert abs(mean - other_mean) < 6 * errors[0]
    assert abs(variance - other_variance) < 8 * errors[1]


def test_the_guide_names_every_member_of_the_interfaces_and_no_other():
    page = GUIDE.read_text("utf-8")
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)", row)}
    kinds = (rove.Posterior, Rows, rove.Return, rove.Bonus)
    members = {n for kind in kinds for n in vars(kind) if not n.startswith("_") or n == "__call__"}
    assert named == members
    assert all(f"`{field}`" in page for field in rove.Phi._fields)


def test_the_return_family_of_the_guide_passes_the_tests_of_return_families():
    page = {"__name__": "example"}
    isotropic, _, _, logistic, *_ = (block.text for block in blocks(GUIDE, "python"))
    exec(isotropic + logistic, page)
    returns = page["Logistic"]()
    families.test_picture_has_the_mass_mean_and_standard_deviation(returns)
    families.test_target_at_discount_0_is_the_reward(returns)
    families.test_extreme_outputs_have_finite_losses_and_slopes(returns, 1e3, "±")
    families.test_targets_of_a_minibatch_are_independent_draws_or_all_the_same(returns)
