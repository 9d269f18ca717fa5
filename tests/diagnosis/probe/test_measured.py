"""What a program computes, measured by calling it: the formula, or nothing."""

from inspect import signature

import numpy as np
import pytest
from slow import partly_slow

import nceref
from nceref.cases.records import Outcome
from nceref.diagnosis.probe import measured as measured_module
from nceref.diagnosis.probe.calls import Calls
from nceref.diagnosis.probe.composition import Difference
from nceref.diagnosis.probe.measured import measured

RNG = np.random.default_rng(0)


def formula_of(program, loss, dtype="float64", **settings):
    def call(probe):
        kind = np.dtype(probe.dtype).type
        cast = {n: x.astype(kind) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                for n, x in probe.inputs.items()}  # fmt: skip
        taken = set(signature(program).parameters)
        # A target is not called with arrays that it does not take.
        if not taken <= set(cast) or {n for n, x in cast.items() if isinstance(x, np.ndarray)} - taken:
            return Outcome(trouble="raises")
        with np.errstate(all="ignore"):
            return Outcome(program(**{name: cast[name] for name in signature(program).parameters}))

    return measured(nceref.get_loss(loss).declaration, call, settings, dtype, "mean")


def cosines(x, y):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (y / np.linalg.norm(y, axis=1, keepdims=True)).T


def positive_counted_three_times(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    own = np.diag(logits)
    return np.mean(-own + np.log(np.exp(logits).sum(axis=1) + 2 * np.exp(own)))


def plain(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(np.exp(logits).sum(axis=1)))


def slightly_curved(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    logits = logits + 1e-4 * logits**3
    return np.mean(-np.diag(logits) + np.log(np.exp(logits).sum(axis=1)))


def another_one_for_more_than_eight(queries, keys, temperature):
    return 3 * plain(queries, keys, temperature) * (1.5 if len(queries) > 8 else 1)


def random(queries, keys, temperature):
    return plain(queries, keys, temperature) + RNG.uniform()


def without_a_number(queries, keys, temperature):
    return np.nan


UNCONFIRMED = (slightly_curved, another_one_for_more_than_eight, plain, random, without_a_number)


@pytest.mark.parametrize(
    "program", partly_slow(UNCONFIRMED, UNCONFIRMED[-3:].__contains__, "everything is tried before nothing is said")
)
def test_what_was_not_confirmed_is_not_said(program):
    assert formula_of(program, "info_nce") is None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_formula_is_measured_as_far_as_a_format_goes(dtype):
    diagnosis = formula_of(positive_counted_three_times, "info_nce", dtype)
    assert "<<Z_i over positives times 3>>" in diagnosis.formula
    assert diagnosis.sentence.endswith("; different: Z_i over positives times 3, in the reference Z_i over all keys")
    assert diagnosis.fix == "Write Z_i over all keys in the place of Z_i over positives times 3."


def test_a_scalar_that_the_target_fixes_is_set_in_every_call():
    """At another temperature the program would be another formula."""
    fixed = formula_of(lambda queries, keys: positive_counted_three_times(queries, keys, 0.5), "info_nce",
                       temperature=0.5)  # fmt: skip
    assert "<<Z_i over positives times 3>>" in fixed.formula
    assert "temperatures from" not in fixed.sentence


def test_a_difference_has_a_remedy():
    difference = Difference("L = J", "L = 2 J")
    assert difference.sentence == "L = J, in the reference L = 2 J"
    assert difference.remedy == "write L = 2 J in the place of L = J"


@pytest.mark.parametrize(("takes", "printed"), [(None, True), ({"margin", "fallback"}, True), ({"margin"}, False)])
def test_no_formula_is_of_what_the_target_does_not_take(monkeypatch, takes, printed):
    """Called with nothing else, a target without a fallback would differ from the reference with one."""
    shown = "L = 1", "L = 0", (Difference("1", "0"),)
    tried = [(None, {"margin": 0.25, "fallback": "linear"}, shown)]
    trial = measured_module.Trial(14, 0.0, 1.0, (4, 70), (0.1, 1.0))
    monkeypatch.setattr(measured_module, "confirmed", lambda *args: trial)
    calls = Calls(lambda probe: Outcome(1.0), "float64", "mean")
    diagnosis = measured_module._composed(calls, nceref.get_loss("arcface").declaration, iter(tried), {}, takes)
    assert (diagnosis is not None) == printed
