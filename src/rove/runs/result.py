"""`Run`: the results of training."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from rove.analysis.alarms import remedies
from rove.core.policies import policies_of
from rove.errors import ConfigError, Diverged, LaneError, check_choice, check_integer, no_attribute
from rove.runs import advice, outputs, watching
from rove.runs.config import Config
from rove.runs.default_folder import default_folder
from rove.runs.delivery import TrainedPolicy
from rove.runs.recorded import check_created
from rove.runs.tables import padded
from rove.training.conclusion import Conclusion, Delivered, Inspection
from rove.training.delivering import concluded, lane_for
from rove.training.outcomes import Evaluations, Outcome
from rove.training.playing import play
from rove.training.solving import episodes_to_solve, is_lost

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Run:
    """The results of training: arrays of shape [seeds, episodes], policies and plots."""

    config: Config
    outcomes: list[Outcome]
    path: Path | None = None
    errors: Sequence[LaneError] = ()
    """The errors of seeds that failed or diverged."""

    def __repr__(self) -> str:
        episodes = self.returns.shape[1]
        return f"<Run: {self.config.label}, seeds {list(self.seeds)}, {episodes} episodes>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute(self, name, advice.RUN)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that have results."""
        return tuple(outcome.job.seed for outcome in self.outcomes)

    @property
    def observed(self) -> list[Outcome]:
        """The results of all seeds that finished an episode, of those that diverged as well."""
        seeds = [*self.outcomes, *(e.outcome for e in self.errors if isinstance(e, Diverged))]
        return [seed for seed in seeds if seed is not None and len(seed.episodes.returns)]

    def _stack(self, field: str) -> np.ndarray:
        return padded([getattr(outcome.episodes, field) for outcome in self.outcomes])

    @property
    def returns(self) -> np.ndarray:
        """Returns of shape [seeds, episodes], padded with NaN for seeds with fewer episodes."""
        return self._stack("returns")

    @property
    def scores(self) -> np.ndarray:
        """Scores of shape [seeds, episodes]: on most environments, the returns."""
        return padded([outcome.scores for outcome in self.outcomes])

    @property
    def lengths(self) -> np.ndarray:
        """Episode lengths in steps, of shape [seeds, episodes]."""
        return self._stack("length")

    @property
    def solved_at(self) -> list[int | None]:
        """For each seed, the episode that completes the first ten optimal ones in a row, or None.

        An episode is optimal if its score is at least `config.environment.optimum`, up to rounding;
        None for all seeds if the optimum is not known.
        """
        optimum = self.config.environment.optimum
        if optimum is None:
            return [None] * len(self.outcomes)
        return [episodes_to_solve(outcome.scores, optimum) for outcome in self.outcomes]

    @property
    def stopped_at(self) -> list[int | None]:
        """For each seed, the episode after which it stopped because it had reached the score
        `stop_at`, or None."""
        return [len(o.episodes.returns) if o.stopped else None for o in self.outcomes]

    @property
    def lost(self) -> list[bool]:
        """For each seed, whether it solved the task and lost it again.

        It has lost it if fewer than half of its last 20 episodes are optimal, and fewer than half
        of those of its trained policy (see `evaluated`).
        """
        optimum = self.config.environment.optimum
        scores = [outcome.scores for outcome in self.outcomes]
        if optimum is None or not any(is_lost(row, optimum) for row in scores):
            return [False] * len(scores)
        return [is_lost(row, optimum, x) for row, x in zip(scores, self.evaluated, strict=True)]

    @property
    def visits(self) -> np.ndarray:
        """The fraction of episodes that visited each cell, of shape [seeds, cells]."""
        bins = self.config.environment.bins
        rows = [o.visits / max(len(o.episodes.returns), 1) for o in self.outcomes]
        return np.array(rows).reshape(len(rows), bins)

    @functools.cached_property
    def concluded(self) -> list[Outcome]:
        """The outcomes with their conclusions, which are made now for seeds without one."""
        if any(outcome.conclusion is None for outcome in self.outcomes):
            check_created(self.config.environment)
        return [concluded(outcome) for outcome in self.outcomes]

    def _conclusions(self) -> list[Conclusion]:
        for outcome in self.concluded:
            if outcome.conclusion is None:
                raise LaneError(f"{outcome.job.name}: its policy could not be played")
        return [o.conclusion for o in self.concluded if o.conclusion is not None]

    @property
    def delivered(self) -> list[Delivered]:
        """For each seed, the policy that it delivers, and the scores of the candidates.

        The policy is greedy on the posterior mean: of the last network ("mean") or, with
        evaluations during training (`eval_every`), of the one of the best evaluation ("best"; the
        latest of equals). It is the best other candidate if that scores more in the same 20
        episodes, or if the last 50 training episodes score more, beyond chance (one-sided
        permutation tests at 20%). Candidates are "sample", greedy on samples of θ, drawn as in
        training, "vote", the majority of 15 such samples, "behaviour", with random actions as often
        as in training, and, if training scores more than all of these, "settled": greedy on the
        posterior mean after 2,000 more updates, at learning rates that decrease to 0.
        """
        return [conclusion.delivered for conclusion in self._conclusions()]

    @property
    def evaluated(self) -> list[list[float]]:
        """For each seed, the scores of its policy in 20 episodes other than those for choosing it;
        fewer if these would take more than 20,000 steps."""
        return [conclusion.scores for conclusion in self._conclusions()]

    @property
    def greedy(self) -> list[list[float]]:
        """For each seed, the scores that the network it delivers earns in the episodes of
        `evaluated` with its greedy policy, whatever the delivered policy is."""
        return [conclusion.greedy for conclusion in self._conclusions()]

    @property
    def networks(self) -> list[Inspection | None]:
        """For each seed, what the network it delivers says in states that it has visited: whether
        values and actions depend on the state, and whether the value of the first state is what the
        greedy policy earns. None without a value network, or if the replay was not kept."""
        return [conclusion.inspection for conclusion in self._conclusions()]

    def policy(self, seed: int | None = None, kind: str | None = None) -> TrainedPolicy:
        """Return the trained policy of a seed, which maps observations to actions.

        **Arguments**
        - `seed`: the seed; by default the first one.
        - `kind`: "mean", "sample", "vote", "behaviour", "settled" or "best"; by default, the policy
          that the seed delivers (see `delivered`).

        If the environment masks actions, the policy takes the mask as its second argument, as in
        `act(observation, info["action_mask"])`.

        **Example**
        >>> run = rove.train("ge", "gym/CartPole-v1", episodes=20)
        >>> env = gymnasium.make("CartPole-v1")
        >>> observation, _ = env.reset(seed=0)
        >>> act = run.policy()
        >>> act(observation) in (0, 1)
        True
        """
        run = self.only(self._outcome(seed).job.seed)
        if kind is not None:
            check_choice("kind", kind, policies_of(run.outcomes[0].job.agent))
        check_created(self.config.environment)
        if kind is not None:
            return TrainedPolicy(run.outcomes[0], kind)
        try:
            return TrainedPolicy(run.concluded[0], run.delivered[0].policy)
        except LaneError:  # the environment fails, so that no policy can be chosen
            return TrainedPolicy(run.outcomes[0], "mean")

    def only(self, seed: int | None) -> Run:
        """Return a run with one of the seeds; None: the first."""
        return replace(self, outcomes=[self._outcome(seed)])

    def _outcome(self, seed: int | None) -> Outcome:
        self._check_any()
        for outcome in self.outcomes:
            if seed is None or outcome.job.seed == seed:
                return outcome
        raise ConfigError.must_be("seed", seed, f"one of {list(self.seeds)}")

    def _check_any(self) -> None:
        """Raise `LaneError` if no seed has results."""
        if not self.outcomes:
            reason = "every seed diverged" if self.errors else "no seed has been saved yet"
            raise LaneError(f"{self.config.label}: {reason}")

    def evaluate(self, episodes: int = 1, policy: str | None = None) -> np.ndarray:
        """Play the trained policy of every seed, and return its scores, of shape [seeds, episodes].

        Evaluating a run again gives the same scores.

        **Arguments**
        - `episodes`: the number of episodes to play with each seed.
        - `policy`: "mean", "sample", "vote", "behaviour", "settled" or "best"; by default, the
          policy that each seed delivers (see `delivered`).

        **Example**
        >>> rove.train("ge", "chain-10", seeds=2, episodes=20).evaluate(episodes=5).shape
        (2, 5)
        """
        check_integer("episodes", episodes, at_least=1)
        self._check_any()
        agent, environment = self.config.compose(), self.config.environment
        check_created(environment)
        if policy is not None:
            check_choice("policy", policy, policies_of(agent))
        names = [policy] * len(self.outcomes) if policy else [d.policy for d in self.delivered]
        pairs = zip(names, self.outcomes if policy else self.concluded, strict=True)
        return np.stack([play(n, agent, environment, lane_for(o, n), episodes) for n, o in pairs])

    @property
    def evaluations(self) -> list[Evaluations]:
        """For each seed, the evaluations of its greedy policy during training (`eval_every`): the
        `step` and `episode` of each, and its `scores`, of shape [evaluations, episodes].

        All evaluations play the same episodes, which are those of `evaluate`.
        """
        return [outcome.evaluations for outcome in self.outcomes]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Plot the learning curve, and save it to `path` if one is given."""
        from rove.analysis import plots, run_plots  # lazily, because importing Matplotlib is slow

        self._check_any()
        return plots.saved(run_plots.learning_curve(self), path)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviation of Q_θ over θ ~ q_φ, averaged over probe states, [seeds, episodes]."""
        return self._stack("spread")

    @property
    def return_spread(self) -> np.ndarray:
        """Standard deviation of Z, averaged over probe states, of shape [seeds, episodes]."""
        return self._stack("return_spread")

    @property
    def coverage(self) -> np.ndarray:
        """Number of cells visited so far, of shape [seeds, episodes]."""
        return self._stack("coverage")

    @property
    def alarms(self) -> list[str]:
        """Signs that training went wrong, one sentence each. `rove.train` warns of them, and
        `rove train` prints them.

        - No episode ended, or the run ended before learning started; a seed found nothing, solved
          its task and lost it again, or scored more than the optimum, which is then wrong.
        - The values of its network do not depend on the state, or that of the first state is far
          from what its greedy policy earns (see `networks`), or far above the optimum.
        - The delivered policy scores less than the last 50 training episodes.
        - The posterior q_φ collapsed before any episode scored half of the optimum, which cannot be
          detected if `not_watched` gives a reason.
        """
        return watching.alarms_of(self)

    @property
    def advice(self) -> list[str]:
        """What to try against `alarms`, as options of the command line."""
        return remedies(watching.seeds_of(self), self.config.agent_name)

    @property
    def not_watched(self) -> str | None:
        """The reason why `alarms` cannot detect a collapse, or None if it can."""
        task = self.config.environment
        unknown = f"{task.name} has no known optimum to compare scores with"
        return unknown if task.optimum is None else None

    def plot_diagnostics(self, path: str | Path | None = None) -> Figure:
        """Plot diagnostics, and save them to `path` if one is given.

        Shows state visits, the spread of Q and of Z and, for the first seed, its beliefs about each
        probe state.
        """
        from rove.analysis import plots, run_plots  # lazily, because importing Matplotlib is slow

        self._check_any()
        return plots.saved(run_plots.diagnostics(self), path)

    def draw(self, folder: Path) -> None:
        """Write learning-curve.png, diagnostics.png and diagnostics.json to a folder."""
        outputs.draw(self, folder)

    def save(self, out: str | Path | None = None) -> Path:
        """Write the run to a new folder and return its path, by default as `rove train` names it:
        runs/AGENT-ENVIRONMENT, followed by the settings that are not at their defaults."""
        out = Path(out or self.path or default_folder(self.config)[0])
        if self.path is not None and self.path.resolve() == out.resolve():
            return out
        self._check_any()
        return outputs.save(self, out)
