"""What the report is tested on that no run has made."""

import dataclasses
import itertools
import json
import re

import numpy as np

import rove

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"


def sweep_of(fields, score=lambda *at: float(sum(at))):
    """A sweep's file: every combination of the fields, on three seeds."""
    points = [
        {
            "settings": dict(zip(fields, at, strict=True)),
            "scores": [score(*at) + seed / 10 for seed in range(3)],
            "seeds": [100, 101, 102],
            "confirmed": [score(*at), score(*at) + 0.4] if i == 0 else None,
        }
        for i, at in enumerate(itertools.product(*fields.values()))
    ]
    return {"agent": "ge", "environment": "chain-5", "fields": fields, "points": points}


def write_run(folder, runs, agent, environment, fractions):
    """A run folder without checkpoints: for each seed the episodes' fractions of the optimum of a
    chain, 11, [seeds, episodes], or that of a single episode."""
    fractions = np.array(fractions, float).reshape(len(fractions), -1)
    folder.mkdir(parents=True)
    config = json.loads((runs / "ge" / "config.json").read_text())
    config["agent"] = {"name": agent, "settings": dataclasses.asdict(rove.AGENTS[agent]())}
    config["environment"]["name"] = environment
    config |= {"episodes": fractions.shape[1], "seeds": list(range(len(fractions)))}
    (folder / "config.json").write_text(json.dumps(config))
    head = (runs / "ge" / "episodes.csv").read_text().splitlines()[0]
    rows = [
        f"{agent},{environment},{seed},{i},{9 * i},{11 * x},9,0,{11 * x},0.1,0.1,5"
        for seed, row in enumerate(fractions)
        for i, x in enumerate(row, start=1)
    ]
    (folder / "episodes.csv").write_text("\n".join([head, *rows]) + "\n")


def told(path):
    """The data in a page."""
    text = path.read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def group_of(path, title):
    groups = [g for source in told(path)["sources"] for g in source["groups"]]
    return next(g for g in groups if g["title"].startswith(title))


def run_of(group, label):
    return next(run for run in group["runs"] if run["label"] == label)
