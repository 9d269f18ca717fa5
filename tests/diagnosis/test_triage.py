"""Arithmetic that goes wrong is told from everything else, alone and beside another convention."""

import catalogue
import numpy as np
import pytest
from diagnosis.altered_losses import altered, samples
from slow import partly_slow

from mutants.bug import bugs
from nceref.cases.corpus.corpus import evaluate
from nceref.cases.records import Observation, Outcome
from nceref.cases.rounding import rounded
from nceref.diagnosis.diagnose import diagnose
from nceref.diagnosis.triage import triage
from nceref.losses import LossFunction, get_loss
from nceref.verification.verifier import verify_with


def first(observations):
    return diagnose(observations)[0]


def in_format(dtype, inside):
    """A target that rounds its inputs to `dtype` and computes in `inside`; its answers are numbers of `dtype`."""

    def target(probe, value, grads):
        given = {name: rounded(x, dtype) for name, x in probe.inputs.items()}
        cast = {
            n: x.astype(inside) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x for n, x in given.items()
        }
        value, found = LossFunction(probe.loss).value_and_grad(**cast)
        return float(rounded(float(value), dtype)), {n: rounded(np.asarray(found[n], np.float64), dtype) for n in grads}

    return target


@pytest.mark.parametrize(
    "name", partly_slow(["nt_xent", "supcon_out", "siglip"], "nt_xent".__eq__, "the same cast, of other losses")
)
def test_arithmetic_in_float32_is_named(name):
    found = first(altered(name, in_format("float32", np.float32), every=1))
    assert found.id == "float32-fallback"
    assert "of 2" in found.sentence


@pytest.mark.slow(reason="searches the corpus in two formats more; float32 is in `make test`")
def test_half_precision_is_told_from_products_in_ten_bits():
    assert first(altered("nt_xent", in_format("bfloat16", np.float64))).id == "half-fallback"

    def products(probe, value, grads):
        rows = {n: x / np.linalg.norm(x, axis=1, keepdims=True) for n, x in probe.inputs.items() if n in ("z1", "z2")}
        short = {n: rounded(x, "float16") for n, x in rows.items()}
        value, found = LossFunction(probe.loss).value_and_grad(**{**probe.inputs, **short, "normalize": "none"})
        exact = LossFunction(probe.loss).value_and_grad(**{**probe.inputs, **rows, "normalize": "none"})[1]
        moved = {
            n: grads[n] * (found["temperature"] / exact["temperature"] if exact["temperature"] else 1) for n in grads
        }
        return float(np.float32(value)), {n: np.asarray(np.float32(x), np.float64) for n, x in moved.items()}

    assert first(altered("nt_xent", products, dtype="float32")).id == "tf32-fallback"


def test_float16_is_not_called_tf32_alone():
    def in_float16(probe, value, grads):
        rows = {n: x / np.linalg.norm(x, axis=1, keepdims=True) for n, x in probe.inputs.items() if n in ("z1", "z2")}
        short = {n: rounded(x, "float16") for n, x in rows.items()}
        return LossFunction(probe.loss)(**{**probe.inputs, **short, "normalize": "none"}), {}

    found = first(altered("nt_xent", in_float16))
    assert found.sentence.startswith("your errors are those of TF32 or float16, beyond the float64 bound on ")
    assert "within the float16 bound on all of them" in found.sentence


def test_a_small_constant_is_not_called_rounding():
    found = diagnose(altered("nt_xent", lambda probe, value, grads: (value + 1e-9, grads)))
    assert [one.id for one in found] == ["offset-constant"]


@pytest.mark.parametrize("name", ["nt-xent-bare-exponentials", "supcon-in-maximum-of-self", "siglip-bare-sigmoids"])
def test_exponentials_out_of_range_are_named(name):
    (found,) = triage(list(catalogue.observed(bugs()[name])))
    assert (found.id,) == bugs()[name].named
    assert "it is finite and right" in found.sentence


def test_a_gradient_that_is_off_is_not_called_rounding():
    seen = altered("nt_xent", lambda probe, value, grads: (value, {n: g * 1.001 for n, g in grads.items()}))
    assert triage(seen) == ()


def test_arithmetic_is_seen_beside_another_convention():
    seen = [
        Observation(o.probe, Outcome(2 * o.outcome.value, {n: 2 * g for n, g in o.outcome.grads.items()}))
        for o in catalogue.observed(bugs()["nt-xent-bare-exponentials"], every=2)
    ]
    assert triage(seen) == ()
    found = triage(seen, lambda probe: (2 * probe.value, {n: 2 * g for n, g in probe.grads.items()}))
    assert found[0].id == "exp-overflows"
    assert first(seen).id == "outer-factor-2+exp-overflows"


def test_a_lonely_anchor_that_gives_nan_is_named():
    def target(probe, value, grads):
        lonely = np.min(np.unique(probe.inputs["labels"], return_counts=True)[1]) == 1
        return (np.nan, {n: np.nan * g for n, g in grads.items()}) if lonely else (value, grads)

    found = first(altered("supcon_out", target, settings={"labels": ..., "no_positive": "skip"}))
    assert found.id == "lonely-anchors-nan"


def test_gradients_that_are_not_finite_are_told_with_what_the_cases_have_in_common():
    def target(probe, value, grads):
        return value, {**grads, "z1": np.nan * grads["z1"]} if samples(probe) == 1 else grads

    found = first(altered("nt_xent", target))
    assert found.id == "gradient-not-finite"
    assert "the gradient of z1 is not finite on 1 of" in found.sentence
    assert "exactly those with a single sample" in found.sentence


def test_a_temperature_alone_without_a_gradient_has_a_remedy_of_its_own():
    def target(probe, value, grads):
        return value, {**grads, "temperature": np.nan * grads["temperature"]}

    found = first(altered("nt_xent", target))
    assert (found.id, found.threads) == ("gradient-not-finite", ())
    assert "divide first and mask after" in found.fix


def from_distances(queries, keys, temperature):
    """Similarities (|q|^2 + |k|^2 - |q - k|^2) / 2 of rows as they are, and the gradient as autodiff has it."""
    apart = queries[:, None] - keys[None]
    squares = [np.sum(x * x, axis=-1) for x in (queries, keys, apart)]
    s = (squares[0][:, None] + squares[1][None] - squares[2]) / 2 / temperature
    mass = np.exp(s - s.max(axis=1, keepdims=True))
    g = (mass / mass.sum(axis=1, keepdims=True) - np.eye(len(s), dtype=s.dtype)) / len(s) / temperature
    pulled = np.sum(g[:, :, None] * apart, axis=1), -np.sum(g[:, :, None] * apart, axis=0)
    grads = g.sum(axis=1)[:, None] * queries - pulled[0], g.sum(axis=0)[:, None] * keys - pulled[1]
    value = np.mean(np.log(mass.sum(axis=1)) + s.max(axis=1) - np.diagonal(s))
    return value, dict(zip(("queries", "keys"), grads, strict=True))


@pytest.mark.parametrize(("size", "id"), [(0.0, "gradient-loses-digits"), (1e-4, "value-right-gradient-wrong")])
def test_a_gradient_that_loses_digits_is_told_from_one_that_is_wrong(size, id):
    def target(queries, keys, temperature):
        value, grads = from_distances(queries, keys, temperature)
        return value, {name: grad * (1 + size * np.cos(grad)) for name, grad in grads.items()}

    options = {"suite": "quick", "dtype": "float32", "normalize": "none", "temperature": 0.05, "framework": "numpy"}
    report = verify_with(target, "info_nce", measure=False, training=False, **options)
    assert report.diagnosis[0].id == id, report
    assert len(report.diagnosis) == 1


def test_a_loss_that_loses_its_digits_is_called_cancellation():
    def target(probe, value, grads):
        return float((value + 1e3) - 1e3) if value < 1e-9 else value, grads

    seen = altered("nt_xent", target)
    for t in (0.05, 0.03):
        apart = {"z1": 2 * np.eye(3), "z2": np.eye(3), "temperature": t}
        probe = evaluate(get_loss("nt_xent").declaration, apart, algorithm="log1p")
        seen.append(Observation(probe, Outcome(*target(probe, probe.value, dict(probe.grads)))))
    found = first(seen)
    assert found.id == "cancellation"
    assert "yours 0, reference 1.3" in found.sentence


def test_a_value_that_is_rounded_at_the_end_is_not_called_arithmetic_in_float32():
    found = diagnose(altered("nt_xent", lambda probe, value, grads: (float(np.float32(value)), grads)))
    assert "float32-fallback" not in [one.id for one in found]


@pytest.mark.parametrize("size", [1e-12, 1e-10])
def test_a_small_change_of_the_inputs_is_not_called_a_format(size):
    def target(probe, value, grads):
        moved = {n: x + size * np.sin(np.arange(x.size).reshape(x.shape)) for n, x in probe.inputs.items() if n in "z1"}
        value, found = LossFunction(probe.loss).value_and_grad(**{**probe.inputs, **moved})
        return value, {n: found[n] for n in grads}

    assert not triage(altered("nt_xent", target))


def test_a_value_that_is_nan_for_another_reason_is_not_blamed_on_exponentials():
    """Logits of 55 do not overflow, not in float32 either, and this runs in float64."""

    def target(probe, value, grads):
        return (np.nan if samples(probe) == 1 else value), grads

    for settings in ({"temperature": 0.015}, {}):
        found = altered("nt_xent", target, settings=settings, every=1)
        assert [one.id for one in triage(found)] == ["value-not-finite"]
        assert "exp" not in triage(found)[0].sentence


def test_what_is_out_of_range_with_a_reading_is_counted():
    def target(probe, value, grads):
        with np.errstate(over="ignore"):
            hot = np.exp(probe.inputs["logit_scale"])
        if not np.isfinite(hot):
            return np.nan, grads
        value, found = LossFunction(probe.loss).value_and_grad(**{**probe.inputs, "logit_scale": hot})
        return value, {n: hot * found[n] if n == "logit_scale" else found[n] for n in grads}

    seen = [o for o in altered("clip", target, every=2) if not o.probe.skip]
    endless = sum(not np.isfinite(o.outcome.value) for o in seen)
    found = diagnose(seen)[0]
    assert found.id.startswith("scale-exponentiated")
    assert endless > 0
    assert f"NaN or infinite on {endless} of {len(seen)} cases" in found.sentence
