"""The suite: sparse tasks on which every agent has one setting for all of them.

`publish("docs")` writes the page and the figure of the documentation from docs/data/suite.csv.gz.
"""

from rove.paper.suite.experiment import Suite
from rove.paper.suite.page import publish

__all__ = ["Suite", "publish"]
