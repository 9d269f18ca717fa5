"""Tests that `make test` leaves out and `make test-slow` runs: long ones, for what few changes break."""

import pytest


def partly_slow(cases, is_quick, reason):
    """Cases of a parametrized test, those marked as slow that are not quick.

    Parameters
    ----------
    cases : iterable
        Values of one parameter, or tuples of several.
    is_quick : callable
        From a case to a bool.
    reason : str
        Why the others can wait.
    """
    slow = pytest.mark.slow(reason=reason)
    parameters = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        parameters.append(pytest.param(*values, marks=() if is_quick(case) else slow))
    return parameters
