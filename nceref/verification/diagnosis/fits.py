"""Explanations that need no convention search: multiples, offsets, another temperature, another way to add up rows.

Each is a `Hypothesis`, made from the reference program alone, so that it works for every loss. A number that nobody
declared (a factor, a fixed temperature) is read off one case and then has to hold on all others.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from nceref.cases import HEATS
from nceref.errors import InputError
from nceref.losses import LossFunction
from nceref.tolerance import Bounds
from nceref.verification.diagnosis import bench
from nceref.verification.diagnosis.features import heat, samples
from nceref.verification.diagnosis.gaps import VALUE, Gap, Hypothesis, gaps
from nceref.verification.inputs.corpus import evaluate
from nceref.verification.records import Observation, Probe

Number = Callable[[Probe], float | None]


def _constant(x: float) -> Number:
    return lambda probe: x


def _temperature(probe: Probe) -> float | None:
    """The temperature, or the inverse of the scale."""
    found = heat(probe)
    return None if found is None else found[1] ** -HEATS[found[0]]


def _of_case(f: Callable[[Any, int], float], power: int) -> Number:
    """A factor by temperature and samples as a number of a case; None where it needs a temperature and has none."""

    def number(probe: Probe) -> float | None:
        t = _temperature(probe)
        return None if power and t is None else float(f(t, samples(probe)))

    return number


@dataclass(frozen=True)
class Factor:
    """A number that multiplies a loss: proportional to the temperature to the `power`."""

    id: str
    number: Number
    power: int = 0

    def slope(self, probe: Probe) -> tuple[str, float] | None:
        """The scalar that it depends on, and its derivative by it."""
        found, factor = heat(probe), self.number(probe)
        if not self.power or found is None or factor is None:
            return None
        return found[0], -HEATS[found[0]] * self.power * factor / found[1]


_POWERS = {
    "sign-flipped": 0, "outer-factor-2": 0, "outer-factor-half": 0, "log-base-2": 0, "log-base-10": 0,
    "outer-factor-temperature": 1, "outer-factor-2-temperature": 1, "outer-factor-inverse-temperature": -1,
    "outer-factor-temperature-over-base": 1, "outer-factor-n": 0,
}  # fmt: skip
"""Of the temperature in each factor of the search, in the order in which they are tried."""
FACTORS = (
    *(Factor(id, _of_case(bench.FACTORS[id], power), power) for id, power in _POWERS.items()),
    Factor("divided-by-n-twice", lambda probe: 1 / samples(probe)),
)
"""What multiplies a loss, by convention."""

OFFSETS: tuple[tuple[str, Number], ...] = (
    ("log N", lambda probe: math.log(samples(probe))),
    ("log 2N", lambda probe: math.log(2 * samples(probe))),
    ("log(N - 1)", lambda probe: math.log(samples(probe) - 1) if samples(probe) > 1 else None),
    ("log(2N - 1)", lambda probe: math.log(2 * samples(probe) - 1)),
    ("log(2N - 2)", lambda probe: math.log(2 * samples(probe) - 2) if samples(probe) > 1 else None),
)
"""What is added to a loss in place of nothing."""


def scaled(factor: Factor, b: Number = lambda probe: 0.0, detail: str = "", id: str = "") -> Hypothesis:
    """The reference times a factor plus `b`, with the product rule where the factor holds the temperature."""

    def expected(probe: Probe) -> Any:
        a, offset, slope = factor.number(probe), b(probe), factor.slope(probe)
        if a is None or offset is None:
            return None
        grads = {name: a * np.asarray(g) for name, g in probe.grads.items()}
        if slope is not None and slope[0] in grads:
            grads[slope[0]] = grads[slope[0]] + slope[1] * float(np.sum(probe.value))
        return a * probe.value + offset, grads

    return Hypothesis(id or factor.id, expected, detail)


def known_multiples() -> Iterator[Hypothesis]:
    """Factors and offsets that have a name."""
    yield from (scaled(factor) for factor in FACTORS)
    one = Factor("offset-log-n", _constant(1.0))
    for sign, word in ((1.0, "+"), (-1.0, "-")):
        for words, b in OFFSETS:
            yield scaled(one, _times(sign, b), f"{word} {words}")


def fitted_multiples(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    """Constants that are read off the best-conditioned cases: an offset, a factor, then both at once."""
    sharp = _sharpest(observations)
    if not sharp:
        return
    best = sharp[0]
    for shift, words in _simple(best.got - best.want):
        yield scaled(Factor("offset-constant", _constant(1.0)), _constant(shift), words)
    for ratio, words in _simple(best.got / best.want) if best.got != 0 else ():
        yield scaled(Factor("outer-factor-constant", _constant(ratio)), detail=words)
    other = next((gap for gap in sharp[1:] if abs(gap.want - best.want) > 0.1 * abs(best.want)), None)
    if other is None:
        return
    slope, times = _simple((other.got - best.got) / (other.want - best.want))[0]
    rest, plus = _simple(best.got - slope * best.want)[0]
    if slope != 1 and abs(rest) > 1e-9 * abs(best.got):
        both = "outer-factor-constant+offset-constant"
        yield scaled(Factor(both, _constant(slope)), _constant(rest), f"{times} times the reference plus {plus}")


def _times(sign: float, b: Number) -> Number:
    def number(probe: Probe) -> float | None:
        x = b(probe)
        return None if x is None else sign * x

    return number


def _sharpest(observations: Sequence[Observation]) -> list[Gap]:
    """Finite scalar values that the reference knows best, the most precise first."""
    found = [gaps(o)[VALUE] for o in observations]
    fit = [g for g in found if g.finite and g.got.ndim == 0 and g.want != 0 and not g.blind]
    return sorted(fit, key=lambda g: float(g.bound / abs(g.want)))


CONSTANTS = {"ln 2": math.log(2), "log2(e)": 1 / math.log(2), "ln 10": math.log(10), "pi": math.pi, "e": math.e}
"""Numbers that are known by a name."""


def recognized(x: Any, within: float = 1e-5) -> tuple[float, str]:
    """A number that was measured, as the simple number that it is close to, and how that is written.

    Fractions with a denominator of at most 64, decimals of at most three digits and a few constants are simple.
    """
    x = float(x)
    if not math.isfinite(x) or x == 0:
        return x, f"{x:g}"
    near = Fraction(x).limit_denominator(64)
    options = {f"{near}": float(near), f"{x:.3g}": float(f"{x:.3g}"), f"1/{1 / x:.3g}": 1 / float(f"{1 / x:.3g}")}
    for words, value in {**options, **CONSTANTS}.items():
        if abs(value - x) <= within * abs(x):
            return value, words
    return x, f"{x:.6g}"


def _simple(x: Any) -> list[tuple[float, str]]:
    """The simple number, then the measured one where it is another: a constant may be rounded to float32."""
    value, words = recognized(x)
    return [(value, words)] if abs(value - float(x)) <= 1e-13 * abs(value) else [(value, words), (float(x), words)]


SCALINGS: Mapping[int, tuple[tuple[str, Callable[[float], float], Callable[[float], float]], ...]] = {
    -1: (
        ("temperature-missing", lambda t: 1.0, lambda t: 0.0),
        ("temperature-multiplied", lambda t: 1 / t, lambda t: -1 / t**2),
        ("temperature-exponentiated", lambda t: math.exp(-t), lambda t: -math.exp(-t)),
        ("temperature-squared", lambda t: t * t, lambda t: 2 * t),
        ("temperature-square-root", math.sqrt, lambda t: 0.5 / math.sqrt(t)),
    ),
    1: (
        ("scale-missing", lambda s: 1.0, lambda s: 0.0),
        ("scale-divides", lambda s: 1 / s, lambda s: -1 / s**2),
        ("scale-exponentiated", math.exp, math.exp),
        ("scale-without-exponential", math.log, lambda s: 1 / s),
    ),
}
"""By whether the scalar divides or multiplies: convention, what takes the place of the scalar, its derivative."""


def known_temperatures(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    """Functions of the temperature or scale that have a name."""
    found = heat(observations[0].probe) if observations else None
    if found is not None:
        yield from (rescaled(*row) for row in SCALINGS[HEATS[found[0]]])


def fitted_temperatures(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    """A fixed value, a fixed multiple and a ceiling, read off the value of one case."""
    # Two fits at most: a fit is some hundred evaluations, and a wrong one shows on the next case.
    for observation in _tellings(observations)[:2]:
        found = heat(observation.probe)
        for root in effective(observation):
            assert found is not None
            for value, words in _simple(root):
                yield rescaled("temperature-ignored", _fixed(value), _fixed(0.0), words)
                if HEATS[found[0]] > 0:
                    yield rescaled("scale-clamped", _ceiling(value), _below(value), f"at {words}")
            for factor, words in _simple(root / found[1]):
                yield rescaled("temperature-off-by-a-factor", _multiple(factor), _fixed(factor), f"{words} times it")


def _fixed(x: float) -> Callable[[float], float]:
    return lambda given: x


def _multiple(x: float) -> Callable[[float], float]:
    return lambda given: x * given


def _ceiling(x: float) -> Callable[[float], float]:
    return lambda given: min(x, given)


def _below(x: float) -> Callable[[float], float]:
    return lambda given: 1.0 if given < x else 0.0


def rescaled(id: str, f: Callable[[float], float], slope: Callable[[float], float], detail: str = "") -> Hypothesis:
    """The reference at the temperature or scale f(given), with the chain rule for its gradient."""

    def expected(probe: Probe) -> Any:
        found = heat(probe)
        if found is None:
            return None
        name, given = found
        try:
            instead, by = f(given), slope(given)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        moved = probe
        if instead != given:
            moved = evaluate(probe.loss, {**probe.inputs, name: instead}, probe.dtype, probe.reduction, id=probe.id)
        if moved.skip or moved.bounds is None:
            return None
        grads = {key: moved.grads[key] for key in probe.grads if key in moved.grads}
        room = dict(moved.bounds.grads)
        if name in grads:
            grads[name], room[name] = by * grads[name], max(abs(by), 1.0) * room[name]
        return moved.value, grads, Bounds(moved.bounds.value, room)

    return Hypothesis(id, expected, detail)


def _tellings(observations: Sequence[Observation]) -> list[Observation]:
    """Cases with a wrong scalar value that is known precisely, the most precise first."""
    fit = []
    for observation in observations:
        gap = gaps(observation)[VALUE]
        if gap.finite and gap.got.ndim == 0 and not gap.right and not gap.blind:
            fit.append((float(gap.bound / abs(gap.want)), observation))
    return [observation for _, observation in sorted(fit, key=lambda pair: pair[0])]


def effective(observation: Observation, decades: float = 3.0) -> list[float]:
    """The temperatures (or scales) at which the reference would give the target's value: all that a scan finds.

    Parameters
    ----------
    observation : Observation
        A case with a finite scalar value.
    decades : float
        How far around the given one to look.
    """
    probe, got = observation.probe, float(observation.outcome.value)
    found = heat(probe)
    if found is None:
        return []
    name, given = found
    function = LossFunction(probe.loss)

    def off(exponent: float) -> float:
        with np.errstate(all="ignore"):
            value = function(**{**probe.inputs, name: given * 10**exponent}, reduction=probe.reduction)
        return float(value) - got

    try:
        grid = np.linspace(-decades, decades, 61)
        signs = [off(x) for x in grid]
        between = [(low, high) for low, high, a, b in zip(grid, grid[1:], signs, signs[1:], strict=False) if a * b <= 0]
        return [given * 10 ** _bisected(off, low, high) for low, high in between]
    except (InputError, OverflowError):
        return []


def _bisected(f: Callable[[float], float], low: float, high: float) -> float:
    at_low = f(low)
    for _ in range(48):
        middle = (low + high) / 2
        here = f(middle)
        low, high, at_low = (middle, high, here) if here * at_low > 0 else (low, middle, at_low)
    return (low + high) / 2
