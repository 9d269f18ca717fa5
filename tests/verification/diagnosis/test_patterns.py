"""What the verifier says without the convention search: each convention made by hand is named, and nothing else is."""

import math

import numpy as np
import pytest

from nceref.losses import LossFunction, get_loss
from nceref.verification.corpus.corpus import corpus, evaluate
from nceref.verification.diagnosis.departure import departure
from nceref.verification.diagnosis.diagnose import diagnose
from nceref.verification.records import Observation, Outcome


def observed(name, target, suite="quick", settings=None, **options):
    """The corpus of a loss with what `target(probe, value, grads)` answers, given the right answer."""
    probes = corpus(get_loss(name).declaration, settings or {}, suite=suite, **options)
    out = []
    for probe in probes:
        answer = None if probe.skip else target(probe, probe.value, dict(probe.grads))
        out.append(Observation(probe, Outcome() if answer is None else Outcome(answer[0], answer[1])))
    return out


def first(observations):
    found = diagnose(observations)
    assert found
    return found[0]


def times(factor):
    def target(probe, value, grads):
        by = factor(probe) if callable(factor) else factor
        return by * value, {name: by * grad for name, grad in grads.items()}

    return target


def temperature(probe):
    return probe.inputs["temperature"]


def samples(probe):
    return len(next(iter(probe.inputs.values())))


@pytest.mark.parametrize("name", ["nt_xent", "supcon_out", "siglip", "nce", "uniformity", "paco"])
def test_nothing_is_said_of_a_right_target(name):
    assert diagnose(observed(name, times(1.0))) == ()


@pytest.mark.parametrize(
    ("id", "factor"),
    [
        ("outer-factor-2", 2.0),
        ("outer-factor-half", 0.5),
        ("sign-flipped", -1.0),
        ("log-base-2", 1 / math.log(2)),
        ("log-base-10", 1 / math.log(10)),
        ("outer-factor-n", samples),
        ("divided-by-n-twice", lambda probe: 1 / samples(probe)),
    ],
)
def test_a_factor_is_named(id, factor):
    found = first(observed("nt_xent", times(factor)))
    assert found.id == id
    assert "the gradient of" not in found.sentence
    assert found.fix


@pytest.mark.parametrize(
    ("id", "factor", "power"),
    [
        ("outer-factor-temperature", lambda t: t, 1),
        ("outer-factor-2-temperature", lambda t: 2 * t, 1),
        ("outer-factor-temperature-over-base", lambda t: t / 0.07, 1),
        ("outer-factor-inverse-temperature", lambda t: 1 / t, -1),
    ],
)
def test_a_factor_with_the_temperature_is_named_with_its_gradient_or_without(id, factor, power):
    def target(probe, value, grads):
        t = temperature(probe)
        found = {name: factor(t) * grad for name, grad in grads.items()}
        return factor(t) * value, {**found, "temperature": found["temperature"] + power * factor(t) / t * value}

    found = first(observed("nt_xent", target))
    assert found.id == id
    assert "the gradient of" not in found.sentence
    detached = first(observed("nt_xent", times(lambda probe: factor(temperature(probe)))))
    assert detached.id == id
    assert "the gradient of temperature is wrong" in detached.sentence


def test_a_constant_that_nobody_declared_is_fitted_and_written_as_a_fraction():
    found = first(observed("supcon_out", times(2.5)))
    assert found.id == "outer-factor-constant"
    assert "= 5/2)" in found.sentence


def test_offsets_are_told_from_factors():
    added = first(observed("nt_xent", lambda probe, value, grads: (value + 1.5, grads)))
    assert (added.id, "= 3/2)" in added.sentence) == ("offset-constant", True)
    fewer = first(observed("info_nce", lambda probe, value, grads: (value - math.log(samples(probe)), grads)))
    assert (fewer.id, "- log N" in fewer.sentence) == ("offset-log-n", True)
    both = first(observed("nt_xent", lambda p, value, g: (3 * value - 0.25, {n: 3 * x for n, x in g.items()})))
    assert both.id == "outer-factor-constant+offset-constant"


def at(name, f, slope):
    """A target that computes the loss at another temperature or scale."""

    def target(probe, value, grads):
        given = probe.inputs[name]
        moved = evaluate(probe.loss, {**probe.inputs, name: f(given)})
        if moved.skip:
            return None
        by = {name: slope(given) * moved.grads[name]} if name in moved.grads else {}
        return moved.value, moved.grads | by

    return target


@pytest.mark.parametrize(
    ("id", "f", "slope"),
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
)
def test_another_temperature_is_named(id, f, slope):
    found = first(observed("nt_xent", at("temperature", f, slope)))
    assert found.id == id
    assert "the gradient of" not in found.sentence


@pytest.mark.parametrize(
    ("id", "f", "slope"),
    [
        ("scale-missing", lambda s: 1.0, lambda s: 0.0),
        ("scale-divides", lambda s: 1 / s, lambda s: -1 / s**2),
        ("scale-without-exponential", math.log, lambda s: 1 / s),
        ("scale-clamped", lambda s: min(s, 20.0), lambda s: float(s < 20)),
    ],
)
def test_another_scale_is_named(id, f, slope):
    assert first(observed("siglip", at("logit_scale", f, slope))).id == id


@pytest.mark.parametrize(
    ("loss", "name", "value", "dtype"),
    [
        ("hcl", "concentration", 1.0, "float64"),
        ("hcl", "concentration", 0.37, "float64"),
        ("debiased", "positive_prior", 0.3, "float32"),
        # Small enough a difference to look like rounding to bfloat16.
        ("dclw", "sigma", 0.5, "float64"),
        ("arcface", "margin", 0.5, "float64"),
        ("siglip", "logit_bias", -10.0, "float32"),
        ("cross_entropy", "label_smoothing", 0.1, "float64"),
        ("cross_entropy", "label_smoothing", 0.002, "float64"),
        ("cross_entropy", "label_smoothing", 0.0, "float64"),
        ("paco", "alpha", 0.01, "float64"),
        ("paco", "alpha", 0.0, "float64"),
        ("cosface", "margin", 0.3500001, "float64"),
        ("nce", "noise_ratio", 0.1, "float64"),
    ],
)
def test_a_scalar_that_is_ignored_is_named_with_its_value(loss, name, value, dtype):
    found = first(observed(loss, at(name, lambda given: value, lambda given: 0.0), dtype=dtype))
    assert found.id == "scalar-ignored"
    assert f"({name} = {value:.9g})" in found.sentence


def test_a_value_that_many_numbers_would_give_is_not_made_up():
    """A fraction is a count of negatives: no single number can be read off."""
    found = first(observed("hard_contrastive", at("fraction", lambda given: 0.5, lambda given: 0.0)))
    assert found.id == "unexplained"


def by_rows(weights):
    """A target that adds up the rows in its own way."""

    def target(probe, value, grads):
        loss = LossFunction(probe.loss)
        rows = loss(**probe.inputs, reduction="none")
        share = weights(rows)
        _, found = loss.value_and_grad(**probe.inputs, reduction="none", cotangent=share)
        return float(np.sum(share * rows)), {name: found[name] for name in grads}

    return target


@pytest.mark.parametrize(
    ("name", "id", "weights"),
    [
        ("nt_xent", "sum-instead-of-mean", np.ones_like),
        ("nt_xent", "last-row-missing", lambda rows: np.append(np.ones(rows.size - 1), 0) / max(rows.size - 1, 1)),
        ("moco", "last-row-missing", lambda rows: np.append(np.ones(rows.size - 1), 0) / rows.size),
        ("dcl", "first-view-only", lambda rows: 2.0 * (np.arange(rows.size) < rows.size // 2) / rows.size),
        ("clip", "one-direction-only", lambda rows: np.stack([np.ones(rows.shape[1]), 0 * rows[1]]) / rows.shape[1]),
        ("clip", "other-direction-only", lambda rows: np.stack([0 * rows[1], np.ones(rows.shape[1])]) / rows.shape[1]),
        ("clip", "directions-summed", lambda rows: np.full(rows.shape, 2 / rows.size)),
    ],
)
def test_missing_rows_are_named(name, id, weights):
    found = first(observed(name, by_rows(weights)))
    assert found.id.startswith(id) or id == "directions-summed"
    assert "the gradient of" not in found.sentence


def test_a_row_that_departs_under_no_reduction_is_told():
    def target(probe, value, grads):
        return np.append(value[:-1], value[-1] + 7 + value[0]), grads

    found = first(observed("nt_xent", target, reduction="none"))
    assert found.id == "unexplained"
    assert "only the last row departs" in found.sentence


def gradient(change):
    return lambda probe, value, grads: (value, change(probe, grads))


def _without(name):
    return lambda probe, grads: {**grads, name: 0 * grads[name]}


def _but_last(x):
    return x * (np.arange(len(x)) < max(len(x) - 1, 1))[:, None]


@pytest.mark.parametrize(
    ("name", "id", "words", "change"),
    [
        ("nt_xent", "gradient-constant-factor", "of z1 is 1/2 times", lambda p, g: {**g, "z1": 0.5 * g["z1"]}),
        ("nt_xent", "gradient-constant-factor", "1/N times", lambda p, g: {n: x / samples(p) for n, x in g.items()}),
        ("nt_xent", "gradient-sign-flipped", "has the other sign", lambda p, g: {n: -x for n, x in g.items()}),
        ("nt_xent", "gradient-zero", "is 0 on", lambda p, g: {n: 0 * x for n, x in g.items()}),
        ("nt_xent", "keys-detached", "of z2 is 0", _without("z2")),
        ("info_nce", "first-input-detached", "of queries is 0", _without("queries")),
        ("nt_xent", "temperature-detached", "of temperature is 0", _without("temperature")),
        ("siglip", "bias-detached", "of logit_bias is 0", _without("logit_bias")),
        ("cosface", "centers-detached", "of class_weights is 0", _without("class_weights")),
        ("nt_xent", "gradient-missing-rows", "in the last row", lambda p, g: {**g, "z1": _but_last(g["z1"])}),
        ("nt_xent", "gradient-radial-only", "along the rows", lambda p, g: {**g, "z1": g["z1"] + p.inputs["z1"]}),
        ("nt_xent", "value-right-gradient-wrong", "and off by", lambda p, g: {**g, "z1": np.roll(g["z1"], 1)}),
    ],
)  # fmt: skip
def test_a_right_value_with_a_wrong_gradient_is_called_that(name, id, words, change):
    found = first(observed(name, gradient(change)))
    assert found.id == id
    assert found.sentence.startswith("the value is right on ")
    assert words in found.sentence


def test_lengths_that_are_constants_are_told_from_any_other_radial_gradient():
    def unit(x):
        return x / np.linalg.norm(x, axis=1, keepdims=True)

    def target(probe, value, grads):
        given = probe.inputs
        inside = {**given, "z1": unit(given["z1"]), "z2": unit(given["z2"]), "normalize": "none"}
        _, raw = LossFunction(probe.loss).value_and_grad(**inside)
        back = {n: raw[n] / np.linalg.norm(given[n], axis=1, keepdims=True) for n in ("z1", "z2")}
        return value, {**grads, **back}

    assert first(observed("nt_xent", target)).id == "normalization-detached"


def test_a_gradient_to_a_declared_constant_is_named():
    found = first(observed("moco", lambda probe, value, grads: (value, {**grads, "queue": probe.inputs["queue"]})))
    assert found.id == "constants-get-gradient"
    assert "queue" in found.sentence


def test_what_nothing_explains_is_told_by_quantity_and_temperature():
    def target(probe, value, grads):
        return (value * (1 + value) + 0.1, grads) if temperature(probe) < 0.1 else (value, grads)

    (found,) = diagnose(observed("nt_xent", target))
    assert found.id == "unexplained"
    assert "exactly those at temperature" in found.sentence
    assert "it shows at temperature 0.001 to 0.07 (0.001 to 5 were tried)" in found.sentence
    assert departure(observed("nt_xent", times(1.0))) == ()
