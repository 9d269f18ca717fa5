"""Number systems: what each adds to floats."""

import numpy as np
import pytest

from nceref import UnavailableError, exact, losses
from nceref.exact.number_systems import Complex, ExponentRange, Floats, Mpmath


def test_the_range_of_exponents_is_remembered_and_never_left():
    m = ExponentRange()
    assert m.exp(-1e6) == m.exp(-700.0) > 0
    assert m.exp(1e6) == m.exp(700.0) < np.inf
    assert m.largest == 1e6
    assert m.log(0.0) == -700.0
    assert m.acos(1 + 1e-16) == m.acos(1.5) == 0.0


@pytest.mark.parametrize("x", [-0.9, 0.0, 0.5])
def test_acos_of_many_digits_carries_the_derivative(x):
    m, h = Mpmath(50), 1e-30
    real, imaginary = m.parts(m.acos(m.step(m.number(x), m.number(h))))
    assert abs(float(real) - np.arccos(x)) <= np.finfo(float).eps * 2
    assert abs(float(imaginary) / h + 1 / np.sqrt(1 - x * x)) <= 4 * np.finfo(float).eps


@pytest.mark.parametrize("m", [Floats(), Complex(), Mpmath(30)])
def test_a_detached_number_has_its_value_and_no_derivative(m):
    x = m.number(0.25) + (1e-20j if not isinstance(m, Floats) or isinstance(m, Complex) else 0)
    assert m.real(x) == m.real(m.detach(x)) == 0.25
    assert m.detach(x).imag == 0
    assert m.above(m.number(2.0), m.number(1.0))
    assert not m.above(m.number(1.0), m.number(1.0))


def test_balls_name_the_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "flint", None)
    with pytest.raises(UnavailableError, match=r"pip install 'nceref\[certify\]'"):
        exact.reference(losses.nt_xent, np.eye(2), np.eye(2), temperature=0.3, system="ball")
