"""The directive `api`: documents objects of the package from their source.

Each line of its content is the full name of a class or function. Docstrings are Markdown,
so the directive writes the Markdown of Sphinx's Python domain and has it parsed in its place. A
class lists its fields, and those of its methods and properties that have a docstring; what a family
overrides without one is described where its interface is.
"""

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Collection, Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rove

Definition = ast.FunctionDef | ast.ClassDef


def block(kind: str, signature: str, body: str, *options: str) -> str:
    """Return a directive of the Python domain as Markdown."""
    longest = max((len(ticks) for ticks in re.findall("`{3,}", body)), default=2)
    fence = "`" * (longest + 1)
    lines = [f"{fence}{{py:{kind}}} {signature}", *options, "", body, fence]
    return "\n".join(lines)


def markdown(docstring: str | None, arguments: Collection[str] = ()) -> str:
    """Return a docstring with examples fenced and names of the package as links, except those that
    are the object's own arguments."""
    lines: list[str] = []
    example = False
    for line in inspect.cleandoc(docstring or "").splitlines():
        if line.startswith(">>> ") and not example:
            lines, example = [*lines, "", "```pycon"], True
        elif example and not line:
            lines, example = [*lines, "```"], False
        lines.append(line)
    text = "\n".join(lines + ["```"] * example)
    names = {name for name in rove.__all__ if not inspect.ismodule(getattr(rove, name))}

    def link(match: re.Match[str]) -> str:
        full, name = match[0].startswith("`rove."), match[1]
        linked = name in names and (full or name not in arguments)
        return f"{{py:obj}}`~rove.{name}`" if linked else match[0]

    return re.sub(r"(?<!`)`(?:rove\.)?([A-Za-z]\w*)`(?!`)", link, text)


def argument_names(function: ast.FunctionDef) -> set[str]:
    """Return the names of a function's arguments."""
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def parsed(value: Any) -> Definition:
    """Return the syntax tree of a class or function."""
    definition = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    assert isinstance(definition, Definition)
    for node in ast.walk(definition):  # jaxtyping's shapes, such as " n", begin with a space
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            for part in node.slice.elts:
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    part.value = part.value.strip()
    return definition


def parameters(function: ast.FunctionDef, module: Any) -> str:
    """Return the parameters of a function as they are written, without `self`; a default that is a
    constant of the module is replaced by its value."""
    arguments = function.args
    for group in (arguments.posonlyargs, arguments.args):
        if group and group[0].arg in ("self", "cls"):
            del group[0]
    for defaults in (arguments.defaults, arguments.kw_defaults):
        for i, default in enumerate(defaults):
            if isinstance(default, ast.Name) and default.id.isupper():
                defaults[i] = ast.Constant(getattr(module, default.id))
    returned = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({ast.unparse(arguments)}){returned}"


def annotations(kind: type) -> dict[str, str]:
    """Return the types of a class's fields, as they are written, inherited ones included."""
    written: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("rove"):
            for node in parsed(base).body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    written[node.target.id] = ast.unparse(node.annotation)
    return written


def constructor(kind: type) -> str:
    """Return the parameters of a class."""
    own = next((n for n in parsed(kind).body if getattr(n, "name", "") == "__init__"), None)
    if isinstance(own, ast.FunctionDef):
        return parameters(own, inspect.getmodule(kind)).removesuffix(" -> None")
    types, texts = annotations(kind), []
    for name, default, keyword_only in _fields(kind):
        if keyword_only and "*" not in texts:
            texts.append("*")
        shown = "" if default is dataclasses.MISSING else f" = {default!r}"
        texts.append(f"{name}: {types[name]}{shown}")
    return f"({', '.join(texts)})" if texts else ""


def _fields(kind: Any) -> Iterator[tuple[str, Any, bool]]:
    """The name and default value of each field, and whether it has to be given by name."""
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if field.init:
                yield field.name, field.default, bool(field.kw_only)
    else:
        for name in getattr(kind, "_fields", ()):
            yield name, kind._field_defaults.get(name, dataclasses.MISSING), False


def members(kind: type) -> Iterator[str]:
    """Yield the Markdown of the fields and documented members that a class itself defines."""
    body = parsed(kind).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        name = getattr(node, "name", None) or getattr(getattr(node, "target", None), "id", "_")
        if name.startswith("_") and name != "__call__":
            continue
        if isinstance(node, ast.AnnAssign):
            string = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = markdown(str(after.value.value)) if string else ""
            type_option = f":type: {ast.unparse(node.annotation)}"
            yield block("attribute", name, text, type_option, ":no-contents-entry:")
        elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            yield method(node, inspect.getmodule(kind))


def inherited(kind: type) -> Iterator[str]:
    """Yield a sentence on the fields that a class inherits, if there are any."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("rove.")]
    defined = {
        node.target.id: base
        for base in reversed(bases)
        for node in parsed(base).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    names = [name for name, *_ in _fields(kind) if defined.get(name, kind) is not kind]
    if names and not inspect.isabstract(kind):
        links = (f"{{py:obj}}`{name} <{_name(defined[name])}.{name}>`" for name in names)
        yield f"Inherited fields: {', '.join(links)}."


def method(node: ast.FunctionDef, module: Any) -> str:
    """Return the Markdown of a method or property."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    options = [":no-contents-entry:"]
    options += [f":{kind}:" for kind in ("abstractmethod", "classmethod") if kind in decorators]
    text = markdown(ast.get_docstring(node), argument_names(node))
    if not decorators & {"property", "cached_property"}:
        return block("method", node.name + parameters(node, module), text, *options)
    if node.returns:
        options.append(f":type: {ast.unparse(node.returns)}")
    return block("property", node.name, text, *options)


def _name(value: Any) -> str:
    """Return the full name of a class, in the outermost package that has it."""
    parts, name = value.__module__.split("."), value.__name__
    packages = [".".join(parts[: i + 1]) for i in range(len(parts))]
    return next(
        f"{package}.{name}"
        for package in packages
        if getattr(importlib.import_module(package), name, None) is value
    )


def documented(full_name: str) -> str:
    """Return the Markdown that documents an object."""
    module_name, _, name = full_name.rpartition(".")
    module = importlib.import_module(module_name)
    value = getattr(module, name)
    where = f":module: {module_name}"
    if inspect.isclass(value):
        bases = [_name(base) for base in value.__bases__ if base.__module__.startswith("rove.")]
        links = [f"Base: {{py:obj}}`~{base}`" for base in bases]
        about = markdown(value.__doc__, [name for name, *_ in _fields(value)])
        body = "\n\n".join([*links, about, *inherited(value), *members(value)])
        error = issubclass(value, Exception)
        abstract = inspect.isabstract(value)
        signature = name + ("" if abstract else constructor(value))
        options = [where] + [":abstract:"] * abstract
        return block("exception" if error else "class", signature, body, *options)
    definition = parsed(value)
    assert isinstance(definition, ast.FunctionDef)
    signature = name + parameters(definition, inspect.getmodule(value))
    text = markdown(value.__doc__, argument_names(definition))
    return block("function", signature, text, where)


class Api(SphinxDirective):
    """Documentation of the objects whose names are the lines of the content."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        names = [line for line in self.content if line]
        text = "\n\n".join(documented(name) for name in names)
        parent = nodes.Element()
        self.state.nested_parse(StringList(text.splitlines(), "api"), self.content_offset, parent)
        return parent.children


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
