"""What is judged of one case, quantity by quantity; canaries; identities; expected failures."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nceref import get_loss
from nceref.losses import LossFunction
from nceref.verification.corpus.corpus import corpus, evaluate
from nceref.verification.invariances import check_invariances
from nceref.verification.judge import correct_bits, expected, judge, of_bound
from nceref.verification.records import Observation, Outcome
from nceref.verification.self_test import WRONG_ANSWERS, run_self_test

LOSS = get_loss("nt_xent").declaration
PROBE = corpus(LOSS, {}, suite="quick")[0]


def right(probe=PROBE):
    return Outcome(probe.value, dict(probe.grads))


def statuses(outcome, probe=PROBE):
    return {result.quantity: result.status for result in judge(Observation(probe, outcome))}


def test_the_reference_passes_in_every_quantity():
    assert statuses(right()) == {
        quantity: "pass"
        for name in ("value", "grad.z1", "grad.z2", "grad.temperature")
        for quantity in (name, f"{name}.finite")
    }


def test_value_and_gradient_are_judged_apart():
    wrong_value = replace(right(), value=PROBE.value + 1e-9)
    assert {q for q, s in statuses(wrong_value).items() if s == "fail"} == {"value"}
    z1 = np.array(PROBE.grads["z1"])
    z1[2, 1] += 1e-9
    wrong_grad = replace(right(), grads={**PROBE.grads, "z1": z1})
    assert {q for q, s in statuses(wrong_grad).items() if s == "fail"} == {"grad.z1"}
    [failed] = [r for r in judge(Observation(PROBE, wrong_grad)) if r.status == "fail"]
    assert "[2, 1]" in failed.why
    assert failed.error == pytest.approx(1e-9, rel=1e-5)
    assert of_bound(failed) > 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_fails_as_such_and_is_compared_no_further(bad):
    found = statuses(replace(right(), value=bad))
    assert found["value.finite"] == "fail"
    assert found["value"] == "skip"
    grads = {**PROBE.grads, "z2": np.full_like(PROBE.grads["z2"], bad)}
    found = statuses(replace(right(), grads=grads))
    assert (found["value"], found["grad.z2.finite"], found["grad.z2"]) == ("pass", "fail", "skip")


def test_a_wrong_shape_of_a_gradient_is_said():
    [failed] = [
        r for r in judge(Observation(PROBE, replace(right(), grads={**PROBE.grads, "z1": np.zeros((3, 5))})))
        if r.status == "fail"
    ]  # fmt: skip
    assert "(3, 5)" in failed.why
    assert "(5, 3)" in failed.why


def test_declared_constants_must_get_no_gradient():
    loss = get_loss("moco").declaration
    probe = corpus(loss, {}, suite="quick")[0]
    queue = np.zeros_like(probe.inputs["queue"])
    assert statuses(replace(right(probe), grads={**probe.grads, "queue": queue}), probe)["grad.queue"] == "pass"
    queue[0, 0] = 1e-300
    assert statuses(replace(right(probe), grads={**probe.grads, "queue": queue}), probe)["grad.queue"] == "fail"


def test_what_cannot_be_asked_for_is_skipped_with_its_reason():
    outcome = replace(right(), grads={"z1": PROBE.grads["z1"]}, unjudged={"temperature": "it is a Python float"})
    results = {r.quantity: r for r in judge(Observation(PROBE, outcome))}
    assert results["grad.temperature"].status == "skip"
    assert results["grad.temperature"].why == "it is a Python float"


def test_trouble_is_an_error_and_a_remark_a_failure_except_for_prints():
    assert statuses(Outcome(trouble="raises", sentence="ValueError: no")) == {"behavior.raises": "error"}
    remarks = {"modifies-inputs": "it changes z1", "prints": "it prints 'hello'"}
    found = statuses(replace(right(), remarks=remarks))
    assert (found["behavior.modifies-inputs"], found["behavior.prints"]) == ("fail", "skip")


@pytest.mark.parametrize(
    ("error", "bits"), [(0.0, 53), (0.25, 2), (2.0, 0), (2.0**-60, 53), (math.inf, 0), (math.nan, 0)]
)
def test_bits_that_are_right(error, bits):
    assert correct_bits(error, 1.0, 53) == bits


def test_an_error_beyond_all_numbers_leaves_no_bits():
    assert correct_bits(1e300, 1e-300, 53) == 0


def test_expected_failures_are_strict_and_out_of_date_ones_are_said():
    results = judge(Observation(PROBE, replace(right(), value=2 * PROBE.value)))
    named = {f"{PROBE.id}/value": "factor", f"{PROBE.id}/grad.z1": "none", "no/such": "gone"}
    found = {r.id: r.status for r in expected(results, named)}
    assert found[f"{PROBE.id}/value"] == "xfail"
    assert found[f"{PROBE.id}/grad.z1"] == "xpass"
    assert found["no/such"] == "fail"
    assert {r.id: r.status for r in expected(results, {"*/value": "all"})}[f"{PROBE.id}/value"] == "xfail"


def as_outcome(probe, answer):
    return Outcome(*answer)


def test_every_canary_is_caught_on_the_path_that_judges_and_survives_on_one_that_does_not():
    observations = [Observation(p, right(p)) for p in corpus(LOSS, {}, suite="quick")]
    assert {t.result for t in run_self_test(observations, as_outcome)} == {"caught"}
    assert len(run_self_test(observations, as_outcome)) == len(WRONG_ANSWERS)
    assert {t.result for t in run_self_test(observations, lambda probe, answer: right(probe))} == {"survived"}


def test_cases_that_could_not_see_a_canary_say_so():
    bounds = replace(PROBE.bounds, value=1e3, grads={n: 1e3 + 0 * g for n, g in PROBE.grads.items()})
    vague = replace(PROBE, bounds=bounds)
    found = {t.wrong_answer.name: t.result for t in run_self_test([Observation(vague, right(vague))], as_outcome)}
    assert found.pop("a NaN") == "caught"
    assert set(found.values()) == {"unseen"}


def reference(probe):
    value, grads = LossFunction(probe.loss).value_and_grad(**probe.inputs)
    return Outcome(value, grads)


@pytest.mark.parametrize("name", ["nt_xent", "clip", "supcon_out", "siglip", "moco", "uniformity"])
def test_identities_hold_for_the_reference(name):
    loss = get_loss(name).declaration
    observations = [Observation(p, reference(p) if not p.skip else Outcome()) for p in corpus(loss, {}, suite="quick")]
    found = list(check_invariances(observations, reference))
    assert {r.status for r in found} == {"pass"}
    assert "identity.closed-form" in {r.quantity for r in found}


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


def test_without_normalization_the_temperature_identity_is_asked():
    probe = evaluate(LOSS, {**PROBE.inputs, "normalize": "none"})
    [found] = [
        r
        for r in check_invariances([Observation(probe, reference(probe))], reference)
        if r.quantity == "identity.temperature"
    ]
    assert found.status == "pass"
    cold = reference(probe)
    cold = replace(cold, grads={**cold.grads, "temperature": 1.01 * cold.grads["temperature"]})
    [found] = [
        r for r in check_invariances([Observation(probe, cold)], reference) if r.quantity == "identity.temperature"
    ]
    assert found.status == "fail"


def asked_of(name, inputs=None, dtype="float64", reduction="mean"):
    """Names of the identities that are asked of a right program."""
    probes = corpus(get_loss(name).declaration, inputs or {}, suite="quick", dtype=dtype, reduction=reduction)
    observed = [Observation(p, right(p)) for p in probes if not p.skip]
    return {
        r.quantity.removeprefix("identity.") for r in check_invariances(observed, lambda probe: Outcome(math.inf, {}))
    }


def test_an_identity_is_asked_where_the_loss_declares_it_and_not_where_a_wide_bound_hides_that_it_is_broken():
    for dtype in ("float64", "float32", "bfloat16", "float16"):
        assert asked_of("paco", dtype=dtype) == {"permutation"}
        assert "scale" not in asked_of("clip", {"normalize": "none"}, dtype, "sum")
        assert {"scale", "views", "permutation", "closed-form", "radial"} <= asked_of("clip", dtype=dtype)


def test_an_infinite_answer_to_a_moved_input_is_a_failure_and_no_accident():
    observed = [Observation(PROBE, right())]
    found = {r.quantity: r for r in check_invariances(observed, lambda probe: Outcome(math.inf, {}))}
    assert found["identity.scale"].status == "fail"
    assert found["identity.scale"].bits == 0
