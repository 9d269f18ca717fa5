"""Proven enclosures: two engines that share the formula alone, what is settled, and what is refused."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sweep import every_loss

from nceref import exact, losses
from nceref.checks.cases import cases
from nceref.checks.certify import forward_agrees
from nceref.engine.arguments import bind
from nceref.exact.decimal_intervals import Arithmetic, DecimalIntervals, Dual, Ends, decimal_enclosures
from nceref.exact.reverse_mode import ReverseMode, Variable
from nceref.losses import get_loss

pytest.importorskip("flint", reason="python-flint is not installed: pip install 'nceref[certify]'")

from nceref.exact.certified import Enclosure, NotProvenError, certified, numbers

pytestmark = pytest.mark.machine


def small_case(loss_name):
    """Of an odd number of rows: a fifth is no float."""
    geometry = "single" if loss_name == "arcface" else "odd"
    return next(cases(get_loss(loss_name).declaration, (geometry,), (0.3,), variants=1))


@every_loss
def test_both_engines_and_multiprecision_agree(loss_name):
    loss, inputs = get_loss(loss_name).declaration, small_case(loss_name).inputs
    proven, decimals = certified(loss, **inputs), decimal_enclosures(loss, bind(loss, (), inputs), 40)
    reference = exact.reference(loss, **inputs)
    assert all(one.settled() for _, one in numbers(proven))
    for (name, one), (_, other) in zip(numbers(proven), numbers(decimals), strict=True):
        assert one.overlaps(other), name
        assert other.radius < 1e-20 * max(1, abs(other.middle))
    assert forward_agrees(loss, bind(loss, (), inputs), proven)
    for name, x in reference.items():
        enclosed = proven[name if name == "value" else f"grad.{name}"]
        nearest = np.vectorize(float, otypes=[float])(enclosed)
        assert np.array_equal(nearest, exact.as_floats(x)), name


def test_products_of_rows_are_those_of_their_numbers(monkeypatch, loss_name):
    loss, inputs = get_loss(loss_name).declaration, small_case(loss_name).inputs
    at_once = certified(loss, **inputs)
    for rule in ("dot_product", "squared_distance"):
        monkeypatch.delattr(Variable, rule)
    for (name, one), (_, other) in zip(numbers(at_once), numbers(certified(loss, **inputs)), strict=True):
        assert one.overlaps(other), name
        assert float(one) == float(other), name
        assert one.radius <= 8 * other.radius, name


@pytest.mark.parametrize("wrong", ["exp", "log", "sqrt"])
def test_forward_mode_sees_a_wrong_rule_of_reverse_mode(monkeypatch, wrong):
    right = getattr(ReverseMode, wrong)

    def off(self, x):
        result = right(self, x)
        result.parents = [(parent, slope * (1 + 2.0**-50)) for parent, slope in result.parents]
        return result

    monkeypatch.setattr(ReverseMode, wrong, off)
    loss, inputs = losses.nt_xent.declaration, small_case("nt_xent").inputs
    proven, decimals = certified(loss, **inputs), decimal_enclosures(loss, bind(loss, (), inputs), 40)
    # Reverse mode is the same in both; forward mode has rules of its own.
    for out in (proven, decimals):
        assert not forward_agrees(loss, bind(loss, (), inputs), out)


def test_a_number_of_millions_of_digits_is_enclosed_by_fewer():
    wide = Fraction(1, 10**5000)
    for low, high in (("1e-43000000", "2e-43000000"), ("-1e-43000000", "1"), ("-2e-43000000", "-1e-43000000")):
        one = DecimalIntervals.enclosure(Dual(Arithmetic(30), Ends(Decimal(low), Decimal(high))))
        assert (one.ends()[0] < 0, one.ends()[1] > 0) == (low[0] == "-", high[0] != "-")
        assert {abs(end) for end in one.ends()} <= {0, 1, wide}


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "cos", "sin", "acos", "power"])
def test_decimals_enclose_what_mpmath_computes_with_more_digits(name):
    import mpmath

    arithmetic, rng = Arithmetic(30), np.random.default_rng(5)
    functions = {"cos": lambda a: arithmetic.series(a, 0), "sin": lambda a: arithmetic.series(a, 1)}
    functions["power"] = lambda a: arithmetic.power(a, Ends(Decimal("0.75"), Decimal("0.75")))
    with mpmath.workdps(60):
        for x in rng.uniform(0.01, 0.99, 100) * (1 if name == "acos" else 3):
            low, high = functions.get(name, getattr(arithmetic, name, None))(Ends(Decimal(x), Decimal(x)))
            exact_value = mpmath.mpf(x) ** 0.75 if name == "power" else getattr(mpmath, name)(mpmath.mpf(x))
            assert mpmath.mpf(str(low)) <= exact_value <= mpmath.mpf(str(high))
            assert high - low < Decimal("1e-20")


def test_products_of_intervals_enclose_all_products():
    arithmetic, ends = Arithmetic(20), [Decimal(x) for x in (-3, -1, 0, 2, 5)]
    intervals = [Ends(low, high) for low in ends for high in ends if low <= high]
    for a in intervals:
        for b in intervals:
            low, high = arithmetic.multiply(a, b)
            products = [x * y for x in a for y in b]
            assert (low, high) == (min(products), max(products))


def test_what_is_settled():
    third, ulp = Fraction(1, 3), Fraction(np.spacing(1 / 3))
    assert Enclosure(third, ulp / 2**14).settled()
    # A number between two floats, as near to one as to the other: no radius but 0 says which.
    halfway = Fraction(1) + Fraction(1, 2**53)
    assert not Enclosure(halfway, ulp / 2**500).settled()
    assert Enclosure(halfway).settled()
    assert Enclosure(halfway).exact
    assert not Enclosure(Fraction(10) ** 400, Fraction(1)).settled()
    assert not Enclosure(Fraction(0), Fraction(1, 100)).settled()


def test_digits_are_added_until_a_tiny_loss_is_settled():
    """A loss of log(1 + e^-512), which is 0 in 50 digits."""
    value = certified(losses.info_nce, np.eye(2), np.eye(2), temperature=2.0**-9)["value"]
    assert math.isclose(float(value), math.exp(-512), rel_tol=1e-15)
    assert value.radius < value.middle / 2**60
    few = certified(losses.info_nce, np.eye(2), np.eye(2), temperature=2.0**-9, most_digits=35)["value"]
    assert not few.settled()


@pytest.mark.parametrize(
    ("loss", "arguments"),
    [
        (losses.hard_contrastive, {"queries": np.eye(3), "keys": np.ones((3, 3)), "temperature": 0.3, "fraction": 0.5}),
        (losses.alignment, {"x": np.eye(2), "y": np.eye(2), "exponent": 1.0}),
    ],
    ids=["tie", "kink"],
)
def test_what_cannot_be_decided_is_refused(loss, arguments):
    with pytest.raises(NotProvenError, match="has no proven value and gradient here"):
        certified(loss, **arguments, most_digits=100)
