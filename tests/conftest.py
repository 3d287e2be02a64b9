"""Shared by all tests: programs compiled once and kept on disk between tests and runs."""

from rove import platform

platform.prepare()
