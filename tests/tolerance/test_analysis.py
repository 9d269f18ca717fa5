"""The derived bound: explained by its terms, sharp enough to see small errors, and growing where it must."""

import itertools

import numpy as np
import pytest
from sweep import every_loss, sweep

from nceref import get_loss, losses
from nceref.checks.cases import cases
from nceref.tolerance import bounds, close

pytestmark = pytest.mark.machine

EPS = float(np.finfo(np.float64).eps)


def pairs(n=6, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((2, n, d))


@every_loss
def test_bound_is_a_few_hundred_roundings_on_well_conditioned_inputs(loss_name):
    """Sharp: an error in the tenth digit of value or gradient is far outside."""
    loss = get_loss(loss_name)
    for case in cases(loss.declaration, ("random",), (1.0,), variants=1):
        value, grads = loss.value_and_grad(**case.inputs)
        allowed = bounds(loss, **case.inputs)
        assert 0 < allowed.value < 1e-12 * max(1.0, abs(value))
        for name, grad in grads.items():
            assert np.all(allowed.grads[name] > 0)
            assert np.max(allowed.grads[name]) < 1e-12 * max(1.0, float(np.max(np.abs(grad))))


def test_terms_add_up_to_the_bound_and_can_be_printed():
    z1, z2 = pairs()
    allowed = bounds(losses.nt_xent, z1, z2, temperature=0.1)
    assert sum(allowed.terms.values()) == allowed.value
    lines = allowed.explain().splitlines()
    assert [line.split()[0] for line in lines] == ["rows", "reduction", "underflow", "value"]


@pytest.mark.parametrize("size", [1e3, 1e16, 1e18, 1e100])
def test_bound_is_a_few_roundings_of_the_logits_however_large_they_are(size):
    """Where a rounding of a logit is larger than 1, exponentials are unknown; the loss is not."""
    logits, target = size * pairs()[0], [0, 1, 2, 3, 0, 1]
    assert bounds(losses.cross_entropy, logits, target).value < 1e-13 * size
    x = np.abs(logits[:, 0])
    noise = {"data_log_noise": -x, "noise_log_noise": x, "noise_ratio": 1.0}
    assert bounds(losses.nce, x, -x, **noise).value < 1e-13 * size


@pytest.mark.parametrize("name", ["nt_xent", "supcon_in"])
def test_bound_of_a_gradient_is_no_larger_than_shares_allow(name):
    """A share is between 0 and 1 even where the rounding of the logits hides it: so is what its error can be."""
    z, temperature = pairs()[0], 1e-30
    given = {"z1": z, "z2": z[::-1].copy()} if name == "nt_xent" else {"embeddings": z, "labels": [0, 0, 0, 1, 1, 1]}
    allowed = bounds(get_loss(name), **given, temperature=temperature)
    for key in set(given) - {"labels"}:
        assert np.max(allowed.grads[key] * temperature * np.linalg.norm(z, axis=1).min()) < 4 * len(z)


def test_a_logit_that_rounding_hides_is_in_the_bound():
    """A negative of 2000 comes out as 0 where 2^80 and -2^80 are added around it; beside one of 1000 its share is 0."""
    huge = 2.0**40
    image = np.array([[huge, huge, 1.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.5]])
    text = np.array([[0.0, 0.0, 1000.0], [huge, -huge, 2000.0], [0.0, 0.0, 1000.0]])
    # By hand, shares of e^-500 left out: the logits are [[1000, 2000, 1000], [500, 1000, 500], [500, 1000, 500]].
    slopes = np.array([[-1.0, 2.0, 1.0], [0.0, -1.0, 0.0], [0.0, 1.0, -2.0]]) / 6
    exact = {"image": slopes @ text, "text": slopes.T @ image}
    # Which order hides it depends on how a library adds up.
    for order in itertools.permutations(range(3)):
        given = {"image": image[:, order], "text": text[:, order], "logit_scale": 1.0, "normalize": "none"}
        value, grads = get_loss("clip").value_and_grad(**given)
        allowed = bounds(losses.clip, **given)
        assert abs(value - 500) <= allowed.value
        for name, right in exact.items():
            assert np.all(np.abs(grads[name] - right[:, order]) <= allowed.grads[name])
            assert np.all(allowed.grads[name] <= 4 * huge)


def test_a_slope_that_rounding_hides_is_in_the_bound():
    """Logits are 0 exactly; the negative ones, whose slope is 1/2 there, may come out so low that it is 0."""
    huge = float(np.finfo(np.float32).max)
    image, text = np.array([[-huge, huge], [huge, -huge]]), np.array([[huge, huge], [-huge, -huge]])
    for scale in (16.547251134547633, 8.3, 3.1):
        given = {"image": image, "text": text, "logit_scale": scale, "normalize": "none"}
        allowed = bounds(losses.siglip, **given)
        assert np.log(4) <= allowed.value
        # Each pair has a slope of 1/2 per image: -1/2 for its own text, 1/2 for the other.
        assert np.all(allowed.grads["image"] >= scale * huge / 2)


@sweep(
    ("exponent", "size"),
    [
        (0.1, 3e37), (0.25 * (1 + 2.0**-24), 3e37), (0.25 * (1 + 2.0**-24), 1e-37), (1 + 2.0**-24, 3e37),
        (1 + 2.0**-24, 1e18), (1.7, 1e18), (1.7, 1e-3),
    ],
)  # fmt: skip
def test_an_exponent_that_is_rounded_is_within_the_bounds(exponent, size):
    """Of d^a, relatively, by the rounding of a times log d: 80 units and more where d is far from 1."""
    x, y = np.array([[size]], np.float32), np.array([[-size / 3]], np.float32)
    given = {"exponent": exponent, "normalize": "none"}
    exact, grads = losses.alignment.value_and_grad(x.astype(float), y.astype(float), **given)
    allowed = bounds(losses.alignment, x, y, **given)
    single, distance = np.float32(exponent), x - y
    assert abs(float((distance**single).item()) - exact) <= allowed.value
    assert abs(single * distance ** (single - np.float32(1)) - grads["x"]) <= allowed.grads["x"]


def test_the_spacing_of_subnormal_distances_is_in_the_bound():
    """Rows of 1e-312: a power near 0 of their distance is an ordinary number, without the digits of one."""
    x = 1e-312 * np.array([[-2.74556659, -1.56860775], [-1.56382322, 1.75581984]])
    y = 1e-312 * np.array([[1.44670845, 0.188770137], [-0.288692399, 0.66556782]])
    given = {"exponent": 1.0686615539200306, "normalize": "none"}
    distance = np.linalg.norm((x - y) / 1e-312, axis=1) * 1e-312
    slopes = given["exponent"] * distance ** (given["exponent"] - 1) / len(x)
    # A distance is off by up to half a spacing, 2^-1075.
    lost = slopes * (given["exponent"] - 1) * (5e-324 / distance) / 2
    allowed = np.linalg.norm(bounds(losses.alignment, x, y, **given).grads["y"], axis=1)
    assert np.all(lost / 2 <= allowed)


def test_bound_grows_as_the_temperature_falls():
    z1, z2 = pairs()
    sizes = [bounds(losses.nt_xent, z1, z2, temperature=t).value for t in (1.0, 0.1, 0.01, 0.001)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 100 * sizes[0]


def test_bound_of_float32_is_that_of_its_unit_roundoff():
    z1, z2 = pairs()
    double = bounds(losses.nt_xent, z1, z2, temperature=0.1).value
    single = bounds(losses.nt_xent, z1.astype("f4"), z2.astype("f4"), temperature=0.1).value
    assert 2**28 < single / double < 2**30


def test_storage_and_accumulation_are_apart():
    """Float16 inputs are computed in float32: one rounding to float16 dominates the gradient, not the value."""
    z1, z2 = (x.astype(np.float16) for x in pairs())
    half = bounds(losses.nt_xent, z1, z2, temperature=0.5)
    same = bounds(losses.nt_xent, z1.astype("f4"), z2.astype("f4"), temperature=0.5)
    assert half.value == same.value
    assert np.all(half.grads["z1"] > same.grads["z1"])
    wide = bounds(losses.nt_xent, z1, z2, temperature=0.5, accumulate=np.float64)
    assert wide.value < half.value


@pytest.mark.parametrize("factor", [1 + 1e-11, 1 - 1e-11])
def test_a_loss_that_is_wrong_in_the_eleventh_digit_is_outside(factor):
    z1, z2 = pairs()
    value = losses.nt_xent(z1, z2, temperature=0.5)
    assert abs(factor * value - value) > bounds(losses.nt_xent, z1, z2, temperature=0.5).value


def test_close_counts_units_in_the_last_place():
    assert close(1 + 8 * EPS, 1.0)
    assert not close(1 + 32 * EPS, 1.0)
    assert close(32 * EPS, 0.0, scale=4.0)
    assert not close(128 * EPS, 0.0, scale=4.0)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_close_accepts_no_nan_and_no_infinity(wrong):
    assert not close(wrong, wrong)
    assert not close(1.0, wrong)
    assert not close(np.array([1.0, wrong]), np.ones(2))
    assert not close(np.ones(2), np.array([1.0, wrong]))


def test_close_does_not_broadcast():
    assert not close(np.ones(3), 1.0)
    assert not close(np.ones((3, 1)), np.ones(3))


def test_what_is_lost_below_the_range_is_in_the_bound_of_a_temperature():
    """A product of 1e-49 is 0 in float32, though divided by T^2 it is a number of float32."""
    z = np.float32([[0.0], [5e-42], [3e-8]])
    given = {"labels": [0, 1, 1], "temperature": 6e-8, "normalize": "none", "no_positive": "zero"}
    allowed = bounds(losses.supcon_out, z, **given).grads["temperature"]
    grad = get_loss("supcon_out").value_and_grad(z, **given)[1]["temperature"]
    right = get_loss("supcon_out").value_and_grad(z.astype(float), **given)[1]["temperature"]
    assert abs(grad - right) <= allowed <= 4 * abs(right)
