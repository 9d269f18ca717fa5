"""Targets that are called on fresh inputs of a loss alone."""

from nceref.cases.corpus.corpus import corpus
from nceref.diagnosis.fresh import FreshCalls, template
from nceref.diagnosis.probe.measured import measured


def inputs_like(loss, settings, dtype="float64", reduction="mean"):
    """What the inputs of all cases of a loss share."""
    return template(corpus(loss, settings, suite="quick", dtype=dtype, reduction=reduction))


def measured_of(call, loss, settings, dtype="float64", reduction="mean"):
    """The measured formula of a target, which `call` runs on a case."""
    return measured(FreshCalls(call, inputs_like(loss, settings, dtype, reduction)))
