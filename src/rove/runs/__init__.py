"""Runs: their configuration, their folder, their result, and `train` and `load`."""
