"""One formula, five number systems: they agree, and high precision settles by itself."""

import math

import numpy as np
import pytest
from slow import partly_slow
from sweep import every_loss, sweep

from nceref import InputError, exact, get_loss, losses
from nceref.checks import run
from nceref.checks.cases import cases
from nceref.engine.arguments import bind
from nceref.exact.number_systems import Complex, Floats, Mpmath
from nceref.tolerance import bounds

pytestmark = pytest.mark.machine

TINY = {"N": 2, "D": 2, "E": 2, "C": 2, "M": 2, "K": 2, "V": 2}


def tiny_case(name, temperature=0.3):
    """The smallest random case of the first variant."""
    return next(cases(get_loss(name).declaration, ("random",), (temperature,), variants=1, sizes=TINY))


@every_loss
def test_formula_runs_under_floats(loss_name):
    """The textbook form loses some digits: the bound of the program, and 64 roundings of the largest exponent."""
    loss, case = get_loss(loss_name).declaration, tiny_case(loss_name)
    value = exact.value(loss, bind(loss, (), case.inputs), Floats())
    room = bounds(loss, **case.inputs).value + 64 * np.finfo(np.float64).eps * (1 + 1 / 0.3)
    assert abs(value - losses.get_loss(loss_name)(**case.inputs)) <= room


@every_loss
def test_complex_step_of_floats_gives_the_gradient(loss_name):
    loss, case = get_loss(loss_name).declaration, tiny_case(loss_name)
    computed = exact.complex_step(loss, bind(loss, (), case.inputs), Complex(), 1e-150)
    _, grads = losses.get_loss(loss_name).value_and_grad(**case.inputs)
    for name, grad in grads.items():
        # Complex arithmetic in double precision: a few hundred roundings of the largest entry.
        room = 512 * np.finfo(np.float64).eps * max(1.0, float(np.max(np.abs(grad))))
        assert np.all(np.abs(np.asarray(computed[name]) - grad) <= room), name


@every_loss
def test_balls_and_mpmath_agree_to_the_last_digit_of_a_double(loss_name):
    pytest.importorskip("flint", reason="python-flint is not installed")
    loss, case = get_loss(loss_name), tiny_case(loss_name)
    one, other = (exact.reference(loss, system=system, **case.inputs) for system in ("mpmath", "ball"))
    for name, number in one.items():
        left, right = exact.as_floats(number), exact.as_floats(other[name])
        assert np.all(np.abs(left - right) <= np.spacing(np.abs(left))), name


OF_EACH_KIND = (
    "alignment", "arcface", "balanced_softmax", "dclw", "hard_contrastive", "hcl", "info_nce", "moco", "nce", "paco",
    "siglip", "supcon_in", "uniformity",
)  # fmt: skip


@pytest.mark.parametrize(
    "one",
    partly_slow(
        OF_EACH_KIND,
        ("alignment", "info_nce", "nce", "siglip", "supcon_in").__contains__,
        "balls judge the gradients of all losses",
    ),
)
def test_sympy_derives_the_gradient_that_was_written_by_hand(one):
    """Balls judge the gradients of all losses."""
    loss, case = get_loss(one), tiny_case(one)
    value, grads = loss.value_and_grad(**case.inputs)
    names = tuple(name for name in grads)
    symbolic = exact.Symbolic(loss, by=names, **case.inputs)
    allowed = bounds(loss, **case.inputs)
    assert abs(symbolic.at_point(symbolic.value) - value) <= allowed.value
    # An array of one loss, a scalar of the next: a derivative of either goes through the whole expression.
    name = names[-(len(one) % 2)]
    computed = np.asarray(symbolic.at_point(symbolic.gradient(name)))
    assert np.all(np.abs(computed - grads[name]) <= allowed.grads[name]), name


def test_sympy_keeps_detached_weights_constant():
    """DCLW: the derivative of the whole expression, weights included, is another one."""
    case = tiny_case("dclw")
    symbolic = exact.Symbolic(losses.dclw, by=("z1", "z2"), **case.inputs)
    detached = np.asarray(symbolic.at_point(symbolic.gradient("z1")))
    through = np.asarray(symbolic.at_point([[symbolic.value.diff(x) for x in row] for row in symbolic.symbols["z1"]]))
    assert np.max(np.abs(detached - through)) > 0.01 * np.max(np.abs(detached))


@pytest.mark.parametrize("temperature", [0.3, 0.005])
def test_reference_reaches_the_digits_asked_for(temperature):
    case = tiny_case("nt_xent", temperature)
    coarse, fine = (exact.reference(losses.nt_xent, digits=d, gradients=False, **case.inputs) for d in (20, 60))
    assert abs(coarse["value"] / fine["value"] - 1) < 10**-20


def test_fifty_digits_would_not_have_been_enough():
    """A loss of e^-512, about 1e-222: at 50 digits the textbook form is 0."""
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    arguments = {"queries": x, "keys": x, "temperature": 2.0**-9}
    inputs = bind(losses.info_nce.declaration, (), arguments)
    assert exact.value(losses.info_nce.declaration, inputs, Mpmath(50)) == 0
    value = exact.reference(losses.info_nce, gradients=False, **arguments)["value"]
    assert math.isclose(float(value), math.exp(-512), rel_tol=4 * np.finfo(np.float64).eps)


def test_a_derivative_that_is_zero_comes_out_as_zero():
    """Equal rows: the gradient vanishes exactly, and the reference does not return noise for it."""
    x = np.ones((2, 3))
    computed = exact.reference(losses.nt_xent, x, x, temperature=0.3)
    assert np.all(exact.as_floats(computed["z1"]) == 0)


def test_gradients_on_a_kink_are_refused():
    x = np.array([[1.0, 0.0]])
    with pytest.raises(InputError, match="no gradient here: x_i = y_i with exponent <= 1"):
        exact.reference(losses.alignment, x, x, exponent=1.0)
    assert exact.reference(losses.alignment, x, x, exponent=1.0, gradients=False)["value"] == 0


def test_what_the_program_refuses_the_reference_refuses():
    x = np.eye(3)
    with pytest.raises(InputError, match="anchor 0 has no positive"):
        exact.reference(losses.supcon_out, x, [0, 1, 2], temperature=0.3)
    with pytest.raises(InputError, match="no negatives"):
        exact.reference(losses.dcl, x[:1], x[:1], temperature=0.3)


def test_the_checker_falls_back_to_mpmath(monkeypatch):
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    assert run.fastest_system() == "mpmath"
    case = tiny_case("info_nce")
    assert run.compare(losses.info_nce.declaration, case, np.float64).of_bound <= 1


E = 2.0**-52


@sweep(
    ("name", "inputs", "value"),
    [
        # The product of the first entries is 1 - E^2.
        ("simple", {"queries": [[1 + E, 1.0]], "keys": [[1 - E, -1.0]], "normalize": "none"}, E**2),
        ("simple", {"queries": [[1e-140]], "keys": [[1e-140]], "normalize": "none"}, -1e-280),
        # Two rows, -E and E.
        ("simple", {"queries": [[1.0], [1.0]], "keys": [[1 + E], [1.0]], "normalize": "none"}, 0.0),
        # The logarithm of 1 plus the ratio of the counts.
        ("balanced_softmax", {"logits": [[0.0, 0.0]], "target": [0], "class_counts": [1e140, 1e-140]}, 1e-280),
    ],
)
@sweep("digits", [10, 30])
def test_what_is_small_is_not_taken_for_zero(name, inputs, value, digits):
    """However few digits are asked for: only what loses the digits that are added is what rounding left of a 0."""
    computed = exact.reference(losses.get_loss(name), digits=digits, gradients=False, **inputs)["value"]
    assert float(computed) == pytest.approx(value, rel=1e-9, abs=0)
