"""The sizes and scalars of a call, by the letter that a formula has for them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nceref.diagnosis.dense.batch import DenseBatch
from nceref.diagnosis.tape import Variable
from nceref.spec import Array, Labels, Loss, Scalar


def symbols(loss: Loss, inputs: Mapping[str, Any], directions: Sequence[DenseBatch]) -> Mapping[str, Any]:
    """Sizes and scalars of a call by the letter that a formula has for them."""
    out: dict[str, Any] = {}
    views = False
    for p in loss.parameters:
        given = inputs.get(p.name)
        if isinstance(p, Scalar) and isinstance(given, float | Variable):
            out[letter(p)] = given
        elif isinstance(p, Array | Labels) and isinstance(given, np.ndarray | Variable):
            shape = p.alternative if isinstance(p, Array) and given.ndim != len(p.shape) and p.alternative else p.shape
            views |= shape is not p.shape
            out |= dict(zip(shape, map(float, given.shape), strict=True))
    counts = {float(n) for n in np.sum(directions[0].together, axis=1)}
    return {**out, "P": counts.pop()} if views and len(counts) == 1 else out


def letter(scalar: Scalar) -> str:
    """The symbol of a scalar in plain text: a letter, or its name."""
    known = {r"\tau": "T", r"\alpha": "a"}
    return known.get(scalar.symbol, scalar.symbol if len(scalar.symbol) == 1 else scalar.name)
