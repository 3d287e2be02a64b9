"""`python -m rove`."""

from rove.cli import main

main()
