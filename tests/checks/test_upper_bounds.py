"""The largest value of each loss for rows of length 1: reached by a batch, or at least never exceeded."""

import math
from itertools import product

import numpy as np
import pytest
from sweep import sweep

from nceref import losses
from nceref.checks.expect import expected_readings
from nceref.spec import Scalar

ALL = losses.all_losses()
E = np.eye(4)
CIRCLE = np.stack([np.cos(2 * np.pi * np.arange(5) / 5), np.sin(2 * np.pi * np.arange(5) / 5)], axis=1)


def readings(name, given):
    return {r.situation: r for r in expected_readings(name, given).readings}


def weights(target):
    """Class weights: the target's and those of three others, all e."""
    return np.stack([target, E[0], E[0], E[0]])


TWO = np.array([[1.0], [-1.0]])
REACHED = [
    ("alignment", {"exponent": 3.0}, {"x": CIRCLE, "y": -CIRCLE}, {}),
    ("arcface", {"margin": 0.4, "scale": 8.0}, (math.pi - 0.4), {"classes": 4}),
    ("arcface", {"margin": 2.0, "scale": 8.0, "fallback": "linear"}, math.pi, {"classes": 4}),
    ("clip", {"logit_scale": 3.0}, {"image": TWO, "text": -TWO}, {"n": 2}),
    ("cosface", {"margin": 0.4, "scale": 8.0}, math.pi, {"classes": 4}),
    ("info_nce", {"temperature": 0.3}, {"queries": TWO, "keys": -TWO}, {"n": 2}),
    ("moco", {"temperature": 0.3}, {"queries": E[:1], "keys": -E[:1], "queue": E[[0, 0]]}, {"queue": 2}),
    ("mnrl", {"temperature": 0.3}, {"queries": TWO, "documents": -TWO}, {"n": 2}),
    ("siglip", {"logit_scale": 3.0, "logit_bias": -1.0}, {"image": TWO, "text": -TWO}, {"n": 2}),
    ("simple", {}, {"queries": CIRCLE, "keys": -CIRCLE}, {"n": 5}),
    ("simple", {"negative_weight": 0.3}, {"queries": CIRCLE, "keys": -CIRCLE}, {"n": 5}),
    ("simple", {"negative_weight": 0.9}, {"queries": E[[0] * 5], "keys": E[[0] * 5]}, {"n": 5}),
    ("uniformity", {"t": 2.0}, {"x": E[[0, 0, 0]]}, {"n": 3}),
]


@sweep(("name", "scalars", "batch", "sizes"), REACHED)
def test_a_batch_reads_the_upper_bound(name, scalars, batch, sizes):
    if not isinstance(batch, dict):
        target = math.cos(batch) * E[0] + math.sin(batch) * E[1]
        batch = {"embeddings": E[[0, 0]], "class_weights": weights(target), "target": np.zeros(2, dtype=int)}
    bound = readings(name, {**scalars, **sizes})["upper bound"]
    assert abs(ALL[name](**batch, **scalars) - bound.value) < 1e-6
    # Nor is less said of it.
    assert "need not be reached" not in bound.because or "more than 2 pairs" in bound.because


NONE = {
    "balanced_softmax": {"classes": 3},
    "cross_entropy": {"classes": 3},
    "nce": {},
    "sampled_softmax": {"n": 4},
    "paco": {"n": 6, "classes": 3},
}


@sweep("name", ALL)
def test_an_upper_bound_is_reached_or_may_not_be_or_there_is_none(name):
    (declared,) = (e for e in ALL[name].declaration.expectations if e.situation == "upper bound")
    reached = name in {case[0] for case in REACHED} - {"clip", "info_nce", "mnrl", "siglip"}
    assert reached + (name in NONE) + ("need not be reached" in declared.because) == 1
    if name in NONE:
        given = {p.name: p.typical[0] for p in ALL[name].parameters if isinstance(p, Scalar) and p.default is ...}
        bound = readings(name, {**given, **NONE[name]})["upper bound"]
        assert bound.value is None
        assert bound.because.startswith("any value is possible")


PAIRS = np.array([0, 0, 1, 1, 2, 2])
NOT_REACHED = [
    ("dcl", {}, None),
    ("dclw", {"sigma": 2.0}, None),
    ("dclw", {"sigma": 8.0}, None),
    ("debiased", {"positive_prior": 0.7}, None),
    ("hcl", {"concentration": 2.0}, None),
    ("nt_xent", {}, None),
    ("supcon_in", {}, PAIRS),
    ("supcon_in", {}, PAIRS // 2),
    ("supcon_out", {}, PAIRS),
    ("supcon_out", {}, PAIRS // 2),
]


@sweep(("name", "scalars", "labels"), NOT_REACHED)
@sweep("temperature", [0.05, 2.0])
def test_no_batch_of_opposed_and_equal_rows_is_beyond_the_bounds_and_one_is_near(name, scalars, labels, temperature):
    scalars = {**scalars, "temperature": temperature}
    known = readings(name, {**scalars, **({"n": 3} if labels is None else {"n": 6, "classes": 3})})
    values = []
    for signs in product((1.0, -1.0), repeat=6):
        x = np.reshape(signs, (6, 1))
        values.append(ALL[name](*((x[:3], x[3:]) if labels is None else (x, labels)), **scalars))
    upper = known["upper bound"].value
    assert known["lower bound"].value - 1e-9 <= min(values)
    # The bound is that of one positive.
    near = 0.5 if labels is not None and labels[-1] < 2 else 0.82
    assert near * upper <= max(values) <= upper + 1e-9


def test_weights_of_dclw_add_to_the_bound_what_one_aligned_pair_among_opposed_ones_does():
    x = np.ones((13, 1))
    y = -x
    y[0] = 1.0
    value = losses.dclw(x, y, temperature=0.05, sigma=0.5)
    bound = readings("dclw", {"n": 13, "temperature": 0.05, "sigma": 0.5})["upper bound"].value
    # Without the weights it would be log(2N - 2) + 2/T, as for DCL.
    assert value > math.log(24) + 2 / 0.05 + 20
    assert bound - 1 < value < bound


def rows(rng, shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize("weight", [0.0, 0.4, 1.5])
def test_simple_keeps_its_bounds_for_any_weight_and_scatters_as_is_said(weight):
    rng = np.random.default_rng(0)
    known = readings("simple", {"n": 5, "dim": 3, "negative_weight": weight})
    values = [losses.simple(*rows(rng, (2, 5, 3)), negative_weight=weight) for _ in range(600)]
    assert known["lower bound"].value <= min(values)
    assert max(values) <= known["upper bound"].value
    assert abs(np.std(values) / known["chance"].spread - 1) < 0.1
    assert abs(losses.simple(E[[0] * 5], E[[0] * 5], negative_weight=weight) - known["collapse"].value) < 1e-12


def test_rows_of_one_feature_do_not_add_up_to_0_in_an_odd_number():
    best = readings("simple", {"n": 5, "dim": 1})
    assert best["optimum"].because == "known for D >= 2 if N is odd"
    signs = np.array(list(product((1.0, -1.0), repeat=5)))[:, :, None]
    assert min(losses.simple(x, y) for x in signs for y in signs[:16]) > best["lower bound"].value + 0.01
    assert readings("simple", {"n": 5, "dim": 2})["optimum"].value == best["lower bound"].value


def test_chance_of_the_linear_fallback_is_its_own():
    given = {"classes": 10, "margin": 2.0, "fallback": "linear"}
    # In many dimensions all cosines are 0, and the angle pi / 2 lies past pi - m.
    x, w = np.eye(20)[:2], np.eye(20)[2:12]
    value = losses.arcface(x, w, np.array([0, 3]), margin=2.0, fallback="linear")
    assert abs(readings("arcface", given)["chance"].value - value) < 1e-9
    assert abs(readings("arcface", {**given, "dim": 10**6})["chance"].value / value - 1) < 1e-3
