"""Run the command line from a clone, where nothing is installed but the dependencies: ``python cli.py --help``."""

from nceref.cli import main

main()
