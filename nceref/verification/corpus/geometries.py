"""Where the rows of the corpus stand, and which temperatures they are judged at.

Rows are never of length 1, views are not mirror images of each other, and sizes differ: a batch that is too regular
gives many conventions the same number.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from nceref import spec
from nceref.checks.cases import GEOMETRIES, Geometry
from nceref.spec import Loss

Array = Any
Generator = np.random.Generator

SMALL = {"N": 5, "D": 3, "E": 3, "C": 4, "M": 4, "K": 6, "V": 2}
LARGE = {"N": 11, "D": 6, "E": 6, "C": 5, "M": 7, "K": 9, "V": 3}
SEVEN = {"N": 7, "D": 4, "E": 4, "C": 5, "M": 3, "K": 8, "V": 3}
CLASSES = {"N": 8, "C": 3}
"""Three classes of 3, 3 and 2 samples."""

BIASES = (-5.0, -10.0, 6.0, -7.5)
"""Of the losses that add one; probes take turns."""
SHARES = (None, 0.15, None, 0.8, 0.4)
"""Where in its typical range a hyperparameter lies that nobody has set; None: at its default. Probes take turns,
and there are not as many as temperatures: each temperature meets each of them.
"""


def _lengths(rng: Generator, shape: tuple[int, ...]) -> Array:
    return rng.uniform(0.4, 2.5, (*shape[:-1], 1))


def _designed(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    """Rows of many lengths; partners are somewhat alike, so that neither they nor the others vanish in the sum."""
    x = rng.standard_normal(shape) * _lengths(rng, shape)
    return x if twin is None else x + 0.7 * twin


def _alike(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    """Partners, and views of one sample, near to each other."""
    if twin is not None:
        return _lengths(rng, shape) * (twin + 0.1 * rng.standard_normal(shape))
    # With views in one array, those of a sample lie around one point.
    x = rng.standard_normal((shape[0], 1, shape[-1]) if len(shape) == 3 else shape)
    return np.broadcast_to(x, shape) + 0.1 * rng.standard_normal(shape)


def _antipodal(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    """Partners that point exactly the same way or exactly the opposite one, in turns."""
    if twin is None:
        return rng.standard_normal(shape) * _lengths(rng, shape)
    return twin * np.where(np.arange(shape[0]) % 2, -1.5, 0.5).reshape(-1, *[1] * (len(shape) - 1))


def _separated(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    """Partners that almost agree, and samples that are almost orthogonal: the loss of a trained model is tiny."""
    tilt = 0.05 * rng.standard_normal(shape)
    if twin is not None:
        return _lengths(rng, shape) * (twin + tilt)
    axes = np.eye(shape[-1])[np.arange(shape[0]) % shape[-1]].reshape(-1, *[1] * (len(shape) - 2), shape[-1])
    return _lengths(rng, shape) * (axes + tilt)


def _zero(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    x = _designed(rng, shape, twin)
    x[0] = 0
    return x


def _scattered(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    """Lengths between 1/16 and 8."""
    x = _designed(rng, shape, twin)
    return x * 2.0 ** rng.integers(-4, 4, (*shape[:-1], 1))


def short(x: Array) -> Array:
    """The rows with lengths between 0.3 and 0.95, for losses whose inner products must be cosines.

    Parameters
    ----------
    x : array, (..., D)
        A row of zeros stays as it is.
    """
    peak = np.linalg.norm(x, axis=-1, keepdims=True)
    lengths = 0.3 + 0.65 * (np.arange(x.shape[0]) % 4 / 3).reshape(-1, *[1] * (x.ndim - 1))
    return x * lengths / np.where(peak > 0, peak, 1.0)


def turn_vectors(loss: Loss, geometry: str, inputs: dict[str, Any]) -> None:
    """Do to logits that are given what a geometry does to rows.

    Parameters
    ----------
    loss : Loss
    geometry : str
        A key of `PLACES`.
    inputs : dict
        Arguments by name; the vectors are changed in place.
    """
    arrays = [p for p in loss.parameters if isinstance(p, spec.Array)]
    names = [p.name for p in arrays if p.like == "vector" and not p.constant]
    if not names or any(p.like == "embedding" for p in arrays):
        return
    x, target = inputs[names[0]], inputs.get("target")
    # Without a target, as for scores of pairs, every entry is moved.
    own = (np.arange(len(x)), target) if target is not None else slice(None)
    match geometry:
        case "aligned" | "opposed":
            x[own] += 5.0 if geometry == "aligned" else -5.0
        case "collapsed":
            x[:] = 1.5
        case "duplicate":
            x[-1] = x[0]
        case "zero":
            x[0] = 0.0
        case "lengths":
            x *= 2.0 ** (np.arange(len(x)) % 6 - 3).reshape(-1, *[1] * (x.ndim - 1))


PLACES: dict[str, Geometry] = {
    "designed": (_designed, {}, {}),
    "seven": (_designed, SEVEN, {}),
    "classes": (_designed, CLASSES, {}),
    "aligned": (_alike, {}, {"centered": True}),
    "opposed": (GEOMETRIES["opposed"][0], {}, {}),
    "antipodal": (_antipodal, {}, {"centered": True}),
    "collapsed": (GEOMETRIES["collapsed"][0], {}, {}),
    "duplicate": (GEOMETRIES["duplicate"][0], {}, {}),
    "lonely": (_designed, {}, {"without_positive": True}),
    "single": (_designed, {"N": 1}, {}),
    "separated": (_separated, {"N": 4, "D": 5, "E": 5}, {}),
    "one-class": (_designed, {"C": 1}, {}),
    "zero": (_zero, {}, {}),
    "random": (GEOMETRIES["random"][0], {}, {}),
    "wide": (_designed, {"D": 8, "E": 8}, {}),
    "many": (_designed, {"N": 12}, {}),
    "lengths": (_scattered, {}, {}),
    "tall": (_designed, {"N": 6, "D": 2, "E": 2, "C": 2, "M": 9, "K": 3, "V": 2}, {}),
}
"""Rows, sizes that differ from those of the suite, and arguments."""

# The case that discriminates most stands first: the self-test and the invariances take the first that serves.
QUICK = (
    ("designed", (0.3, 0.07, 0.001, 0.01, 5.0)), ("seven", (0.5,)), ("classes", (0.1,)), ("aligned", (0.07,)),
    ("opposed", (0.3, 0.001)), ("antipodal", (0.3,)), ("separated", (0.04,)), ("collapsed", (0.3,)),
    ("duplicate", (0.3,)), ("lonely", (0.3,)), ("one-class", (0.3,)), ("single", (0.3,)), ("zero", (0.3,)),
)  # fmt: skip
STANDARD = (
    ("designed", (0.3, 0.07, 0.001, 0.01, 5.0, 1.0, 0.005)), ("seven", (0.5, 0.07)), ("classes", (0.1, 0.3, 0.01)),
    ("aligned", (0.07, 0.3, 0.01, 0.001)), ("opposed", (0.3, 0.07, 0.001)), ("antipodal", (0.3, 0.07)),
    ("separated", (0.07, 0.04)), ("collapsed", (0.3, 0.001)), ("duplicate", (0.3, 0.07)), ("lonely", (0.3, 0.07)),
    ("one-class", (0.3,)), ("single", (0.3, 0.07)), ("zero", (0.3,)), ("random", (0.3, 0.07, 0.001)),
    ("wide", (0.3, 0.07)), ("many", (0.2, 0.05)), ("lengths", (0.3, 0.07)), ("tall", (0.4, 0.03)),
)  # fmt: skip
EVERY = (0.3, 0.07, 0.001, 0.01, 5.0, 1.0)
SUITES: dict[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "quick": QUICK,
    "standard": STANDARD,
    "full": tuple((name, EVERY) for name in PLACES),
}
"""Geometries, and the temperatures of each; a scale is the inverse of the temperature."""


def sites(suite: str) -> Iterator[tuple[str, str, float, dict[str, int]]]:
    """Name, geometry, temperature and sizes of all probes of a suite, in order.

    Parameters
    ----------
    suite : {"quick", "standard", "full"}

    Yields
    ------
    (str, str, float, dict)
        A large batch has another name than the geometry that it shares.
    """
    for geometry, temperatures in SUITES[suite]:
        for temperature in temperatures:
            yield geometry, geometry, temperature, SMALL
    if suite == "full":
        for geometry in ("designed", "aligned", "opposed", "collapsed", "duplicate", "lonely", "lengths"):
            for temperature in EVERY:
                yield f"large-{geometry}", geometry, temperature, LARGE
