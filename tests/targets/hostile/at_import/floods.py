import os
import sys

from answer import right

for _ in range(200):
    os.write(1, 100_000 * b"x")
    os.write(2, 100_000 * b"y")
    print(100_000 * "x")
    print(100_000 * "y", file=sys.stderr)


def f(x, y):
    return right(x, y)
