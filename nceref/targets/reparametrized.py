"""A call with what a module holds in the place of inputs, and its gradients as those by the inputs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nceref.cases.parametrization import PARAMETRIZATIONS, parameter_at
from nceref.cases.records import Outcome
from nceref.targets.frameworks.call import CallRequest


def reparametrized(request: CallRequest, forms: Mapping[str, str]) -> CallRequest:
    """The request with the parameters of a module in place of inputs; `forms` has the parametrizations by input."""
    if not forms:
        return request
    before = None if request.before is None else _held(request.before, forms, request.dtype)
    return replace(request, inputs=_held(request.inputs, forms, request.dtype), before=before)


def _held(inputs: Mapping[str, Any], forms: Mapping[str, str], dtype: str) -> dict[str, Any]:
    return {n: parameter_at(forms[n], x, dtype) if n in forms else x for n, x in inputs.items()}


def by_inputs(outcome: Outcome, request: CallRequest, forms: Mapping[str, str]) -> Outcome:
    """The outcome of a request of `reparametrized`, with its gradients turned into those by the inputs of the loss."""
    grads = {
        n: PARAMETRIZATIONS[forms[n]].gradient(request.inputs[n], g) if n in forms else g
        for n, g in outcome.grads.items()
    }
    return (
        replace(outcome, grads={n: np.asarray(g, dtype=np.float64)[()] for n, g in grads.items()}) if forms else outcome
    )
