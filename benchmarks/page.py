"""The documentation's tables, written from the data of the benchmark between marks in its pages."""

import re
from collections.abc import Callable, Iterable
from typing import Any

from entries import GYMNASIUM
from peers import PEERS

PAGES = (
    "README.md",
    "docs/reproduction.md",
    "docs/how-to/choose-an-agent.md",
    "docs/how-to/from-stable-baselines3.md",
    "docs/results/benchmarks.md",
)
_BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
PICTURE = (
    "![Time of a step against the number of seeds, the width, the minibatch and the size of Deep "
    "Sea](../figures/benchmarks.svg)"
)
VARIANTS = {
    "ge-minibatch": '`ge`, `draws="minibatch"`',
    "ge-episode": "`ge`, θ resampled every episode",
    "bootstrapped_dqn": "`bootstrapped_dqn`, 10 members with priors",
    "bootstrapped_dqn-plain": "`bootstrapped_dqn`, 10 members without priors",
}
Row = dict[str, Any]


def filled(text: str, data: dict[str, Any]) -> str:
    """Return a page with its blocks written anew; a block without data stays as it is."""

    def block(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        part, write = BLOCKS[name]
        return f"{begin}{write(data[part])}{end}" if part in data else match[0]

    return _BLOCK.sub(block, text)


def title(row: Row) -> str:
    """Return a contestant's name: the library, or one of rove's agents."""
    if row["library"] != "rove":
        agent = "" if row["agent"] == "dqn" else f" {row['agent'].upper()}"
        return PEERS[row["library"]].title + agent
    return "rove " + VARIANTS.get(row["agent"], f"`{row['agent']}`")


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *rows]
    lines.insert(1, ["---"] + ["---:"] * (len(lines[0]) - 1))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _micros(row: Row) -> str:
    low, high = row["quartiles"]
    return f"{row['median']:,.0f} ({low:,.0f} to {high:,.0f})"


def _rate(row: Row) -> str:
    return f"{1e6 / row['median']:,.0f}"


def _seconds(row: Row, places: int = 1) -> str:
    low, high = (f"{x:.{places}f}" for x in row["quartiles"])
    return f"{row['median']:.{places}f} ({low} to {high})"


def _where(part: dict[str, Any]) -> str:
    """Return a paragraph that says when and where a part was measured."""
    rounds = f"{part['rounds']} rounds, " if "rounds" in part else ""
    scale = "" if part["scale"] == "full" else f"`--{part['scale']}`, "
    load = f"load average {part['load_before']:.1f} before the start"
    machine = f"cores: {part['cores']} ({part['cpu']}), {load}, [data](../data/benchmarks.json)"
    missing = "".join(f" Left out: {entry}." for entry in part.get("errors", {}))
    return f"\n\nMeasured on {part['date'][:10]}: {rounds}{scale}{machine}.{missing}"


def _find(rows: list[Row], **fields: Any) -> Row | None:
    return next((r for r in rows if all(r[k] == v for k, v in fields.items())), None)


def peers(part: dict[str, Any]) -> str:
    rows = part["rows"]
    base = [
        _find(rows, library="rove", agent="dqn", environment=e) for e in ("cartpole", GYMNASIUM)
    ]
    lines = []
    for row in rows:
        task = "Gymnasium" if row["environment"] == GYMNASIUM else "compiled"
        ratios = [f"{row['median'] / x['median']:.1f}" if x else "" for x in base]
        threads = str(row["threads"] or "default")
        lines.append([title(row), task, threads, _micros(row), _rate(row), *ratios])
    header = ("", "CartPole", "threads", "µs per step (quartiles)", "steps/s")
    ratio = ("time over rove `dqn`, compiled", "time over rove `dqn`, Gymnasium")
    return _table((*header, *ratio), lines) + _where(part) + versions(part)


def versions(part: dict[str, Any]) -> str:
    """Return a sentence with the packages of every library."""
    each = (", ".join(f"{k} {v}" for k, v in x.items()) for x in part["versions"].values())
    return f" Versions: {'; '.join(dict.fromkeys(each))}."


def agents(part: dict[str, Any]) -> str:
    rows = part["rows"]
    dqn = _find(rows, agent="dqn")
    lines = []
    for row in rows:
        ratio = f"{row['median'] / dqn['median']:.2f}" if dqn else ""
        memory = f"{row['peak_MB']:,.0f}" if row["peak_MB"] else ""
        name = title(row).removeprefix("rove ")
        lines.append([name, row["environment"], _micros(row), _rate(row), ratio, memory])
    header = ("agent", "environment", "µs per step (quartiles)", "steps/s")
    return _table((*header, "time over `dqn`", "peak memory, MB"), lines) + _where(part)


def gymnasium(part: dict[str, Any]) -> str:
    rows = part["rows"]
    lines = []
    for row in rows:
        same = {field: row[field] for field in ("agent", "environment")}
        sb3 = _find(rows, library="sb3", **same, copies=1)
        task = row["environment"].rpartition("/")[2].rpartition(":")[2]
        ratio = f"{sb3['median'] / row['median']:.1f}" if sb3 else ""
        agent = title(row)
        counts = str(row["seeds"]), str(row["copies"])
        lines.append([agent, task, *counts, _micros(row), _rate(row), ratio])
    header = ("", "environment", "seeds", "copies", "µs per step (quartiles)", "steps/s")
    return _table((*header, "steps/s over stable-baselines3"), lines) + _where(part)


def curves(rows: list[Row], field: str) -> dict[str, dict[int, Row]]:
    """Return rows by contestant and by the value of the field that grows."""
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        value = int(row["environment"].rpartition("-")[2]) if field == "size" else row[field]
        found.setdefault(title(row), {})[value] = row
    return found


def growth(field: str, cell: Callable[[Row], str] = _micros) -> Callable[[dict[str, Any]], str]:
    """Return a writer of the table of a curve: contestants in rows, the values in columns."""

    def write(part: dict[str, Any]) -> str:
        found = curves(part["rows"], field)
        values = sorted({value for row in found.values() for value in row})
        lines = [
            [name, *(cell(row[value]) if value in row else "" for value in values)]
            for name, row in found.items()
        ]
        return _table(("", *map(str, values)), lines) + _where(part)

    return write


def _rates(row: Row) -> str:
    high, low = (1e6 / x for x in row["quartiles"])
    return f"{1e6 / row['median']:,.0f} ({low:,.0f} to {high:,.0f})"


def profile(part: dict[str, Any]) -> str:
    found = part["agents"]
    lines = [
        [name, *(f"{agent[name]:.0f}" for agent in found.values())]
        for name in next(iter(found.values()))
    ]
    return _table(("µs per step", *(f"`{name}`" for name in found)), lines) + _where(part)


def start(part: dict[str, Any]) -> str:
    lines = [[f"`import {name}`", _seconds(row, 2), ""] for name, row in part["imports"].items()]
    events = {
        "progress": "first line of progress",
        "episodes": "first progress with episodes",
        "end": "end",
    }
    for event, name in events.items():
        lines.append([name, *(_seconds(part[kind][event]) for kind in ("warm", "cold"))])
    counts = f"{part['warm']['starts']} warm and {part['cold']['starts']} cold starts of"
    header = ("seconds (quartiles)", "warm", "cold")
    text = _where(part).lstrip("\n")
    return f"{_table(header, lines)}\n\n{counts} `{part['command']}`. {text}"


def sweep(part: dict[str, Any]) -> str:
    header = ("runs", "minutes", "processor time, minutes", "cores computing", "programs compiled")
    values = [
        str(part["runs"]),
        f"{part['seconds'] / 60:.1f}",
        f"{part['processor_seconds'] / 60:.1f}",
    ]
    values += [f"{100 * part['computing']:.0f}%", str(part["programs"])]
    text = _where(part).lstrip("\n")
    return f"{_table(header, [values])}\n\n`{part['command']}`. {text}"


def readme(part: dict[str, Any]) -> str:
    """The fastest of each library's threads, and rove's `dqn`."""
    best: dict[tuple[str, str], Row] = {}
    for row in (row for row in part["rows"] if row["agent"] == "dqn"):
        key = row["library"], row["environment"]
        if key not in best or row["median"] < best[key]["median"]:
            best[key] = row
    rows = sorted(best.values(), key=lambda row: -row["median"])
    task = lambda row: "Gymnasium" if row["environment"] == GYMNASIUM else "compiled"  # noqa: E731
    lines = [[title(row).removesuffix(" `dqn`"), task(row), _rate(row)] for row in rows]
    return _table(("", "CartPole", "steps/s"), lines)


def choosing(part: dict[str, Any]) -> str:
    """Return the times of a few agents, from the fastest to the slowest."""
    names = ("psrl", "bayesian_q_learning", "dqn", "ige", "noisynet", "ge", "bootstrapped_dqn")
    rows = sorted((r for r in part["rows"] if r["agent"] in names), key=lambda r: r["median"])
    lines = [[title(row).removeprefix("rove "), f"{row['median']:,.0f} µs"] for row in rows]
    return _table(("agent", "time of a step"), lines)


def migrating(part: dict[str, Any]) -> str:
    """Return a sentence on stable-baselines3's and rove's DQN on CartPole-v1, each with a single
    copy of the environment."""
    rates = {
        (row["library"], row["seeds"]): _rate(row)
        for row in part["rows"]
        if row["environment"] == GYMNASIUM and row["copies"] == 1
    }
    theirs, one, five = (rates.get(key, "–") for key in (("sb3", 1), ("rove", 1), ("rove", 5)))
    return (
        f"On CartPole-v1 with equal networks and updates, SB3's DQN takes {theirs} steps per "
        f"second, rove's {one} with one seed and {five} with five, each seed with one copy of "
        "the environment."
    )


def cost(part: dict[str, Any]) -> str:
    """Return the paper's claim that GE costs less than Bootstrapped DQN."""
    ge, ensemble = (_find(part["rows"], agent=name) for name in ("ge", "bootstrapped_dqn"))
    dqn = _find(part["rows"], agent="dqn")
    if not (ge and ensemble and dqn):
        return "Not measured."
    ratio = ensemble["median"] / ge["median"]
    low, high = (ensemble["quartiles"][i] / ge["quartiles"][1 - i] for i in (0, 1))
    verdict = "supported" if low > 1 else "not supported" if high < 1 else "inconclusive"
    measured = (
        f"time of a step of Bootstrapped DQN by that of GE: {ratio:.1f}, by opposite quartiles"
    )
    claim = "GE is much more computationally feasible than Bootstrapped DQN"
    line = [claim, f"{measured} {low:.1f} to {high:.1f}, {part['rounds']} rounds", verdict]
    table = _table(("claim", "what was measured", "verdict"), [line]).replace("---:", "---")
    times = f"{_micros(ensemble)} µs against {_micros(ge)}; DQN {_micros(dqn)}"
    return f"{table}\n\n`make bench`, {part['date'][:10]} ([data](data/benchmarks.json)): {times}."


BLOCKS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "readme": ("peers", readme),
    "cost": ("agents", cost),
    "choosing": ("agents", choosing),
    "migrating": ("gymnasium", migrating),
    "picture": ("width", lambda part: PICTURE),
    "peers": ("peers", peers),
    "agents": ("agents", agents),
    "gymnasium": ("gymnasium", gymnasium),
    "seeds": ("seeds", growth("seeds", _rates)),
    "width": ("width", growth("width")),
    "batch": ("batch", growth("batch")),
    "size": ("size", growth("size")),
    "profile": ("profile", profile),
    "start": ("start", start),
    "sweep": ("sweep", sweep),
}
"""The part that each block is written from, and its writer."""
