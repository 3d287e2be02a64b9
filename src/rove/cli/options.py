"""Parsing the options of a command, with errors that suggest what may have been meant."""

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

from rove.environments import NO_COPIES
from rove.errors import SYNONYMS, RoveError, expected, members, nearest

ADVICE = {
    "resume": "repeat the command, which resumes from its last checkpoint",
    "render": "train first, then record a video with rove watch RUN",
    "channels": "observations are not images, so the network has no convolutions",
    "n": "the size is part of the environment's name, as in chain-100",
    "device": "JAX chooses the device; set the variable JAX_PLATFORMS to change it",
    "copies": NO_COPIES,
}
"""What to do instead, for options that rove does not have."""


def parse(
    target: Callable,
    arguments: Sequence[str],
    prog: str,
    description: str = "",
    default: Any = None,
) -> Any:
    """Call a function, or create a dataclass, with the options in the arguments.

    `default`: an instance of the dataclass with the values of options that are not given.
    """
    positional, words = split_arguments(arguments, option_types(target), prog)
    if {"-h", "--help"} & {*positional, *words}:
        positional, words = [], ["--help"]
    else:
        _check_positional(target, positional, prog)
        _check_required(target, words, prog)
    defaults = {} if default is None else {"default": default}
    return tyro.cli(
        target,
        args=[*positional, *words],
        prog=prog,
        description=description or None,
        **defaults,
        config=(tyro.conf.OmitSubcommandPrefixes,),
    )


NEEDED = {
    "run": "a run folder",
    "runs": "at least one folder",
    "search": "the name of a search",
    "shell": "the name of a shell",
}
"""What a command needs, by the name of its argument."""


def _check_positional(target: Callable, words: Sequence[str], prog: str) -> None:
    """Raise `RoveError` unless the words are the positional arguments that a command takes."""
    hints, wanted = get_type_hints(target), []
    if not dataclasses.is_dataclass(target):
        parameters = inspect.signature(target).parameters.values()
        wanted = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    for parameter, word in itertools.zip_longest(wanted, words[: len(wanted)]):
        name, kind = parameter.name, hints[parameter.name]
        if word is None and parameter.default is parameter.empty:
            needed = NEEDED.get(name, name.upper())
            raise RoveError(f"{prog} needs {needed}: {prog} {name.upper().rstrip('S')}")
        if get_origin(kind) is Literal and word not in get_args(kind):
            raise RoveError(f"{name.upper()} must be {expected(kind)}, got {word!r}")
    several = any(members(hints[p.name]) for p in wanted)
    if len(words) > len(wanted) and not several:
        raise RoveError(f"unexpected argument {words[len(wanted)]!r}; options begin with --")


def _check_required(target: Callable, words: Sequence[str], prog: str) -> None:
    """Raise `RoveError` if an option of a command that has no default is missing."""
    if dataclasses.is_dataclass(target):
        return
    hints = get_type_hints(target)
    for p in inspect.signature(target).parameters.values():
        option = f"--{p.name.replace('_', '-')}"
        if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty and option not in words:
            raise RoveError(f"{prog} needs the option {option}: {expected(hints[p.name])}")


def option_types(target: Callable, prefix: str = "") -> dict[str, Any]:
    """Return the options of a function or dataclass, with their types: {"agent.lr": float}."""
    if dataclasses.is_dataclass(target):
        hints = get_type_hints(target)
        kinds = {f.name: hints[f.name] for f in dataclasses.fields(target) if f.init}
    else:
        hints = get_type_hints(target)
        parameters = inspect.signature(target).parameters.values()
        kinds = {p.name: hints[p.name] for p in parameters if p.kind is not p.POSITIONAL_ONLY}
    known: dict[str, Any] = {}
    for field, kind in kinds.items():
        name = f"{prefix}{field.replace('_', '-')}"
        nested = isinstance(kind, type) and dataclasses.is_dataclass(kind)
        known |= option_types(kind, f"{name}.") if nested else {name: kind}
        if kind is bool:
            known[f"{prefix}no-{field.replace('_', '-')}"] = bool
    return known


def split_arguments(
    arguments: Sequence[str], known: Mapping[str, Any], prog: str
) -> tuple[list[str], list[str]]:
    """Return the positional arguments, and the options with lists such as 64,64 split.

    Raises `RoveError` for an unknown option, a missing value, or one of the wrong type.
    """
    positional, words, remaining = [], [], list(arguments)
    while remaining:
        word = remaining.pop(0)
        if not word.startswith("--") or word == "--help":
            positional.append(word)
            continue
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("_", "-")
        if name not in known:
            raise _unknown(option, name, known, prog)
        # Options of the command are left out rather than set to None; settings may be None.
        kind = known[name] if "." in name else _without_none(known[name])
        if kind is bool:
            if not equals and remaining and remaining[0].lower() in ("true", "false"):
                value = remaining.pop(0)
            if value.lower() not in ("", "true", "false") or (equals and not value):
                raise RoveError(f"{option} takes no value: write {option}, or leave it out")
            words.append(_negated(option) if value.lower() == "false" else option)
            continue
        values = [value] if equals else []
        while not equals and remaining and not remaining[0].startswith("--"):
            values.append(remaining.pop(0))
            if not members(kind):
                break
        if not values or values == [""]:
            raise RoveError(f"{option} needs a value: {expected(kind)}")
        if values == ["none"] and ... in members(kind):
            words.append(option)
            continue
        if members(kind):
            values = [part for value in values for part in value.split(",")]
        _check_values(option, kind, values)
        words += [option, *values]
    return positional, words


def _negated(option: str) -> str:
    """Return the opposite of a flag: --env.no-permuted for --env.permuted, and vice versa."""
    group, dot, name = option.removeprefix("--").rpartition(".")
    opposite = name.removeprefix("no-") if name.startswith("no-") else f"no-{name}"
    return f"--{group}{dot}{opposite}"


def _without_none(kind: Any) -> Any:
    """Return the type of an optional value without None."""
    others = [option for option in get_args(kind) if option is not NoneType]
    return others[0] if get_origin(kind) in (Union, UnionType) and len(others) == 1 else kind


def _check_values(option: str, kind: Any, values: Sequence[str]) -> None:
    """Raise `RoveError` unless the values can be converted to the type of the option."""
    given = " ".join(values)
    if given == "None" and NoneType in get_args(kind):
        return
    if entries := members(kind):
        count = len(values) if ... in entries else len(entries)
        valid = len(values) == count and all(_converts(value, entries[0]) for value in values)
    else:
        valid = _converts(given, kind)
    if not valid:
        literals = [k for k in (kind, *get_args(kind)) if get_origin(k) is Literal]
        choices = [str(choice) for literal in literals for choice in get_args(literal)]
        near = nearest(given, choices)
        hint = f". Did you mean {near!r}?" if near else ""
        raise RoveError(f"{option} must be {expected(kind)}, got {given!r}{hint}")


def _converts(value: str, kind: Any) -> bool:
    """Whether a word can be converted to a type."""
    if get_origin(kind) in (Union, UnionType):
        return any(_converts(value, option) for option in get_args(kind))
    if get_origin(kind) is Literal:
        return value in map(str, get_args(kind))
    if kind is NoneType:
        return value == "None"
    if kind not in (int, float):
        return True
    try:
        kind(value)
    except ValueError:
        return False
    return True


def _unknown(option: str, name: str, known: Mapping[str, Any], prog: str) -> RoveError:
    """Return the error for an unknown option, with the most similar one first."""
    last = name.rpartition(".")[2]
    by_last: dict[str, str] = {}
    for flag in known:  # "lr" finds "agent.lr"
        by_last.setdefault(flag.rpartition(".")[2], flag)
    if last in ADVICE and last not in by_last:
        return RoveError(f"there is no option {option}: {ADVICE[last]}")
    meant = by_last.get(SYNONYMS.get(last, last)) or by_last.get(nearest(last, by_last) or "")
    hint = f" Did you mean --{meant}?" if meant else ""
    return RoveError(f"unknown option {option}.{hint} All options: {prog} --help")
