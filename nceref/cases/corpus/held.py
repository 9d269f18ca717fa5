"""Bounds for a program that computes an input of the loss from a parameter that it holds."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.cases.parametrization import PARAMETRIZATIONS, parameter_at
from nceref.cases.records import Probe
from nceref.tolerance import Bounds
from nceref.tolerance.implementation import FORMATS

Answer = tuple[Any, Mapping[str, Any]]
"""Value and gradients by input."""
ROUNDINGS = 4
"""Units of roundoff by which a program may be off in the function of its parameter."""
_STEP = 1e-5
"""Least relative step of the difference quotient."""


def held_bounds(probe: Probe, reference: Callable[[Mapping[str, Any]], Answer]) -> Bounds:
    """The bounds of a probe, widened by the rounding of a parameter that a module holds, and of the function of it.

    `probe` has the answer, `forms`, and the bounds of a program that is handed the inputs themselves; `reference` gives
    value and gradients for other inputs. Twice the first-order effect of that rounding is added.
    """
    assert probe.bounds is not None
    storage, added = FORMATS[probe.dtype].storage, 0.0 * np.asarray(probe.value)
    grads = dict(probe.bounds.grads)
    for name, form in probe.forms.items():
        s = probe.inputs.get(name)
        if form == "identity" or not isinstance(s, float):
            continue
        parameter = parameter_at(form, s, probe.dtype)
        off = abs(PARAMETRIZATIONS[form].value(parameter) - s) + ROUNDINGS * storage.u * abs(s)
        step = max(off, _STEP * abs(s))
        for there in (reference({**probe.inputs, name: s + side * step}) for side in (-1, 1)):
            added = np.maximum(added, 2 * off / step * np.abs(there[0] - probe.value))
            for n in probe.grads:
                grads[n] = grads[n] + 2 * off / step * np.abs(there[1][n] - probe.grads[n])
        if name in grads:
            # Its derivative is computed by the parameter: one more product, which may be below the normal numbers.
            small = storage.tiny * abs(PARAMETRIZATIONS[form].gradient(parameter, 1.0))
            grads[name] = grads[name] + ROUNDINGS * (storage.u * abs(probe.grads.get(name, 0.0)) + small)
    terms = {**probe.bounds.terms, "parameter": added[()]}
    return replace(probe.bounds, value=probe.bounds.value + added, grads=grads, terms=terms)
