"""`python -m rove`."""

from rove.cli.main import main

main()
