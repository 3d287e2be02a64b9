"""The experiments of the paper and the scoreboard, each with settings and claims to check."""

from rove.paper.figure_2 import Figure2
from rove.paper.figure_3 import Figure3
from rove.paper.figure_4 import Figure4
from rove.paper.figure_5 import Figure5
from rove.paper.scoreboard import Scoreboard

EXPERIMENTS = {
    "figure-2": Figure2,
    "figure-3": Figure3,
    "figure-4": Figure4,
    "figure-5": Figure5,
    "scoreboard": Scoreboard,
}
