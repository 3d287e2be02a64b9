"""The suite: tasks that nobody tunes for, with one setting per agent.

`publish("docs")` writes the page and the figure of the documentation from docs/data/suite.csv.gz.
"""

from rove.paper.suite.experiment import Suite
from rove.paper.suite.page import publish

__all__ = ["Suite", "publish"]
