"""Numbers at the ends of the range: right, or refused with the name of the argument. Powers of two change no digit."""

import math
from fractions import Fraction

import numpy as np
import pytest
from sweep import sweep

from nceref import config, losses
from nceref.errors import InputError
from nceref.losses import get_loss
from nceref.tolerance import bounds

pytestmark = pytest.mark.machine

RNG = np.random.default_rng(0)
Z, W, C = RNG.integers(1, 9, (3, 6, 3)) * RNG.choice([-1.0, 1.0], (3, 6, 3))
Y = np.array([0, 0, 1, 1, 1, 0])
MASK = RNG.integers(0, 3, (6, 6)) + np.roll(np.eye(6), 1, axis=1)


def gradients(name, arguments, reduction="mean", **more):
    return get_loss(name).value_and_grad(**arguments, reduction=reduction, **more)


@sweep("name", ["supcon_out", "supcon_in"])
@sweep("temperature", [0.3, 0.0003])
@sweep("exponent", [-1070, 1018])
def test_only_ratios_of_the_weights_of_a_row_count(name, temperature, exponent):
    """Row by row, too: each has its own factor, and the diagonal takes no part."""
    given = {"embeddings": Z, "temperature": temperature}
    factors = np.ldexp(1.0, np.where(np.arange(6) % 2, exponent, 0))[:, None]
    value, grad = gradients(name, {**given, "mask": MASK * (1 - np.eye(6))})
    scaled_value, scaled_grad = gradients(name, {**given, "mask": MASK * np.where(np.eye(6), 1.0, factors)})
    assert scaled_value == value
    for key in grad:
        assert np.array_equal(scaled_grad[key], grad[key])


def test_the_sum_form_multiplies_by_the_weights():
    given = {"embeddings": Z, "temperature": 0.3, "form": "sum"}
    value, grad = gradients("supcon_out", {**given, "mask": MASK})
    tiny_value, tiny_grad = gradients("supcon_out", {**given, "mask": np.ldexp(MASK, -1000)})
    assert (tiny_value, tiny_grad["temperature"]) == (np.ldexp(value, -1000), np.ldexp(grad["temperature"], -1000))
    assert np.array_equal(tiny_grad["embeddings"], np.ldexp(grad["embeddings"], -1000))


@pytest.mark.parametrize("weight", [5e-324, 1.7e308, np.finfo(np.float32).max, np.float32(1e-45)])
def test_equal_weights_of_any_size_are_no_weights(weight):
    loss = get_loss("supcon_out")
    given = {"embeddings": Z.astype(type(weight)), "labels": Y, "temperature": 0.3}
    value, grad = gradients("supcon_out", given)
    weighted = {**given, "anchor_weights": np.full(6, weight)}
    weighted_value, weighted_grad = gradients("supcon_out", weighted)
    assert weighted_value == pytest.approx(value, rel=1e-15)
    assert weighted_grad["embeddings"] == pytest.approx(grad["embeddings"], rel=1e-13)
    assert bounds(loss, **weighted).value == pytest.approx(bounds(loss, **given).value, rel=1e-9, abs=0)


SCALED = {
    "info_nce": ({"queries": Z, "keys": W, "temperature": 9.0, "normalize": "none"}, ("queries", "keys")),
    "nt_xent": ({"z1": Z, "z2": W, "temperature": 9.0, "normalize": "none"}, ("z1", "z2")),
    "supcon_out": ({"embeddings": Z, "labels": Y, "temperature": 9.0, "normalize": "none"}, ("embeddings",)),
    "clip": ({"image": Z, "text": W, "logit_scale": 0.1, "normalize": "none"}, ("image", "text")),
    "uniformity": ({"x": Z, "t": 0.01, "normalize": "none"}, ("x",)),
}


@sweep("name", SCALED)
@sweep("exponent", [-505, 505])
def test_rows_of_any_size_meet_a_temperature_of_their_square(name, exponent):
    """The logits stay what they are, so that gradients change by the inverse of what their input changes by."""
    given, rows = SCALED[name]
    (scalar,) = (key for key, x in given.items() if isinstance(x, float))
    power = 2 * exponent if scalar == "temperature" else -2 * exponent
    changed = {**given, scalar: math.ldexp(given[scalar], power), **{x: np.ldexp(given[x], exponent) for x in rows}}
    (value, grad), (far_value, far_grad) = gradients(name, given), gradients(name, changed)
    assert far_value == value
    for key, g in grad.items():
        assert np.array_equal(far_grad[key], np.ldexp(g, -exponent if key in rows else -power)), key


@pytest.mark.parametrize("exponent", [-1070, -900, 900])
def test_the_length_of_a_row_is_measured_in_its_own_unit(exponent):
    """Entries of -1070 are subnormal, and exact; the cotangent keeps their gradients, which are as large, in range."""
    cotangent = np.ldexp(np.ones(12), -60)
    value, grad = gradients("nt_xent", {"z1": Z, "z2": W, "temperature": 0.3}, "none", cotangent=cotangent)
    far = {"z1": np.ldexp(Z, exponent), "z2": W, "temperature": 0.3}
    far_value, far_grad = gradients("nt_xent", far, "none", cotangent=cotangent)
    assert np.array_equal(far_value, value)
    assert far_grad["temperature"] == grad["temperature"]
    assert np.array_equal(far_grad["z1"], np.ldexp(grad["z1"], -exponent))


@pytest.mark.parametrize("name", ["nt_xent", "dclw", "hcl"])
def test_a_subnormal_cotangent_keeps_the_digits_of_the_gradient(name):
    """Rows of 2^-600 bring the gradient back into the range."""
    given = {"z1": np.ldexp(Z, -600), "z2": np.ldexp(W, -600), "temperature": 0.3}
    _, grad = gradients(name, given, "none", cotangent=np.ones(12))
    _, tiny = gradients(name, given, "none", cotangent=np.full(12, math.ldexp(1.0, -1070)))
    assert np.array_equal(tiny["z1"], np.ldexp(grad["z1"], -1070))


@sweep("temperature", [1e-307, 1e-200, 1e-155, 1e155, 1e200, 1e307])
def test_the_gradient_by_the_temperature_is_right_at_both_ends(temperature):
    """Cross-entropy of two classes: L = log(1 + e^(-x/T)), dL/dT = x/T^2 / (1 + e^(x/T)); here x = T."""
    value, grad = losses.cross_entropy.value_and_grad([[temperature, 0.0]], [0], temperature=temperature)
    share = 1 / (1 + math.e)
    assert value == pytest.approx(math.log1p(math.exp(-1)), rel=1e-14, abs=0)
    assert grad["temperature"] == pytest.approx(share / temperature, rel=1e-14, abs=0)
    assert grad["logits"][0] == pytest.approx(np.array([-1, 1]) * share / temperature, rel=1e-14, abs=0)


@sweep(("dtype", "temperature"), [("f4", 3.5e-9), ("f8", 1e-17), ("f8", 1e-30)])
@sweep(("name", "alone"), [("nt_xent", {}), ("paco", {"alpha": 0.3, "form": "normalized"})])
def test_shares_stay_shares_where_logits_have_no_digit_after_the_point(name, alone, dtype, temperature):
    """Slopes of a row are shares minus shares: the gradient of z_i is at most a few 1 / (T |z_i|), in any rounding."""
    z = RNG.standard_normal((40, 3)).astype(dtype)
    given = {"z1": z[:20], "z2": z[20:]} if name == "nt_xent" else {"embeddings": z, "labels": np.arange(40) % 3}
    if name == "paco":
        alone = {**alone, "centers": z[:3], "center_features": z}
    _, grad = gradients(name, {**given, **alone, "temperature": temperature}, "sum")
    for key in set(given) - {"labels"}:
        lengths = np.linalg.norm(given[key].astype("f8"), axis=1, keepdims=True)
        assert np.max(np.abs(grad[key]) * temperature * lengths) <= 2 * 40
    assert abs(grad["temperature"]) <= 2 * 40 / temperature**2


def test_paco_keeps_the_digits_that_a_tiny_alpha_leaves():
    """One class, one other sample: L = log(1 + e^(s-c)) + a/(1+a) (c - s) for a = alpha, both terms tiny."""
    alpha, center, features = 1e-200, [[30.0]], [[1.0], [1.0]]
    arguments = {"alpha": alpha, "temperature": 1 / 770, "form": "normalized", "normalize": "none"}
    value = losses.paco([[1.0], [-1.0]], [0, 0], center, center_features=features, **arguments)
    assert value == pytest.approx(alpha * 800, rel=1e-13, abs=0)


F4 = np.float32
L2, F64 = " or pass normalize='l2'", " or pass float64 arrays"


@sweep(
    ("call", "advice"),
    [
        (lambda: losses.nt_xent(Z, W, temperature=1e-310), "`temperature` with 1e-310: raise it"),
        (
            lambda: losses.nt_xent(F4(Z), F4(W), temperature=1e-40),
            "`temperature` with 1e-40: raise it" + F64,
        ),
        (lambda: losses.nt_xent.anatomy(Z, W, temperature=1e-310), "`temperature` with 1e-310: raise it"),
        # Normalized rows have no part in it, however large they are.
        (
            lambda: losses.nt_xent.value_and_grad(Z * 1e200, W, temperature=1e-160),
            "`temperature` with 1e-160: raise it",
        ),
        (lambda: losses.nt_xent.value_and_grad(Z * 1e-310, W, temperature=0.3), "`z1` with 8e-310: scale it up"),
        (lambda: losses.clip(Z, W, logit_scale=1e308, normalize="none"), "`logit_scale` with 1e+308: lower it"),
        (
            lambda: losses.siglip(F4(Z), F4(W), logit_scale=1.0, logit_bias=-1e39),
            "`logit_bias` with 1e+39: raise it" + F64,
        ),
        (lambda: losses.simple(Z * 1e200, W * 1e300, normalize="none"), "`keys` with 8e+300: scale it down" + L2),
        (
            lambda: losses.simple(F4(Z * 1e30), F4(W), normalize="none", negative_weight=1e20),
            "`queries` with 8e+30: scale it down" + L2 + F64,
        ),
        (lambda: losses.cross_entropy(Z * 1e307, Y, temperature=0.01), "`logits` with 8e+307: scale it down"),
        (
            lambda: losses.supcon_out(Z, mask=1.7e308 * (MASK > 0), temperature=0.3, form="sum"),
            "`mask` with 1.7e+308: scale it down",
        ),
        (
            lambda: losses.clip.value_and_grad(
                Z, W, logit_scale=9.0, reduction="none", cotangent=np.full((2, 6), 1.7e308)
            ),
            "`cotangent` with 1.7e+308: scale it down",
        ),
        (lambda: bounds(losses.nt_xent, Z, W, temperature=1e-160), "`temperature` with 1e-160: raise it"),
        (
            lambda: losses.paco.decompose(Z, Y, W[:2], alpha=0.3, temperature=1e-310),
            "`temperature` with 1e-310: raise it",
        ),
    ],
)
def test_what_cannot_be_computed_is_blamed_on_an_argument_with_what_to_do(call, advice):
    with pytest.raises(InputError, match=r"leaves the range of float\d\d; farthest from 1 is ") as caught:
        call()
    assert str(caught.value).endswith(advice)


@pytest.mark.parametrize("name", ["nt_xent", "supcon_in"])
def test_the_anatomy_of_logits_without_a_digit_after_the_point_has_shares(name):
    """Slopes of a row are shares minus shares, and add up to 0; blocks round the logits another way."""
    z = np.random.default_rng(0).standard_normal((2, 80, 7))
    given = {"z1": z[0], "z2": z[1]} if name == "nt_xent" else {"embeddings": z[0], "labels": np.arange(80) % 3}
    with config(block=16):
        slopes = get_loss(name).anatomy(**given, temperature=1e-17).slopes
    assert np.max(np.abs(slopes)) <= 2 / len(slopes)


def test_equal_rows_are_no_distance_apart_for_any_exponent():
    """Float32 has no such exponent: a power that is rounded to 0 would give 1."""
    x = np.float32([[-1.0], [1.0]])
    values = get_loss("alignment")(x, -x[:1] * x * x, exponent=2.3e-308, normalize="none", reduction="none")
    assert values.tolist() == [1.0, 0.0]
    uniformity = get_loss("uniformity")
    assert uniformity(np.zeros((4, 3), "f2"), t=1.7e308, include_diagonal=True, normalize="none") == 0.0


def test_alignment_keeps_the_digits_of_tiny_exponents_and_tiny_distances():
    """D = 1: the gradient is a d^(a - 1), times the sign of the difference."""
    cotangent = np.array([3.97e198, -2e199])
    given = {"x": np.array([[0.75], [0.5]]), "y": np.array([[0.25], [0.75]]), "exponent": 5e-324, "normalize": "none"}
    _, grad = gradients("alignment", given, "none", cotangent=cotangent)
    assert grad["x"][:, 0] == pytest.approx(cotangent * 5e-324 * [2.0, -4.0], rel=1e-14, abs=0)
    # A distance of sqrt(5) smallest numbers is rounded to 2 of them; the direction has all its digits.
    tiny = {"x": np.array([[2.0, 1.0]]) * 5e-324, "y": np.zeros((1, 2)), "exponent": 1.0, "normalize": "none"}
    _, grad = gradients("alignment", tiny, "sum")
    assert grad["x"][0] == pytest.approx(np.array([2.0, 1.0]) / math.sqrt(5), rel=1e-15)


@pytest.mark.parametrize(
    ("mask", "weight", "rows", "temperature"),
    [(5e-324, 1e56, 1.0, 0.9), (3e-322, 1e209, 1.0, 0.9), (1e-293, 1.0, 1e-103, 2.3e-308), (5e-324, 1.0, 1e50, 1e61)],
)
def test_the_sum_form_multiplies_a_tiny_mask_by_what_brings_it_back(mask, weight, rows, temperature):
    """Two samples x, each the other's positive, and 2 x, no anchor: L = 2 m w log(1 + e^(x x / T))."""
    z = rows * np.array([[1.0], [1.0], [2.0]])
    pairs = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    arguments = {"mask": mask * pairs, "anchor_weights": weight * np.ones(3), "temperature": temperature}
    value, grad = gradients(
        "supcon_out", {"embeddings": z, **arguments, "form": "sum", "normalize": "none", "no_positive": "zero"}, "sum"
    )
    gap = Fraction(rows) ** 2 / Fraction(temperature)
    share = 1 / (1 + math.exp(-gap)) if gap < 700 else 1.0
    loss = float(gap) + math.log1p(math.exp(-gap)) if gap < 700 else gap
    factor = 2 * Fraction(mask) * Fraction(weight)
    assert value == pytest.approx(float(factor * Fraction(loss)), rel=1e-14, abs=0)
    by_temperature = float(-factor * Fraction(share) * gap / Fraction(temperature))
    assert grad["temperature"] == pytest.approx(by_temperature, rel=1e-14, abs=0)


def test_distances_beyond_the_range_are_refused_by_name():
    """In units of the largest distance, that of the two near rows would be 0."""
    x = np.float32([[0.0], [3e38], [0.05]])
    with pytest.raises(InputError, match=r"a logit leaves the range of float32.*`x`"):
        get_loss("uniformity")(x, normalize="none")
    assert get_loss("uniformity")(x, t=1e-39, normalize="none") == pytest.approx(-math.log(3))


def test_an_infinite_logit_is_refused_where_its_loss_would_be_a_number():
    """-0.2 h + 0.3 h with h near the largest number: the first product alone is infinite, with the wrong sign."""
    huge = float(np.finfo(np.float32).max)
    image, text = np.float32([[-0.19, 0.23]]), np.float32([[-huge, -huge]])
    with pytest.raises(InputError, match="a logit leaves the range of float32"):
        get_loss("siglip")(image, text, logit_scale=8.3, normalize="none")


def test_rows_of_zeros_have_logits_of_zero_at_any_temperature():
    """In float32 the inverse of this temperature is infinite."""
    given = {"labels": [1, 0], "centers": np.float32([[1.0], [0.0]]), "alpha": 0.2, "normalize": "none"}
    values = [get_loss("paco")(np.zeros((2, 1), "f4"), **given, temperature=t) for t in (1e-295, 1.0)]
    assert values[0] == values[1]
