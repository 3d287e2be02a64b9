"""Alarms: signs that a seed's training went wrong, and what to try."""

import re
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Num

from rove.agents import AGENTS
from rove.analysis import networks
from rove.analysis.networks import Seed
from rove.training.solving import LAST, TOLERANCE, episodes_to_solve, is_lost, is_optimal

PATIENCE = 20
"""Number of episodes after which an alarm is raised."""
NOTHING = 0.015
"""Fraction of the optimum up to which scores count as nothing: small costs, or a small reward."""
EXPLORE_MORE = (
    "to explore more, try auto, ige or bootstrapped_dqn with a larger --agent.prior, ge with "
    "--agent.resample episode or a larger --agent.rho, or more episodes"
)
LARGER_PRIOR = "to explore more, try a larger --agent.prior, the agent auto, or more episodes"
MORE_EPISODES = "to explore more, train for more episodes"
EXPLORE_CONTINUOUS = "to explore more, try ddpg_ge with a larger --agent.rho, or more episodes"
NOT_AUTO = "auto, "
"""What is left out of the advice for `auto` itself."""
KEEP_IT = (
    "to keep a solution, try a smaller --agent.lr, a larger --agent.target-period or "
    "--agent.buffer-size"
)
UNTIL_SOLVED = ", or --until-solved, which stops a seed when it has solved the task"


def untrained(
    steps: int, episodes: int, learning_starts: int, has_time_limit: bool = True
) -> list[str]:
    """Return a sentence if a run ended without an episode, and one if it ended before learning
    started. `has_time_limit`: whether the environment has that option."""
    sentences = []
    if not episodes:
        limit = ", or limit the length of episodes (--env.time-limit, or rove.adopt(…, "
        limit += "time_limit=…))"
        sentences.append(f"no episode has ended: train for more steps{limit * has_time_limit}")
    if steps < learning_starts:
        sentences.append(
            f"nothing was learned: learning starts at step {learning_starts:,}, but the run ended "
            f"after {steps:,} steps"
        )
    return sentences


def alarms(seed: Seed) -> list[str]:
    """Return a sentence for each alarm of a seed."""
    number, scores, spread, optimum, evaluated, value, *_ = seed
    sentences = networks.sentences(seed)
    at = None if optimum is None else collapsed_at(scores, spread, optimum)
    if at is not None:
        sentences.append(f"q_φ collapsed by episode {at}, before any scored half of the optimum")
    if found_nothing(scores, optimum):
        sentences.append(f"{_all_scored(scores)}: nothing better was found")
    if optimum is None:
        return [f"seed {number}: {sentence}" for sentence in sentences]
    if is_exceeded(seed):
        sentences.append(
            f"an episode scored {np.max(scores):.4g}, above the optimum {optimum:g}, which is wrong"
        )
    if is_lost(scores, optimum, evaluated):
        solved_at, last = episodes_to_solve(scores, optimum), is_optimal(scores, optimum)[-LAST:]
        sentences.append(
            f"solved at episode {solved_at} and lost again: of the last {len(last)} episodes "
            f"{last.sum()} are optimal"
        )
    elif forgotten := successes_forgotten(scores, optimum, evaluated):
        sentences.append(
            f"{forgotten} episode{'s' * (forgotten > 1)} scored more than half of the optimum, but "
            f"none of the last {LAST}"
        )
    if is_too_high(seed):
        sentences.append(
            f"the learned Q is still {value:.3g} at the start, far above the optimum {optimum:g}"
        )
    return [f"seed {number}: {sentence}" for sentence in sentences]


def _all_scored(scores: Num[np.ndarray, " episodes"]) -> str:
    low, high = f"{np.min(scores):.3g}", f"{np.max(scores):.3g}"
    return f"all {len(scores)} episodes scored {low if low == high else f'{low} to {high}'}"


def remedies(seeds: Sequence[Seed], agent: str) -> list[str]:
    """Return what to try against the alarms of some seeds of an agent, as options of the command
    line."""
    settings = getattr(AGENTS.get(agent), "__dataclass_fields__", {"lr": None})
    tips = []
    if any(map(is_too_high, seeds)):
        further = {"double": "--agent.double", "prior": "a smaller --agent.prior"}
        others = "".join(f", or {tip}" for setting, tip in further.items() if setting in settings)
        tips.append(f"to lower Q, try a smaller --agent.gamma, such as 0.9{others}")
    elif any(found_nothing(x.scores, x.optimum) for x in seeds):
        tip = LARGER_PRIOR if "prior" in settings else EXPLORE_MORE
        tip = tip.replace(NOT_AUTO, "") if agent == "auto" else tip
        tip = EXPLORE_CONTINUOUS if "actor_lr" in settings else tip
        tips.append(tip if {"lr", "actor_lr"} & set(settings) else MORE_EPISODES)
    tips += networks.remedies(seeds, "resample" in settings)
    if any(map(_loses, seeds)) and {"lr", "actor_lr"} & set(settings):
        tip = KEEP_IT if "lr" in settings else KEEP_IT.replace("agent.lr", "agent.actor-lr")
        tips.append(tip + UNTIL_SOLVED * any(map(_solved, seeds)))
    return tips


def _loses(seed: Seed) -> bool:
    if seed.optimum is None:
        return False
    results = seed.scores, seed.optimum, seed.evaluated
    return is_lost(*results) or successes_forgotten(*results) > 0


def _solved(seed: Seed) -> bool:
    return seed.optimum is not None and episodes_to_solve(seed.scores, seed.optimum) is not None


def for_python(advice: str) -> str:
    """Return advice with names of settings and arguments in place of options."""
    return re.sub(r"--(?:agent\.)?([a-z-]+)", lambda match: match[1].replace("-", "_"), advice)


def collapsed_at(
    scores: Num[np.ndarray, " episodes"], spread: Num[np.ndarray, " episodes"], optimum: float
) -> int | None:
    """Return the episode by which the posterior had collapsed, or None. It has collapsed if its
    spread stays below 1% of its maximum so far for 20 episodes before any episode scores half of
    the optimum."""
    successes = np.flatnonzero(scores >= 0.5 * optimum)
    before = spread[: successes[0]] if len(successes) else spread
    low = before < 0.01 * np.maximum.accumulate(before) if len(before) else before
    enough = len(low) >= PATIENCE
    runs = np.convolve(low, np.ones(PATIENCE), "valid") if enough else np.zeros(0)
    starts = np.flatnonzero(runs >= PATIENCE)
    return int(starts[0]) + PATIENCE if len(starts) else None


def found_nothing(scores: Num[np.ndarray, " episodes"], optimum: float | None) -> bool:
    """Return whether all episodes, at least 20, had the same score, below the optimum if known, or
    scores within 1.5% of a positive optimum from 0, which are small costs or a small reward."""
    if len(scores) < PATIENCE:
        return False
    low, high = float(np.min(scores)), float(np.max(scores))
    if optimum is None:
        return low == high
    near_zero = max(-low, high) <= NOTHING * optimum
    return low < optimum and (low == high or near_zero)


def successes_forgotten(
    scores: Num[np.ndarray, " episodes"],
    optimum: float,
    evaluated: Sequence[float] | None = None,
) -> int:
    """Return the number of episodes that scored more than halfway from the lowest score to the
    optimum, if none of the last 20 did, and the mean score of the trained policy, if it is given,
    is not higher either; else 0."""
    low = float(np.min(scores, initial=optimum))
    half = low + 0.5 * (optimum - low)
    successes = scores > half
    succeeds = np.any(successes[-LAST:]) or (evaluated is not None and np.mean(evaluated) > half)
    return 0 if succeeds else int(np.sum(successes))


def rewarded_at_limit(
    scores: Num[np.ndarray, " episodes"], terminated: Num[np.ndarray, " episodes"]
) -> bool:
    """Return whether an episode that a time limit ended had a positive score. Values may then
    exceed the best possible score: they include rewards after the limit."""
    return bool(np.any(scores[~np.asarray(terminated, bool)] > 0))


def start_value(
    values: Float[np.ndarray, "snapshots draws probes actions"],
    scores: Num[np.ndarray, " episodes"],
    terminated: Num[np.ndarray, " episodes"],
    label: str,
    learned: int,
) -> float | None:
    """Return the highest posterior mean of Q in the first probe state, in the last snapshot. None
    if fewer than 20 episodes have ended since learning started (`learned`), if the score is not the
    return, or if a time limit ends most episodes and Q includes rewards after it."""
    snapshots = min(len(terminated).bit_length(), len(values))
    if learned < PATIENCE or label != "return":
        return None
    if np.mean(terminated) < 0.5 and rewarded_at_limit(scores, terminated):
        return None
    return float(np.max(np.mean(values[snapshots - 1, :, 0], axis=0)))


def is_exceeded(seed: Seed) -> bool:
    """Return whether an episode scored more than the optimum, by more than rounding."""
    if seed.optimum is None:
        return False
    return np.max(seed.scores, initial=seed.optimum) > seed.optimum + TOLERANCE * abs(seed.optimum)


def is_too_high(seed: Seed) -> bool:
    """Return whether the Q of a seed that did not solve the task, or lost its solution, exceeds the
    optimum by more than the distance from the lowest score to the optimum."""
    if seed.optimum is None or seed.value is None or not len(seed.scores):
        return False
    distance = seed.optimum - float(np.min(seed.scores))
    unsolved = not _solved(seed) or is_lost(seed.scores, seed.optimum, seed.evaluated)
    return unsolved and seed.value - seed.optimum > distance > 0
