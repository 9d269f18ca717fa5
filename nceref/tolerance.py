"""The one place where a tolerance is computed: bounds by rounding-error analysis, never by guess.

`bounds` walks through a loss with the error analysis of `rounding`; `close` is for identities between two results.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nceref.inputs import bind
from nceref.rounding import Analysis, Format


def close(actual: Any, expected: Any, *, scale: float | None = None, ulps: float = 16, dtype: Any = np.float64) -> bool:
    """Whether two results agree within a few units in the last place.

    Parameters
    ----------
    actual, expected : float or array
        Shapes must be equal.
    scale : float, optional
        Magnitude of what was added up on the way; default: that of the expected value, entry by entry.
    ulps : float
        Roundings allowed, of size eps * max(|expected|, scale).
    dtype : dtype
        The format in which the computation was done.
    """
    a, b = np.asarray(actual, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if a.shape != b.shape or not (np.all(np.isfinite(a)) and np.all(np.isfinite(b))):
        return False
    unit = np.finfo(dtype).eps * np.maximum(np.abs(b), 0.0 if scale is None else scale)
    return bool(np.all(np.abs(a - b) <= ulps * unit + np.finfo(dtype).tiny))


@dataclass(frozen=True)
class Bounds:
    """How far a correct program may be from the exact loss.

    Attributes
    ----------
    value : float
        Bound on the absolute error of the value under the reduction "mean".
    grads : dict
        One array (or float) of bounds for every differentiable input.
    terms : dict
        What the bound of the value is made of, by stage; they add up to `value`.
    """

    value: float
    grads: dict[str, Any]
    terms: dict[str, float] = field(default_factory=dict)

    def explain(self) -> str:
        """The terms, one a line."""
        lines = [f"{stage:<12} {size:.3e}" for stage, size in self.terms.items()]
        return "\n".join([*lines, f"{'value':<12} {self.value:.3e}"])


def bounds(declaration: Any, *arrays: Any, accumulate: Any = None, **named: Any) -> Bounds:
    """Error bounds for one call of a loss, from the dtypes of its arrays.

    Parameters
    ----------
    declaration : Loss or LossFunction
        The loss.
    *arrays, **named
        Its arguments, NumPy arrays of a batch small enough for dense n x m arrays.
    accumulate : dtype, optional
        The format that computes; default: the widest of the arrays' dtypes, at least float32.

    Returns
    -------
    Bounds
    """
    loss = getattr(declaration, "declaration", declaration)
    inputs = bind(loss, arrays, named)
    stored = {name: x.dtype for name, x in inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    wide = np.dtype(accumulate or np.result_type(np.float32, *stored.values()))
    info = np.finfo(wide)
    wider = {name: x.astype(np.float64) if name in stored else x for name, x in inputs.items()}
    with np.errstate(over="ignore", under="ignore"):
        result = Analysis(loss.plan(**wider), Format(float(info.eps) / 2, float(info.tiny))).run()
    grads = {name: b + _storage(stored.get(name), result.sizes[name]) for name, b in result.grads.items()}
    return Bounds(result.value, {name: float(b) if np.ndim(b) == 0 else b for name, b in grads.items()}, result.terms)


def _storage(dtype: Any, size: Any) -> Any:
    """One rounding of a gradient to the dtype of its input."""
    if dtype is None:
        return 0.0
    info = np.finfo(dtype)
    return np.asarray(size, dtype=np.float64) * float(info.eps) / 2 + float(info.smallest_subnormal)
