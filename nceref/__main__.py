"""Run the command line as ``python -m nceref``."""

import contextlib
import os
import sys

# The working folder may be gone.
with contextlib.suppress(OSError):
    # What -m puts first: a json.py there is not Python's. It stays where this package is in it, as in a clone.
    if sys.path[0] == os.getcwd() and __file__ != f"{sys.path[0]}{os.sep}nceref{os.sep}__main__.py":  # noqa: PTH109
        del sys.path[0]

from nceref.cli import main

main()
