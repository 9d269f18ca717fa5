from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import clip, multi_direction
from nceref.tolerance import close

T = 0.5
# Query 1 is its own document; query 2 and its document are opposite. One hard negative each.
QUERIES = np.array([[1.0, 0.0], [0.0, 1.0]])
DOCUMENTS = np.array([[1.0, 0.0], [0.0, -1.0]])
NEGATIVES = np.array([[[0.0, 1.0]], [[-1.0, 0.0]]])
# Cosines of what a row has beside its positive, by row: with documents, queries, from its document, among documents.
OTHERS = {"qd": ([0], [0]), "qq": ([0], [0]), "dq": ([0], [0]), "dd": ([0], [0])}
HARD = {"qd": ([0, -1], [1, 0]), "dd": ([-1], [-1])}
POSITIVES = (1, -1)
SUMS = {
    "all": ("qd", "qq", "dq", "dd"),
    "qd_qq_dd": ("qd", "qq", "dd"),
    "qd_qq": ("qd", "qq"),
    "qd_dd": ("qd", "dd"),
    "qd_dq": ("qd", "dq"),
}


def expected(directions, hard):
    out = []
    for i, positive in enumerate(POSITIVES):
        cosines = [c for name in SUMS[directions] for c in OTHERS[name][i]]
        cosines += [c for name in SUMS[directions] if hard and name in HARD for c in HARD[name][i]]
        twice = 2 if "dq" in SUMS[directions] else 1
        out.append(log(twice + sum(exp((c - positive) / T) for c in cosines)))
    return np.array(out)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("directions", SUMS)
def test_value_is_log_softmax_among_the_sums_of_the_directions(directions, hard):
    negatives = NEGATIVES if hard else None
    rows = multi_direction(QUERIES, DOCUMENTS, negatives, temperature=T, directions=directions, reduction="none")
    assert close(rows, expected(directions, hard))


def test_symmetric_has_a_softmax_for_each_direction():
    rows = multi_direction(QUERIES, DOCUMENTS, NEGATIVES, temperature=T, directions="symmetric", reduction="none")
    forth = [log(1 + exp(-1 / T) + exp(-1 / T) + exp(-2 / T)), log(1 + exp(1 / T) + exp(2 / T) + exp(1 / T))]
    back = [log(1 + exp(-1 / T)), log(1 + exp(1 / T))]
    assert close(rows, (np.array(forth) + back) / 2)


def test_symmetric_is_clip_to_the_last_bit():
    q, d = np.random.default_rng(0).standard_normal((2, 17, 5))
    rows = multi_direction(q, d, temperature=0.25, directions="symmetric", reduction="none")
    both = clip(q, d, logit_scale=4.0, reduction="none")
    assert np.array_equal(rows, (both[0] + both[1]) / 2)


def test_the_positive_twice_leaves_log_2_and_half_the_slope():
    one, other = np.array([[0.6, 0.8]]), np.array([[0.0, 1.0]])
    given = {"temperature": T, "normalize": "none"}
    assert close(multi_direction(one, other, **given), log(2))
    # A negative far away: all mass is on the positive, in both places.
    far = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert close(multi_direction(far, far, temperature=1e-3), log(2))
    assert multi_direction(far, far, temperature=1e-3, directions="qd_qq_dd") == 0.0


def test_gradient_counts_the_positive_twice():
    """dL_i/ds = (P - [positive]) / T for every candidate of row i, P its share of Z_i, of the positive 2 shares where
    it stands twice;  dL_i/dT = (s_ii - sum P s) / T^2"""
    # Each query is its own document and opposite to its hard negative: the positive at 1 twice, four rows of the other
    # pair at 0, the own hard negative at -1, that of the other query at 0 to query and document.
    axes, mass = np.eye(2), 2 * exp(1 / T) + 4 + exp(-1 / T) + 2
    given = {"temperature": T, "normalize": "none", "reduction": "sum"}
    _, grad = multi_direction.value_and_grad(axes, axes, -axes[:, None], **given)
    own, hard = 2 * exp(1 / T) / mass - 1, exp(-1 / T) / mass
    # Of the other pair: once as anchor and once as candidate of both kinds, 4 shares, less that of its hard negative.
    assert close(grad["queries"], ((own - hard) * axes + 3 / mass * (1 - axes)) / T, scale=1)
    assert close(grad["documents"], (own * axes + 3 / mass * (1 - axes)) / T, scale=1)
    assert close(grad["negatives"][:, 0], (hard * axes + 2 / mass * (1 - axes)) / T, scale=1)
    assert close(grad["temperature"], 2 * (hard - own) / T**2, scale=1)


def test_a_small_loss_keeps_its_digits():
    far = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert close(multi_direction(far, far, temperature=0.05, directions="qd_qq_dd"), 3 * exp(-40))


def test_sums_of_sentence_transformers():
    # Version 6.2.0, MultipleNegativesRankingLoss at scale 20 in float64, on rows of this generator.
    drawn = np.random.default_rng(0).standard_normal
    (q, d), n = drawn((2, 4, 6)), drawn((4, 2, 6))
    assert abs(multi_direction(q, d, n, temperature=0.05) - 21.295689) < 5e-7
    assert abs(multi_direction(q, d, n, temperature=0.05, directions="symmetric") - 17.442558) < 5e-7


def test_unknown_directions_are_refused_by_name():
    with pytest.raises(InputError, match="directions"):
        multi_direction(QUERIES, DOCUMENTS, temperature=T, directions="doc_to_query")
