"""The dense forms are a second witness: without deviations they are the reference; each deviation moves something."""

import numpy as np
import pytest
from sweep import sweep

from nceref import all_losses, get_loss, registry
from nceref.cases.corpus.corpus import corpus, designed_inputs, evaluate
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.case import CaseAnalysis
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.dense import forms
from nceref.diagnosis.dense.batch import DenseFamily, log_add, log_sum_exp
from nceref.diagnosis.options import options

pytestmark = pytest.mark.machine

LOSSES = tuple(name for name, loss in all_losses().items() if forms.is_dense(loss.declaration))
"""A dense form is optional: a loss without one is judged by its program alone, see test_program.py."""
SETTINGS = [(name, number) for name in LOSSES for number in range(len(get_loss(name).declaration.variants))]


def first_probe(name):
    loss = get_loss(name).declaration
    (probe,) = corpus(loss, loss.variants[0], suite="quick", most=1)
    return probe


def gradients(probe, deviations=None):
    form, inputs = forms.form_of(probe.loss), forms.prepared(probe)
    return forms.gradients(form, inputs, deviations or {}, tuple(probe.grads), probe.reduction)


def of_bound(got, want, bound):
    off = np.abs(np.asarray(got) - want)
    return float(np.max(np.where(off == 0, 0.0, off / np.maximum(bound, 1e-300)), initial=0.0))


def assert_is_the_reference(probe, *, differentiate):
    assert of_bound(forms.value(probe, {}), probe.value, probe.bounds.value) <= 1, probe.id
    found = gradients(probe) if differentiate and not probe.is_large else {}
    for given, got in found.items():
        assert of_bound(got, probe.grads[given], probe.bounds.grads[given]) <= 1, (probe.id, given)


@pytest.mark.parametrize(("name", "number"), SETTINGS)
def test_without_deviations_it_is_the_reference(name, number):
    """On every ninth case, or, of a setting, on the designed one and one with a lonely anchor: there it shows."""
    loss = get_loss(name).declaration
    made = list(designed_inputs(loss, loss.variants[number], "quick", "float64", 0, {}))[:: 22 if number else 9]
    for probe in (evaluate(loss, inputs, id=id) for id, inputs in made):
        if not probe.skip:
            assert_is_the_reference(probe, differentiate=not number)


@pytest.mark.slow(reason="the other cases of the corpus; every ninth is in `make test`")
@pytest.mark.parametrize("name", LOSSES)
def test_without_deviations_it_is_the_reference_on_the_whole_corpus(name):
    loss = get_loss(name).declaration
    for probe in corpus(loss, loss.variants[0], suite="quick"):
        if not probe.skip:
            assert_is_the_reference(probe, differentiate=True)


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_other_reductions_are_those_of_the_reference(reduction):
    for name in LOSSES:
        if not get_loss(name).declaration.has_rows:
            continue
        probe = evaluate(get_loss(name).declaration, first_probe(name).inputs, reduction=reduction)
        # Rows may have a shape of their own, such as (2, N); here they are one after the other.
        want, bound = (np.ravel(x) for x in (probe.value, probe.bounds.value))
        assert of_bound(forms.value(probe, {}), want if reduction == "none" else probe.value, bound) <= 1, name
        for given, found in gradients(probe).items():
            assert of_bound(found, probe.grads[given], probe.bounds.grads[given]) <= 1, name


def test_no_loss_has_two_dense_forms_and_each_is_of_a_loss():
    found = registry.discover("nceref.diagnosis.dense.losses", "DENSE", DenseFamily)
    served = [loss for form in found.values() for loss in form.losses]
    assert sorted(served) == sorted(LOSSES)
    assert len(LOSSES) > 20


def test_every_id_of_a_dense_form_is_on_the_closed_list():
    named = {id for name in LOSSES for id in forms.form_of(get_loss(name).declaration).conventions}
    assert named <= set(CONVENTIONS)
    assert {id for id, convention in CONVENTIONS.items() if convention.settings != (None,)} <= named


# What only shows where the corpus has such a case: a logit beyond a ceiling, a lonely anchor, a queue, several views, a
# guide, a margin.
SELDOM = {
    "scale-clamped", "lonely-anchors-counted", "lonely-anchors-skipped", "mean-over-nonzero-rows", "queue-dropped",
    "queue-not-normalized", "rows-normalized", "first-view-only", "cross-view-only", "same-view-only",
    "views-interleaved", "weights-missing", "in-batch-negatives-added", "sum-instead-of-mean", "mean-instead-of-sum",
    "prior-missing", "prior-subtracted", "prior-without-log", "bias-missing", "bias-subtracted", "distance-squared",
    "value-saturates", "similarity-clamped", "epsilon-in-log", "mask-leaks", "softmax-over-wrong-axis",
    "positives-not-averaged", "positives-averaged", "temperature-clamped", "softplus-threshold", "count-rounded-down",
    "norm-floored", "accidental-hits-kept", "guided-by-itself", "guide-margin-added",
    "guide-margin-of-signed-similarity", "guide-asked-about-the-row-itself", "guide-not-normalized",
}  # fmt: skip


@sweep("name", LOSSES)
def test_every_deviation_of_the_value_moves_the_designed_case(name):
    probe = first_probe(name)
    analysis = CaseAnalysis(Observation(probe, Outcome(value=probe.value)))
    still = {
        option.id
        for option in options(analysis.form.conventions)
        if option.axis != "gradient" and not np.any(np.abs(analysis.answer((option,))[0] - analysis.reference) > 1e-9)
    }
    moved = {o.id for o in options(analysis.form.conventions) if np.any(analysis.answer((o,))[0] != analysis.reference)}
    assert still - moved <= SELDOM


def test_a_detached_input_has_no_gradient():
    probe = first_probe("info_nce")
    found = gradients(probe, {"keys-detached": None})
    assert np.all(found["keys"] == 0)
    assert of_bound(found["queries"], probe.grads["queries"], probe.bounds.grads["queries"]) <= 1


def test_a_detached_length_leaves_a_gradient_along_the_rows():
    probe = first_probe("nt_xent")
    plain, detached = (gradients(probe, given)["z1"] for given in ({}, {"normalization-detached": None}))
    along = np.abs(np.sum(probe.inputs["z1"] * plain, axis=1)), np.abs(np.sum(probe.inputs["z1"] * detached, axis=1))
    assert np.max(along[0]) < 1e-12
    assert np.min(along[1]) > 1e-3


def test_log_sum_exp_of_nothing_is_minus_infinity():
    with np.errstate(divide="ignore"):
        assert log_sum_exp(np.array([-np.inf, -np.inf])) == -np.inf
        assert log_add(np.array(-np.inf), np.array(2.0)) == 2.0


def test_a_temperature_of_a_thousandth_does_not_overflow():
    loss = get_loss("nt_xent").declaration
    probe = next(p for p in corpus(loss, {}, suite="quick", most=6) if p.inputs["temperature"] == 0.001)
    kept = forms.value(probe, {"self-contrast-kept": None})
    z = np.concatenate([probe.inputs["z1"], probe.inputs["z2"]])
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    logits = z @ z.T / 0.001
    positive = np.diagonal(np.roll(logits, len(z) // 2, axis=1))
    assert kept == pytest.approx(np.mean(np.logaddexp.reduce(logits, axis=1) - positive), rel=1e-12)
