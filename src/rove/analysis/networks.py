"""Alarms about what a seed ends with: its network, and the policy that it delivers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Num

from rove.training.conclusion import PRINTED, Inspection
from rove.training.delivering import RECENT, unpaired_p

LEARNED = 20
"""Number of episodes since learning started from which on a network is judged."""
MOST_OFF = 0.9
"""Fraction of units that are off in a layer above which an alarm names that as the cause."""
ALARM = 0.05
"""Significance level of that. It is below the level at which a policy is chosen, since one seed of
five would raise an alarm by chance."""
LESS = 0.05
"""Difference of scores, as a fraction of their range, from which a policy is clearly worse."""
ALIVE = (
    "to keep the network alive, try --agent.resample episode if θ is resampled every step, a "
    "smaller --agent.rho or another --agent.lr"
)
RIGHT_VALUES = "for values that are closer to what the policy earns, train longer"
ALIVE_WITHOUT_THETA = "to keep the network alive, try a smaller --agent.lr"
BETTER_POLICY = (
    "for a better policy, use --eval-every, which keeps the best policy of the evaluations during "
    "training; or train longer, or with a smaller --agent.lr"
)

BETTER_POLICY_EVALUATED = (
    "for a better policy, use more --eval-episodes; or train longer, or with a smaller --agent.lr"
)


class Seed(NamedTuple):
    """The training of one seed, as far as alarms depend on it."""

    seed: int
    scores: Num[np.ndarray, " episodes"]
    spread: Num[np.ndarray, " episodes"]
    """Standard deviation of Q over θ."""
    optimum: float | None = None
    """The best possible score; if it is not known, a collapse of the posterior, a loss and values
    that are too high cannot be detected."""
    evaluated: Sequence[float] | None = None
    """The scores of the trained policy, if they are known; see `Run.evaluated`."""
    value: float | None = None
    """The highest learned Q in the first probe state; see `start_value`."""
    network: Inspection | None = None
    """What the network says, if enough was learned for it to matter; see `worth_judging`."""
    scale: float = 0.0
    """The range of returns in the task, in the unit of its rewards."""
    policy: str = "mean"
    """The name of the policy that the seed delivers."""
    score_scale: float = 0.0
    """The range of scores."""
    evaluated_in_training: bool = False
    """Whether the greedy policy was evaluated during training."""


def sentences(seed: Seed) -> list[str]:
    """Return a sentence for each alarm about the network and the delivered policy."""
    return [text for text in (_constant(seed), _misjudged(seed), _let_down(seed)) if text]


def remedies(seeds: Sequence[Seed], samples: bool) -> list[str]:
    """Return what to try against these alarms. `samples`: whether the agent samples θ to act."""
    tips = []
    if any(map(says_the_same, seeds)):
        tips.append(ALIVE if samples else ALIVE_WITHOUT_THETA)
    if any(is_misjudged(seed) and not says_the_same(seed) for seed in seeds):
        tips.append(RIGHT_VALUES)
    if worse := [seed for seed in seeds if lets_down(seed)]:
        evaluated = all(seed.evaluated_in_training for seed in worse)
        tips.append(BETTER_POLICY_EVALUATED if evaluated else BETTER_POLICY)
    return tips


def says_the_same(seed: Seed) -> bool:
    """Return whether the values of the network do not depend on the state."""
    return seed.network is not None and seed.network.values_constant


def is_misjudged(seed: Seed) -> bool:
    """Return whether the learned value of the first state differs from what the greedy policy earns
    from there by more than a factor of two, and by more than a tenth of the range of returns."""
    x = seed.network
    if x is None or not x.expected:
        return False
    value, earned = x.value_at_start, x.return_from_start
    low, high = sorted((abs(value), abs(earned)))
    return abs(value - earned) > 0.1 * seed.scale and (value * earned < 0.0 or high > 2.0 * low)


def lets_down(seed: Seed) -> bool:
    """Return whether the delivered policy scores less than the last 50 training episodes: by more
    than 5% of the range of scores, and beyond chance (a one-sided permutation test at 5%)."""
    if seed.evaluated is None or not len(seed.scores):
        return False
    evaluated, recent = np.asarray(seed.evaluated, float), np.asarray(seed.scores[-RECENT:], float)
    less = float(np.mean(recent) - np.mean(evaluated))
    return less > LESS * seed.score_scale and unpaired_p(recent, evaluated) <= ALARM


def _constant(seed: Seed) -> str | None:
    if not says_the_same(seed) or (x := seed.network) is None:
        return None
    text = f"the values of the network do not depend on the state: all are {x.value_at_start:.3g}"
    return text + " (it has switched off its units)" * (max(x.units_off, default=0.0) > MOST_OFF)


def _misjudged(seed: Seed) -> str | None:
    if not is_misjudged(seed) or (x := seed.network) is None:
        return None
    side = "below" if x.value_at_start < x.return_from_start else "above"
    earned = f"what the greedy policy earns from there, {x.return_from_start:.3g}"
    return (
        f"the learned value at the start, {x.value_at_start:.3g}, is far {side} {earned} "
        f"({_how([x])})"
    )


def _let_down(seed: Seed) -> str | None:
    if not lets_down(seed) or seed.evaluated is None:
        return None
    recent = seed.scores[-RECENT:]
    return (
        f"the delivered policy, {seed.policy!r}, scores {np.mean(seed.evaluated):.3g}, but the "
        f"last {len(recent)} training episodes {np.mean(recent):.3g}"
    )


def worth_judging(network: Inspection | None, learned: int) -> Inspection | None:
    """Return what a network says, if at least 20 episodes have ended since learning started."""
    return network if learned >= LEARNED else None


def scale_of(
    values: Num[np.ndarray, " episodes"], known: tuple[float, float] | None = None
) -> float:
    """Return the range of returns, or of scores: the known one, or that of episodes and 0."""
    low, high = known or (np.min(values, initial=0.0), np.max(values, initial=0.0))
    return float(high - low)


def as_json(networks: Sequence[Inspection | None]) -> dict[str, list[Any]]:
    """Return what the network of each seed says, as JSON; None for an agent without one."""
    return {name: [x and x.as_json()[name] for x in networks] for name in PRINTED}


def network_text(networks: Sequence[Inspection | None]) -> str | None:
    """Say of how many seeds the values and the greedy actions depend on the state, and whether the
    values are right; None without a value network."""
    known = [x for x in networks if x is not None]
    if not known:
        return None
    count = f"{len(known)} seed{'s' * (len(known) > 1)}"
    values = sum(not x.values_constant for x in known)
    actions = sum(not x.policy_constant for x in known)
    learned = _range([x.value_at_start for x in known])
    earned = _range([x.return_from_start for x in known])
    return (
        f"networks: values depend on the state on {values} of {count}, greedy actions on {actions} "
        f"of {count}; at the start, the learned value is {learned}, and the greedy policy earns "
        f"{earned} ({_how(known)})"
    )


def _how(networks: Sequence[Inspection]) -> str:
    """Say what the return from the start contains: with rewards after the time limit, it may exceed
    the optimum of an episode."""
    if any(x.bootstrapped for x in networks):
        return "discounted, with the learned value where an episode is cut off"
    return "discounted, without the time limit"


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(f"{value:.3g}" for value in (min(values), max(values))))
