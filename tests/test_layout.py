"""The layout of the package: what there is, how long files are, and who may import whom."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import rove

SOURCE = Path(rove.__file__).parent
LAYERS = (
    "errors", "parts", "environments", "returns", "posteriors", "bonuses", "core", "agents",
    "training", "analysis", "runs", "search", "paper", "reporting", "cli", "__main__",
)  # fmt: skip
"""Each may import from those before it. Families never import each other."""
FAMILIES = ("environments", "returns", "posteriors", "bonuses")


def modules() -> dict[str, ast.Module]:
    trees = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        trees[name] = ast.parse(path.read_text("utf-8"))
    return trees


def imports(trees: dict[str, ast.Module]) -> set[tuple[str, str]]:
    """Every (importer, imported) pair of modules, including imports inside functions, but not
    those for type checkers alone."""
    pairs = set()
    for name, tree in trees.items():
        skipped = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rove":
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    pairs.add((name, inner if inner in trees else node.module))
            elif isinstance(node, ast.Import):
                pairs |= {(name, a.name) for a in node.names if a.name.split(".")[0] == "rove"}
    return pairs


def layer(module: str) -> str:
    return [*module.split("."), "rove"][1]


def test_the_package_has_at_most_fifteen_entries():
    entries = {p.name for p in SOURCE.iterdir() if not p.name.startswith(("__pycache__", "."))}
    entries -= {"__init__.py", "py.typed"}
    assert {name.removesuffix(".py") for name in entries} == set(LAYERS)
    assert len(entries - {"__main__.py"}) <= 15


def test_imports_run_downward():
    """`rove` itself imports from all layers but the command line, which alone may import it."""
    order = [*LAYERS[: LAYERS.index("cli")], "rove", *LAYERS[LAYERS.index("cli") :]]
    upward = []
    for importer, imported in imports(modules()):
        above, below = layer(importer), layer(imported)
        families = {above, below} <= set(FAMILIES)
        if above != below and (families or order.index(below) > order.index(above)):
            upward.append(f"{importer} imports {imported}")
    assert not upward


def test_there_is_no_cycle():
    graph = defaultdict(set)
    for importer, imported in imports(modules()):
        if importer != imported and imported != "rove":
            graph[importer].add(imported)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        if module not in done:
            for imported in sorted(graph[module]):
                visit(imported, (*path, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_no_file_is_long():
    """A module is as long as its idea; beyond 450 lines it has more than one."""
    long = {
        str(path.relative_to(SOURCE)): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > 450
    }
    assert not long


def test_no_two_classes_have_one_name():
    names = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names[node.name].append(module)
    assert not {name: where for name, where in names.items() if len(where) > 1}


def test_importing_rove_imports_nothing_that_is_only_sometimes_used():
    slow = ("matplotlib", "scipy", "rich", "tyro", "ray", "mujoco")
    above = tuple(f"rove.{layer}" for layer in LAYERS[LAYERS.index("search") :])
    program = (
        f"import sys, rove; print(*[m for m in sys.modules if m.startswith({slow + above!r})])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == []
