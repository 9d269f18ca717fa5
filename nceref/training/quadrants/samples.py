"""Samples and initial weights of the published script, bit by bit, for any seed, from NumPy's Mersenne Twister.

The framework's CPU generator is MT19937 with the initializer of `numpy.random.RandomState`: both give the same 32-bit
words. A uniform float32 is made of the low 24 bits of one word.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.engine.arguments import integer

Array = npt.NDArray[Any]

PER_CLASS, CLASSES = 25, 4
HIDDEN = 10
LABELS = np.repeat(np.arange(CLASSES), PER_CLASS)
"""Quadrants, counterclockwise from the upper right one."""
SIGNS = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
"""The signs of the coordinates in each quadrant."""


@dataclass(frozen=True, eq=False)
class Draw:
    """The numbers that the script draws from the framework's generator, in its order; all float32.

    Attributes
    ----------
    samples : (100, 2) array
        25 in each quadrant, in the order of `LABELS`.
    W1, W2 : (10, 2) and (2, 10) arrays
        Weights of the two linear layers, one row an output.
    """

    samples: Array
    W1: Array
    W2: Array


def draw(seed: int = 0) -> Draw:
    """Samples and initial weights after seeding the script with `seed`.

    Raises `InputError` unless 0 <= seed < 2**32, as the script's own seeding demands.
    """
    points = PER_CLASS * CLASSES
    stream = _uniforms(checked_seed(seed), 2 * points + 2 * 2 * HIDDEN)
    square, first, second = np.split(stream, (2 * points, 2 * points + 2 * HIDDEN))
    # Moving by one is exact or rounds once, in float64 as well as in float32.
    samples = (square.reshape(points, 2) - (SIGNS[LABELS] < 0)).astype(np.float32)
    return Draw(samples, _layer(first, HIDDEN, 2), _layer(second, 2, HIDDEN))


def encoded(points: Array, W1: Array, W2: Array) -> Array:
    """Features tanh(W2 W1 x) of points (N, 2), in their dtype."""
    return np.asarray(np.tanh(points @ W1.T @ W2.T))


def checked_seed(seed: int) -> int:
    """The seed as an int, if the script would take it."""
    return integer("`seed`", seed, 0, 2**32 - 1)


def _uniforms(seed: int, count: int) -> Array:
    """Float64 copies of the float32 numbers: the low 24 bits of each word."""
    words = np.frombuffer(np.random.RandomState(seed).bytes(4 * count), "<u4")
    return np.asarray((words & 0xFFFFFF) * 2.0**-24)


def _layer(u: Array, outputs: int, inputs: int) -> Array:
    """Uniform in +-1 / sqrt(inputs), where u (high - low) + low is rounded once, as a fused multiply-add does.

    Product and sum are multiples of 2**-48 below 2, so both are exact in float64: one rounding is left.
    """
    high = float(np.float32(inputs**-0.5))
    return (u * (2 * high) - high).astype(np.float32).reshape(outputs, inputs)
