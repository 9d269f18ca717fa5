"""Every convention on every loss: what a target may intend is computed, all else is refused with the reason."""

from dataclasses import replace

import numpy as np
import pytest
from slow import partly_slow
from sweep import sweep

from nceref.cases.corpus.corpus import corpus
from nceref.diagnosis.conventions import CONVENTIONS
from nceref.diagnosis.dense import forms
from nceref.diagnosis.intended import intended, intentions
from nceref.errors import InputError
from nceref.losses import all_losses, get_loss
from nceref.verification.verifier import verify

SET = {"outer-factor-constant": "=0.5", "offset-constant": "=0.5", "offset-log-n": "=+ log N"}
REASONS = ("means nothing for", "it cannot be intended", "must be set to one of")


FEW = ("cross_entropy", "clip", "supcon_out", "moco", "alignment")


@pytest.mark.parametrize(
    "name", partly_slow(all_losses(), FEW.__contains__, "the same conventions once more, of other losses")
)
def test_every_convention_is_computed_or_refused_by_its_name(name):
    loss = get_loss(name).declaration
    (probe,) = corpus(loss, loss.variants[0], suite="quick", most=1)
    # One gradient is enough: each takes an evaluation an entry.
    first = dict(list(probe.grads.items())[-1:])
    probe = replace(probe, grads=first)
    works = 0
    for id, convention in CONVENTIONS.items():
        given, refused = accepted(loss, convention.axis, id + SET.get(id, ""))
        if refused:
            assert f"`{convention.axis}={id}`" in refused
            assert any(reason in refused for reason in REASONS), refused
            assert id not in forms.form_of(loss).conventions
            continue
        altered = intended(probe, given)
        assert altered.skip or np.all(np.isfinite(altered.value)), id
        works += 1
    assert works >= len(forms.form_of(loss).conventions)


def accepted(loss, axis, text):
    """What is intended, or why it is refused."""
    try:
        return intentions(loss, {axis: text}), ""
    except InputError as error:
        return {}, str(error)


@sweep(
    ("loss", "axis", "text", "message"),
    [
        ("nt_xent", "offset", "offset-log-n", "`offset=offset-log-n` must be set to one of + log N, "),
        ("nt_xent", "offset", "offset-constant", "as in --set 'offset=offset-constant=0.5'"),
        ("nt_xent", "factor", "outer-factor-constant", "must be set to one of a number"),
        ("nt_xent", "factor", "outer-factor-constant=nan", "must be set to one of a number"),
        ("nt_xent", "factor", "outer-factor-2=3", "`factor=outer-factor-2` takes no setting"),
        ("nt_xent", "temperature", "temperature-clamped=low", "must be set to one of a number, floor 0.05"),
        ("arcface", "denominator", "denominators-added-as-logs", "means nothing for arcface; it is for dcl, "),
        ("alignment", "factor", "outer-factor-temperature", "means nothing for alignment, which has no temperature"),
        ("nt_xent", "gradient-factor", "gradient-zero", "is what may be seen of a target"),
        ("nt_xent", "scalar", "scalar-ignored", "is what may be seen of a target"),
        ("nt_xent", "factor", "outer-factor-3", "no value of factor named 'outer-factor-3'"),
    ],
)
def test_what_cannot_be_intended_is_refused_with_the_reason(loss, axis, text, message):
    with pytest.raises(InputError) as caught:
        verify(lambda *inputs: 0.0, loss, **{axis: text})
    assert message in str(caught.value)


def rows(x):
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True))


def info_nce(queries, keys, temperature):
    logits = rows(queries) @ rows(keys).T / temperature
    return np.mean(np.logaddexp.reduce(logits, axis=1) - np.diag(logits))


@pytest.mark.parametrize(
    ("target", "convention", "other"),
    [
        (lambda q, k, t: 0.37 * info_nce(q, k, t), {"factor": "outer-factor-constant=0.37"}, "=0.38"),
        (lambda q, k, t: info_nce(q, k, t) - np.log(len(q)), {"offset": "offset-log-n=- log N"}, "=+ log N"),
        (lambda q, k, t: info_nce(q, k, max(t, 0.02)), {"temperature": "temperature-clamped=0.02"}, "=0.03"),
    ],
)
def test_an_intended_number_is_part_of_the_reference(target, convention, other):
    options = {"suite": "quick", "call": "f(queries, keys, temperature)"}
    assert verify(target, "info_nce", **convention, **options).verdict == "value-only"
    ((axis, text),) = convention.items()
    assert verify(target, "info_nce", **{axis: text.partition("=")[0] + other}, calls=0, **options).verdict == "differs"


def test_gradients_of_large_batches_are_those_of_the_intended_loss():
    loss = get_loss("nt_xent").declaration
    large = next(probe for probe in corpus(loss, {}, suite="standard") if probe.is_large and not probe.skip)
    altered = intended(large, intentions(loss, {"positives": "views-interleaved"}))
    # Rows 0, 1, 2, ... of the views below one another stand where the pairs are: 0 and 1, 2 and 3, ...
    order = np.concatenate([large.inputs["z1"], large.inputs["z2"]])
    want = get_loss("nt_xent").value_and_grad(order[::2], order[1::2], temperature=large.inputs["temperature"])[1]
    got = np.concatenate([altered.grads["z1"], altered.grads["z2"]])
    np.testing.assert_allclose(got[::2], want["z1"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got[1::2], want["z2"], rtol=1e-9, atol=1e-12)
