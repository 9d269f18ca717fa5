"""What a program computes, measured by calling it: the formula, or nothing."""

from inspect import signature

import numpy as np
import pytest
from diagnosis.probe.fresh_targets import measured_of
from slow import partly_slow

import nceref
from nceref.cases.records import Outcome
from nceref.diagnosis.probe.composition import Difference

RNG = np.random.default_rng(0)


def formula_of(program, dtype="float64", **settings):
    def call(probe):
        kind = np.dtype(probe.dtype).type
        cast = {n: x.astype(kind) if isinstance(x, np.ndarray) else x for n, x in probe.inputs.items()}
        with np.errstate(all="ignore"):
            return Outcome(program(**{name: cast[name] for name in signature(program).parameters}))

    return measured_of(call, nceref.get_loss("info_nce").declaration, settings, dtype)


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


UNCONFIRMED = (slightly_curved, another_one_for_more_than_eight, random, plain, without_a_number)


@pytest.mark.parametrize(
    "program", partly_slow(UNCONFIRMED, UNCONFIRMED[-2:].__contains__, "everything is tried before nothing is said")
)
def test_what_was_not_confirmed_is_not_said(program):
    assert formula_of(program) is None


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_formula_is_measured_as_far_as_a_format_goes(dtype):
    diagnosis = formula_of(positive_counted_three_times, dtype)
    assert "<<Z_i over all candidates, positives 3 times>>" in diagnosis.formula
    assert diagnosis.sentence.endswith(
        "; different: Z_i over all candidates, positives 3 times, in the reference Z_i over all keys"
    )
    assert diagnosis.fix == "Write Z_i over all keys in the place of Z_i over all candidates, positives 3 times."


def test_a_difference_has_a_remedy():
    difference = Difference("L = J", "L = 2 J")
    assert difference.sentence == "L = J, in the reference L = 2 J"
    assert difference.remedy == "write L = 2 J in the place of L = J"
