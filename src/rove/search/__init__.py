"""Searches over settings: sweeps of one agent, and `rove reproduce tuning` for several."""
