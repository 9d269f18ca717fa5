"""A range that exponentials leave is named only where numbers stop being finite at its limit."""

import numpy as np
import pytest
from diagnosis.altered_losses import right

from mutants.bug import logsumexp, unit
from mutants.bug import stop as real
from nceref import get_loss
from nceref.cases.corpus.corpus import corpus
from nceref.cases.records import Observation, Outcome
from nceref.diagnosis.fresh import MOST, fresh_calls
from nceref.diagnosis.ranges import limit_in_words, limits
from nceref.diagnosis.triage import triage


def logits(queries, keys, temperature):
    return unit(queries) @ unit(keys).T / temperature


def bare(queries, keys, temperature):
    mass = np.exp(logits(queries, keys, temperature))
    return np.mean(np.log(np.sum(mass, axis=1)) - np.log(np.diagonal(mass)))


def bare_positives(queries, keys, temperature):
    s = logits(queries, keys, temperature)
    own = np.diagonal(s)
    above = np.where(own.real > 0, own, 0)
    return np.mean(logsumexp(s) - np.log(np.exp(above)) - (own - above))


def one_maximum(queries, keys, temperature):
    s = logits(queries, keys, temperature)
    mass = np.exp(s - np.max(real(s)))
    return np.mean(-np.log(np.diagonal(mass) / np.sum(mass, axis=1)))


def always_nan(queries, keys, temperature):
    return np.nan * temperature


def nan_below(queries, keys, temperature):
    """Logits of 300 are within every range."""
    return right(queries, keys, temperature) if real(temperature) > 1 / 300 else np.nan


def nan_of_one(queries, keys, temperature):
    return right(queries, keys, temperature) if len(queries) > 1 else np.nan


def value(target, probe):
    with np.errstate(all="ignore"):
        return Outcome(float(real(target(**probe.inputs))))


@pytest.mark.parametrize(
    ("target", "id", "words"),
    [
        (bare, "exp-overflows", "logits reach 7"),
        (bare_positives, "exp-overflows", "logits of positives reach 7"),
        (one_maximum, "exp-underflows", "positives lie below the largest logit of all rows by up to 74"),
        (always_nan, "value-not-finite", "the value is NaN on all 28 cases"),
        (nan_below, "value-not-finite", "it begins between temperature 0.0033"),
        (nan_of_one, "value-not-finite", "exactly those with a single sample; it is"),
    ],
)
def test_the_range_is_tested_where_numbers_stop_being_finite(target, id, words):
    asked = get_loss("info_nce").declaration, {}
    seen = [Observation(probe, value(target, probe)) for probe in corpus(*asked, suite="quick") if not probe.skip]
    calls = fresh_calls(lambda probe: value(target, probe), seen)
    (found,) = triage(seen, calls=calls)
    assert found.id == id, found
    assert words in found.sentence
    assert ("exp(" in found.sentence or "exp " in found.sentence) == id.startswith("exp")
    assert calls.made < MOST
    others = [p for p in corpus(*asked, suite="quick", seed=1) if not p.skip]
    assert found.predicts([Observation(probe, value(target, probe)) for probe in others])
    if target is not always_nan:
        assert not found.predicts([Observation(probe, value(always_nan, probe)) for probe in others])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_exponentials_are_zero_and_infinite_from_the_stated_numbers_on(dtype):
    number = np.dtype(dtype).type
    with np.errstate(over="ignore", under="ignore"):
        top, low = limits(dtype)
        assert np.isfinite(np.exp(number(top - 0.01)))
        assert np.isinf(np.exp(number(top + 0.01)))
        assert np.exp(number(-low + 0.01)) > 0
        stated = limit_in_words("exp-underflows", dtype).removeprefix(f"exp(-x) is 0 in {dtype} from x = ")
        assert np.exp(number(-float(stated.removesuffix(" on")))) == 0
