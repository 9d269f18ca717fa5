"""Small cases of every loss, each evaluated once, and the comparison of two evaluations."""

from functools import cache

import numpy as np

from nceref import get_loss
from nceref.checks.cases import cases
from nceref.tolerance import bounds

GEOMETRIES = ("random", "lonely", "odd", "aligned")
UNEVEN = ("lonely", "odd")


@cache
def small_cases(name, temperatures=(0.3,), geometries=GEOMETRIES):
    """Cases of a loss, each with what the loss gives and the bound on its rounding."""
    loss = get_loss(name)
    members = list(cases(loss.declaration, geometries, temperatures))
    return [(case, loss.value_and_grad(**case.inputs), bounds(loss, **case.inputs)) for case in members]


def assert_within_bounds(case, got, expected, allowed):
    """Two evaluations of one case may differ by the rounding of both."""
    assert abs(float(got[0]) - expected[0]) <= 2 * allowed.value, case.name
    assert set(got[1]) == set(expected[1])
    for name, grad in expected[1].items():
        assert np.all(np.abs(np.asarray(got[1][name]) - grad) <= 2 * allowed.grads[name]), (case.name, name)
