"""Exponents that take too many digits: the refusal names the argument, and where it can be used."""

import re

import numpy as np
import pytest
from sweep import sweep

from nceref import InputError, exact
from nceref.engine.bound_loss import bound_loss
from nceref.exact.digits import digits_of_exponents
from nceref.exact.reference import largest_exponent
from nceref.losses import get_loss

X, Y = np.random.default_rng(0).standard_normal((2, 4, 3))
LABELS = np.array([0, 1, 2, 0])


@sweep(
    ("name", "arrays", "given", "reach", "advice"),
    [
        ("nt_xent", (X, Y), {"temperature": 1e-100}, "1.0e+100", "`temperature` with 1e-100: raise it to 2^-14"),
        (
            "dclw",
            (X, Y),
            {"temperature": 0.5, "sigma": 5e-324},
            "1.6e+323",
            "`sigma` with 4.94e-324: raise it to 2^-14",
        ),
        ("hcl", (X, Y), {"temperature": 0.5, "concentration": 1e12}, "1.8e+12", "1e+12: lower it to 2^13 = 8192"),
        ("siglip", (X, Y), {"logit_scale": 1.0, "logit_bias": -1e9}, "1.0e+9", "1e+09: raise it to -2^14 = -1.638e+04"),
        ("cross_entropy", (1e7 * X, LABELS), {}, "1.3e+7", "`logits` with 1.3e+07: scale it down"),
        ("cross_entropy", (1e7 * X, LABELS), {"temperature": 1e-9}, "1.3e+16", "`temperature` with 1e-09: raise it"),
    ],
)
def test_too_many_digits_are_refused_with_the_usable_range(name, arrays, given, reach, advice):
    with pytest.raises(InputError) as caught:
        exact.reference(name, *arrays, **given)
    message = str(caught.value)
    assert message.startswith(f"exponents of {name} reach {reach}, exact values are computed up to 23,025; farthest")
    assert advice in message
    if limit := re.search(r"to (-?)2\^(-?\d+)", message):
        scalar = list(given)[-1]
        inside, outside = (float(f"{limit[1]}1") * 2.0 ** (int(limit[2]) * k) for k in (1, 1.1))
        assert 20_000 / 4 < digits(name, arrays, {**given, scalar: inside}) <= 20_000
        with pytest.raises(InputError):
            digits(name, arrays, {**given, scalar: outside})


def digits(name, arrays, given):
    bound = bound_loss(get_loss(name).declaration, arrays, given)
    return digits_of_exponents(bound, lambda inputs: largest_exponent(bound.loss, inputs))
