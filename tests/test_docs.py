"""The documentation says what the code does: expressions, examples, the grid, names of tests."""

import re
from pathlib import Path

import equinox as eqx
import pytest

import rove
from returns import test_families as families
from rove import cli

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "agents"
GUIDE = ROOT / "docs" / "add-a-family.md"
TEXTS = sorted((ROOT / "docs").glob("**/*.md"))


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", rove.AGENTS)
def test_an_agents_page_has_its_expression(name):
    """The first example, evaluated, is what `compose` makes of the defaults."""
    said = eval(blocks(PAGES / f"{name}.md")[0], dict(vars(rove)))
    assert eqx.tree_equal(said, rove.AGENTS[name]().compose())
    assert f"[`{name}`]({name}.md)" in (PAGES / "README.md").read_text("utf-8")


def test_the_page_of_the_grid_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.setattr(cli.console, "_width", 80)
    cli.main(["list", "--grid"])
    for line in capsys.readouterr().out.splitlines():
        assert line.rstrip() in (PAGES / "README.md").read_text("utf-8")


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_every_test_that_is_named_exists(page):
    """tests/a.py::test_b, and ::test_c after it in the same line."""
    for line in page.read_text("utf-8").splitlines():
        file = ""
        for path, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", line):
            file = (ROOT / path).read_text("utf-8") if path else file
            assert not test or f"def {test}(" in file, test


def test_the_examples_of_families_run():
    """In the order of the page, as one program."""
    exec("\n".join(blocks(GUIDE)), {"__name__": "example"})


def test_the_return_of_the_guide_does_what_every_family_promises(monkeypatch):
    """So that whoever follows the page passes."""
    page = {"__name__": "example"}
    exec(blocks(GUIDE)[0], page)
    returns = page["Logistic"]()
    families.test_picture_has_the_mass_mean_and_standard_deviation(returns)
    families.test_target_at_discount_0_is_the_reward(returns)
    families.test_extreme_outputs_have_finite_losses_and_slopes(returns, 1e3, "±")
    families.test_target_draws_once_from_its_key(returns, monkeypatch)
