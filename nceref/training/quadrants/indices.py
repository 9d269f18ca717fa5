"""Indices of the samples that each step of the script compares, as Python's `random` gives them, run after run.

A step draws a class out of 4, the anchor and the positive out of its 25 samples, and three different negatives out of
the other 75, each by rejection: the top bits of a word, until they are below the size (and new). Going through the
words directly draws the same numbers as `randint` and `sample` do, six times as fast.
"""

import random
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.training.quadrants.samples import CLASSES, PER_CLASS, checked_seed

Array = npt.NDArray[Any]

_OTHERS = np.array([[j for j in range(CLASSES * PER_CLASS) if j // PER_CLASS != c] for c in range(CLASSES)])
_WORDS = 1 << 14
"""Words that are drawn by one call."""


def draw(seed: int, runs: int, steps: int) -> Array:
    """Rows of the samples: anchor, positive, three negatives, as (runs, steps, 5) integers.

    The state of the generator goes on from run to run, so that two runs of equal temperature differ.

    The seed is at least 0 and below 2**32; rows are from 0 to 99.
    """
    label, anchor, positive, *negatives = numbers(seed, runs * steps).T
    own = [PER_CLASS * label + row for row in (anchor, positive)]
    return np.stack([*own, *(_OTHERS[label, row] for row in negatives)], axis=1).reshape(runs, steps, 5)


def numbers(seed: int, count: int) -> Array:
    """The numbers as the script draws them, (count, 6): class, anchor, positive, three negatives."""
    word = chain.from_iterable(_top_bits(random.Random(checked_seed(seed)))).__next__
    bits: list[int] = []
    keep = bits.extend
    # Of 7 bits, a class has the first 3 and is refused from 4 on, that is from 64; of 5 bits from 25, that is from 100.
    for _ in range(count):
        while (label := word()) >= 64:
            pass
        while (anchor := word()) >= 100:
            pass
        while (positive := word()) >= 100:
            pass
        while (first := word()) >= 75:
            pass
        while (second := word()) >= 75 or second == first:
            pass
        while (third := word()) >= 75 or third in (first, second):
            pass
        keep((label, anchor, positive, first, second, third))
    # Down to the bits that the draw itself uses: 3 of a class, 5 of a row among 25, 7 of a row among 75.
    return np.asarray(np.right_shift(np.reshape(bits, (count, 6)), [4, 2, 2, 0, 0, 0]))


def _top_bits(generator: random.Random) -> Iterator[bytes]:
    """The upper 7 bits of every word, piece by piece without end."""
    while True:
        # The word that is drawn first is the lowest of the long integer: in little-endian bytes, words are in order.
        piece = generator.getrandbits(32 * _WORDS).to_bytes(4 * _WORDS, "little")
        yield (np.frombuffer(piece, "<u4") >> 25).astype(np.uint8).tobytes()
