"""Data sets small enough to train on in seconds: drawn from a seed, or the digits that scikit-learn ships."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nceref.errors import InputError, UnavailableError
from nceref.training import Batch

Array = npt.NDArray[Any]
View = Callable[[np.random.Generator, Array], Array]

INSTALL = "pip install 'nceref[experiments]'"
SIDE = 8
"""Pixels of a digit along one axis."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Training and test samples with labels, and what makes a view of samples."""

    train: Array
    labels: Array
    test: Array
    test_labels: Array
    view: View

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.test_labels.max()) + 1

    @property
    def counts(self) -> Array:
        """Training samples of each class."""
        return np.bincount(self.labels, minlength=self.classes)

    def batch(self, rng: np.random.Generator, size: int) -> Batch:
        """Two views of samples drawn with replacement, with their labels."""
        rows = rng.integers(0, len(self.train), size)
        x = self.train[rows]
        return Batch((self.view(rng, x), self.view(rng, x)), self.labels[rows])


def long_tail(classes: int, most: int, least: int) -> Array:
    """Class counts that fall geometrically from `most` to `least`."""
    return np.asarray(np.rint(np.geomspace(most, least, classes)), int)


def synthetic(seed: int, counts: Array, *, latent: int, width: float = 1.0, test: int = 50) -> Samples:
    """Normal classes in a latent space, mixed by a random tanh layer into 32 features.

    `counts` and `test` are the training and the test samples of each class, `latent` the dimensions of the latent
    space, and `width` the standard deviation within a class; that of the class means is 1. Features are float32 in (-1,
    1).
    """
    # A stream of its own: training draws from [seed, 1] to [seed, 3], digits from [seed, 12].
    rng = np.random.default_rng([seed, 11])
    means = rng.standard_normal((len(counts), latent))
    # Divided so that the variance before tanh does not depend on the number of dimensions.
    mixing = rng.standard_normal((latent, 32)) / latent**0.5

    def drawn(labels: Array) -> Array:
        z = means[labels] + width * rng.standard_normal((len(labels), latent))
        return np.asarray(np.tanh(z @ mixing), np.float32)

    labels, test_labels = (np.repeat(np.arange(len(counts)), n) for n in (counts, np.full(len(counts), test)))
    return Samples(drawn(labels), labels, drawn(test_labels), test_labels, noise_and_dropout)


def noise_and_dropout(rng: np.random.Generator, x: Array) -> Array:
    """Normal noise of deviation 0.25 on every feature, and each feature set to 0 with probability 0.2."""
    noisy = x + np.float32(0.25) * rng.standard_normal(x.shape, np.float32)
    return np.where(rng.random(x.shape, np.float32) < 0.2, np.float32(0), noisy)


def digits(seed: int, counts: Array | None = None, *, test: int = 50) -> Samples:
    """Handwritten digits of 8 x 8 pixels, of mean 0 and deviation 1 over all pixels, split at random.

    `counts` are the training samples of each digit, by default all that are not tested on, and `test` the test samples
    of each. Rows have 64 pixels, float32. Raises `InputError` if there are not so many of a digit, and
    `UnavailableError` if scikit-learn is not installed.
    """
    images, labels = _digits()
    order = np.random.default_rng([seed, 12]).permutation(len(labels))
    by_class = [order[labels[order] == c] for c in range(10)]
    for digit, (rows, wanted) in enumerate(zip(by_class, [1] * 10 if counts is None else counts, strict=True)):
        if test + wanted > len(rows):
            msg = f"`counts` and `test` ask for {test + wanted} of digit {digit}, of which there are {len(rows)}"
            raise InputError(msg)
    # The test rows come first, so that they are the same whatever `counts` are.
    tested = np.concatenate([rows[:test] for rows in by_class])
    stops = [None] * 10 if counts is None else [test + int(n) for n in counts]
    trained = np.concatenate([rows[test:stop] for rows, stop in zip(by_class, stops, strict=True)])
    return Samples(images[trained], labels[trained], images[tested], labels[tested], moved)


@cache
def _digits() -> tuple[Array, Array]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        msg = f"the handwritten digits come with scikit-learn, which is not installed; {INSTALL}"
        raise UnavailableError(msg) from error
    images, labels = load_digits(return_X_y=True)
    return ((images - images.mean()) / images.std()).astype(np.float32), labels.astype(np.int64)


def moved(rng: np.random.Generator, x: Array) -> Array:
    """Images turned by up to 15 degrees, shifted by up to 1 pixel along each axis, with normal noise of deviation 0.1.

    Each is read off between pixels, linearly; outside of an image is the least value of all of them.

    The result is float32.
    """
    from scipy.ndimage import map_coordinates

    n = len(x)
    angle = np.radians(rng.uniform(-15, 15, n))[:, None]
    down, right = rng.uniform(-1, 1, (2, n, 1))
    center = (SIDE - 1) / 2
    rows, columns = np.divmod(np.arange(SIDE * SIDE), SIDE) - np.array([[center]])
    # For each pixel of the view, the place in the image that it is read from: shift and turn are undone.
    rows, columns = rows - down, columns - right
    at = np.cos(angle) * rows - np.sin(angle) * columns, np.sin(angle) * rows + np.cos(angle) * columns
    which = np.broadcast_to(np.arange(n)[:, None], (n, SIDE * SIDE))
    seen = map_coordinates(x.reshape(n, SIDE, SIDE), [which, at[0] + center, at[1] + center], order=1, cval=x.min())
    return np.asarray(seen + np.float32(0.1) * rng.standard_normal(x.shape, np.float32), np.float32)
