"""Mirrors: dataclasses with the same fields as settings, into which the command line is parsed.

A mirror does not check its values, so that they are checked when the settings are created: rove's
errors are clearer than the parser's.
"""

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Collection
from typing import Annotated, Any, get_type_hints

import tyro


def mirror(
    settings: Any, omit: Collection[str] = (), more: Collection[tuple[str, Any, Any]] = ()
) -> type:
    """Return a mirror of `settings`: its values are the defaults, and its docstrings the help.

    Fields that are dataclasses become mirrors too. The fields in `omit` are left out, and those in
    `more` (names, types and values) are added.
    """
    kind = type(settings)
    hints, docs = get_type_hints(kind, include_extras=True), _docs(kind)
    fields: list[Any] = []
    for field in dataclasses.fields(kind):
        if not field.init or field.name in omit:
            continue
        value, hint = getattr(settings, field.name), hints[field.name]
        if dataclasses.is_dataclass(value):
            hint = mirror(value)
            fields.append((field.name, hint, dataclasses.field(default_factory=hint)))
            continue
        if field.name in docs:
            hint = Annotated[hint, tyro.conf.arg(help=docs[field.name])]
        fields.append((field.name, hint, dataclasses.field(default=value)))
    fields += [(name, hint, dataclasses.field(default=value)) for name, hint, value in more]
    return dataclasses.make_dataclass(kind.__name__, fields, frozen=True)


def values(mirrored: Any) -> dict[str, Any]:
    """Return the values of a mirror, as nested dictionaries."""
    fields = ((f.name, getattr(mirrored, f.name)) for f in dataclasses.fields(mirrored))
    return {k: values(v) if dataclasses.is_dataclass(v) else v for k, v in fields}


def _docs(kind: type) -> dict[str, str]:
    """Return the docstrings of a class's fields, each as one line."""
    docs: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):  # built-in, or created at run time
            continue
        for field, doc in itertools.pairwise(ast.parse(source).body[0].body):  # type: ignore[attr-defined]
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
                docs[field.target.id] = " ".join(str(doc.value.value).split())
    return docs
