"""The oracle itself, against numbers that were published or follow from a closed form."""

import math

import numpy as np
import pytest
from fuzz.oracle import evaluate
from sweep import every_loss, sweep

import nceref
from nceref.spec import Array, Labels

E4 = np.eye(4)
SAME = np.ones((4, 3))
Q = np.array([[1.0]])
LOG = math.log


def declaration(name):
    return nceref.get_loss(name).declaration


def plain(name, **given):
    parameters = declaration(name).parameters
    return {p.name: given.get(p.name, None if isinstance(p, Array | Labels) else p.default) for p in parameters}


# Source 003: similarities 0.5, 0.25, -0.45, -0.1, the positive first, and its second table.
SIMILARITIES = np.array([[0.5, 0.25, -0.45, -0.1], [0.25, 0.5, -0.45, -0.1]])
CASES = {
    "cross_entropy": ({"logits": SIMILARITIES[:1], "target": [0]}, 0.998553782344),
    "cross_entropy at 0.5": ({"logits": SIMILARITIES[1:], "target": [0], "temperature": 0.5}, 1.221391279563),
    "cross_entropy smoothed": ({"logits": np.zeros((2, 4)), "target": [0, 3], "label_smoothing": 0.3}, LOG(4)),
    "balanced_softmax": ({"logits": np.zeros((1, 2)), "target": [1], "class_counts": np.array([1.0, 3.0])}, LOG(4 / 3)),
    "alignment": ({"x": E4[:2], "y": E4[2:]}, 2.0),
    "alignment of opposed": ({"x": Q, "y": -Q, "exponent": 3.0}, 8.0),
    "uniformity": ({"x": E4}, -4.0),
    "uniformity with the diagonal": ({"x": E4, "include_diagonal": True}, LOG((4 + 12 * math.exp(-4)) / 16)),
    "nt_xent": ({"z1": SAME, "z2": SAME, "temperature": 0.1}, LOG(7)),
    "dcl": ({"z1": SAME, "z2": SAME, "temperature": 0.5}, LOG(6)),
    "dclw": ({"z1": SAME, "z2": SAME, "temperature": 0.5}, LOG(6)),
    "debiased": ({"z1": SAME, "z2": SAME, "temperature": 0.5, "positive_prior": 0.3}, LOG(7)),
    "debiased on the floor": (
        {"z1": np.array([[1.0], [-1.0]]), "z2": np.array([[1.0], [-1.0]]), "temperature": 0.5},
        math.log1p(2 * math.exp(-4)),
    ),
    "hcl": ({"z1": SAME, "z2": SAME, "temperature": 0.5, "concentration": 2.0}, LOG(7)),
    "info_nce": ({"queries": E4, "keys": E4, "temperature": 0.5}, LOG(1 + 3 * math.exp(-2))),
    "info_nce with negatives": (
        {"queries": Q, "keys": Q, "negatives": np.array([[-1.0], [2.0]]), "temperature": 1.0},
        LOG(2 + math.exp(-2)),
    ),
    "guided_info_nce": ({"queries": E4, "documents": E4, "temperature": 0.5}, LOG(1 + 9 * math.exp(-2))),
    "guided_info_nce with a margin": (
        {"queries": E4, "documents": E4, "temperature": 0.5, "margin": 1.5, "margin_of": "relative"}, 0.0
    ),
    "mnrl": ({"queries": E4, "documents": E4, "temperature": 0.5}, LOG(1 + 3 * math.exp(-2))),
    "mnrl with hard negatives": (
        {"queries": Q, "documents": Q, "negatives": np.stack([-Q, -Q], axis=1), "temperature": 0.5,
         "candidates": "hard", "hardness": 1.0, "hardness_of": "hard"},
        LOG(1 + 2 * math.exp(-5)),
    ),
    "multi_direction": ({"queries": E4, "documents": E4, "temperature": 0.5}, LOG(2 + 12 * math.exp(-2))),
    "multi_direction with hard negatives": (
        {"queries": Q, "documents": Q, "negatives": -Q[:, None], "temperature": 0.5, "directions": "symmetric"},
        LOG(1 + math.exp(-4)) / 2,
    ),
    "moco": ({"queries": Q, "keys": Q, "queue": -Q, "temperature": 0.5}, LOG(1 + math.exp(-4))),
    "sampled_softmax": (
        {"queries": E4, "items": E4, "expected_counts": np.array([2.0, 2.0, 2.0, 2.0]), "temperature": 0.5,
         "correction": "negatives"},
        LOG(1 + 1.5 * math.exp(-2)),
    ),
    "sampled_softmax without hits": (
        {"queries": E4, "items": E4, "expected_counts": np.ones(4), "item_ids": [0, 0, 1, 1], "temperature": 0.5},
        LOG(1 + 2 * math.exp(-2)),
    ),
    "hard_contrastive": (
        {"queries": E4, "keys": E4, "temperature": 0.5, "fraction": 0.5}, LOG(1 + 2 * math.exp(-2))
    ),
    "nce": (
        {"data_logits": np.zeros(3), "noise_logits": np.zeros(6), "data_log_noise": np.zeros(3),
         "noise_log_noise": np.zeros(6), "noise_ratio": 2.0},
        LOG(3) + 2 * LOG(3 / 2),
    ),
    "clip": ({"image": E4, "text": E4, "logit_scale": 2.0}, LOG(1 + 3 * math.exp(-2))),
    # Table SIG-1: every negative costs 4.53989e-5 at similarity 0, scale 10 and bias -10; the positive log 2 at 1.
    "siglip": (
        {"image": E4, "text": E4, "logit_scale": 10.0, "logit_bias": -10.0}, LOG(2) + 3 * math.log1p(math.exp(-10))
    ),
    "simple": ({"queries": E4, "keys": -E4}, 1.0),
    "arcface": (
        {"embeddings": E4[:1], "class_weights": E4[1:3], "target": [0], "scale": 2.0, "margin": 0.5},
        LOG(1 + math.exp(2 * math.sin(0.5))),
    ),
    "arcface past the end": (
        {"embeddings": Q, "class_weights": -Q, "target": [0], "scale": 2.0, "margin": 0.5, "fallback": "linear"}, 0.0
    ),
    "cosface": (
        {"embeddings": E4[:1], "class_weights": E4[1:3], "target": [0], "scale": 2.0, "margin": 0.5},
        LOG(1 + math.e),
    ),
    "supcon_out": ({"embeddings": SAME, "labels": [0, 0, 1, 1], "temperature": 0.1}, LOG(3)),
    "supcon_out of a mask": (
        {"embeddings": np.eye(3), "mask": np.array([[0, 1.0, 3], [1, 0, 1], [1, 1, 0]]), "temperature": 1.0,
         "form": "sum"},
        LOG(2) * (4 + 2 + 2) / 3,
    ),
    # A published value of the authors' code: labels [0, 1, 1, 2] diluted by two rows without a positive.
    "supcon_in": ({"embeddings": SAME, "labels": [0, 1, 1, 2], "temperature": 0.1, "no_positive": "zero"}, LOG(3) / 2),
    "supcon_in without": (
        {"embeddings": SAME, "labels": [0, 1, 1, 2], "temperature": 0.1, "no_positive": "skip"}, LOG(3)
    ),
    # All probabilities equal: -log(1/7) for the center, and alpha times that for each of the 3 positives.
    "paco": (
        {"embeddings": np.zeros((4, 2)), "labels": [0] * 4, "centers": np.zeros((4, 2)), "alpha": 0.5,
         "temperature": 0.3, "normalize": "none"},
        2.5 * LOG(7),
    ),
}  # fmt: skip


@sweep("case", CASES)
def test_known_values(case):
    given, expected = CASES[case]
    name = case.split()[0]
    exact = evaluate(declaration(name), plain(name, **given), "mean")
    assert float(exact.values[0]) == pytest.approx(expected, rel=1e-11, abs=1e-12)


def test_every_loss_has_known_values():
    assert {case.split()[0] for case in CASES} == set(nceref.all_losses())


@every_loss
def test_slopes_are_derivatives(loss_name):
    """Against a central difference of the values: of every float argument, in one direction."""
    rng = np.random.default_rng(5)
    given = {
        name: x + 0.1 * rng.standard_normal(np.shape(x)) if isinstance(x, np.ndarray) and name != "mask" else x
        for name, x in CASES[loss_name][0].items()
    }
    loss, step = declaration(loss_name), 2.0**-30
    arguments = plain(loss_name, **given)
    # The weights of the positives in DCLW are constants by definition, so that no difference shows its gradient.
    checked = [] if loss_name == "dclw" else [p.name for p in loss.parameters if not getattr(p, "constant", True)]
    for name in [name for name in checked if isinstance(arguments[name], np.ndarray | float)]:
        x = arguments[name]
        v = rng.choice([-1.0, 1.0], np.shape(x)) if np.ndim(x) else 1.0
        up, down = (evaluate(loss, {**arguments, name: x + sign * step * v}, "mean").values[0] for sign in (1, -1))
        slope = evaluate(loss, arguments, "mean", along=name, direction=v).slope
        assert abs(float(slope - (up - down) / (2 * step))) < 1e-9 * (1 + abs(float(slope))), name
