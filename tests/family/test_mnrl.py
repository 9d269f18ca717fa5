from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import mnrl
from nceref.tolerance import close

T = 0.5
# Two queries on their own documents, at right angles; of its two hard negatives one is opposite to a query and one
# at a right angle to it.
QUERIES = DOCUMENTS = np.eye(2)
NEGATIVES = np.array([[[-1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [-1.0, 0.0]]])


def mass(*cosines, a=0.0):
    return sum(exp(c * (1 / T + a)) for c in cosines)


POSITIVE = exp(1 / T)
BY_CANDIDATES = {
    # Of query 1: the other document 0; own negatives -1, 0; those of query 2: 0, -1. Of query 2: 0; -1, 0; 0, 1.
    "joined": (mass(0, -1, 0, 0, -1), mass(0, -1, 0, 0, 1)),
    "own": (mass(0, -1, 0), mass(0, -1, 0)),
    "hard": (mass(-1, 0), mass(-1, 0)),
}


@pytest.mark.parametrize("candidates", BY_CANDIDATES)
def test_value_is_log_softmax_among_the_candidates(candidates):
    rows = mnrl(QUERIES, DOCUMENTS, NEGATIVES, temperature=T, candidates=candidates, reduction="none")
    assert close(rows, np.array([log(1 + x / POSITIVE) for x in BY_CANDIDATES[candidates]]))


def test_without_hard_negatives_the_other_documents_are_left():
    assert close(mnrl(QUERIES, DOCUMENTS, temperature=T), log(1 + exp(-1 / T)))


def test_hardness_adds_the_similarity_of_the_chosen_negatives():
    given = {"temperature": T, "hardness": 3.0, "reduction": "none"}
    expected = {
        "in_batch": [mass(-1, 0) + mass(0, 0, -1, a=3), mass(-1, 0) + mass(0, 0, 1, a=3)],
        "hard": [mass(0, 0, -1) + mass(-1, 0, a=3), mass(0, 0, 1) + mass(-1, 0, a=3)],
        "all": [mass(0, -1, 0, 0, -1, a=3), mass(0, -1, 0, 0, 1, a=3)],
    }
    for which, masses in expected.items():
        rows = mnrl(QUERIES, DOCUMENTS, NEGATIVES, **given, hardness_of=which)
        assert close(rows, np.array([log(1 + x / POSITIVE) for x in masses]))


def test_hardness_is_no_part_of_the_slopes():
    """dL_i/ds_ic = (P_ic - [c = d_i]) / T,  s_ic = q_i.c,  P_i = softmax(s_i/T + a s_i);
    dL_i/dT = (s_ii - sum_c P_ic s_ic) / T^2"""
    # One query, its document and one hard negative at a right angle to the document, cosine 0.6 of the query.
    q, d, n = np.array([[0.6, 0.8]]), np.array([[0.0, 1.0]]), np.array([[[1.0, 0.0]]])
    _, grad = mnrl.value_and_grad(
        q, d, n, temperature=T, hardness=3.0, hardness_of="hard", candidates="hard", normalize="none"
    )
    share = exp(0.6 / T + 3 * 0.6) / (exp(0.8 / T) + exp(0.6 / T + 3 * 0.6))
    assert close(grad["queries"], share / T * np.array([[1.0, -1.0]]))
    assert close(grad["negatives"], share / T * q[:, None])
    assert close(grad["documents"], -share / T * q)
    assert close(grad["temperature"], share * (0.8 - 0.6) / T**2)


def test_sums_of_sentence_transformers():
    # Version 6.2.0, MultipleNegativesRankingLoss at scale 20 in float64, on rows of this generator.
    drawn = np.random.default_rng(0).standard_normal
    (q, d), n = drawn((2, 4, 6)), drawn((4, 2, 6))
    for value, more in (
        (18.359976, {}),
        (24.387566, {"hardness": 9.0, "hardness_of": "in_batch"}),
        (19.263350, {"hardness": 5.0, "hardness_of": "hard"}),
        (21.786251, {"hardness": 5.0, "hardness_of": "all"}),
    ):
        assert abs(mnrl(q, d, n, temperature=0.05, **more) - value) < 5e-7


@pytest.mark.parametrize(
    ("negatives", "given", "reason"),
    [
        (None, {"candidates": "hard"}, "leaves a query its own document alone; pass `negatives`"),
        (None, {"hardness": 1.0, "hardness_of": "hard"}, "there are none; pass `negatives`, or hardness=0"),
        (
            NEGATIVES,
            {"hardness": 1.0, "hardness_of": "in_batch", "candidates": "hard"},
            "which candidates='hard' leaves out; pass 'all'",
        ),
        (NEGATIVES[:1], {}, "must be (N, V, D) = (2, V, 2) to match `queries`, got (1, 2, 2)"),
        (NEGATIVES[:, 0], {}, "must be (N, V, D)"),
        (0 * NEGATIVES, {}, "`negatives` sample 0, view 0, is zero and has no direction"),
    ],
)
def test_what_means_nothing_is_refused(negatives, given, reason):
    with pytest.raises(InputError) as refusal:
        mnrl(QUERIES, DOCUMENTS, negatives, temperature=T, **given)
    assert reason in str(refusal.value)
