"""What a difference does to training is measured: programs with a known effect."""

import numpy as np
import pytest
from verification.diagnosis.altered_losses import logsumexp, observed, real, right
from verification.diagnosis.test_fresh import calls_of

from nceref.verification.diagnosis.severity import severity


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
         "the gradient of the embeddings is off by 1e-07, which training does not show", "optimum"),
        (lengths_detached, "along the rows", "degrees"),
        (moved_keys, "the optimum moves", "stationary"),
        (lambda queries, keys, temperature: right(queries, real(keys), temperature), "is a stationary point", "moves"),
    ],
    ids=["factor", "percent", "sign", "offset", "no gradient", "small", "lengths", "optimum", "detached"],
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
