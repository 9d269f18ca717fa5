"""What is done to a gradient on its way back is found edge by edge, and said of the edge."""

from functools import partial

import catalogue
import numpy as np
import pytest
from diagnosis.gradient_programs import (
    answer,
    both_ways,
    entropy,
    log_sum_exp,
    observed,
    of_rows,
    queries_and_keys,
    times,
    unit,
    views,
)
from slow import partly_slow

from mutants.bug import gradient_programs
from nceref.diagnosis.diagnose import diagnose
from nceref.diagnosis.expressions import Product, written
from nceref.diagnosis.fresh import fresh_calls
from nceref.diagnosis.gradient_fit import Factor
from nceref.diagnosis.tape import detached, recorded


def first_half_detached(rows):
    return np.where(np.arange(len(rows)) < len(rows) // 2, detached(rows), rows)


def straight(x):
    return recorded(detached(unit(x)), [(x, lambda g: g)])


def maximum_subtracted(queries, keys, temperature, **_):
    logits = unit(queries) @ unit(keys).T / temperature
    return np.mean(entropy(logits, lambda x: log_sum_exp(x, below=lambda top: top)))


def maximum_added(queries, keys, temperature, **_):
    logits = unit(queries) @ unit(keys).T / temperature
    return np.mean(entropy(logits, lambda x: log_sum_exp(x, above=lambda top: top)))


def one_transpose_missing(image, text, logit_scale, **_):
    """The gradient of the texts is that of the images with the other rows."""
    x, y = unit(image), unit(text)
    s = recorded(detached(x) @ detached(y).T, [(x, lambda g: g @ detached(y)), (y, lambda g: g @ detached(x))])
    return (np.mean(entropy(logit_scale * s)) + np.mean(entropy(logit_scale * s.T))) / 2


def of_self_kept(z1, z2, temperature, **_):
    """The value is right, and backward is that of a loss with the anchor among its candidates."""
    z = np.concatenate([unit(z1), unit(z2)])
    n = len(z)
    logits = z @ z.T / temperature
    positive = np.sum(np.where(np.arange(n)[:, None] == (np.arange(n) + n // 2) % n, logits, 0.0), axis=1)
    right = log_sum_exp(np.where(np.eye(n, dtype=bool), -np.inf, detached(logits))) - detached(positive)
    return np.mean(recorded(right, [(log_sum_exp(logits) - positive, lambda g: g)]))


def candidates_detached(denominator=lambda z: z, numerator=lambda z: z):
    """Only a part of the loss has its candidates detached."""

    def target(z1, z2, temperature, **_):
        z = np.concatenate([unit(z1), unit(z2)])
        n = len(z)
        logits = z @ denominator(z).T / temperature
        other = numerator(np.concatenate([z[n // 2 :], z[: n // 2]]))
        positive = np.sum(z * other, axis=1) / temperature
        return np.mean(log_sum_exp(np.where(np.eye(n, dtype=bool), -np.inf, logits)) - positive)

    return "nt_xent", target


def count_forgotten(embeddings, labels, temperature, **_):
    """The mean over the positives divides by their number in the value alone."""
    z = unit(embeddings)
    own = np.eye(len(z), dtype=bool)
    positives = (labels == labels[:, None]) & ~own
    number = np.sum(positives, axis=1)
    logits = z @ z.T / temperature
    weighted = recorded(detached(logits), [(logits, lambda g: g * number[:, None])])
    rows = log_sum_exp(np.where(own, -np.inf, logits)) - np.sum(np.where(positives, weighted, 0.0), axis=1) / number
    return np.mean(rows)


def smoothing_forgotten(logits, target, temperature, label_smoothing, **_):
    """Labels are smoothed in the value, and hard on the way back."""
    s = logits / temperature
    own = np.arange(s.shape[1]) == np.asarray(target)[:, None]
    hard = np.sum(np.where(own, s, 0.0), axis=1)
    smooth = (1 - label_smoothing) * detached(hard) + label_smoothing * np.mean(detached(s), axis=1)
    return np.mean(log_sum_exp(s) - recorded(smooth, [(hard, lambda g: g)]))


PROGRAMS = {
    "candidates of the denominator": (
        candidates_detached(denominator=detached),
        "candidates-detached", "no gradient passes through the rows as candidates in the denominator; it should",
    ),
    "candidates of the numerator": (
        candidates_detached(numerator=detached),
        "candidates-detached", "no gradient passes through the rows as candidates in the numerator; it should",
    ),
    "a length": (
        queries_and_keys(lambda q, k, t: unit(q) @ unit(k, detached).T / t),
        "gradient-parts-scaled", "no gradient passes through the lengths of keys; it should",
    ),
    "the lengths": (
        views(change=lambda x: unit(x, detached)),
        "normalization-detached", "no gradient passes through the lengths of the rows; it should",
    ),
    "a number of positives": (
        ("supcon_out", count_forgotten),
        "gradient-parts-scaled", "by each positive lacks the division by the number of positives of its anchor",
    ),
    "a smoothing": (
        ("cross_entropy", smoothing_forgotten),
        "gradient-of-a-variant", "is that of the loss with label_smoothing = 0 whatever is passed",
    ),
    "a maximum": (
        ("info_nce", maximum_subtracted),
        "gradient-parts-scaled", "through the maximum that is subtracted, and not through the same maximum",
    ),
    "a maximum once more": (
        ("info_nce", maximum_added),
        "gradient-parts-scaled", "through the maximum that is added again, and not through the same maximum",
    ),
    "a transpose in both directions": (
        ("clip", one_transpose_missing),
        "gradient-parts-scaled", "the gradient of text is taken with G for G^T, or G^T for G",
    ),
    "a normalization": (
        views(change=straight),
        "gradient-parts-scaled", "passes straight through the normalization, without its derivative",
    ),
    "a transpose": (
        views(anchors=lambda z: times(z, 2.0), candidates=detached),
        "gradient-parts-scaled", "the gradient of the rows as candidates is G A",
    ),
    "two edges": (
        both_ways(lengths=detached, candidates=detached),
        "gradient-parts-scaled", "through the lengths of image and the rows of image as candidates; it should",
    ),
    "two factors": (
        queries_and_keys(lambda q, k, t: unit(times(q, 2.0)) @ unit(k, lambda n: times(n, 0.5)).T / t),
        "gradient-parts-scaled", "through the first input is 2 times what it should be; the gradient through the"
        " lengths of keys is 1/2 times",
    ),
    "a scale in one direction": (
        both_ways(scales=(detached, lambda s: s)),
        "gradient-parts-scaled", "through the logit scale in the first direction; it should",
    ),
    "a half of the rows": (
        of_rows(first_half_detached),
        "gradient-parts-scaled", "through the loss of the first half of the rows; it should",
    ),
    "an expression": (
        queries_and_keys(lambda q, k, t: unit(q) @ unit(k).T / times(t, detached(t))),
        "gradient-constant-factor", "the gradient of temperature is T times what it should be",
    ),
    "another loss": (
        ("nt_xent", of_self_kept),
        "gradient-of-a-variant", "is that of the loss with the self-contrast kept in the denominator",
    ),
}  # fmt: skip


FEW = {
    "candidates of the denominator", "the lengths", "a number of positives", "a smoothing", "two edges",
    "a half of the rows", "an expression", "another loss",
}  # fmt: skip


@pytest.mark.parametrize("name", partly_slow(PROGRAMS, FEW.__contains__, "the same search for another edge"))
def test_the_edge_is_named_with_what_it_should_carry(name):
    (loss, target), id, words = PROGRAMS[name]
    seen = observed(loss, target, every=3)
    (found,) = diagnose(seen, (), fresh_calls(lambda probe: answer(target, probe), seen))
    assert found.id == id
    assert found.sentence.startswith("the value is right on ")
    assert words in found.sentence
    assert "fresh call" in found.sentence


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("arcface-slope-by-the-angle", "passes straight through the arccosine, without its derivative"),
        ("uniformity-first-of-each-pair-moves", "no gradient passes through the second point of each pair; it should"),
    ],
)
def test_the_edge_of_a_program_of_the_catalogue_is_named_and_predicts_other_cases(name, words):
    """Rows of the antipodal case of another seed have cosines of 1 and -1, and roundings of these."""
    program = gradient_programs()[name]
    seen = list(catalogue.observed(program, every=3))
    (found,) = diagnose(seen, (), fresh_calls(partial(catalogue.answer, program), seen))
    assert found.id == "gradient-parts-scaled"
    assert words in found.sentence
    others = list(catalogue.observed(program, seed=1))
    assert any("antipodal" in o.probe.id for o in others)
    assert found.predicts(others)


def test_what_fresh_calls_refute_is_not_said():
    """Up to 16 rows, which most cases have, the lengths are constants."""

    def target(queries, keys, temperature, **_):
        long = detached if len(queries) <= 16 else (lambda n: n)
        return np.mean(entropy(unit(queries) @ unit(keys, long).T / temperature))

    seen = [o for o in observed("info_nce", target) if len(o.probe.inputs["queries"]) <= 16]
    found = diagnose(seen, (), fresh_calls(lambda probe: answer(target, probe), seen))
    assert "lengths" not in found[0].sentence


def test_a_factor_is_written_as_an_expression():
    assert str(Factor(0.5)) == "1/2"
    assert str(Factor(2.0, (("N", 1.0),))) == "2 N"
    assert str(Factor(1.0, (("T", -1.0),))) == "1/T"
    assert str(Factor(-1.0, (("T", 2.0), ("N", -1.0)))) == "-T^2/N"


def test_a_sum_beside_anything_else_stands_in_parentheses():
    sums = {(2.0, 1.0): "2 (N - 1)", (1 / 3, 1.0): "(N - 1)/3", (-1.0, -1.0): "-1/(N - 1)", (1.0, 2.0): "(N - 1)^2"}
    for (number, power), text in {**sums, (1.0, 1.0): "N - 1"}.items():
        assert written((Product(number, (("N - 1", power),)),)) == text
