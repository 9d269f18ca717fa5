"""Limits: a target that is right at the temperatures in use, and has no number below them, conforms."""

import json

import numpy as np
import pytest

import nceref
from nceref.engine.parameters import IN_USE
from nceref.errors import InputError

QUICK = {"loss": "info_nce", "suite": "quick"}


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def unshifted(queries, keys, temperature):
    terms = np.exp(unit(queries) @ unit(keys).T / temperature)
    return -np.mean(np.log(np.diagonal(terms) / np.sum(terms, axis=1)))


def doubled(queries, keys, temperature):
    return 2 * unshifted(queries, keys, temperature)


def floored(queries, keys, temperature):
    """Finite everywhere, and wrong at low temperatures."""
    logits = unit(queries) @ unit(keys).T / max(temperature, 2e-3)
    logits = logits - np.max(logits, axis=1, keepdims=True)
    return -np.mean(np.diagonal(logits) - np.log(np.sum(np.exp(logits), axis=1)))


def with_a_gradient_that_overflows(queries, keys, temperature):
    value, grads = nceref.losses.info_nce.value_and_grad(queries, keys, temperature=temperature)
    largest = np.exp(1 / temperature)
    return value, {name: g * (largest / largest) for name, g in grads.items()}


@pytest.fixture(scope="module")
def limited():
    return nceref.verify(unshifted, **QUICK)


def test_a_limit_below_the_temperatures_in_use_is_no_difference(limited):
    assert (limited.verdict, limited.exit_code, limited.diagnosis) == ("value-only", 0, ())
    [limit] = limited.limits
    assert limit.id == "exp-overflows"
    assert "exp overflows in float64 beyond 709.8" in limit.sentence
    assert "--temperatures 0.0001 judges all" in limit.sentence
    assert f"below temperature {IN_USE:g}, see limits" in limited.reason


def test_the_cases_that_show_a_limit_are_not_counted_as_judged(limited):
    shown = {r.case for r in limited.results if r.status == "skip" and r.quantity == "value.finite"}
    assert shown == {"designed-0.001", "designed-0.0001", "seven-0.0001", "opposed-0.001"}
    assert limited.scope.ranges["temperature"][0] == 0.01
    assert limited.scope.cases == sum(r.status == "pass" and r.quantity == "value.finite" for r in limited.results)


def test_every_format_of_the_report_has_the_limit(limited):
    assert "\nlimits: exp-overflows\n" in str(limited)
    assert json.loads(limited.to_json())["limits"][0]["id"] == "exp-overflows"
    assert "exp-overflows.wrong" in limited.to_junit()
    assert ">Limits<" in limited.to_html()


@pytest.mark.parametrize(
    ("target", "options"),
    [
        (unshifted, {"temperatures": 0.0001}),
        (unshifted, {"temperature": 0.001}),
        (unshifted, {"case": "designed-0.001"}),
        (unshifted, {"dtype": "float32"}),
        (doubled, {}),
        (floored, {}),
    ],
    ids=["asked-for", "set", "one-case", "in-use", "wrong-elsewhere", "finite"],
)
def test_a_difference_is_no_limit(target, options):
    report = nceref.verify(target, calls=0, **QUICK, **options)
    assert (report.verdict, report.limits) == ("differs", ())


def test_a_gradient_can_have_a_limit():
    report = nceref.verify(with_a_gradient_that_overflows, **QUICK)
    assert report.verdict == "conforms"
    assert [limit.id for limit in report.limits] == ["gradient-not-finite"]


def test_beside_what_is_meant_a_limit_has_its_cause():
    def twice(queries, keys, temperature):
        value, grads = nceref.get_loss("info_nce").value_and_grad(queries, keys, temperature=temperature)
        lost = np.nan if temperature < 0.002 and len(queries) > 1 else 2.0
        return 2 * value, {name: lost * np.asarray(grad) for name, grad in grads.items()}

    report = nceref.verify(twice, loss="info_nce", suite="quick", factor="outer-factor-2")
    assert (report.verdict, [one.id for one in report.limits]) == ("conforms", ["gradient-not-finite"])
    overflows = nceref.verify(doubled, loss="info_nce", suite="quick", factor="outer-factor-2")
    assert [one.id for one in overflows.limits] == ["exp-overflows"]
    assert "it begins between temperature" in overflows.limits[0].sentence


def test_a_limit_is_one_of_the_loss_that_is_meant_and_not_a_departure_from_the_other():
    def of_negatives(queries, keys, temperature):
        s = unit(queries) @ unit(keys).T / temperature
        others = np.where(np.eye(len(s), dtype=bool), 0, np.exp(s))
        return np.mean(np.log(np.sum(others, axis=1)) - np.diag(s))

    report = nceref.verify(of_negatives, denominator="positive-dropped-from-denominator", **QUICK)
    assert report.exit_code == 0, report.reason
    [limit] = report.limits
    assert limit.id == "value-not-finite"
    assert "it is finite and right on the other" in limit.sentence
    assert "depart" not in limit.sentence


def test_without_calls_the_reason_alone_says_that_there_is_a_limit():
    report = nceref.verify(unshifted, calls=0, **QUICK)
    assert (report.exit_code, report.limits) == (0, ())
    assert "see limits" not in report.reason
    assert "not finite on 4 cases below temperature 0.005" in report.reason


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "low"])
def test_a_temperature_must_be_a_number_above_0(value):
    with pytest.raises(InputError, match="`temperatures` must be"):
        nceref.verify(unshifted, temperatures=value, **QUICK)
