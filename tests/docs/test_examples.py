"""The blocks of the tutorial, the how-to guides and the reference run, page by page, in order.

Blocks in Python share a namespace. Lines of blocks in sh, and those after a $ in console blocks,
are commands of rove. What cannot be run here is fenced as text.
"""

import shlex

import pytest
from pages import DOCS, Block, blocks

from helpers import some_quick
from rove.cli import main as cli

PAGES = sorted(
    page
    for pattern in ("start/tutorial*.md", "how-to/*.md", "reference/*.md")
    for page in DOCS.glob(pattern)
    if blocks(page, "python", "sh", "console")
)
QUICK = [page for page in PAGES if page.name in ("errors.md", "jax-environment.md")]
"""Pages whose blocks take little time."""


def commands(block: Block) -> list[list[str]]:
    """Return the words of each command in a block, without comments."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_command(words: list[str]) -> None:
    """Run a command of rove in this process, which has its programs compiled already."""
    assert words[0] == "rove", f"{words[0]} is not run by this test: fence it as text"
    if words[1] in ("train", "sweep") and "--on" not in words:
        words = [*words, "--on", "threads"]
    code = None
    try:
        cli.main(words[1:])
    except SystemExit as stopped:
        code = stopped.code
    assert not code, " ".join(words)


@pytest.mark.parametrize("page", some_quick(PAGES, QUICK), ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "page"}
    for block in blocks(page, "python", "sh", "console"):
        if block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), namespace)
        else:
            for words in commands(block):
                run_command(words)


def test_commands_are_read_from_blocks():
    text = "$ rove list # all\nagents\n$ rove train dqn chain-5 \\\n  --seeds 2\n"
    listed = [["rove", "list"], ["rove", "train", "dqn", "chain-5", "--seeds", "2"]]
    assert commands(Block("console", text, 1)) == listed
    assert commands(Block("sh", "rove list\n\n# a comment\n", 1)) == [["rove", "list"]]


@pytest.mark.parametrize("line", ["rm -rf x", "rove lost", "rove train dqn chain-0 --episodes 1"])
def test_a_command_that_fails_is_found(line):
    with pytest.raises(AssertionError):
        run_command(line.split())
