"""What a program computes, measured by calling it: the formula, or nothing."""

from inspect import signature

import numpy as np
import pytest
from slow import partly_slow
from verification.probe.wrong_losses import WRONG, cosines, mass

import nceref
from nceref.verification.probe.measured import measured
from nceref.verification.probe.words import latex
from nceref.verification.records import Outcome

QUICK = {"temperature_squared_on_negatives", "earlier_keys_only", "anchor_counted_among_its_positives"}
RNG = np.random.default_rng(0)


def formula_of(program, loss, dtype="float64", **settings):
    def call(probe):
        kind = np.dtype(probe.dtype).type
        cast = {n: x.astype(kind) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                for n, x in probe.inputs.items()}  # fmt: skip
        with np.errstate(all="ignore"):
            return Outcome(program(**{name: cast[name] for name in signature(program).parameters}))

    return measured(nceref.get_loss(loss).declaration, call, settings, dtype, "mean")


@pytest.mark.parametrize("name", partly_slow(WRONG, QUICK.__contains__, "a formula takes a second each"))
def test_the_formula_of_a_wrong_loss_is_measured(name):
    loss, program, formula = WRONG[name]
    diagnosis = formula_of(program, loss)
    assert diagnosis.id == "measured-formula"
    assert diagnosis.formula == f"L = {formula}"
    assert "different: " in diagnosis.sentence


def plain(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


def focal(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    log_p = np.diag(logits) - np.log(mass(logits))
    return np.mean(-((1 - np.exp(log_p)) ** 2) * log_p)


def slightly_curved(queries, keys, temperature):
    logits = cosines(queries, keys) / temperature
    logits = logits + 1e-4 * logits**3
    return np.mean(-np.diag(logits) + np.log(mass(logits)))


def another_one_for_more_than_eight(queries, keys, temperature):
    return 3 * plain(queries, keys, temperature) * (1.5 if len(queries) > 8 else 1)


def random(queries, keys, temperature):
    return plain(queries, keys, temperature) + RNG.uniform()


def constant(queries, keys, temperature):
    return 1.0


def without_a_number(queries, keys, temperature):
    return np.nan


UNCONFIRMED = (plain, focal, slightly_curved, random, another_one_for_more_than_eight, without_a_number)


@pytest.mark.parametrize(
    "program", partly_slow(UNCONFIRMED, UNCONFIRMED[-2:].__contains__, "everything is tried before nothing is said")
)
def test_what_was_not_confirmed_is_not_said(program):
    assert formula_of(program, "info_nce") is None


def test_a_constant_is_a_formula():
    assert formula_of(constant, "info_nce").formula == "L = <<1>>, s: cosines"


def test_float32_is_measured_as_far_as_it_goes():
    _, program, formula = WRONG["positive_counted_three_times"]
    diagnosis = formula_of(program, "info_nce", dtype="float32")
    assert diagnosis.formula == f"L = {formula}"


def test_a_fixed_temperature_is_a_number():
    _, program, _ = WRONG["positive_counted_three_times"]
    diagnosis = formula_of(program, "info_nce", temperature=0.5)
    assert diagnosis.formula.startswith("L = 1/N sum_i [ -2 s_ii + log( <<3 e^(2 s_ii)>>")


def test_a_formula_in_latex():
    line = "L = 1/N sum_i [ -s_ii/T + log( <<3 e^(s_ii/T)>> + sum_{j != i} e^(s_ij/T) ) ]"
    assert latex(line) == (
        r"L = 1/N \sum_i [ -s_{ii}/\tau + \log( \underline{3 e^{s_{ii}/\tau}} + \sum_{j \ne  i} e^{s_{ij}/\tau} ) ]"
    )
