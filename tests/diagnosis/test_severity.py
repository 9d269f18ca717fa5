"""What a difference does to training is measured: programs with a known effect."""

import numpy as np
import pytest
from diagnosis.altered_losses import altered, observed, right
from diagnosis.test_fresh import calls_of

from mutants.bug import logsumexp, unit
from mutants.bug import stop as real
from nceref.diagnosis.fresh import NO_CALLS
from nceref.diagnosis.severity import severity


def of(target, name="info_nce"):
    seen = observed(target, name)
    return severity(seen, calls_of(target, seen))


def lengths_detached(queries, keys, temperature):
    q, k = (x / np.sqrt(np.sum(real(x) ** 2, axis=-1, keepdims=True)) for x in (queries, keys))
    logits = q @ k.T / temperature
    return np.mean(logsumexp(logits) - np.diagonal(logits))


def moved_keys(queries, keys, temperature):
    """Keys around another point have another optimum."""
    return right(queries, keys + (np.arange(keys.shape[1]) == 0), temperature)


def pairs_apart(queries, keys, temperature):
    """At the optimum of the reference pairs are equal, which the second term has as its maximum."""
    return right(queries, keys, temperature) + 1.5 * np.mean(np.sum(unit(queries) * unit(keys), axis=1))


def padded(queries, keys, temperature):
    """A constant in the denominator after the shift by the maximum: right where probabilities are not tiny."""
    logits = unit(queries) @ unit(keys).T / temperature
    top = real(np.max(real(logits), axis=1, keepdims=True))
    return np.mean(np.log(np.sum(np.exp(logits - top), axis=1) + 1e-12) - np.diagonal(logits - top))


def overflowing(queries, keys, temperature):
    """Exponentials without a maximum: infinite at temperatures that are lower than the ordinary ones."""
    logits = unit(queries) @ unit(keys).T / temperature
    exponentials = np.exp(logits)
    return np.mean(np.log(np.sum(exponentials, axis=1) / np.diagonal(exponentials)))


@pytest.mark.parametrize(
    ("target", "words", "missing"),
    [
        (lambda queries, keys, temperature: 3 * right(queries, keys, temperature),
         "the gradient has the right direction and 3 times the length: only the learning rate changes", "optimum"),
        (lambda queries, keys, temperature: 1.997 * right(queries, keys, temperature), "value is off by 100 %", "e+"),
        (lambda queries, keys, temperature: -right(queries, keys, temperature), "points the other way", "rate"),
        (lambda queries, keys, temperature: right(queries, keys, temperature) + 1,
         "the gradient is right, so that training is the same", "degrees"),
        (lambda queries, keys, temperature: real(right(queries, keys, temperature)), "nothing is trained", "degrees"),
        (lambda queries, keys, temperature: right(queries, keys, temperature) * (1 + 1e-7),
         "the gradient is off by 1e-07, which training does not show", "optimum"),
        (lengths_detached, "only rescales the embeddings; the rest is right", "e-1"),
        (moved_keys, "the optimum moves", "nearly 0"),
        (lambda queries, keys, temperature: right(queries, real(keys), temperature),
         "the gradient of queries is right; the gradient of keys is 0, so that this loss does not train it; at a"
         " minimum of the reference at temperature 0.7 your gradient is nearly 0 too", "moves"),
        (lambda queries, keys, temperature: right(queries, keys, temperature) * (1 + (real(temperature) < 0.1)),
         "training is the same on such inputs; on ", "NaN"),
        (lambda queries, keys, temperature: right(queries, keys, real(temperature)),
         "the gradient of queries and keys is right; the temperature never learns: its gradient is 0", "the same"),
        (lambda queries, keys, temperature: right(queries, keys, temperature) + 0.1 * (temperature - real(temperature)),
         "the gradient of temperature has the right sign and is ", "the same"),
        (lambda queries, keys, temperature: right(queries, keys, np.conj(temperature)),
         "the gradient of temperature is wrong, so that it learns something else", "the same"),
        (lambda queries, keys, temperature: right(queries, keys, temperature) * (1 + 0.0003),
         "the gradient is off by 0.03 %", "1 times"),
        (lambda queries, keys, temperature: 2 - right(queries, keys, temperature),
         "points the other way, with the same length", "optimum"),
        (pairs_apart,
         "the optimum moves: at a minimum of the reference at temperature 0.4 your gradient is nearly 0 too", "still"),
        (padded, "which training does not show on such inputs; on ", "optimum"),
        (overflowing, "training is the same on such inputs; on ", "the temperature"),
    ],
    ids=["factor", "percent", "sign", "offset", "no gradient", "small", "lengths", "optimum", "detached", "cold",
         "temperature detached", "temperature moved", "temperature reversed", "same length", "sign and offset",
         "saddle", "epsilon", "overflow"],
)  # fmt: skip
def test_the_effect_on_training(target, words, missing):
    sentence = of(target).sentence
    assert words in sentence, sentence
    assert missing not in sentence


def test_numbers_go_with_the_sentence():
    measured = of(lambda queries, keys, temperature: 3 * right(queries, keys, temperature))
    record = measured.record()
    assert record["length"] == pytest.approx((3, 3))
    assert record["value_error"] == pytest.approx((2, 2))
    assert record["sentence"].startswith(f"on {record['calls']} inputs at temperature 0.13 to 0.55")
    assert max(record["angle"]) < 1e-6


@pytest.mark.parametrize(("below", "lost"), [(0.3, "on 3 of 4 inputs"), (0.6, "on 4 of 4 inputs")])
def test_values_that_are_no_number_are_counted(below, lost):
    def target(queries, keys, temperature):
        return right(queries, keys, temperature) * (np.nan if real(temperature) < below else 1)

    sentence = of(target).sentence
    assert sentence.startswith(f"{lost} the value is NaN or infinite, which ends training; on "), sentence
    assert "so that training is the same" not in sentence


def test_the_temperature_of_the_minimum_is_that_of_the_calls():
    """Calls of a target that holds its temperature have no other one."""

    def target(queries, keys, temperature):
        return right(queries, real(keys), temperature)

    seen = [o for o in observed(target, "info_nce", every=1) if o.probe.inputs["temperature"] == 0.5]
    measured = severity(seen, calls_of(target, seen))
    assert measured.optimum_temperature == 0.5
    assert "at a minimum of the reference at temperature 0.5 your gradient is nearly 0 too" in measured.sentence


def with_gradient(*names):
    """The right answer, and a gradient of 1 for constants."""
    return lambda probe, value, grads: (value, grads | {n: np.ones_like(probe.inputs[n]) for n in names})


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("keys",), "keys should be constant, and the gradient changes its encoder"),
        (("keys", "queue"), "keys and queue should be constant, and the gradient changes their encoder"),
    ],
)
def test_constants_with_a_gradient_are_trained(names, words):
    sentence = severity(altered("moco", with_gradient(*names)), NO_CALLS).sentence
    assert sentence.endswith(f"the gradient of queries is right; {words}"), sentence


def test_roundings_are_no_effect():
    """A gradient within its bounds is right, whatever its last digits are."""

    def target(probe, value, grads):
        return value, {n: g * (1 + 2e-16) for n, g in grads.items()} | {"temperature": np.zeros(())}

    sentence = severity(altered("info_nce", target), NO_CALLS).sentence
    assert "e-1" not in sentence
    assert "off by" not in sentence
    assert "the temperature never learns" in sentence


def test_a_gradient_that_is_nan_ends_the_training_of_the_temperature():
    def target(probe, value, grads):
        return value, grads | {"temperature": np.full((), np.nan)}

    sentence = severity(altered("info_nce", target), NO_CALLS).sentence
    assert sentence.endswith("the gradient of temperature is NaN or infinite, which ends training where it is learned")
    assert "the same" not in sentence
