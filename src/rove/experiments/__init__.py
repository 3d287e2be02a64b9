"""The paper's experiments: settings as data, claims as checks."""

from rove.experiments.figure_2 import Figure2

EXPERIMENTS = {"figure-2": Figure2}
