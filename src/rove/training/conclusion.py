"""What is concluded at the end of a seed, as data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rove.core.policies import POLICIES

MOST_LAYERS = 100
"""Maximum number of layers of an inspection that is read from a file."""
SAME = 1e-3
"""Range of values, as a fraction of the largest one, below which they count as equal."""


class Delivered(NamedTuple):
    """The policy that a seed delivers, and why."""

    policy: str
    """Its name; see `rove.core.policies.POLICIES`."""
    candidates: dict[str, float]
    """The mean score of each candidate in the episodes for choosing a policy. Candidates after one
    that is optimal in all of them were not played."""


class Inspection(NamedTuple):
    """What the network at the posterior mean says in states that the agent has visited: at the end
    of a seed, the network that it delivers."""

    units_off: tuple[float, ...]
    """For each hidden layer, the fraction of units whose output is the same in all states: its
    range is below 1e-6. Empty if the layers are not known."""
    value_range: float
    """Range of the greedy value over the states, in the unit of the task's rewards."""
    largest_value: float
    """Largest absolute greedy value in these states."""
    gap_range: float
    """Range of the difference between the values of the best two actions."""
    actions: int
    """Number of distinct greedy actions; 0 if actions are continuous."""
    policy_constant: bool
    """Whether the greedy action is the same in all of these states."""
    value_at_start: float
    """Learned value of the first state, averaged over 20 episodes."""
    return_from_start: float
    """Discounted return that the greedy policy earns from there. A compiled environment is played
    on beyond its time limit, until γᵗ < 0.001."""
    one_state: bool
    """Whether all of these states are the same, as on a bandit."""
    bootstrapped: bool
    """Whether `return_from_start` contains learned values, because an episode was cut off: then γᵀ
    times the learned value of its last state is added."""
    expected: bool
    """Whether values are expected returns of the task: not with intrinsic rewards, if they are a
    risk measure, or if returns are infinite because γ is 1 and episodes go on."""
    numbers: tuple[int, ...] = ()
    """Numbers of the transitions in the replay buffer, counted from 0 in the order of training,
    that begin in these states; if actions are masked, of those that lead to them."""

    @property
    def row(self) -> list[float]:
        """All fields but the last as numbers, with those of the layers at the end."""
        return [float(x) for x in (*self[1:11], *self.units_off)]

    @staticmethod
    def of_row(row: Sequence[float]) -> "Inspection | None":
        """Return the inspection with the given `row`; None if there was none."""
        numbers = [float(x) for x in row]
        if not np.isfinite(numbers).all():
            return None
        one_state, bootstrapped, expected = map(bool, numbers[7:10])
        return Inspection(
            units_off=tuple(numbers[10:]),
            value_range=numbers[0],
            largest_value=numbers[1],
            gap_range=numbers[2],
            actions=int(numbers[3]),
            policy_constant=bool(numbers[4]),
            value_at_start=numbers[5],
            return_from_start=numbers[6],
            one_state=one_state,
            bootstrapped=bootstrapped,
            expected=expected,
        )

    @property
    def values_constant(self) -> bool:
        """Whether values do not depend on the state: their range is at most a thousandth of
        the largest one, although states differ."""
        return not self.one_state and self.value_range <= SAME * self.largest_value

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        lists = {"units_off": list(self.units_off), "numbers": list(self.numbers)}
        return self._asdict() | lists

    @staticmethod
    def from_json(entry: Any) -> "Inspection | None":
        """Return the inspection of a JSON entry; raise `ValueError`, `TypeError`, `KeyError` or
        `AttributeError` if it is not valid."""
        if entry is None:
            return None
        row = [entry[name] for name in Inspection._fields[1:11]]
        inspection = Inspection.of_row([float(x) for x in [*row, *entry["units_off"]]])
        if inspection is None or len(inspection.units_off) > MOST_LAYERS:
            raise ValueError("its numbers are not finite")
        return inspection._replace(numbers=tuple(map(int, entry["numbers"])))


FIELDS = Inspection._fields[1:11]
"""The names of the first entries of `Inspection.row`."""


PRINTED = ("units_off", "value_range", "policy_constant", "value_at_start", "return_from_start")
"""The fields of an `Inspection` that are printed as JSON."""


class Conclusion(NamedTuple):
    """The end of a seed, as in its checkpoint and in diagnostics.json of the run folder."""

    step: int
    """The training step of the agent."""
    delivered: Delivered
    scores: list[float]
    """The scores of the delivered policy, in other episodes than those for choosing it."""
    greedy: list[float]
    """The scores of the greedy policy of the delivered network in the same episodes."""
    inspection: Inspection | None = None
    """None if the agent has no value network, or if the replay buffer was not kept."""

    def as_json(self) -> dict[str, Any]:
        """Return the conclusion as JSON."""
        network = None if self.inspection is None else self.inspection.as_json()
        scores = {"scores": self.scores, "greedy": self.greedy}
        return self.delivered._asdict() | scores | {"step": self.step, "network": network}

    @staticmethod
    def from_json(entry: Any) -> "Conclusion":
        """Return the conclusion of a JSON entry; raise `ValueError`, `TypeError`, `KeyError` or
        `AttributeError` if it is not valid."""
        policy, scores, step = entry["policy"], [*map(float, entry["scores"])], int(entry["step"])
        greedy = [*map(float, entry.get("greedy", ()))]
        candidates = {str(name): float(score) for name, score in entry["candidates"].items()}
        if policy not in POLICIES or not scores:
            raise ValueError("it has no policy, or no scores")
        if not np.isfinite([*scores, *greedy, *candidates.values()]).all():
            raise ValueError("its scores are not finite")
        inspection = Inspection.from_json(entry.get("network"))
        return Conclusion(step, Delivered(policy, candidates), scores, greedy, inspection)
