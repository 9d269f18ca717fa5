"""Numbers that a target puts in the place of a scalar, solved for from its value on one case."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product, takewhile
from typing import Any

import numpy as np

from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.dense.batch import DenseRows
from nceref.diagnosis.dense.temperatures import temperature
from nceref.diagnosis.explanation import scaled_or_shifted
from nceref.diagnosis.options import Option
from nceref.diagnosis.roots import Solver
from nceref.diagnosis.simple_numbers import candidates
from nceref.engine.parameters import INVERSE_TEMPERATURES
from nceref.spec import Scalar

DECADES = 3.0
"""How far around the given temperature one is looked for."""
SOLVED_ON = 2
"""Cases that are solved: each is some hundred evaluations, and a wrong number shows on the next case."""


def solved(
    analyses: Sequence[CaseAnalysis], beside: tuple[Option, ...] = (), known: dict[Any, Any] | None = None
) -> Iterator[Option]:
    """Temperatures, multiples of them, ceilings and other scalars that would give the value of a case.

    `analyses`: all finite cases; those whose value is wrong and known precisely are solved. `beside`: conventions that
    the value has as well. `known`: rows of variants, which conventions beside them leave as they are. Each: candidates
    only: whether one fits the other cases is not looked at.
    """
    precise = _precise(analyses)
    yield from () if beside else _ranges(precise)
    for analysis in precise[: 1 if beside else SOLVED_ON]:
        roots = partial(_roots, analysis, beside, {} if known is None else known)
        yield from _temperatures(analysis, roots)
        # With others there are too many to look for the rare ones.
        yield from () if beside else _settings(analysis, roots)
        probe = analysis.probe
        for p in probe.loss.parameters:
            given = probe.inputs.get(p.name)
            if isinstance(p, Scalar) and p.name not in INVERSE_TEMPERATURES and isinstance(given, float):
                yield Option("scalar-in-float32", p.name)
                for number in _numbers(p, roots):
                    yield Option("scalar-ignored", (p.name, number))


def _precise(analyses: Sequence[CaseAnalysis]) -> list[CaseAnalysis]:
    """Cases with a wrong scalar value, the one first whose reference is known best."""
    fit = []
    for analysis in analyses:
        share = float(np.max(analysis.bound) / max(np.max(np.abs(analysis.reference)), 1e-300))
        # Where the bound is half of the value, a value of half the size would pass: nothing can be read off.
        if analysis.departs and np.ndim(analysis.probe.value) == 0 and share <= 0.5:
            fit.append((share, analysis))
    return [analysis for _, analysis in sorted(fit, key=lambda pair: pair[0])]


_RootFinder = Callable[[Callable[[float], Option], Any], list[tuple[float, float]]]
_GRID = 10 ** np.linspace(-DECADES, DECADES, 61)
"""Multiples of a temperature, ten a decade."""


def _temperatures(analysis: CaseAnalysis, roots: _RootFinder) -> Iterator[Option]:
    """One temperature whatever is passed, a multiple of what is passed, a ceiling of the scale."""
    if not analysis.has_temperature:
        return
    given = float(temperature(analysis.inputs, {}))
    grid = given * _GRID
    settings: dict[str, Callable[[float], float]] = {
        "temperature-ignored": lambda t: t,
        "temperature-off-by-a-factor": lambda t: t / given,
        "scale-clamped": lambda t: 1 / t,
        "temperature-clamped": lambda t: t,
    }
    known = [id for id in settings if id in analysis.form.conventions]
    for root, within in roots(lambda t: Option("temperature-ignored", t), grid) if known else ():
        for id in known:
            yield from (Option(id, number) for number in candidates(settings[id](root), within))


def _ranges(analyses: Sequence[CaseAnalysis]) -> Iterator[Option]:
    """Both ends of a range, from the case of the smallest scale and that of the largest, as CLIP's own has them."""
    scaled = [a for a in analyses if a.has_temperature and "scale-clamped" in a.form.conventions]
    if len(scaled) < 2:
        return
    by_scale = sorted(scaled, key=lambda a: -float(temperature(a.inputs, {})))
    ends = [
        _roots(a, (), {}, lambda t: Option("temperature-ignored", t), temperature(a.inputs, {}) * _GRID)
        for a in (by_scale[0], by_scale[-1])
    ]
    for pair in product(*ends):
        if pair[0][0] > pair[1][0]:
            yield from (Option("scale-clamped", p) for p in product(*(candidates(1 / t, within) for t, within in pair)))


_SIZES = 10.0 ** np.linspace(-14, 0, 29)
"""Of a small constant, two a decade."""
_MASKS = -(10.0 ** np.linspace(0, 5, 21))
_PLACES: tuple[tuple[str, Callable[[float], Any], Any], ...] = (
    ("epsilon-in-norm", lambda x: ("added", x), _SIZES),
    ("epsilon-in-norm", lambda x: ("under the root", x), _SIZES),
    ("epsilon-in-temperature", lambda x: x, _SIZES),
    ("epsilon-in-log", lambda x: ("the ratio", x), _SIZES),
    ("epsilon-in-log", lambda x: ("the denominator", x), _SIZES),
    ("value-saturates", lambda x: x, _SIZES),
    ("label-smoothing", lambda x: x, _SIZES),
    ("similarity-clamped", lambda x: (-math.inf, 1 - x), _SIZES),
    ("similarity-clamped", lambda x: (x - 1, 1 - x), _SIZES),
    ("mask-leaks", lambda x: ("set", x), _MASKS),
    ("mask-leaks", lambda x: ("added", x), _MASKS),
)
"""Conventions with a number in them, how it is set, and where it is looked for."""


def _settings(analysis: CaseAnalysis, roots: _RootFinder) -> Iterator[Option]:
    """Numbers that a convention leaves open, beyond the usual ones."""
    for id, setting, grid in _PLACES:
        if id in analysis.form.conventions:
            for root, within in roots(partial(_option, id, setting), grid):
                yield from (Option(id, setting(number)) for number in candidates(root, within))


def _option(id: str, setting: Callable[[float], Any], number: float) -> Option:
    return Option(id, setting(number))


def _numbers(p: Scalar, roots: _RootFinder) -> list[float]:
    """The default, the ends of the domain, and what would give the value of the case."""
    ends = [end for end, closed in ((p.low, p.low_closed), (p.high, p.high_closed)) if closed and math.isfinite(end)]
    wide = 10.0 * max(1.0, *map(abs, p.typical))
    low, high = max(p.low, -wide), min(p.high, wide)
    # Strictly inside, since an open end is no value, and denser near the ends.
    near = np.geomspace(1e-5, 2e-3, 30)
    shares = np.concatenate([near, (np.arange(200) + 0.5) / 200, 1 - near[::-1]])
    found = roots(lambda x: Option("scalar-ignored", (p.name, x)), low + (high - low) * shares)
    default = [p.default] if isinstance(p.default, float) else []
    # Of a fraction that is a count of negatives, many numbers give the value: the short one is what somebody wrote.
    tried = [number for root, within in found for number in (float(f"{root:.2g}"), *candidates(root, within))]
    return list(dict.fromkeys([*default, *ends, *tried]))


_SHARES = (1e-5, 1e-4, 1e-3, 1e-2)
"""How far beside a root the value is looked at."""


def _roots(
    analysis: CaseAnalysis,
    beside: tuple[Option, ...],
    known: dict[Any, Any],
    option: Callable[[float], Option],
    grid: Any,
) -> list[tuple[float, float]]:
    """Settings at which the variant has the target's value, one in each gap of a grid, and how well each is known.

    None where the value jumps over it, or does not change with the setting: any number would do as well.

    Result: a setting, and the share of it by which another one may differ that the rounding of the value hides.
    """
    target, room = float(analysis.target[0]), float(analysis.bound[0])
    # Of a sum the bound is as much larger as its value is.
    room *= max(1.0, abs(target / float(analysis.reference[0]))) if beside and analysis.reference[0] else 1.0

    outside = [o for o in beside if o.axis in ("factor", "offset")]
    inside = tuple(o for o in beside if o not in outside)
    grid = [float(x) for x in grid]

    def gaps(values: Any) -> Any:
        for one in outside:
            values, _ = scaled_or_shifted(analysis, one, values, 0.0)
        return values - target

    def value(x: float, rows: DenseRows) -> float:
        return float(analysis.reduced(rows, (*inside, option(x)))[0])

    def off(x: float) -> float:
        return float(gaps(value(x, analysis.rows_once((option(x),)))))

    def on_grid() -> Any:
        setting, values = (option(grid[0]), option(grid[-1])), analysis.variants.on_grids
        if (setting, inside) not in values:
            # Conventions beside the setting change nothing in the rows.
            if setting not in known:
                known[setting] = [analysis.rows_once((option(x),)) for x in grid]
            values[setting, inside] = np.array([value(x, rows) for x, rows in zip(grid, known[setting], strict=True)])
        return gaps(values[setting, inside])

    def within(root: float) -> float:
        hidden = takewhile(lambda share: all(abs(off(root * (1 + s))) <= room for s in (share, -share)), _SHARES)
        return max(hidden, default=0.0)

    solver = Solver(off, grid, 4 * room, whole=on_grid)
    if np.sum(solver.gaps == 0) > 2:
        return []
    return [(root, within(root)) for root in solver.roots()]
