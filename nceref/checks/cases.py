"""Generates inputs to check a loss on: named geometries, sizes and temperatures, from the declared parameters.

Every entry is exactly representable in float32, so that one exact reference judges float64 and float32 programs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nceref.engine.parameters import EQUAL_WEIGHTS, INVERSE_TEMPERATURES, at_temperature, judged_temperature
from nceref.errors import InputError
from nceref.spec import Array, Labels, Loss, Scalar

TEMPERATURES = (10.0, 1.0, 0.3, 0.07, 0.005, 0.001)
SIZES = {"N": 4, "D": 3, "E": 3, "C": 3, "M": 5, "K": 6, "V": 2}


@dataclass(frozen=True, eq=False)
class Case:
    """One set of arguments of a loss; compared by identity.

    Attributes
    ----------
    name : str
        Geometry, number of the variant, and temperature, such as ``random-0-0.3``.
    geometry : str
    temperature : float
        1 for a loss without a temperature or a scale.
    inputs : mapping
        Arguments by name; float arrays are float64.
    """

    name: str
    geometry: str
    temperature: float
    inputs: Mapping[str, Any]

    def cast(self, dtype: Any) -> dict[str, Any]:
        """The arguments with float arrays in `dtype`."""
        return {
            name: x.astype(dtype) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
            for name, x in self.inputs.items()
        }


RowGenerator = Callable[[np.random.Generator, tuple[int, ...], Any], Any]


def _random(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    return rng.standard_normal(shape)


def _aligned(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    return _random(rng, shape, twin) if twin is None else twin + 0.1 * rng.standard_normal(shape)


def _opposed(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    return _random(rng, shape, twin) if twin is None else -twin + 0.1 * rng.standard_normal(shape)


def _mixed(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    """The first row aligned, all others opposed."""
    return (
        _random(rng, shape, twin)
        if twin is None
        else np.concatenate([twin[:1], -twin[1:]]) + 0.1 * rng.standard_normal(shape)
    )


def _antipodal(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    """Every second sample opposite to the first, views aligned: longer than 1, some have products below -1 alone."""
    if twin is not None:
        return _aligned(rng, shape, twin)
    signs = (-1.0) ** np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1))
    return signs * (1.5 + rng.random(shape[-1])) + 0.1 * rng.standard_normal(shape)


def _collapsed(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    return np.broadcast_to(np.arange(1.0, shape[-1] + 1), shape).copy()


def _duplicate(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    x = _random(rng, shape, twin)
    x[-1] = x[0]
    return x


def _short(rng: np.random.Generator, shape: tuple[int, ...], twin: Any) -> Any:
    """RowGenerator shorter than 1, so that an inner product is still the cosine of something."""
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True) * rng.uniform(0.25, 0.95, (*shape[:-1], 1))


Geometry = tuple[RowGenerator, dict[str, int], dict[str, Any]]
"""RowGenerator, sizes that differ from the usual ones, and arguments.

"without_positive" gives one sample a label of its own; "centered" puts class centers where the rows of the class are.
"""

GEOMETRIES: dict[str, Geometry] = {
    "random": (_random, {}, {}),
    "aligned": (_aligned, {}, {}),
    "opposed": (_opposed, {}, {}),
    "collapsed": (_collapsed, {}, {}),
    "duplicate": (_duplicate, {}, {}),
    "unnormalized": (_short, {}, {"normalize": "none"}),
    "lonely": (_random, {}, {"without_positive": True}),
    "single": (_random, {"N": 1}, {}),
    "odd": (_random, {"N": 5, "D": 2, "E": 2, "C": 4, "M": 3, "K": 7, "V": 3}, {}),
    "wide": (_random, {"D": 8, "E": 8}, {}),
    "many": (_random, {"N": 12}, {}),
    "mixed": (_mixed, {"N": 12}, {}),
    "pair": (_antipodal, {"N": 2, "V": 3}, {}),
}
"""What every loss of the package is checked on, by name."""


def cases(
    loss: Loss,
    geometries: tuple[str, ...] = tuple(GEOMETRIES),
    temperatures: tuple[float, ...] = TEMPERATURES,
    variants: int | None = None,
    seed: int = 0,
    sizes: Mapping[str, int] = SIZES,
) -> Iterator[Case]:
    """All cases that make sense for a loss, in a fixed order.

    `loss`: what to make inputs for. `geometries` and `temperatures`: which ones; a loss without a temperature or a
    scale gets one case a geometry. `variants`: how many of the declared variants; default: all. `seed`: of the
    generator; every case has its own stream. `sizes`: size of every letter of a shape, where the geometry does not set
    it.
    """
    scalars = {p.name for p in loss.parameters if isinstance(p, Scalar)}
    hot = bool(scalars & INVERSE_TEMPERATURES.keys())
    applied = dict.fromkeys(judged_temperature(loss, t) for t in temperatures) if hot else (1.0,)
    for geometry in geometries:
        for number, variant in enumerate(loss.variants[:variants]):
            if not _sensible(loss, geometry, variant):
                continue
            for temperature in applied:
                # The temperature is no part of the stream: the rows are the same at each.
                rng = np.random.default_rng([seed, list(GEOMETRIES).index(geometry), number])
                inputs = arguments(loss, GEOMETRIES[geometry], variant, temperature, sizes, rng)
                # Where the value jumps, rounding decides what it is: nothing there is compared.
                if not loss.jumps_near(inputs, float(np.finfo(np.float32).eps)):
                    yield Case(f"{geometry}-{number}-{temperature:g}", geometry, temperature, inputs)


def _sensible(loss: Loss, geometry: str, variant: Mapping[str, Any]) -> bool:
    choices = {p.name for p in loss.parameters}
    if geometry == "unnormalized":
        return "normalize" in choices
    if geometry == "lonely":
        return variant.get("no_positive") in ("skip", "zero")
    if geometry == "single":
        return loss.single
    return True


def arguments(
    loss: Loss,
    geometry: Geometry,
    variant: Mapping[str, Any],
    temperature: float,
    sizes: Mapping[str, int],
    rng: np.random.Generator,
    dtype: Any = np.float32,
) -> dict[str, Any]:
    """Generated arguments of a loss, whose numbers are exact in `dtype`.

    `loss`: what to make them for. `geometry`: RowGenerator, sizes and arguments of its own. `variant`: arguments that
    must be given: a value, ``...`` for a generated array, "views", or "equal weights" for a mask. `temperature`: of the
    similarities; a scale gets its inverse. `sizes`: size of every letter of a shape, where the geometry does not set
    it. `rng`: where numbers come from. `dtype`: arrays are rounded to it, and are float64 arrays all the same. Result:
    arguments by name; what the loss has a default for and the variant does not name is left out.
    """
    rows, resized, extra = geometry
    sizes = {**sizes, **resized}
    _check_letters(loss, sizes)
    scales = {name: at_temperature(name, temperature) for name in INVERSE_TEMPERATURES}
    given = [p for p in loss.parameters if getattr(p, "required", True) or variant.get(p.name) is not None]
    # Labels before arrays: the rows of a class share a twin.
    labels = {p.name: _labels(p, sizes, "without_positive" in extra, rng) for p in given if isinstance(p, Labels)}
    centered = rows in (_aligned, _opposed, _mixed) or "centered" in extra
    twins = _Twins(sizes, {p.shape[0]: labels[p.name] for p in given if isinstance(p, Labels)}, centered, rng)
    out: dict[str, Any] = {}
    for p in given:
        requested = variant.get(p.name)
        if isinstance(p, Array):
            out[p.name] = _array(p, requested, sizes, rows, twins, rng).astype(dtype).astype(np.float64)
        elif isinstance(p, Labels):
            out[p.name] = labels[p.name]
        elif p.name in scales:
            out[p.name] = float(dtype(scales[p.name]))
        elif isinstance(p, Scalar) and requested is None and p.default is ...:
            out[p.name] = float(dtype(np.mean(p.typical)))
        elif requested is not None or p.name in extra:
            out[p.name] = extra.get(p.name, requested)
    return out


def _check_letters(loss: Loss, sizes: Mapping[str, int]) -> None:
    for p in loss.parameters:
        letters = {*p.shape, *(getattr(p, "alternative", None) or ())} if isinstance(p, Array | Labels) else set()
        if unknown := sorted(letters - {*sizes}):
            msg = f"`{p.name}` of {loss.name} has the size {unknown[0]!r}, but inputs have {', '.join(sizes)}"
            raise InputError(msg)


class _Twins:
    """The rows that a row is near or opposite to: its class where there are labels, else row by row the first input."""

    def __init__(
        self, sizes: Mapping[str, int], labels: Mapping[str, Any], centered: bool, rng: np.random.Generator
    ) -> None:
        self.labels, self.centered = labels, centered
        self.first: Any = None
        self.classes = rng.standard_normal((sizes["C"] + 1, sizes["D"]))

    def of(self, p: Array, shape: tuple[int, ...]) -> Any:
        """The twin of an embedding input, or None for the first one."""
        letter = p.shape[0]
        if self.labels and len(shape) == 2:
            return self.classes[self.labels[letter]] if letter in self.labels else None
        return self.first if self.first is not None and self.first.shape == shape else None


def _array(
    p: Array, requested: Any, sizes: Mapping[str, int], rows: RowGenerator, twins: _Twins, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    letters = p.alternative if requested == "views" and p.alternative else p.shape
    shape = tuple(sizes[letter] for letter in letters)
    kinds: dict[str, Callable[[], Any]] = {
        **dict.fromkeys(("embedding", "guide"), lambda: rows(rng, shape, twins.of(p, shape))),
        "center": lambda: twins.classes[: sizes["C"]] if twins.centered else rows(rng, shape, None),
        "vector": lambda: 2 * rng.standard_normal(shape),
        "counts": lambda: rng.integers(1, 100, shape).astype(np.float64),
        "prior": lambda: np.float32(1 / shape[0]) * np.ones(shape),
        "weights": lambda: rng.integers(1, 4, shape).astype(np.float64),
        # 0, 1/2 or 1, exact in every format, and not symmetric: a table need not be.
        "mask": lambda: np.fmax(rng.integers(0, 3, shape) / 2, _cycle(shape[0])),
    }
    x = kinds[p.like]()
    if requested == EQUAL_WEIGHTS[-1]:
        x = np.ceil(x)
    if p.embedding and twins.first is None:
        twins.first = x
    return np.asarray(x)


def _cycle(n: int) -> np.ndarray[Any, Any]:
    """Each sample has the next one as a positive, so that none is without."""
    return np.roll(np.eye(n), 1, axis=1)


def _labels(
    p: Labels, sizes: Mapping[str, int], without_positive: bool, rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    n = sizes[p.shape[0]]
    if p.name == "target":
        return rng.integers(0, sizes["C"], n)
    # At least two samples of a class, so that each has a positive.
    classes = max(1, min(sizes["C"], n // 2))
    labels = rng.permutation(np.arange(n) % classes)
    if without_positive:
        # The last class, where labels index centers: `classes` is smaller.
        labels[0] = sizes["C"] - (p.classes is not None)
    return labels
