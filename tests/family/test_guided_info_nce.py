from math import exp, log

import numpy as np
import pytest

from nceref.errors import InputError
from nceref.losses import guided_info_nce, mnrl, multi_direction
from nceref.tolerance import close

T = 0.5
AXES = np.eye(3)
# Each query is its own document, so that all cosines but those of the positives are 0.
ROWS = {"queries": AXES, "documents": AXES, "temperature": T, "reduction": "none"}


def guide(query, *documents):
    """Rows of a guide whose queries are all the same, with these cosines of the documents."""
    rows = [[c, np.sqrt(1 - c * c), 0.0] for c in documents]
    return {"guide_queries": np.array([[1.0, 0.0, 0.0]] * 3), "guide_documents": np.array(rows)} | query


def kept(count):
    return log(1 + count * exp(-1 / T))


@pytest.mark.parametrize(
    ("cosines", "more", "counts"),
    [
        # The limit of row i is the cosine of document i: more similar documents are left out.
        ((0.5, 0.2, 0.8), {}, (1, 0, 2)),
        ((0.5, 0.2, 0.8), {"margin": -0.4}, (2, 1, 2)),
        ((0.5, 0.2, 0.8), {"margin": 0.4}, (0, 0, 1)),
        ((0.5, 0.2, 0.8), {"margin": 0.7, "margin_of": "relative"}, (0, 0, 1)),
        # Of a positive at -0.5, half of its size is taken off: the limit falls to -0.75.
        ((-0.5, -0.6, -0.8), {"margin": 0.5, "margin_of": "relative"}, (1, 0, 0)),
    ],
)
def test_candidates_above_the_limit_are_left_out(cosines, more, counts):
    rows = guided_info_nce(**ROWS, **guide({}, *cosines), **more, directions="qd")
    assert close(rows, np.array([kept(n) for n in counts]))


def test_an_equal_similarity_is_not_above():
    given = guide({}, 0.3, 0.3, 0.3)
    rows = guided_info_nce(**ROWS, **given, directions="qd")
    assert close(rows, np.full(3, kept(2)))
    # Queries of the guide are all the same, and so are its documents: as similar as can be, above every limit.
    assert close(guided_info_nce(**ROWS, **given), np.full(3, kept(2)))


def test_the_own_row_is_no_candidate_however_large_the_limit():
    rows = guided_info_nce(**ROWS, margin=-5.0)
    assert close(rows, np.full(3, kept(6)))
    assert close(rows, multi_direction(**ROWS, directions="qd_qq_dd"))


@pytest.mark.parametrize(("candidates", "count"), [("joined", 3), ("own", 1)])
def test_hard_negatives_of_all_queries_or_of_the_own(candidates, count):
    opposite = -AXES[:, None]
    rows = guided_info_nce(**ROWS, negatives=opposite, margin=-3.0, directions="qd", candidates=candidates)
    mass = exp(-2 / T) + (count - 1) * exp(-1 / T) + 2 * exp(-1 / T)
    assert close(rows, np.full(3, log(1 + mass)))


def test_gradient_reaches_what_is_kept_as_anchor_and_as_candidate():
    """dL_i/ds = (P - [positive]) / T for every candidate of row i that is kept, 0 for the others;
    dL_i/dT = (s_ii - sum P s) / T^2"""
    # Row 1 keeps document 2 and row 3 documents 1 and 2; tangentially, the positive is parallel.
    given = ROWS | {"reduction": "sum"}
    _, grad = guided_info_nce.value_and_grad(**given, **guide({}, 0.5, 0.2, 0.8), directions="qd")
    one, each = 1 / (1 + exp(1 / T)), 1 / (2 + exp(1 / T))
    slopes = np.array([[0, one, 0], [0, 0, 0], [each, each, 0]]) / T
    assert close(grad["queries"], slopes)
    assert close(grad["documents"], slopes.T)
    assert close(grad["temperature"], (one + 2 * each) / T**2)
    # All six are kept: a row is pushed off by what it meets in the other tower, and twice by each row of its own.
    _, grad = guided_info_nce.value_and_grad(**given, margin=-5.0)
    each = 1 / (6 + exp(1 / T))
    for name in ("queries", "documents"):
        assert close(grad[name], 3 * each / T * (1 - AXES))
    assert close(grad["temperature"], 3 * 6 * each / T**2)


def test_nothing_of_the_guide_has_a_slope():
    rng = np.random.default_rng(2)
    q, d = rng.standard_normal((2, 6, 4))
    _, grads = guided_info_nce.value_and_grad(q, d, temperature=T, guide_queries=d, guide_documents=q)
    assert set(grads) == {"queries", "documents", "temperature"}
    # A step that moves no candidate across its limit: the slope is that of what is kept, limit or not.
    value, grads = guided_info_nce.value_and_grad(q, d, temperature=T)
    step = 1e-6 * rng.standard_normal(q.shape)
    moved = guided_info_nce(q + step, d, temperature=T) - guided_info_nce(q - step, d, temperature=T)
    assert abs(moved / 2 - np.sum(grads["queries"] * step)) < 1e-12 * max(1, abs(value))


def test_without_a_candidate_left_out_it_is_multiple_negatives_ranking_to_the_last_bit():
    rng = np.random.default_rng(3)
    q, d = rng.standard_normal((2, 300, 7))
    given = {"temperature": 0.1, "reduction": "none"}
    assert np.array_equal(guided_info_nce(q, d, margin=-3.0, directions="qd", **given), mnrl(q, d, **given))


def test_numbers_of_sentence_transformers():
    # Version 6.2.0, GISTEmbedLoss at temperature 0.05 in float64, on rows of this generator; one hard negative a query.
    drawn = np.random.default_rng(0).standard_normal
    (q, d), n = drawn((2, 4, 6)), drawn((4, 2, 6))[:, :1]
    (gq, gd), gn = drawn((2, 4, 6)), drawn((4, 2, 6))[:, :1]
    given = {"guide_queries": gq, "guide_documents": gd, "guide_negatives": gn, "temperature": 0.05}
    for value, more in (
        (16.270429, {}),
        (16.269045, {"margin": 0.1}),
        (16.270429, {"margin": 0.05, "margin_of": "relative"}),
    ):
        assert abs(guided_info_nce(q, d, n, **given, **more) - value) < 5e-7


def test_single_precision_keeps_few_candidates_that_are_above_the_limit():
    # Of 786,000 pairs a few lie within rounding of their limits; with room for the worst rounding it would be 1e-4.
    q, d, gq, gd = np.random.default_rng(0).standard_normal((4, 512, 257)).astype(np.float32)
    single, double = (
        guided_info_nce(a, b, guide_queries=ga, guide_documents=gb, temperature=0.2)
        for a, b, ga, gb in ([x.astype(kind) for x in (q, d, gq, gd)] for kind in (np.float32, np.float64))
    )
    assert abs(single - double) < 2e-5 * double


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"guide_queries": AXES}, "`guide_documents` is missing"),
        ({"guide_queries": AXES, "guide_documents": AXES, "negatives": AXES[:, None]}, "`guide_negatives` is missing"),
        (
            {"guide_queries": AXES, "guide_documents": AXES, "guide_negatives": AXES[:, None]},
            "`guide_negatives` was given without `negatives`",
        ),
        ({"guide_queries": AXES, "guide_documents": AXES[:2]}, "guide_documents"),
    ],
)
def test_a_guide_that_lacks_rows_is_refused(given, reason):
    with pytest.raises(InputError, match=reason):
        guided_info_nce(**ROWS, **given)
