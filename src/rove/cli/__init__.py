"""The `rove` command."""
