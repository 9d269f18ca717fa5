"""Where nobody has stated a loss densely its own program stands in: what it can express is what a dense form says."""

from itertools import product

import numpy as np
import pytest
from slow import partly_slow

from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.diagnosis.dense import forms
from nceref.diagnosis.dense.program import program_form
from nceref.diagnosis.dense.stages import reduced
from nceref.diagnosis.options import options

# Two views, two directions in one array, weights and a policy for rows, no rows at all, rows of two inputs.
KINDS = ("nt_xent", "clip", "supcon_out", "uniformity", "nce")
QUICK = {("nt_xent", "mean"), ("clip", "none"), ("supcon_out", "mean"), ("uniformity", "mean"), ("nce", "none")}


@pytest.mark.parametrize(
    ("name", "reduction"),
    partly_slow(product(KINDS, ("mean", "none")), QUICK.__contains__, "the same conventions with another reduction"),
)
def test_program_and_dense_form_agree_on_every_convention_that_both_have(name, reduction):
    loss = get_loss(name).declaration
    program, dense = program_form(loss), forms.form_of(loss)
    assert set(program.conventions) <= set(dense.conventions)
    # Its temperature leaves every scale below the range of floats.
    reduction = reduction if loss.has_rows else "mean"
    (probe,) = corpus(loss, loss.variants[0], suite="quick", reduction=reduction, most=1)
    inputs = forms.prepared(probe)
    outer = (lambda given: 3.0 * given["temperature"]) if "temperature" in inputs else None
    for option in [None, *options(program.conventions, most=2)]:
        deviations = {} if option is None else {option.id: option.value}
        got, want = (
            reduced(forms.evaluated(f, inputs, deviations), deviations, probe.reduction) for f in (program, dense)
        )
        assert got == pytest.approx(want, rel=1e-10), option
        arguments = (inputs, deviations, tuple(probe.grads), probe.reduction, outer)
        found = [forms.gradients(f, *arguments) for f in (program, dense)]
        for given in probe.grads:
            got, want = (one[given] for one in found)
            assert np.max(np.abs(got - want)) <= 1e-9 * (1 + np.max(np.abs(want))), (option, given)


def test_what_is_ignored_has_no_gradient_and_what_leaves_the_range_is_no_number():
    loss = get_loss("nt_xent").declaration
    (probe,) = corpus(loss, {}, suite="quick", most=1)
    program, inputs = program_form(loss), forms.prepared(probe)
    ignored = {"scalar-ignored": ("temperature", 0.5)}
    found = forms.gradients(program, inputs, ignored, ("temperature", "z1"))
    assert found["temperature"] == 0
    assert np.any(found["z1"] != 0)
    beyond = forms.evaluated(program, {**inputs, "temperature": 1e-160}, {"temperature-squared": None})
    assert np.all(np.isnan(beyond.values))
