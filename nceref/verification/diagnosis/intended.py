"""The reference under conventions that a target intends: a probe of the corpus, answered with these."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nceref.tolerance import Bounds
from nceref.verification.diagnosis.case import CaseAnalysis
from nceref.verification.diagnosis.explanation import variant_value
from nceref.verification.diagnosis.gradients import GradientFit, JudgedGradient
from nceref.verification.diagnosis.options import Option, options
from nceref.verification.records import Observation, Outcome, Probe


def intended(probe: Probe, conventions: Mapping[str, str]) -> Probe:
    """The probe with what the loss under these conventions answers, and bounds that have grown with it.

    Parameters
    ----------
    probe : Probe
        With the reference's own answer.
    conventions : mapping
        Ids of the closed list by axis. Of a convention with a number in it, such as an epsilon, the first one that
        `nceref mutants` knows is meant.

    Returns
    -------
    Probe
        Skipped where the conventions give no number.
    """
    if probe.skip or not conventions:
        return probe
    # An analysis is of a target; the reference stands in for one.
    analysis = CaseAnalysis(Observation(probe, Outcome(probe.value, probe.grads)))
    # In the order of the closed list, so that a factor comes before an offset.
    chosen = tuple(sorted((_first(id) for id in conventions.values()), key=lambda option: option.rank))
    value, allowed = variant_value(analysis, chosen)
    fit = GradientFit(chosen, [])
    judged = {
        name: JudgedGradient(analysis, name, np.asarray(grad), constant=False) for name, grad in probe.grads.items()
    }
    grads = {name: fit.expected(one) for name, one in judged.items()}
    if not all(np.all(np.isfinite(x)) for x in (value, *grads.values())):
        return replace(probe, skip=f"with {' and '.join(conventions.values())} there is no finite number here")
    bounds = Bounds(
        np.reshape(allowed, np.shape(probe.value))[()], {name: fit.allowed(one) for name, one in judged.items()}
    )
    return replace(probe, value=np.reshape(value, np.shape(probe.value))[()], grads=grads, bounds=bounds)


def _first(id: str) -> Option:
    return next(options((id,)))
