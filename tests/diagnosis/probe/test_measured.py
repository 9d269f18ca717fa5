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


def formula_of(program, dtype="float64", loss="info_nce", **settings):
    def call(probe):
        kind = np.dtype(probe.dtype).type
        cast = {n: x.astype(kind) if isinstance(x, np.ndarray) else x for n, x in probe.inputs.items()}
        with np.errstate(all="ignore"):
            return Outcome(program(**{name: cast[name] for name in signature(program).parameters}))

    return measured_of(call, nceref.get_loss(loss).declaration, settings, dtype)


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
    assert diagnosis.sentence.startswith(
        "your loss equals the reference with another formula (Z_i over all candidates, positives 3 times, in the"
        " reference Z_i over all keys), on 6 of 6 cases and "
    )
    assert diagnosis.fix == "Write Z_i over all keys in the place of Z_i over all candidates, positives 3 times."


def with_gradients(program, without=""):
    """Answers of a program with the gradients of its value, one of which is 0."""

    def call(probe):
        inputs = {name: probe.inputs[name] for name in ("queries", "keys", "temperature")}
        grads = {}
        for name, x in inputs.items():
            x = np.asarray(x)
            grads[name] = np.zeros(x.shape)
            for index in np.ndindex(x.shape) if name != without and probe.mode != "no-grad" else ():
                moved = x.astype(complex)
                moved[index] += 1e-30j
                grads[name][index] = np.imag(program(**{**inputs, name: moved})) / 1e-30
        return Outcome(float(program(**inputs)), grads)

    return measured_of(call, nceref.get_loss("info_nce").declaration, {})


def analytic(queries, keys, temperature):
    """The negatives count twice."""
    x, y = (rows / np.sqrt(np.sum(rows * rows, axis=1, keepdims=True)) for rows in (queries, keys))
    logits = x @ y.T / temperature
    weights = np.where(np.eye(len(x)) > 0, 1, 2)
    return np.mean(np.log(np.sum(weights * np.exp(logits), axis=1)) - np.diagonal(logits))


@pytest.mark.parametrize(
    ("without", "id"), partly_slow([("", ""), ("keys", "+keys-detached")], lambda each: each[0], "the same formula")
)
def test_the_gradients_of_a_formula_are_compared_too(without, id):
    diagnosis = with_gradients(analytic, without)
    assert diagnosis.id == f"measured-formula{id}"
    assert "Z_i over all candidates, negatives 2 times" in diagnosis.sentence
    assert ("gradient of keys is 0" in diagnosis.sentence) == bool(without)
    # Both are mended.
    assert diagnosis.fix.startswith("Write Z_i over all keys in the place of ")
    assert diagnosis.fix.count("Do not detach the keys") == bool(without)


def maximum_never_added(z1, z2, temperature):
    """The maximum is subtracted in the denominator alone; it is no logit of the anchor with itself."""
    z = np.concatenate([z1, z2])
    logits = np.where(np.eye(len(z)) > 0, -np.inf, cosines(z, z) / temperature)
    top = logits.max(axis=1)
    partner = np.roll(np.arange(len(z)), len(z1))
    return np.mean(np.log(np.exp(logits - top[:, None]).sum(axis=1)) - logits[np.arange(len(z)), partner])


def test_the_formula_holds_on_every_case():
    diagnosis = formula_of(maximum_never_added, loss="nt_xent")
    assert "M_i the largest logit of the denominator" in diagnosis.sentence


def three_rows_of_more_than_five(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    rows = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    return np.mean(rows if len(rows) <= 5 else rows[:3])


@pytest.mark.slow(reason="two searches, of all calls and of those that are wrong")
def test_cases_on_which_the_reference_is_right_may_be_others():
    diagnosis = formula_of(three_rows_of_more_than_five)
    assert "L = mean of L_i over the first 3 rows" in diagnosis.sentence
    assert "on the wrong cases, while the others are right: on " in diagnosis.sentence


def test_a_difference_has_a_remedy():
    difference = Difference("L = J", "L = 2 J")
    assert difference.sentence == "L = J, in the reference L = 2 J"
    assert difference.remedy == "write L = 2 J in the place of L = J"
