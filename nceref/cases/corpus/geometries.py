"""Geometries of the corpus: where its rows stand, and which temperatures they are judged at.

Rows are never of length 1, views are not mirror images of each other, and sizes differ: a batch that is too regular
gives many conventions the same number.
"""

import math
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
FOUR = {"N": 4, "D": 5, "E": 5}
CLASSES = {"N": 8, "D": 3, "E": 3, "C": 3}
"""Three classes of 3, 3 and 2 samples."""

BIASES = (-5.0, -10.0, 6.0, -7.5)
"""Biases of the losses that add one; probes take turns."""
SHARES = (None, 0.15, None, 0.8, 0.4)
"""Place, in its typical range, of a hyperparameter that nobody has set; None: at its default.

Probes take turns, and there are not as many places as temperatures: each temperature meets each place.
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
    """Rows of lengths between 1/16 and 8."""
    x = _designed(rng, shape, twin)
    return x * 2.0 ** rng.integers(-4, 4, (*shape[:-1], 1))


def _extreme(rng: Generator, shape: tuple[int, ...], twin: Array | None) -> Array:
    """Rows of lengths of about 1e-4 and 1e4, in turns of three: partners have both."""
    x = _designed(rng, shape, None)
    x = x if twin is None else x + 0.7 * twin / np.linalg.norm(twin, axis=-1, keepdims=True)
    turns = np.arange(math.prod(shape[:-1])).reshape(*shape[:-1], 1) + (twin is not None)
    return x * np.array([2.0**-13, 1.0, 2.0**13])[turns % 3]


def short(x: Array) -> Array:
    """The rows with lengths between 0.3 and 0.95, for losses whose inner products must be cosines; zeros stay zeros."""
    peak = np.linalg.norm(x, axis=-1, keepdims=True)
    lengths = 0.3 + 0.65 * (np.arange(x.shape[0]) % 4 / 3).reshape(-1, *[1] * (x.ndim - 1))
    return x * lengths / np.where(peak > 0, peak, 1.0)


def turn_vectors(loss: Loss, geometry: str, inputs: dict[str, Any]) -> None:
    """Do to given logits what a geometry, a key of `PLACES`, does to rows; the vectors in `inputs` change in place."""
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
    "opposed": (GEOMETRIES["opposed"][0], SEVEN, {}),
    "antipodal": (_antipodal, {}, {"centered": True}),
    "collapsed": (GEOMETRIES["collapsed"][0], CLASSES, {}),
    "duplicate": (GEOMETRIES["duplicate"][0], FOUR, {}),
    "lonely": (_designed, {}, {"without_positive": True}),
    "single": (_designed, {"N": 1}, {}),
    "separated": (_separated, FOUR, {}),
    "one-class": (_designed, {"C": 1}, {}),
    "zero": (_zero, {}, {}),
    "random": (GEOMETRIES["random"][0], {}, {}),
    "wide": (_designed, {"D": 8, "E": 8}, {}),
    "many": (_designed, {"N": 12}, {}),
    "lengths": (_scattered, {}, {}),
    "tall": (_designed, {"N": 6, "D": 2, "E": 2, "C": 2, "M": 9, "K": 3, "V": 2}, {}),
    # One beyond the sizes of tiles and chunks, and those sizes themselves: what is left over must count too.
    "n17": (_designed, {"N": 17, "D": 4, "E": 4, "M": 33, "K": 33}, {}),
    "n33": (_designed, {"N": 33, "D": 5, "E": 5, "M": 17, "K": 65}, {}),
    "n127": (_designed, {"N": 127, "D": 4, "E": 4, "C": 513, "M": 127, "K": 127}, {}),
    "n128": (_designed, {"N": 128, "D": 6, "E": 6, "C": 513, "M": 128, "K": 128}, {}),
    "n129": (_designed, {"N": 129, "D": 3, "E": 3, "C": 513, "M": 65, "K": 257}, {}),
    "n1025": (_designed, {"N": 1025, "D": 3, "E": 3, "C": 513, "M": 257, "K": 1025}, {}),
    "d65": (_designed, {"N": 6, "D": 65, "E": 65}, {}),
    "d513": (_designed, {"N": 7, "D": 513, "E": 513}, {}),
    "extreme": (_extreme, {}, {}),
}
"""Rows, sizes that differ from those of the suite, and arguments."""
LARGEST = "n1025"
"""The largest geometry; with two views in one matrix it has half the samples, so that its rows are no more."""

# The case that discriminates most stands first: the self-test and the invariances take the first that serves.
# No temperature and no size belongs to one geometry alone, so that what fails can be told by the cases that pass.
QUICK = (
    ("designed", (0.3, 0.07, 0.001, 0.01, 5.0, 0.0001)), ("seven", (0.5, 0.0001)), ("classes", (0.1, 5.0)),
    ("aligned", (0.07, 0.3)), ("opposed", (0.3, 0.001)), ("antipodal", (0.3, 0.07)), ("separated", (0.04, 0.3)),
    ("collapsed", (0.3, 0.01)), ("duplicate", (0.3, 0.07)), ("lonely", (0.3,)), ("one-class", (0.3,)),
    ("single", (0.3,)), ("zero", (0.3,)), ("extreme", (0.3,)), ("n17", (0.3, 0.04)), ("d65", (0.5,)), ("n129", (0.1,)),
)  # fmt: skip
STANDARD = (
    ("designed", (0.3, 0.07, 0.001, 0.01, 5.0, 1.0, 0.005, 0.0001)), ("seven", (0.5, 0.07, 0.0001)),
    ("classes", (0.1, 0.3, 0.01, 5.0)), ("aligned", (0.07, 0.3, 0.01, 0.001)), ("opposed", (0.3, 0.07, 0.001)),
    ("antipodal", (0.3, 0.07, 1.0)), ("separated", (0.07, 0.04, 0.3)), ("collapsed", (0.3, 0.001)),
    ("duplicate", (0.3, 0.07, 0.005)), ("lonely", (0.3, 0.07)), ("one-class", (0.3, 0.07)), ("single", (0.3, 0.07)),
    ("zero", (0.3,)), ("random", (0.3, 0.07, 0.001)), ("wide", (0.3, 0.07)), ("many", (0.1, 0.04)),
    ("lengths", (0.3, 0.07)), ("extreme", (0.3, 0.07)), ("tall", (0.5, 0.01)), ("n17", (0.3, 0.04)),
    ("d65", (0.5, 0.07)), ("n33", (0.3, 0.01)), ("n127", (0.07,)), ("n128", (0.3,)), ("n129", (0.1, 0.3)),
    ("d513", (0.3, 0.07)), ("n1025", (0.3,)),
)  # fmt: skip
EVERY = (0.3, 0.07, 0.001, 0.01, 5.0, 1.0, 0.0001)
FEW = {"n127": (0.3, 0.07), "n128": (0.3, 0.07), "n129": (0.3, 0.07), "n1025": (0.3, 0.07)}
"""Temperatures of the geometries that take long, in the full suite."""
SUITES: dict[str, tuple[tuple[str, tuple[float, ...]], ...]] = {
    "quick": QUICK,
    "standard": STANDARD,
    "full": tuple((name, FEW.get(name, EVERY)) for name in PLACES),
}
"""Geometries, and the temperatures of each; a scale is the inverse of the temperature."""


def specs(suite: str) -> Iterator[tuple[str, str, float, dict[str, int]]]:
    """Name, geometry, temperature and sizes of all probes of a suite, in order.

    A large batch has another name than the geometry that it shares.
    """
    for geometry, temperatures in SUITES[suite]:
        for temperature in temperatures:
            yield geometry, geometry, temperature, SMALL
    if suite == "full":
        for geometry in ("designed", "aligned", "opposed", "collapsed", "duplicate", "lonely", "lengths"):
            for temperature in EVERY:
                yield f"large-{geometry}", geometry, temperature, LARGE
