"""Targets that are called on fresh inputs of a loss alone."""

from nceref.cases.corpus.corpus import designed_inputs
from nceref.cases.records import Probe
from nceref.diagnosis.fresh import GENERAL, FreshCalls, template
from nceref.diagnosis.probe.composed import LARGE
from nceref.diagnosis.probe.measured import measured


def inputs_like(loss, settings, dtype="float64", reduction="mean"):
    """What the inputs of all cases of a loss share."""
    # Without their references and bounds, which take most of the time of a corpus.
    made = designed_inputs(loss, settings, "quick", dtype, 0, {})
    return template(Probe(id, loss, inputs, dtype, reduction) for id, inputs in made)


def measured_of(call, loss, settings, dtype="float64", reduction="mean"):
    """The measured formula of a target, which `call` runs on a case."""
    calls = FreshCalls(call, inputs_like(loss, settings, dtype, reduction))
    return measured(calls, calls.at((*GENERAL, LARGE[0], LARGE[1])))
