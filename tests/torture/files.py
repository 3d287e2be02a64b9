"""Hostile and damaged run folders, through everything that reads them.

No code of theirs may run, no file outside of the folder may change, nothing may hang, and nothing
may be returned that differs from the run without an error or a warning.
"""

import json
import math
import os
import random
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from campaign import Hangs, Tally, at_most

import rove
from rove.errors import RoveError, RoveWarning

SMALL = {"hidden": (4,), "learning_starts": 8, "buffer_size": 64, "batch_size": 8}
EVIL = "evil_module_of_the_campaign"
ODD = [None, -1, 10**30, 0.5, "x", "", [], {}, [[]], True, "<script>1</script>", "../../x", "\x00"]


def train(folder: Path, episodes: int = 12) -> rove.Run:
    return rove.train("dqn", "chain-4", seeds=2, episodes=episodes, out=folder, **SMALL)


def mutations(generator: random.Random) -> list[tuple[str, Callable[[Path], None]]]:
    """Return many ways to change a run folder, with their names."""
    found: list[tuple[str, Callable[[Path], None]]] = []
    names = ["config.json", "episodes.csv", "diagnostics.json", "lanes/seed-0.safetensors"]
    for name in names:
        kinds = ("empty", "cut", "noise", "missing", "pipe", "device", "folder", "loop", "huge")
        for kind in kinds:
            found.append((f"{name}: {kind}", lambda f, n=name, k=kind: replace(f / n, k)))
        for _ in range(12):
            seed = generator.randrange(10**9)
            found.append((f"{name}: bit {seed}", lambda f, n=name, s=seed: flip(f / n, s)))
    fields = ["agent", "environment", "seeds", "episodes", "steps", "until_solved", "optimum"]
    for key in (*fields, "schema", "extendable", "task", "versions", "extended_from"):
        for odd in generator.sample(ODD, 5):
            found.append((f"config {key} = {odd!r}", lambda f, k=key, v=odd: edit(f, {k: v})))
    for odd in ODD:
        name = {"agent": {"name": odd, "settings": {}}}
        found.append((f"agent name {odd!r}", lambda f, v=name: edit(f, v)))
    for name in (f"gym/{EVIL}:X-v0", f"{EVIL}:X-v0", f"gym/{EVIL}.sub:X"):
        task = {"environment": {"name": name, "options": {}}}
        found.append((f"environment {name}", lambda f, v=task: edit(f, v)))
    found.append(("a link to a folder elsewhere", link_lanes))
    return found


def edit(folder: Path, changes: dict[str, Any]) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def flip(path: Path, seed: int) -> None:
    data = bytearray(path.read_bytes())
    data[seed % len(data)] ^= 1 << (seed % 8)
    path.write_bytes(bytes(data))


def replace(path: Path, kind: str) -> None:
    data = path.read_bytes()
    path.unlink()
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif kind == "noise":
        path.write_bytes(bytes(random.Random(0).randbytes(len(data))))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(2**41)


def link_lanes(folder: Path) -> None:
    shutil.move(folder / "lanes", folder.parent / "elsewhere")
    (folder / "lanes").symlink_to(folder.parent / "elsewhere")


def readers(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return everything that reads a run folder."""
    return {
        "load": lambda: rove.load(folder).returns,
        "eval": lambda: rove.load(folder).evaluate(1),
        "report": lambda: rove.report([folder], folder.parent / "report.html"),
        "watch": lambda: rove.watch(rove.load(folder)),
        "resume": lambda: train(folder, 14).returns,
    }


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(tally: Tally, folder: Path, count: int) -> None:
    """Apply at most `count` mutations, each read by everything."""
    (folder / f"{EVIL}.py").write_text(f"open({str(folder / 'executed')!r}, 'w').close()")
    sys.path.insert(0, str(folder))
    original, bystander = folder / "original", folder / "bystander"
    train(original).draw(original)
    bystander.mkdir()
    (bystander / "thesis").write_text("years of work")
    right = {"load": rove.load(original).returns, "eval": rove.load(original).evaluate(1)}
    right["resume"] = train(shutil.copytree(original, folder / "longer"), 14).returns
    chosen = mutations(random.Random(1))
    random.Random(2).shuffle(chosen)
    before = snapshot(bystander)
    limits = {}
    for reader in readers(original):
        target, began = shutil.copytree(original, folder / "timed"), time.monotonic()
        readers(target)[reader]()
        limits[reader] = 10 + math.ceil(2 * (time.monotonic() - began))
        shutil.rmtree(target)
    for name, mutate in chosen[:count]:
        for reader in readers(folder):
            place = folder / "case"
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            target = shutil.copytree(original, place / "run")
            mutate(target)
            outside = snapshot(place / "elsewhere") if (place / "elsewhere").exists() else {}
            call = readers(target)[reader]
            _attempt(tally, f"{reader} of {name}", call, right.get(reader), limits[reader])
            if (folder / "executed").exists():
                tally.failed(f"{reader} of {name}: code was executed")
                (folder / "executed").unlink()
            if snapshot(bystander) != before:
                tally.failed(f"{reader} of {name}: a file elsewhere was changed")
            if outside and snapshot(place / "elsewhere") != outside:
                tally.failed(f"{reader} of {name}: a file behind a link was changed")


def _attempt(tally: Tally, text: str, read: Callable[[], Any], right: Any, limit: int) -> None:
    """Read a folder, which may take ten seconds more than twice the time without damage."""
    tally.attempts += 1
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with at_most(limit):
                result = read()
        except RoveError:
            return
        except (Exception, Hangs) as error:
            tally.failed(f"{text}: {error!r}"[:300])
            return
    warned = any(issubclass(w.category, RoveWarning) for w in told)
    others = [w for w in told if not issubclass(w.category, RoveWarning)]
    if others:
        tally.failed(f"{text}: a warning leaks: {others[0].message}"[:300])
    lacking = "missing" in text  # a seed without a checkpoint has not begun
    if (
        right is not None
        and not warned
        and not lacking
        and not np.array_equal(result, right, equal_nan=True)
    ):
        tally.failed(f"{text}: another result, without a word")
