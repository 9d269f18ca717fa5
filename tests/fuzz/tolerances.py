"""How far the numbers of a case may be from the exact ones: the bounds of `nceref.tolerance`, and a loose one."""

import numpy as np

from nceref.engine.arguments import bind
from nceref.tolerance import bounds
from nceref.tolerance.analysis import Analysis, _storage
from nceref.tolerance.forward import RoundingFormat


def checked(case):
    """The arguments as the loss reads them."""
    with np.errstate(all="ignore"):
        return bind(case.loss, (), case.given)


class WithCotangent(Analysis):
    """Error bounds where every row has a factor of its own."""

    cotangent = 1.0

    def row_weights(self, stats, rows):
        return super().row_weights(stats, rows) * self.cotangent


def bounds_of(case):
    """Bounds on the value (one a row for "none") and on the gradients, from the tolerances of the package."""
    loss = case.loss
    arguments = dict(case.given)
    if case.reduction == "mean" and case.door != "anatomy":
        allowed = bounds(loss, **arguments)
        return allowed.value, allowed.grads
    inputs = checked(case)
    stored = {name: x.dtype for name, x in inputs.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f"}
    info = np.finfo(np.result_type(np.float32, *stored.values()))
    wider = {name: x.astype(np.float64) if name in stored else x for name, x in inputs.items()}
    with np.errstate(all="ignore"):
        fmt = RoundingFormat(float(info.eps) / 2, float(info.tiny))
        analysis = WithCotangent(loss.plan(**wider), fmt, "none" if case.door == "anatomy" else case.reduction)
        if case.plain_cotangent is not None:
            analysis.cotangent = case.plain_cotangent
        analysis.run()
        grads = {name: b + _storage(stored.get(name), analysis.sizes[name]) for name, b in analysis.grads.items()}
        if case.reduction == "sum":
            return analysis.value, grads
        # The value has no cotangent in it.
        analysis.weights = np.ones_like(analysis.rows)
        if case.door != "anatomy":
            analysis.weights = Analysis.row_weights(analysis, analysis.stats, analysis.rows)
        value = analysis.weighted(analysis.row_errors + 4 * fmt.u * np.abs(analysis.rows)) + 4 * fmt.tiny
    return value, grads


def unit_roundoff(case):
    """Of the format that computes: the widest of the arrays, at least float32."""
    inputs = checked(case)
    dtypes = [x.dtype for x in inputs.values() if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    info = np.finfo(np.result_type(np.float32, *dtypes))
    return float(info.eps) / 2, float(info.tiny)


def loose_bound(case, exact):
    u, tiny = unit_roundoff(case)
    arrays = [x for x in case.plain.values() if isinstance(x, np.ndarray)]
    n, d = max(len(x) for x in arrays), max(x.shape[-1] for x in arrays)
    scale = exact.scale
    weight = max([1.0, *exact.weights]) if case.reduction != "mean" else 1.0
    rows = 4 * n if case.reduction == "sum" else 1
    return 40 * u * (d + n + 20) * (scale.logit + 5) * scale.amplification * weight * rows + tiny * weight * rows
