"""Writes the reference vectors of the package: `python -m tools.vectors [small] [large] [ranks]`, or all of it.

Takes four minutes on two cores.
"""

import sys

from tools.vectors.make import main

if __name__ == "__main__":
    main(sys.argv[1:] or ["small", "large", "ranks"])
