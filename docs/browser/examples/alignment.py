# Alignment: the value is right, the gradient forgets the normalization
import numpy as np


def alignment(x, y, exponent):
    u1, u2 = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (x, y))
    distance = np.sum((u1 - u2) ** 2, axis=1, keepdims=True)
    slope = exponent * distance ** (exponent / 2 - 1) * (u1 - u2) / len(x)
    return np.mean(distance ** (exponent / 2)), {"x": slope, "y": -slope}
