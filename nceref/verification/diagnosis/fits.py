"""Explanations that need no convention search: multiples, offsets, another way to add up rows.

Each is a `Hypothesis`, made from the reference program alone, so that it works for every loss. A number that nobody
declared is read off one case and then has to hold on all others.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.verification.diagnosis import case
from nceref.verification.diagnosis.features import samples, temperature_scalar
from nceref.verification.diagnosis.gaps import VALUE, Gap, Hypothesis, gaps
from nceref.verification.records import Observation, Probe

Number = Callable[[Probe], float | None]


def _constant(x: float) -> Number:
    return lambda probe: x


def _temperature(probe: Probe) -> float | None:
    """The temperature, or the inverse of the scale."""
    found = temperature_scalar(probe)
    return None if found is None else found[1] ** -INVERSE_TEMPERATURES[found[0]]


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
        found, factor = temperature_scalar(probe), self.number(probe)
        if not self.power or found is None or factor is None:
            return None
        return found[0], -INVERSE_TEMPERATURES[found[0]] * self.power * factor / found[1]


_POWERS = {
    "sign-flipped": 0, "outer-factor-2": 0, "outer-factor-half": 0, "log-base-2": 0, "log-base-10": 0,
    "outer-factor-temperature": 1, "outer-factor-2-temperature": 1, "outer-factor-inverse-temperature": -1,
    "outer-factor-temperature-over-base": 1, "outer-factor-n": 0,
}  # fmt: skip
"""Of the temperature in each factor of the search, in the order in which they are tried."""
FACTORS = (
    *(Factor(id, _of_case(case.FACTORS[id], power), power) for id, power in _POWERS.items()),
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
    for shift, words in simple(best.got - best.want):
        yield scaled(Factor("offset-constant", _constant(1.0)), _constant(shift), words)
    for ratio, words in simple(best.got / best.want) if best.got != 0 else ():
        yield scaled(Factor("outer-factor-constant", _constant(ratio)), detail=words)
    other = next((gap for gap in sharp[1:] if abs(gap.want - best.want) > 0.1 * abs(best.want)), None)
    if other is None:
        return
    slope, times = simple((other.got - best.got) / (other.want - best.want))[0]
    rest, plus = simple(best.got - slope * best.want)[0]
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


def simple(x: Any) -> list[tuple[float, str]]:
    """The simple number, then the measured one where it is another: a constant may be rounded to float32."""
    value, words = recognized(x)
    rounded = [] if abs(value - float(x)) <= 1e-13 * abs(value) else [(float(x), f"{float(x):.9g}")]
    return [(value, words), *rounded]
