import numpy as np
from answer import right

np.seterr(all="raise")


def f(x, y):
    return right(x, y)
