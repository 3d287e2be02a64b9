"""Whether a run extends the one in a folder, and how two runs differ."""

import json
from typing import Any

from rove.runs.config import EXTENDABLE
from rove.runs.recorded import RESTATABLE


def extends(new: dict[str, Any], existing: dict[str, Any], differing: list[str]) -> bool:
    """Whether a run has all the seeds of an existing one and trains them for at least as long. It
    may state another optimum, unless seeds stop when they reach it."""
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
            if reason := _not_extended(existing, new):
                return reason
            continue
        if within == "settings" and key not in existing:
            return f"it was written by another version of rove, without the setting {key}"
        field = within if key == "name" else key
        verb = "are" if field == "seeds" else "is"
        return f"its {field} {verb} {json.dumps(a)}, not {json.dumps(b)}"
    return "its fields differ"


def _not_extended(existing: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe why a run does not extend an existing one, by its budget or seeds; empty if it
    does."""
    unit, other = ("episodes", "steps") if new["episodes"] is not None else ("steps", "episodes")
    if existing.get(unit) is None:
        return f"it was trained for {existing.get(other)} {other}, not for a number of {unit}"
    reason = "; a run cannot lose seeds"
    if not existing.get("extendable"):
        reason = "; it was written by run.save, without replay buffers, and cannot be extended"
        if existing[unit] != new[unit]:
            return f"it has {existing[unit]} {unit}, not {new[unit]}{reason}"
    elif type(existing[unit]) is not int or existing[unit] > new[unit]:
        return f"it has {existing[unit]} {unit}, more than {new[unit]}, and cannot be shortened"
    seeds = existing.get("seeds")
    keeps_seeds = isinstance(seeds, list) and all(seed in new["seeds"] for seed in seeds)
    if existing.get("extendable") and keeps_seeds:
        return ""
    return f"it has seeds {seeds}, not {new['seeds']}{reason}"
