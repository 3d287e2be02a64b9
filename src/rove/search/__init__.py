"""Searches over settings: sweeps of one agent, and `rove tune` for several."""
