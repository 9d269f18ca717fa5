"""Errors of NumPy's elementary functions, in units of the last place of the true number.

`python -m tools.machines.functions FILE` writes what they return in this process; the truth is that of python-flint.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

POINTS = 200_000
"""Number of points for each function and format."""
SEED = 29


@dataclass(frozen=True)
class Function:
    """A function, and where it is tried: ends of an interval, points that are hard, and scales around these."""

    ends: Mapping[str, tuple[float, float]]
    hard: tuple[float, ...] = (0.0,)

    def points(self, name: str, dtype: str) -> Any:
        """Numbers of a format, half of them spread evenly, the others at all scales around the hard points."""
        rng = np.random.default_rng([SEED, *name.encode(), *dtype.encode()])
        low, high = self.ends[dtype]
        even = rng.uniform(low, high, POINTS // 2)
        near = rng.choice(self.hard, POINTS - len(even))
        # Exact in every line: powers of ten would be taken by the very functions that are measured.
        exponents = rng.integers(-53 if dtype == "float64" else -24, np.frexp(high)[1], len(near))
        apart = np.ldexp(rng.uniform(1.0, 2.0, len(near)), exponents)
        x = np.concatenate([even, near + rng.choice([-1.0, 1.0], len(near)) * apart]).astype(dtype)
        return x[(x > low) & (x < high)]


# The ends keep results normal: below, a unit in the last place says little about the error.
_EXP = {"float64": (-708.0, 709.0), "float32": (-87.0, 88.0)}
_LOG = {"float64": (1e-300, 1e300), "float32": (1e-36, 1e36)}
FUNCTIONS: Mapping[str, Function] = {
    "exp": Function(_EXP),
    "expm1": Function(_EXP),
    "log": Function(_LOG, (0.0, 1.0)),
    "log1p": Function({dtype: (-1.0, high) for dtype, (_, high) in _LOG.items()}, (0.0, -1.0)),
}
FORMATS = ("float64", "float32")


def returned() -> dict[str, Any]:
    """Results of NumPy by function, format and layout: neighbors are computed together, those apart one by one."""
    out = {}
    for name, function in FUNCTIONS.items():
        for dtype in FORMATS:
            x = function.points(name, dtype)
            apart = np.repeat(x, 3)[::3]
            for layout, argument in (("together", x), ("apart", apart)):
                out[f"{name} {dtype} {layout}"] = getattr(np, name)(argument)
    return out


def truth(name: str, x: Any) -> tuple[Any, Any]:
    """The true numbers as sums of two float64."""
    import flint

    function: Callable[[Any], Any] = getattr(flint.arb, name)
    with flint.ctx.workprec(160):
        high, low = np.empty(len(x)), np.empty(len(x))
        for i, number in enumerate(x.astype(np.float64).tolist()):
            y = function(flint.arb(number)).mid()
            high[i] = first = float(y)
            low[i] = float(y - flint.arb(first))
    return high, low


def ulps(results: Any, true: tuple[Any, Any]) -> float:
    """The largest error in units of the last place of the true number."""
    high, low = true
    unit = np.spacing(np.abs(high).astype(results.dtype)).astype(np.float64)
    return float(np.max(np.abs((results.astype(np.float64) - high) - low) / unit))


def largest(results: Mapping[str, Any], true: Mapping[str, tuple[Any, Any]]) -> dict[str, float]:
    """The largest error of each function and format, of both layouts."""
    out: dict[str, float] = {}
    for key, y in results.items():
        both = key.rpartition(" ")[0]
        out[both] = max(out.get(both, 0.0), ulps(y, true[both]))
    return out


def truths() -> dict[str, tuple[Any, Any]]:
    """The true numbers of all functions and formats."""
    tried = ((name, dtype, each.points(name, dtype)) for name, each in FUNCTIONS.items() for dtype in FORMATS)
    return {f"{name} {dtype}": truth(name, x) for name, dtype, x in tried}


def main(file: str) -> None:
    """Write what NumPy returns in this process."""
    np.savez(file, **returned())


if __name__ == "__main__":
    main(*sys.argv[1:])
