"""What must hold between answers of the target itself, whatever the reference says."""

import math
from dataclasses import replace

import numpy as np
from sweep import sweep

from nceref import get_loss
from nceref.cases.corpus.corpus import corpus, evaluate
from nceref.cases.invariances import INVARIANCES, check_invariances
from nceref.cases.records import Observation, Outcome
from nceref.losses import LossFunction

LOSS = get_loss("nt_xent").declaration
PROBE = corpus(LOSS, {}, suite="quick")[0]


def right(probe=PROBE):
    return Outcome(probe.value, dict(probe.grads))


def reference(probe):
    value, grads = LossFunction(probe.loss).value_and_grad(**probe.inputs)
    return Outcome(value, grads)


@sweep("name", ["nt_xent", "clip", "supcon_out", "siglip", "moco", "uniformity"])
def test_identities_hold_for_the_reference(name):
    loss = get_loss(name).declaration
    observations = [Observation(p, reference(p) if not p.skip else Outcome()) for p in corpus(loss, {}, suite="quick")]
    results = list(check_invariances(observations, reference))
    assert {r.status for r in results} == {"pass"}
    assert "identity.closed-form" in {r.quantity for r in results}


def test_each_identity_sees_what_it_is_made_for():
    observations = [Observation(p, reference(p) if not p.skip else Outcome()) for p in corpus(LOSS, {}, suite="quick")]

    def failing(change):
        changed = lambda probe: change(reference(probe), probe)  # noqa: E731
        moved = [Observation(o.probe, changed(o.probe) if not o.probe.skip else o.outcome) for o in observations]
        return {r.quantity.removeprefix("identity.") for r in check_invariances(moved, changed) if r.status == "fail"}

    assert "scale" in failing(lambda o, p: replace(o, value=o.value + 1e-3 * p.inputs["z1"][0, 0] ** 2))
    assert "permutation" in failing(
        lambda o, p: replace(
            o,
            value=o.value + 1e-6 * np.sign(p.inputs["z1"][0, 0]) * np.abs(p.inputs["z1"][0, 0] / p.inputs["z1"][0, 1]),
        )
    )
    assert "closed-form" in failing(lambda o, p: replace(o, value=1.5 * o.value))
    radial = failing(lambda o, p: replace(o, grads={**o.grads, "z1": o.grads["z1"] + 1e-6 * p.inputs["z1"]}))
    assert radial == {"radial"}


def test_rounding_of_an_answer_that_is_far_larger_than_the_reference_breaks_no_identity():
    def far(probe):
        rows = LossFunction(probe.loss)(**probe.inputs, reduction="none")
        return Outcome(float(np.sum(np.float64(rows) + 5001.3) / len(rows)), dict(probe.grads))

    observations = [Observation(p, far(p)) for p in corpus(LOSS, {}, suite="quick") if not p.skip]
    results = {r.quantity: r for r in check_invariances(observations, far)}
    assert [name for name, r in results.items() if r.status == "fail"] == ["identity.closed-form"]
    # Some order of the rows gives another last digit, so that the test could fail.
    assert results["identity.permutation"].error > 0


def test_without_normalization_the_temperature_identity_is_asked():
    probe = evaluate(LOSS, {**PROBE.inputs, "normalize": "none"})
    [results] = [
        r
        for r in check_invariances([Observation(probe, reference(probe))], reference)
        if r.quantity == "identity.temperature"
    ]
    assert results.status == "pass"
    cold = reference(probe)
    cold = replace(cold, grads={**cold.grads, "temperature": 1.01 * cold.grads["temperature"]})
    [results] = [
        r for r in check_invariances([Observation(probe, cold)], reference) if r.quantity == "identity.temperature"
    ]
    assert results.status == "fail"


def checked_for(name, inputs=None, dtype="float64", reduction="mean"):
    """Names of the identities that are asked of a right program."""
    probes = corpus(get_loss(name).declaration, inputs or {}, suite="quick", dtype=dtype, reduction=reduction)
    observed = [Observation(p, right(p)) for p in probes if not p.skip]
    return {
        r.quantity.removeprefix("identity.") for r in check_invariances(observed, lambda probe: Outcome(math.inf, {}))
    }


def test_an_identity_is_asked_where_the_loss_declares_it_and_not_where_a_wide_bound_hides_that_it_is_broken():
    for dtype in ("float64", "float16"):
        assert checked_for("paco", dtype=dtype) == {"permutation"}
        assert "scale" not in checked_for("clip", {"normalize": "none"}, dtype, "sum")
        assert {"scale", "views", "permutation", "closed-form", "radial"} <= checked_for("clip", dtype=dtype)


def test_an_infinite_answer_to_a_moved_input_is_a_failure_and_no_accident():
    observed = [Observation(PROBE, right())]
    results = {r.quantity: r for r in check_invariances(observed, lambda probe: Outcome(math.inf, {}))}
    assert results["identity.scale"].status == "fail"
    assert results["identity.scale"].bits == 0


def test_an_identity_is_asked_for_in_the_settings_of_its_property_alone():
    scale = next(i for i in INVARIANCES if i.claim == "scale_invariant")
    for loss in (LOSS, get_loss("supcon_out").declaration):
        for probe in corpus(loss, {}, suite="quick"):
            assert scale.concerns(probe) == (probe.inputs.get("normalize", "l2") == "l2"), probe.id
    as_given = replace(PROBE, inputs={**PROBE.inputs, "normalize": "none"})
    assert not scale.concerns(as_given)
    # The rows of the paco declaration are scaled, its centers' features are not: with them as a second input, it is.
    paco = get_loss("paco").declaration
    verdicts = {p.inputs.get("center_features") is not None: scale.concerns(p) for p in corpus(paco, {}, suite="quick")}
    assert not verdicts[False]
