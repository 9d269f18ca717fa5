"""Number systems: what each adds to floats."""

import math

import numpy as np
import pytest

from nceref import UnavailableError, exact, losses
from nceref.engine.formulas import dot, squared_distance
from nceref.exact.number_systems import Balls, Complex, ExponentRange, Floats, Mpmath
from nceref.exact.reference import as_floats
from nceref.exact.reverse_mode import ReverseMode, Variable, backward


def test_the_range_of_exponents_is_remembered_and_never_left():
    m = ExponentRange()
    assert m.exp(-1e6) == m.exp(-700.0) > 0
    assert m.exp(1e6) == m.exp(700.0) < np.inf
    assert m.largest == 1e6
    assert m.log(0.0) == -700.0
    assert m.acos(1 + 1e-16) == m.acos(1.5) == 0.0


FUNCTIONS = {
    "exp": lambda x: math.exp(x),
    "log": lambda x: 1 / x,
    "sqrt": lambda x: 0.5 / math.sqrt(x),
    "sin": lambda x: math.cos(x),
    "cos": lambda x: -math.sin(x),
    "acos": lambda x: -1 / math.sqrt(1 - x * x),
}
"""Functions of a number system with their derivatives."""


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("x", [0.125, 0.5, 0.9])
def test_derivatives_by_reverse_mode(name, x):
    m = ReverseMode(Mpmath(50))
    variable = Variable(m.base, m.number(x))
    backward(getattr(m, name)(variable) * 3 / 5)
    assert math.isclose(variable.slope, 0.6 * FUNCTIONS[name](x), rel_tol=1e-15)


def test_operators_by_reverse_mode():
    """At x = 3, y = 2: of a term each operator has a part in."""
    base = Mpmath(30)
    x, y = Variable(base, base.number(3.0)), Variable(base, base.number(2.0))
    backward((2 * x - y) * (1 - x) / (y + 1) + 6 / x + x**y - (-y) ** 3)
    # d/dx: (2 (1 - x) - (2x - y)) / (y + 1) - 6 / x^2 + y x^(y-1); d/dy: ...
    assert math.isclose(x.slope, (2 * -2 - 4) / 3 - 6 / 9 + 6)
    assert math.isclose(y.slope, 2 / 3 - (4 * -2) / 9 + 9 * math.log(3) + 12)


@pytest.mark.parametrize("system", [Floats, lambda: Mpmath(30), lambda: Balls(30)], ids=["floats", "mpmath", "balls"])
def test_products_of_rows_by_reverse_mode(system):
    """Rows that share variables, begin with the same one, or hold a constant."""
    base = system()
    x, y, z = (Variable(base, base.number(value)) for value in (2.0, 3.0, 5.0))
    four = base.number(4.0)
    # 2 (xx + yz) - (xx + 4y) + 4y + zy + 3 ((x - z)^2 + (y - x)^2) + (x - 4)^2
    backward(
        2 * dot([x, y], [x, z])
        - dot([x, y], [x, four])
        + dot([four, z], [y, y])
        + 3 * squared_distance([x, y], [z, x])
        + squared_distance([x], [four])
    )
    assert [float(as_floats(v.slope)) for v in (x, y, z)] == [2 * 2 + 6 * (-3 - 1) + 2 * -2, 10 + 5 + 6, 6 + 3 + 18]


@pytest.mark.parametrize("m", [Floats(), Complex(), ReverseMode(Mpmath(30))])
def test_a_detached_number_has_its_value_and_no_derivative(m):
    x = {"Complex": 0.25 + 1e-20j, "ReverseMode": Variable(Mpmath(30), Mpmath(30).number(0.25))}.get(
        type(m).__name__, 0.25
    )
    detached = m.detach(x)
    assert m.real(x) == m.real(detached) == 0.25
    assert not isinstance(detached, Variable)
    assert detached.imag == 0
    assert m.above(m.number(2.0), m.number(1.0))
    assert not m.above(m.number(1.0), m.number(1.0))


def test_balls_name_the_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "flint", None)
    with pytest.raises(UnavailableError, match=r"pip install 'nceref\[certify\]'"):
        exact.reference(losses.nt_xent, np.eye(2), np.eye(2), temperature=0.3, system="ball")
