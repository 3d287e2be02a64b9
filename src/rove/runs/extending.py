"""Whether a run extends the one in a folder, and how two runs differ."""

import json
from typing import Any

from rove.runs.config import EXTENDABLE
from rove.runs.recorded import RESTATABLE


def extends(new: dict[str, Any], existing: dict[str, Any], differing: list[str]) -> bool:
    """Whether a run has all the seeds of an existing one and trains them for at least as long. Its
    optimum may be stated anew, unless seeds stop when they reach it."""
    if not new.get("until_solved", True):
        differing = [key for key in differing if key not in RESTATABLE]
        if not differing:
            return True
    if not existing.get("extendable") or not set(differing) <= set(EXTENDABLE):
        return False
    unit = "episodes" if new["episodes"] is not None else "steps"
    before, seeds = existing.get(unit), existing.get("seeds")
    grows = type(before) is int and before <= new[unit]
    return grows and isinstance(seeds, list) and all(seed in new["seeds"] for seed in seeds)


def budget(contents: dict[str, Any]) -> dict[str, Any]:
    """Return what distinguishes a run from its extension, and the versions that trained it."""
    return {key: contents.get(key) for key in (*EXTENDABLE, "versions")}


def first_difference(existing: dict[str, Any], new: dict[str, Any], within: str = "") -> str:
    """Describe the first field in which an existing run and a new one differ. `within` is the field
    that contains both."""
    for key in new:
        a, b = existing.get(key), new[key]
        if a == b:
            continue
        if isinstance(a, dict) and isinstance(b, dict):
            return first_difference(a, b, key)
        if not within and key in EXTENDABLE:
            return _shortened(existing, new)
        what = within if key == "name" else key
        return f"{what} is {json.dumps(a)} there and {json.dumps(b)} here"
    return "its fields differ"


def _shortened(existing: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe why a run does not extend an existing one that differs in its budget or seeds."""
    unit, other = ("episodes", "steps") if new["episodes"] is not None else ("steps", "episodes")
    if existing.get(unit) is None:
        return f"it was trained for {existing.get(other)} {other}, not for a number of {unit}"
    extended = "; a run can be extended by more of them"
    if not existing.get("extendable"):
        extended = "; it was written by run.save, without replay buffers, and cannot be extended"
    known = type(existing[unit]) is int
    if existing.get("extendable") and known and existing[unit] > new[unit]:
        return f"it has {existing[unit]} {unit}, more than {new[unit]}, and cannot be shortened"
    if existing[unit] != new[unit]:
        return f"it has {existing[unit]} {unit}, not {new[unit]}{extended}"
    return f"it has seeds {existing.get('seeds')}, not {new['seeds']}{extended}"
