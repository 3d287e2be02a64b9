"""The experiments of the paper, the scoreboard and the suite, each with claims to check."""

from rove.paper.base import Experiment
from rove.paper.figure_2 import Figure2
from rove.paper.figure_3 import Figure3
from rove.paper.figure_4 import Figure4
from rove.paper.figure_5 import Figure5
from rove.paper.scoreboard import Scoreboard
from rove.paper.suite import Suite

EXPERIMENTS: dict[str, type[Experiment]] = {
    kind.name: kind for kind in (Figure2, Figure3, Figure4, Figure5, Scoreboard, Suite)
}
