"""The largest error over its bound, by loss and line: `python -m tools.machines.errors` measures those of one process.

Judged by the reference vectors: proven numbers, and the allowed error of each entry.
"""

import json
from typing import Any

import numpy as np

from nceref.cases.judge import in_bounds
from nceref.verification.vectors.records import ERROR, VectorCase, probe_of
from nceref.verification.vectors.store import read_vectors
from tools.machines.vectors import evaluated

FORMATS = ("float64", "float32")


def largest(cases: tuple[VectorCase, ...], dtype: str) -> float:
    """The largest error of the program of a loss in a format, in units of the bound of the entry."""
    return max(_of_case(case, dtype) for case in cases if case.expect != ERROR and dtype in case.formats)


def _of_case(case: VectorCase, dtype: str) -> float:
    probe, (value, grads) = probe_of(case, dtype), evaluated(case, dtype)
    assert probe.bounds is not None
    pairs: list[tuple[Any, Any, Any]] = [(value, probe.value, probe.bounds.value)]
    pairs += [(grads[name], probe.grads[name], probe.bounds.grads[name]) for name in probe.grads]
    errors = (in_bounds(np.abs(np.asarray(got, np.float64) - right), bound) for got, right, bound in pairs)
    return max(float(np.max(error)) for error in errors)


def main() -> None:
    """Print the errors of this process by format and loss."""
    cases = read_vectors().cases
    print(json.dumps({dtype: {loss: largest(cases[loss], dtype) for loss in cases} for dtype in FORMATS}))  # noqa: T201


if __name__ == "__main__":
    main()
