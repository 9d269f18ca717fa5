"""Run the command line as ``python -m nceref``."""

from nceref.cli import main

main()
