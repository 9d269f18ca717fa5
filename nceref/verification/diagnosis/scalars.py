"""Explanations that put another number in the place of a scalar: of the temperature, a scale, a margin, a bias."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.errors import InputError
from nceref.losses import LossFunction
from nceref.spec import Scalar
from nceref.tolerance import Bounds
from nceref.verification.corpus.corpus import evaluate
from nceref.verification.diagnosis.features import temperature_scalar
from nceref.verification.diagnosis.fits import simple
from nceref.verification.diagnosis.gaps import VALUE, Hypothesis, gaps
from nceref.verification.records import Observation, Probe

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
    found = temperature_scalar(observations[0].probe) if observations else None
    if found is not None:
        yield from (rescaled(*row) for row in SCALINGS[INVERSE_TEMPERATURES[found[0]]])


def fitted_temperatures(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    """A fixed value, a fixed multiple and a ceiling, read off the value of one case."""
    # Two fits at most: a fit is some hundred evaluations, and a wrong one shows on the next case.
    for observation in _tellings(observations)[:2]:
        found = temperature_scalar(observation.probe)
        for root in effective(observation):
            assert found is not None
            for value, words in simple(root):
                yield rescaled("temperature-ignored", _fixed(value), _fixed(0.0), words)
                if INVERSE_TEMPERATURES[found[0]] > 0:
                    yield rescaled("scale-clamped", _ceiling(value), _below(value), f"at {words}")
            for factor, words in simple(root / found[1]):
                yield rescaled("temperature-off-by-a-factor", _multiple(factor), _fixed(factor), f"{words} times it")


def ignored_scalars(observations: Sequence[Observation]) -> Iterator[Hypothesis]:
    """One value of a margin, a share, an exponent or a bias whatever is passed, read off the value of one case."""
    for observation in _tellings(observations)[:2]:
        probe = observation.probe
        for p in probe.loss.parameters:
            if (
                isinstance(p, Scalar)
                and p.name not in INVERSE_TEMPERATURES
                and isinstance(probe.inputs.get(p.name), float)
            ):
                for value in _candidates(p, observation):
                    yield replaced("scalar-ignored", p.name, _fixed(value), _fixed(0.0), f"{p.name} = {value:.9g}")


def _candidates(p: Scalar, observation: Observation) -> list[float]:
    """The default, the ends of the domain, and what would give the value of the case."""
    ends = [end for end, closed in ((p.low, p.low_closed), (p.high, p.high_closed)) if closed and math.isfinite(end)]
    wide = 10.0 * max(1.0, *map(abs, p.typical))
    low, high = max(p.low, -wide), min(p.high, wide)
    # Strictly inside, since an open end is no value, and denser near the ends.
    near = np.geomspace(1e-5, 2e-3, 30)
    shares = np.concatenate([near, (np.arange(200) + 0.5) / 200, 1 - near[::-1]])
    found = [value for root in roots(observation, p.name, low + (high - low) * shares) for value, _ in simple(root)]
    return list(dict.fromkeys([*([p.default] if isinstance(p.default, float) else []), *ends, *found]))


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
    return replaced(id, None, f, slope, detail)


def replaced(
    id: str, scalar: str | None, f: Callable[[float], float], slope: Callable[[float], float], detail: str = ""
) -> Hypothesis:
    """The reference at f(given) in the place of a scalar; None: of the temperature or scale."""

    def expected(probe: Probe) -> Any:
        found = temperature_scalar(probe) if scalar is None else (scalar, probe.inputs[scalar])
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
    found = temperature_scalar(observation.probe)
    if found is None:
        return []
    name, given = found
    return roots(observation, name, given * 10 ** np.linspace(-decades, decades, 61))


def roots(observation: Observation, name: str, grid: Any) -> list[float]:
    """The values of a scalar at which the reference would give the target's value, one in each gap of a grid.

    None where the value jumps over it, or does not change with the scalar: any number would do as well.
    """
    probe, got = observation.probe, float(observation.outcome.value)
    function, room = LossFunction(probe.loss), float(gaps(observation)[VALUE].bound)

    def off(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(**{**probe.inputs, name: float(x)}, reduction=probe.reduction)) - got

    try:
        signs = [off(x) for x in grid]
        if signs.count(0.0) > 2:
            return []
        between = [(low, high) for low, high, a, b in zip(grid, grid[1:], signs, signs[1:], strict=False) if a * b <= 0]
        found = (_bisected(off, float(low), float(high)) for low, high in between)
        return [root for root in found if abs(off(root)) <= 4 * room]
    except (InputError, OverflowError):
        return []


def _bisected(f: Callable[[float], float], low: float, high: float) -> float:
    at_low = f(low)
    for _ in range(48):
        middle = (low + high) / 2
        here = f(middle)
        low, high, at_low = (middle, high, here) if here * at_low > 0 else (low, middle, at_low)
    return (low + high) / 2
