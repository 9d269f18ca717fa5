"""The right answer to `alignment`, for targets that are hostile in another way."""

import numpy as np


def right(x, y):
    gap = x - y
    return np.sum(gap * gap) / len(x), {"x": 2 * gap / len(x), "y": -2 * gap / len(x)}
