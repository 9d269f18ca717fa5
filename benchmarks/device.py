"""Speed on a CUDA device, and agreement of its results with those of the CPU."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import QUICK, SPEED
from benchmarks.clock import OnProgress
from benchmarks.place import Place, cuda
from benchmarks.speed import rows, sample

SIDE = 4096
"""Side of the blocks that rates are measured with: enough work for every processor of the device."""


def run(threads: int, quick: bool, on_progress: OnProgress) -> dict[str, Any]:
    """Rows for all cases on the device, the rates of the device, and the agreement of every loss with the CPU."""
    there = cuda()
    # The targets are those of a CPU.
    cases = QUICK if quick else [replace(case, target=None, within=None) for case in SPEED]
    checked = list(agreement(there, _losses(), ("float32", "float64"), on_progress))
    samples = sample(cases, threads, "cuda", 1 if quick else 2, on_progress, rates)
    return {"device": there.name, "library": there.library, "agreement": checked, **rows(cases, samples)}


def rates(dtype: str, dim: int, threads: int) -> dict[str, float]:
    """Operations of matrix products a second, and exponentials: each reads a number from memory and writes one."""
    return rates_at(cuda(), dtype, dim)


def rates_at(there: Place, dtype: str, dim: int, side: int = SIDE) -> dict[str, float]:
    """The rates at a place, with blocks of side x side and side x dim."""
    rng = np.random.default_rng(0)
    a, b = (there.put(rng.standard_normal((side, width), dtype=dtype)) for width in (side, dim))
    product, pass_through = _median_time(lambda: a @ b, there), _median_time(lambda: a + a, there)
    return {"operations": 2 * side * side * dim / product, "exponentials": side * side / pass_through}


def _median_time(work: Callable[[], Any], there: Place, times: int = 21) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        there.wait()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[1:]))


def _losses() -> list[str]:
    from nceref import all_losses

    return list(all_losses())


def agreement(
    there: Place, names: Sequence[str], dtypes: Sequence[str], on_progress: OnProgress
) -> Iterator[dict[str, Any]]:
    """The largest error of value and gradients at a place relative to the CPU's, for every loss and dtype.

    It is in units of twice the derived bound, within which two correct programs lie. Kinks, which have no gradient, are
    left out.
    """
    from nceref import get_loss
    from nceref.checks.cases import cases
    from nceref.checks.run import on_kink

    for name in names:
        loss = get_loss(name)
        for dtype in dtypes:
            on_progress(f"agreement: {name} {dtype}")
            smooth = [
                case.cast(dtype)
                for case in cases(loss.declaration, ("random", "aligned", "many"), (0.3, 0.07))
                if not on_kink(loss.declaration, dict(case.inputs))
            ]
            worst = max(distance(loss, given, there) for given in smooth)
            yield {"loss": name, "dtype": dtype, "cases": len(smooth), "of_bound": worst, "agrees": worst <= 1}


def distance(loss: Any, given: dict[str, Any], there: Place) -> float:
    """The largest difference between the two places, in units of twice its bound."""
    from nceref.tolerance import bounds

    value, grads = loss.value_and_grad(**given)
    moved = {name: there.put(x) if isinstance(x, np.ndarray) else x for name, x in given.items()}
    other_value, other = loss.value_and_grad(**moved)
    allowed = bounds(loss, **given)
    pairs = [(value, other_value, allowed.value), *((grads[name], other[name], allowed.grads[name]) for name in grads)]
    return max(_of_bound(np.asarray(x), np.asarray(there.get(y)), np.asarray(bound)) for x, y, bound in pairs)


def _of_bound(x: Any, y: Any, bound: Any) -> float:
    off = np.abs(x.astype(np.float64) - y.astype(np.float64))
    # Equal numbers agree whatever the bound; NaN and infinity never do.
    off = np.where(off == 0, 0.0, off / np.maximum(2 * bound, np.finfo(np.float64).tiny))
    return float(np.max(off)) if np.all(np.isfinite(off)) else float("inf")
