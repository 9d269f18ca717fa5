"""Outputs of a case, enclosed by two engines, with the bound of each format."""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from nceref.cases.corpus.corpus import evaluate
from nceref.cases.records import Probe
from nceref.cases.rounding import rounded
from nceref.checks.certify import DIGITS, forward_agrees
from nceref.engine.arguments import bind
from nceref.exact.certified import SPARE_BITS, Enclosure, numbers
from nceref.exact.decimal_intervals import decimal_enclosures
from nceref.spec import Loss
from nceref.tolerance.implementation import FORMATS
from nceref.verification.vectors.records import (
    DIGITS_ALLOWED,
    VALUE,
    VectorOutput,
)

NO_ROWS: Mapping[str, Sequence[int]] = MappingProxyType({})


def enclosed_by_decimals(loss: Loss, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Enclosures of the same outputs by the decimal engine.

    Raises `ArithmeticError` where they contradict forward mode.
    """
    inputs = bind(loss, (), arguments)
    out = decimal_enclosures(loss, inputs, DIGITS)
    if not forward_agrees(loss, inputs, out):
        msg = f"{loss.name}: reverse and forward mode do not overlap in decimals"
        raise ArithmeticError(msg)
    return {name: np.asarray(x, dtype=object) for name, x in out.items() if name != "rows"}


def vector_outputs(
    loss: Loss,
    arguments: Mapping[str, Any],
    engines: Mapping[str, Mapping[str, Any]],
    rows: Mapping[str, Sequence[int]] = NO_ROWS,
) -> dict[str, VectorOutput]:
    """The outputs of a case from the enclosures of each engine, the first of which is the finest.

    `engines` has for each, by name of the output, an object array of `Enclosure`; `rows` says which rows these are of
    outputs that have those of some alone. Raises `ArithmeticError` where two engines contradict each other.
    """
    first = next(iter(engines.values()))
    for name, theirs in engines.items():
        for (output, one), (_, other) in zip(numbers(first), numbers(theirs), strict=True):
            if not one.overlaps(other):
                msg = f"{loss.name}, {output}: {name} has {other}, which does not overlap {one}"
                raise ArithmeticError(msg)
    probes = bounded(loss, arguments)
    return {
        name: proven_output(name, {engine: out[name] for engine, out in engines.items()}, probes, rows.get(name))
        for name in first
    }


def bounded(loss: Loss, arguments: Mapping[str, Any]) -> dict[str, Probe]:
    """Probes with bounds against the exact loss, by format; without formats that cannot hold the inputs or the loss."""
    given = [x for x in arguments.values() if not isinstance(x, str)]
    formats = [dtype for dtype in FORMATS if all(np.array_equal(rounded(x, dtype), x) for x in given)]
    probes = {dtype: evaluate(loss, arguments, dtype, against="number") for dtype in formats}
    return {dtype: probe for dtype, probe in probes.items() if probe.grads and not probe.skip}


def proven_output(
    name: str, engines: Mapping[str, Any], probes: Mapping[str, Probe], rows: Sequence[int] | None = None
) -> VectorOutput:
    """One output, or listed rows of it, from its enclosures by each engine and the bounds of each format."""
    enclosures = next(iter(engines.values()))
    nearest = np.vectorize(float, otypes=[np.float64])
    held = nearest(enclosures)
    off = [abs(one.middle - Fraction(x)) + one.radius for one, x in zip(enclosures.flat, held.flat, strict=True)]
    # Rows of which a record has some are the first index of a bound as well.
    rooms = {dtype: room for dtype, p in probes.items() if (room := bound_of(p, name)) is not None}
    radius = upward(max(off))
    return VectorOutput(
        held,
        held.shape,
        radius,
        {engine: upward(max(one.radius for one in out.flat)) for engine, out in engines.items()},
        max(off) == 0,
        tuple(dtype for dtype in FORMATS if all(is_unique(one, dtype) for one in enclosures.flat)),
        {dtype: allowed_of(room if rows is None else room[list(rows)], radius) for dtype, room in rooms.items()},
        {dtype: _terms(probes[dtype], radius) for dtype in rooms} if name == VALUE else {},
    )


def bound_of(probe: Probe, name: str) -> Any:
    """The bound of an output, an array in its shape; None where the format has none of it."""
    assert probe.bounds is not None
    if name == VALUE:
        return np.asarray(probe.bounds.value)
    input = name.removeprefix("grad.")
    return np.asarray(probe.bounds.grads[input]) if input in probe.grads else None


def allowed_of(room: Any, radius: float) -> Any:
    """The stored number of each entry: its bound and the radius of the number, rounded upward."""
    return np.vectorize(lambda x: upward(Fraction(x) + Fraction(radius), DIGITS_ALLOWED), otypes=[np.float64])(room)


def _terms(probe: Probe, radius: float) -> dict[str, float]:
    assert probe.bounds is not None
    stages = {stage: upward(float(np.max(size))) for stage, size in probe.bounds.terms.items()}
    return {**stages, "proven number": radius}


def upward(x: Fraction | float, digits: int = 3) -> float:
    """A number of few digits that is no smaller, with three of them by less than 1 %; 0 for 0.

    >>> upward(0.00123401), upward(Fraction(1, 3)), upward(0.5)
    (0.00124, 0.334, 0.5)
    """
    exact = Fraction(x)
    context = Context(prec=digits, rounding=ROUND_CEILING)
    near = float(context.divide(Decimal(exact.numerator), Decimal(exact.denominator)))
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)


def is_unique(one: Enclosure, dtype: str) -> bool:
    """Whether all of an enclosure, some bits wider, has one nearest number of a format."""
    low, high = (nearest_number(end, dtype) for end in one.ends(2**SPARE_BITS))
    return low == high


def nearest_number(x: Fraction, dtype: str) -> Fraction:
    """The number of a format nearest to a fraction, in one rounding, without a largest number."""
    storage = FORMATS[dtype].storage
    if x == 0:
        return x
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    exponent -= abs(x) < Fraction(2) ** exponent
    unit = Fraction(2) * Fraction(storage.u) * Fraction(2) ** max(exponent, round(math.log2(storage.tiny)))
    return round(x / unit) * unit
