"""Numbers in the place of a scalar: they are read off the value, and none is made up."""

import math

import numpy as np
import pytest
from diagnosis.altered_losses import altered, at
from slow import partly_slow

from nceref.cases.corpus.corpus import evaluate
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.diagnose import diagnose
from nceref.diagnosis.gaps import usable
from nceref.diagnosis.roots import Solver
from nceref.diagnosis.simple_numbers import candidates
from nceref.diagnosis.solve import solved

SWEEP = "a diagnosis of another number in the same place"


def first(observations):
    return diagnose(observations)[0]


@pytest.mark.parametrize(
    ("id", "f", "slope"),
    partly_slow(
        [
            ("temperature-missing", lambda t: 1.0, lambda t: 0.0),
            ("temperature-multiplied", lambda t: 1 / t, lambda t: -1 / t**2),
            ("temperature-exponentiated", lambda t: math.exp(-t), lambda t: -math.exp(-t)),
            ("temperature-squared", lambda t: t * t, lambda t: 2 * t),
            ("temperature-square-root", math.sqrt, lambda t: 0.5 / math.sqrt(t)),
            ("temperature-ignored", lambda t: 0.1, lambda t: 0.0),
            ("temperature-ignored", lambda t: float(np.float32(0.1)), lambda t: 0.0),
            ("temperature-off-by-a-factor", lambda t: 10 * t, lambda t: 10.0),
        ],
        lambda case: case[0] in ("temperature-multiplied", "temperature-off-by-a-factor"),
        SWEEP,
    ),
)
def test_another_temperature_is_named(id, f, slope):
    found = first(altered("nt_xent", at("temperature", f, slope)))
    assert found.id == id
    assert "the gradient of" not in found.sentence


@pytest.mark.parametrize(
    ("id", "f", "slope"),
    partly_slow(
        [
            ("scale-missing", lambda s: 1.0, lambda s: 0.0),
            ("scale-divides", lambda s: 1 / s, lambda s: -1 / s**2),
            ("scale-without-exponential", math.log, lambda s: 1 / s),
            ("scale-clamped", lambda s: min(s, 20.0), lambda s: float(s < 20)),
            ("scale-clamped", lambda s: min(max(s, 1.0), math.exp(4.6052)), lambda s: float(1 <= s <= 100)),
        ],
        lambda case: case[0] == "scale-without-exponential",
        SWEEP,
    ),
)
def test_another_scale_is_named(id, f, slope):
    assert first(altered("siglip", at("logit_scale", f, slope), every=1)).id == id


@pytest.mark.parametrize(
    ("loss", "name", "value", "dtype"),
    partly_slow(
        [
            # Small enough a difference to look like rounding to bfloat16.
            ("dclw", "sigma", 0.5, "float64"),
            ("siglip", "logit_bias", -10.0, "float32"),
            ("cross_entropy", "label_smoothing", 0.002, "float64"),
            ("cross_entropy", "label_smoothing", 0.0, "float64"),
        ],
        lambda case: case[0] == "cross_entropy",
        SWEEP,
    ),
)
def test_a_scalar_that_is_ignored_is_named_with_its_value(loss, name, value, dtype):
    found = first(altered(loss, at(name, lambda given: value, lambda given: 0.0), dtype=dtype))
    assert found.id == "scalar-ignored"
    assert f"({name} = {value:.9g})" in found.sentence


@pytest.mark.parametrize(
    "settings", partly_slow([{}, {"margin": 0.35}], lambda settings: bool(settings), "the same scalar, passed")
)
def test_a_scalar_that_is_rounded_is_told_from_one_that_is_ignored(settings):
    def target(probe, value, grads):
        moved = evaluate(probe.loss, {**probe.inputs, "margin": float(np.float32(probe.inputs["margin"]))})
        return None if moved.skip else (moved.value, moved.grads)

    found = first(altered("cosface", target, settings=settings, every=3))
    assert found.id == "scalar-in-float32"
    assert "rounded to float32 (margin)" in found.sentence


def test_of_many_numbers_that_would_give_a_value_the_short_one_is_named():
    """A fraction is a count of negatives: no single number can be read off."""
    found = first(altered("hard_contrastive", at("fraction", lambda given: 0.5, lambda given: 0.0)))
    assert found.id == "scalar-ignored"
    assert "(fraction = 0.5)" in found.sentence


@pytest.mark.parametrize(
    ("loss", "name", "value"),
    partly_slow(
        [
            ("cosface", "margin", 0.3500001),
            ("nce", "noise_ratio", 0.1),
            ("paco", "alpha", 0.01),
        ],
        lambda case: case[0] == "nce",
        SWEEP,
    ),
)
def test_a_number_is_read_off_the_value_of_two_cases(loss, name, value):
    answers = altered(loss, at(name, lambda given: value, lambda given: 0.0))
    options = solved([CaseAnalysis(o) for o in usable(answers)])
    numbers = [option.value[1] for option in options if option.id == "scalar-ignored" and option.value[0] == name]
    assert np.min(np.abs(np.subtract(numbers, value))) < 1e-9


def test_a_root_is_as_exact_as_the_function():
    """Not only as exact as the room, which is for rounding that may not be there."""
    (root,) = Solver(lambda x: math.exp(x) - math.exp(-2.5), (-3.0, -2.0), 1e-3).roots()
    assert abs(root + 2.5) < 1e-14


def test_a_number_that_is_known_roughly_may_be_a_short_one():
    """The value hardly depends on a mask of -25, so that its neighbors give it as well."""
    assert candidates(-25.000345, 1e-3) == [-25.0, -25.000345]
    assert candidates(-25.000345) == [-25.000345]
    assert candidates(1 / 3 + 1e-9, 1e-2) == [1 / 3, 0.333, 1 / 3 + 1e-9]
    assert candidates(0.25) == [0.25]
